"""Archives made to break a reader: bombs, paths that leave, members that overlap, encrypted or damaged ones."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from pathlib import Path

import pytest

from tests.importers import samples
from tests.importers.samples import SOURCES
from tests.importers.test_hostile import BOMB, measured, problems, read, zip_of
from tests.sweeps import sweep
from workbench.importers import RolloutItem, open_import


@pytest.mark.parametrize("name", ["inspect", "telescope"])
def test_a_zip_bomb(name: str, tmp_path: Path) -> None:
    """300 MiB of zeros in about 300 KiB: refused by its declared size; with a false size, when it passes that size."""
    source = SOURCES[name](tmp_path)
    whole = sum(isinstance(item, RolloutItem) for item in open_import(source, name))
    member = "samples/bomb_epoch_1.json" if name == "inspect" else "samples_data_cancelled.parquet"
    with (
        zipfile.ZipFile(source, "a", zipfile.ZIP_DEFLATED) as archive,
        archive.open(member, "w", force_zip64=True) as out,
    ):
        for _ in range(BOMB >> 20):
            out.write(bytes(1 << 20))
    found, rollouts, growth = measured(source, name)
    assert rollouts == whole and growth < 200
    assert [text for text in found if member in text and "expected at most" in text]
    data = bytearray(source.read_bytes())
    with zipfile.ZipFile(source) as archive:
        header = archive.getinfo(member).header_offset
    directory = data.rindex(b"PK\x01\x02")
    assert data[directory + 46 :].startswith(member.encode()) and header < directory
    size = struct.pack("<I", 10_000_000)
    place = data.index(struct.pack("<Q", BOMB), directory) if struct.pack("<Q", BOMB) in data[directory:] else None
    if place is None:
        data[directory + 24 : directory + 28] = size
    else:
        data[place : place + 8] = struct.pack("<Q", 10_000_000)
    source.write_bytes(bytes(data))
    found, rollouts, growth = measured(source, name)
    assert rollouts == whole and growth < 200
    assert [text for text in found if member in text and "declared size" in text]


@pytest.mark.parametrize(
    ("member", "why"),
    sweep(
        [
            ("../outside.json", "a path that leaves the archive"),
            ("samples/../../outside.json", "a path that leaves the archive"),
            ("/tmp/outside.json", "a path that leaves the archive"),
            ("C:/outside.json", "a path that leaves the archive"),
            ("samples\\..\\outside.json", "a backslash or control character in the name"),
            ("samples/" + "x" * 1000, "a name of 1008 characters"),
        ],
        1,
    ),
)
def test_paths_that_leave_an_archive(member: str, why: str, tmp_path: Path) -> None:
    source = samples.inspect(tmp_path)
    with zipfile.ZipFile(source, "a") as archive:
        archive.writestr(member, "{}")
    before = sorted(tmp_path.parent.rglob("*"))
    items = read(source, "inspect")
    assert [(item.kind, item.got) for item in problems(items)] == [("refused", why)]
    assert sum(isinstance(item, RolloutItem) for item in items) == 4
    assert sorted(tmp_path.parent.rglob("*")) == before


def test_archives_with_too_much_or_twice_the_same(tmp_path: Path) -> None:
    many = zip_of(tmp_path / "many.eval", {f"samples/{place}.json": b"{}" for place in range(20)})
    assert [item.what for item in problems(read(many, "inspect", members=10))] == ["members"]
    source = samples.inspect(tmp_path)
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(source, "a") as archive:
        archive.writestr("samples/a_epoch_1.json", "{}")
    assert [item.got for item in problems(read(source, "inspect"))] == ["the name a second time"]


def test_members_that_share_bytes(tmp_path: Path) -> None:
    """Two entries of the directory that point at one local header: the second is refused."""
    path = zip_of(tmp_path / "overlap.eval", {"header.json": b'{"eval": {}}', "samples/b.json": b'{"eval": {}}'})
    data = bytearray(path.read_bytes())
    second = data.rindex(b"PK\x01\x02")
    data[second + 42 : second + 46] = struct.pack("<I", 0)
    path.write_bytes(bytes(data))
    assert "bytes that overlap another member" in [item.got for item in problems(read(path, "inspect"))]


def test_encrypted_unknown_and_damaged_members(tmp_path: Path) -> None:
    source = samples.inspect(tmp_path)
    whole = source.read_bytes()
    with zipfile.ZipFile(source, "a", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("samples/bz.json", "{}")
    assert [item.got for item in problems(read(source, "inspect"))] == ["compression 12"]
    source.write_bytes(whole)
    with zipfile.ZipFile(source) as archive:
        start = archive.getinfo("samples/a_epoch_1.json").header_offset
    damaged = bytearray(whole)
    damaged[start + 90] ^= 0xFF
    source.write_bytes(bytes(damaged))
    items = read(source, "inspect")
    assert [item.kind for item in problems(items)] == ["malformed"]
    assert problems(items)[0].cursor.file.endswith("!samples/a_epoch_1.json")
    assert sum(isinstance(item, RolloutItem) for item in items) == 3


def test_json_lines_of_a_zip_are_checked_by_crc(tmp_path: Path) -> None:
    """A stored member whose bytes were changed: named with both checksums, not imported."""
    sample = json.dumps({"id": "a", "epoch": 1, "messages": [], "output": {}}).encode()
    path = zip_of(tmp_path / "x.eval", {"header.json": b'{"eval": {}}', "samples/a.json": sample}, zipfile.ZIP_STORED)
    path.write_bytes(path.read_bytes().replace(b'"epoch": 1', b'"epoch": 2'))
    (problem,) = problems(read(path, "inspect"))
    assert problem.what == "member" and f"{zlib.crc32(sample):08x}" in problem.expected
