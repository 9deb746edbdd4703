"""The content-addressed store: atomic, durable, and hashed again at each reading."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.blobs import BlobCorrupt, BlobMissing, BlobStore
from workbench.contracts.canonical import sha256_hex


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "blobs")


def test_layout_and_round_trip(store: BlobStore) -> None:
    """ab/cd/abcd...; the name is the SHA-256 of the bytes; a second put changes nothing."""
    sha256 = store.put(b"hello")
    assert sha256 == sha256_hex(b"hello") == "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    assert store.path(sha256) == store.root / "2c" / "f2" / sha256
    before = store.path(sha256).stat()
    assert store.put(b"hello") == sha256
    assert store.path(sha256).stat().st_ino == before.st_ino
    assert (store.get(sha256), store.exists(sha256), store.size(sha256)) == (b"hello", True, 5)
    assert [item for item in store.path(sha256).parent.iterdir()] == [store.path(sha256)]


@given(data=st.binary(max_size=300), start=st.integers(0, 300), length=st.integers(0, 300))
@settings(max_examples=40, deadline=None)
def test_ranges(tmp_path_factory: pytest.TempPathFactory, data: bytes, start: int, length: int) -> None:
    """A range inside the blob equals the slice; one that reaches beyond it is refused."""
    store = BlobStore(tmp_path_factory.getbasetemp() / "ranges")
    sha256 = store.put(data)
    if start + length <= len(data) or length == 0:
        assert store.open_range(sha256, start, length) == data[start : start + length]
    else:
        with pytest.raises(BlobCorrupt, match=f"expected {length}"):
            store.open_range(sha256, start, length)


@pytest.mark.parametrize(
    "name", ["", "..", "../../etc/passwd", "A" * 64, "g" * 64, "0" * 63, "0" * 65, "0" * 63 + "\n", "0" * 62 + "/."]
)
def test_only_hashes_are_names(store: BlobStore, name: str) -> None:
    """Anything but 64 lower-case hexadecimal digits is refused before the file system is touched."""
    for method in (store.path, store.get, store.exists, store.delete, store.size):
        with pytest.raises(ValueError, match="expected 64 lower-case hexadecimal digits"):
            method(name)
    with pytest.raises(ValueError, match="64 lower-case"):
        store.open_range(name, 0, 1)


def test_missing_and_corrupt_differ(store: BlobStore) -> None:
    """No file, and a file with one changed byte."""
    with pytest.raises(BlobMissing):
        store.get("0" * 64)
    with pytest.raises(BlobMissing):
        store.open_range("0" * 64, 0, 1)
    with pytest.raises(BlobMissing):
        store.size("0" * 64)
    with pytest.raises(ValueError, match="expected none below 0"):
        store.open_range("0" * 64, -1, 1)
    sha256 = store.put(b"hello")
    store.path(sha256).chmod(0o644)
    store.path(sha256).write_bytes(b"hellp")
    with pytest.raises(BlobCorrupt, match=sha256):
        store.get(sha256)


@pytest.mark.parametrize("damage", [b"", b"hel", b"hellp"])
def test_put_repairs_a_damaged_file(store: BlobStore, damage: bytes) -> None:
    """Torn or changed content under a name is replaced by the right bytes."""
    sha256 = store.put(b"hello")
    store.path(sha256).chmod(0o644)
    store.path(sha256).write_bytes(damage)
    assert store.put(b"hello") == sha256
    assert store.get(sha256) == b"hello"


def test_delete_and_iterate(store: BlobStore) -> None:
    """Names in order; unfinished writes and strangers are no blobs; deleting twice says so."""
    assert list(store.iterate()) == []
    names = sorted(store.put(bytes([value])) for value in range(20))
    folder = store.path(names[0]).parent
    (folder / ".put-abc").write_bytes(b"half")
    (folder / ("0" * 64 if not names[0].startswith("0000") else "f" * 64)).write_bytes(b"stranger")
    assert list(store.iterate()) == names
    assert (store.delete(names[0]), store.delete(names[0])) == (True, False)
    assert list(store.iterate()) == names[1:]


def test_order_of_durability(store: BlobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """fsync of the file, then the rename, then fsync of the directory: a row may commit only after all three."""
    done: list[str] = []
    fsync, replace = os.fsync, os.replace

    def spy_fsync(descriptor: int) -> None:
        done.append("directory" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "file")
        fsync(descriptor)

    def spy_replace(source: str, target: str) -> None:
        done.append("rename")
        replace(source, target)

    store.put(b"first")  # makes directories
    monkeypatch.setattr(os, "fsync", spy_fsync)
    monkeypatch.setattr(os, "replace", spy_replace)
    store.put(b"second")
    assert done[-3:] == ["file", "rename", "directory"]


def test_failed_write_leaves_nothing(store: BlobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk at the rename: no blob, no temporary file."""

    def full(source: str, target: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        store.put(b"hello")
    monkeypatch.undo()
    assert list(store.iterate()) == []
    assert [path for path in store.root.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("stream", [False, True])
def test_a_disk_that_fills_up_while_bytes_are_written_leaves_nothing(
    store: BlobStore, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    """The error says what it is; the same bytes are stored once there is room."""
    store.put(b"before")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            store.put_stream([b"he", b"llo"], 100) if stream else store.put(b"hello")
    assert [path.name for path in store.root.rglob("*") if path.is_file()] == [sha256_hex(b"before")]
    assert store.put(b"hello") == sha256_hex(b"hello") and store.get(sha256_hex(b"hello")) == b"hello"


def test_two_processes_put_the_same_bytes(store: BlobStore) -> None:
    """Racing writers of equal content both succeed and leave one intact blob."""
    code = (
        "import sys; from pathlib import Path; from workbench.blobs import BlobStore\n"
        "store = BlobStore(Path(sys.argv[1]))\n"
        "for value in range(30): store.put(bytes([value]) * 1000)\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(store.root)]) for _ in range(2)]
    assert [process.wait(60) for process in running] == [0, 0]
    assert len(list(store.iterate())) == 30
    assert all(store.get(name) for name in store.iterate())


def test_no_framework_is_loaded() -> None:
    """The engine and the client import the store without Django."""
    code = "import sys, workbench.blobs; sys.exit('django' in sys.modules or 'torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
