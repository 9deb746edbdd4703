"""Held bytes hashed again: right, in order, an unreadable file contained, and as fast as ``hashlib`` itself."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import pytest

from evidence.hashing import cores, file_sha256, hash_held
from workbench.blobs import BlobStore

FILES, SIZE = 8, 48 * 2**20


def test_each_blob_in_order(tmp_path: Path) -> None:
    """Forty blobs, one changed, one gone, one that is no name."""
    store = BlobStore(tmp_path)
    names = [store.put(bytes([number]) * (number * 1000)) for number in range(40)]
    changed = store.path(names[7])
    changed.chmod(0o644)
    changed.write_bytes(b"other")
    store.path(names[9]).unlink()
    found = list(hash_held(store, [*names, "../x"], threads=3))
    assert [item.sha256 for item in found] == [*names, "../x"]
    assert [item.sha256 for item in found if not item.intact] == [names[7], names[9], "../x"]
    assert found[7].found == hashlib.sha256(b"other").hexdigest()
    assert found[9].found is None
    assert "no file" in found[9].trouble
    assert "expected 64" in found[40].trouble
    assert found[5].size == 5000


def test_empty_list_and_file(tmp_path: Path) -> None:
    """SHA-256 of nothing, and no work."""
    store = BlobStore(tmp_path)
    assert list(hash_held(store, [])) == []
    (tmp_path / "nothing").write_bytes(b"")
    assert file_sha256(tmp_path / "nothing") == (hashlib.sha256(b"").hexdigest(), 0)


def measure(root: Path) -> dict[str, tuple[float, float]]:
    """(bytes per second of processor time, per second of the clock), best of five rounds.

    Of ``hashlib.file_digest`` in a loop on one thread, of ours on one thread and on every core. Processor time is
    what a thread costs, whatever else the machine does.
    """
    store = BlobStore(root)
    names = [store.put(os.urandom(SIZE)) for _ in range(FILES)]

    def plain() -> None:
        for name in names:
            with store.path(name).open("rb") as file:
                assert hashlib.file_digest(file, "sha256").hexdigest() == name

    def ours(threads: int) -> None:
        assert all(item.intact for item in hash_held(store, names, threads=threads))

    best: dict[str, tuple[float, float]] = {}
    for _ in range(5):
        for label, work in (("plain", plain), ("one", lambda: ours(1)), ("all", lambda: ours(cores()))):
            started, spent = time.perf_counter(), time.process_time()
            work()
            pair = FILES * SIZE / (time.process_time() - spent), FILES * SIZE / (time.perf_counter() - started)
            before = best.get(label, (0.0, 0.0))
            best[label] = max(before[0], pair[0]), max(before[1], pair[1])
    return best


@pytest.mark.slow
def test_as_fast_as_hashlib(tmp_path: Path) -> None:
    """At least 90 % of ``hashlib.file_digest`` for each thread, with one and with as many as there are cores;
    on an idle machine the clock shows that the cores work at once."""
    found = measure(tmp_path)
    print({name: [f"{value / 1e6:.0f} MB/s" for value in pair] for name, pair in found.items()})
    assert found["one"][0] >= 0.9 * found["plain"][0]
    assert found["all"][0] >= 0.9 * found["plain"][0]
    if cores() > 1 and os.getloadavg()[0] < 0.5:
        assert found["all"][1] >= 1.5 * found["plain"][1]
