"""Zip archives from elsewhere, read without trust.

Every name is checked (no absolute path, no ``..``, no backslash, no NUL, no duplicate), members may
not overlap, and a member is unpacked through a counter that stops at its declared size, at the caps of
``Limits`` and at the ratio. Nothing is ever extracted under a name from the archive. An archive
whose directory is missing (a truncated file) is walked from its front as far as it is whole.
Methods: stored, deflate, zstd.
"""

from __future__ import annotations

import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO

import zstandard

from .items import ProblemItem
from .limits import Limits
from .reading import At

_LOCAL = struct.Struct("<4s5H3I2H")
_LOCAL_MAGIC = b"PK\x03\x04"
_STORED, _DEFLATE, _ZSTD = 0, 8, 93
_CHUNK = 1 << 18
_LONGEST_NAME = 1000


class BadMember(ValueError):
    """A member that cannot be read; ``kind`` of the problem: refused or malformed or truncated."""

    def __init__(self, kind: str, what: str, got: object, expected: str):
        self.kind, self.what, self.got, self.expected = kind, what, got, expected
        super().__init__(f"{what}: got {got}, expected {expected}")

    def problem(self, at: At) -> ProblemItem:
        """As an item at ``at``; a cut-off piece is read again when the file has grown."""
        if self.kind == "truncated":
            return at.truncated(self.what, self.got, self.expected)
        return at.problem(self.what, self.got, self.expected, self.kind)


@dataclass(frozen=True)
class Member:
    """One file of an archive: sizes as declared, ``header`` the offset of its local header."""

    name: str
    header: int
    stored: int
    size: int
    method: int
    crc: int
    encrypted: bool


def unsafe_name(name: str) -> str:
    """Why a member's name is refused, "" for a good one."""
    if not name or len(name) > _LONGEST_NAME:
        return f"a name of {len(name)} characters"
    if "\\" in name or any(ord(letter) < 32 for letter in name):
        return "a backslash or control character in the name"
    if name.startswith("/") or name[1:2] == ":" or ".." in name.split("/"):
        return "a path that leaves the archive"
    return ""


def _from_directory(path: Path) -> list[Member]:
    with zipfile.ZipFile(path) as archive:
        return [
            Member(
                info.orig_filename, info.header_offset, info.compress_size, info.file_size, info.compress_type,
                info.CRC, bool(info.flag_bits & 1),
            )
            for info in archive.infolist()
            if not info.is_dir()
        ]  # fmt: skip


def _zip64(extra: bytes, size: int, stored: int) -> tuple[int, int]:
    place = 0
    while place + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, place)
        values = extra[place + 4 : place + 4 + length]
        if kind == 1 and len(values) >= 16:
            return struct.unpack_from("<QQ", values)
        place += 4 + length
    return size, stored


def _from_front(path: Path, limits: Limits) -> tuple[list[Member], int]:
    """Whole members from the front of a file, and the offset where they end."""
    members: list[Member] = []
    offset = 0
    with path.open("rb") as stream:
        end = stream.seek(0, 2)
        while len(members) <= limits.members:
            stream.seek(offset)
            head = stream.read(_LOCAL.size)
            if len(head) < _LOCAL.size or head[:4] != _LOCAL_MAGIC:
                break
            _, _, flags, method, _, _, crc, stored, size, name_length, extra_length = _LOCAL.unpack(head)
            name, extra = stream.read(name_length), stream.read(extra_length)
            if 0xFFFFFFFF in (size, stored):
                size, stored = _zip64(extra, size, stored)
            after = offset + _LOCAL.size + name_length + extra_length + stored
            if flags & 8 or after > end:  # sizes only behind the bytes, or bytes missing
                break
            text = name.decode("utf-8" if flags & 0x800 else "cp437", "replace")
            if not text.endswith("/"):
                members.append(Member(text, offset, stored, size, method, crc, bool(flags & 1)))
            offset = after
    return members, offset


@dataclass(frozen=True)
class Listing:
    """Members of an archive that may be read, in the archive's order, and what is wrong with the rest."""

    members: list[Member]
    problems: list[ProblemItem]


def list_members(path: Path, file: str, limits: Limits) -> Listing:
    """The members of a zip. A broken directory gives what is whole at the front, marked truncated."""
    problems: list[ProblemItem] = []
    try:
        found = _from_directory(path)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError, struct.error) as error:
        found, end = _from_front(path, limits)
        at = At(file, "archive", 0, end)
        problems.append(at.truncated("directory of the archive", str(error), "a whole zip archive"))
    if len(found) > limits.members:
        at = At(file, "archive")
        return Listing([], [*problems, at.refused("members", len(found), f"at most {limits.members}")])
    good: list[Member] = []
    end, total, names = 0, 0, set()
    for position, member in enumerate(sorted(found, key=lambda item: item.header)):
        at = At(f"{file}!{member.name[:200]}#{position}", "member", 0, member.header)
        why = unsafe_name(member.name)
        if not why and member.name in names:
            why = "the name a second time"
        if not why and member.header < end:
            why = "bytes that overlap another member"
        if not why and total + member.size > limits.archive:
            why = f"over {limits.archive} bytes in all"
        end = max(end, member.header + _LOCAL.size + member.stored)
        if why:
            problems.append(at.refused("member", why, "a plain member inside the archive"))
            continue
        names.add(member.name)
        total += member.size
        good.append(member)
    return Listing(good, problems)


def _chunks(stream: BinaryIO, member: Member) -> Iterator[bytes]:
    left = member.stored
    while left > 0:
        chunk = stream.read(min(_CHUNK, left))
        if not chunk:
            raise BadMember("truncated", "member", f"{member.stored - left} bytes", f"{member.stored} bytes")
        left -= len(chunk)
        yield chunk


def _inflated(stream: BinaryIO, member: Member) -> Iterator[bytes]:
    if member.method == _STORED:
        yield from _chunks(stream, member)
    elif member.method == _DEFLATE:
        inflate = zlib.decompressobj(-15)
        for chunk in _chunks(stream, member):
            while chunk:
                yield inflate.decompress(chunk, _CHUNK)
                chunk = inflate.unconsumed_tail
        while rest := inflate.decompress(inflate.unconsumed_tail, _CHUNK):
            yield rest
        if not inflate.eof:
            raise BadMember("malformed", "member", "deflate data without an end", "whole deflate data")
    else:
        reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(
            _Joined(_chunks(stream, member)),  # type: ignore[arg-type]
            read_across_frames=True,
        )
        while piece := reader.read(_CHUNK):
            yield piece


class _Joined:
    """A file of chunks, as far as the decompressor reads it."""

    def __init__(self, chunks: Iterator[bytes]):
        self._chunks = chunks

    def read(self, size: int = -1) -> bytes:
        """The next chunk, of any length; b"" at the end."""
        return next(self._chunks, b"")


def unpack(path: Path, member: Member, limits: Limits) -> Iterator[bytes]:
    """Bytes of a member in bounded chunks. Raises ``BadMember`` before it hands out more than was declared."""
    if member.encrypted or member.method not in (_STORED, _DEFLATE, _ZSTD):
        got = "an encrypted member" if member.encrypted else f"compression {member.method}"
        raise BadMember("refused", "member", got, "a plain member: stored, deflate or zstd")
    if member.size > limits.member:
        raise BadMember("refused", "size of a member", f"{member.size} bytes", f"at most {limits.member}")
    if member.size > limits.ratio_floor and member.size > limits.ratio * max(member.stored, 1):
        raise BadMember("refused", "ratio of a member", member.size // max(member.stored, 1), f"at most {limits.ratio}")
    count = crc = 0
    with path.open("rb") as stream:
        stream.seek(member.header)
        head = stream.read(_LOCAL.size)
        if len(head) < _LOCAL.size or head[:4] != _LOCAL_MAGIC:
            raise BadMember("malformed", "member", "no local header", "a local header where the directory says")
        stream.seek(sum(_LOCAL.unpack(head)[9:]), 1)
        try:
            for piece in _inflated(stream, member):
                count += len(piece)
                if count > member.size:
                    raise BadMember("refused", "size of a member", f"over {member.size} bytes", "its declared size")
                crc = zlib.crc32(piece, crc)
                if piece:
                    yield piece
        except (zlib.error, zstandard.ZstdError) as error:
            raise BadMember("malformed", "member", str(error), "whole compressed data") from error
    if count != member.size or crc != member.crc:
        raise BadMember(
            "malformed", "member", f"{count} bytes with checksum {crc:08x}", f"{member.size}, {member.crc:08x}"
        )


def read_member(path: Path, member: Member, limits: Limits, most: int) -> bytes:
    """A small member whole. Raises ``BadMember``, also for one of more than ``most`` bytes."""
    if member.size > most:
        raise BadMember("refused", "size of a member", f"{member.size} bytes", f"at most {most}")
    return b"".join(unpack(path, member, limits))


def copy_member(path: Path, member: Member, limits: Limits) -> IO[bytes]:
    """A member as an unnamed temporary file on disk, at its beginning. Raises ``BadMember``."""
    copy = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    try:
        for piece in unpack(path, member, limits):
            copy.write(piece)
    except BaseException:
        copy.close()
        raise
    copy.seek(0)
    return copy
