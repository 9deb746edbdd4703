"""TensorBoard event files: every record, with its lengths and checksums checked here.

A record is u64-LE length, masked CRC-32C of those 8 bytes, the bytes, masked CRC-32C of the bytes
(TFRecord). An event is a protocol buffer; only the fields that carry scalars, texts and
hyperparameters are read. A record with a wrong checksum is named and skipped; a wrong checksum of a
length ends the file, since nothing says where the next record begins.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from . import protobuf
from .items import Item, MetricItem, ParameterItem
from .limits import Limits
from .protobuf import BadMessage
from .reading import At, Found, Record, Unit
from .values import Misread, integer, metric_name

_HEAD = struct.Struct("<QI")
_LENGTH = struct.Struct("<Q")
_MASK_DELTA = 0xA282EAD8
_SCALAR_TYPES = {1: ("<f", 5), 2: ("<d", 6), 3: ("<i", 7), 9: ("<q", 10)}  # dtype: packing, field of TensorProto
_STRING = 7


def _table() -> tuple[int, ...]:
    rows = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ 0x82F63B78 if value & 1 else value >> 1
        rows.append(value)
    return tuple(rows)


_TABLE = _table()


def masked_crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli), rotated and offset as the record format wants it."""
    crc, table = 0xFFFFFFFF, _TABLE
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF


def _records(stream: BinaryIO, size: int, file: str, limits: Limits, number: int, offset: int) -> Iterator[Record]:
    while offset < size:
        at = At(file, "record", number, offset)
        head = stream.read(_HEAD.size)
        if len(head) < _HEAD.size:
            yield Record(at, problem=at.truncated("head of a record", f"{len(head)} bytes", "12 bytes"))
            return
        length, check = _HEAD.unpack(head)
        if masked_crc32c(head[:8]) != check:
            expected = "its checksum; what follows cannot be found"
            yield Record(at, problem=at.problem("length of a record", f"{length} with a wrong checksum", expected))
            return
        end = offset + _HEAD.size + length + 4
        if end > size:
            yield Record(at, problem=at.truncated("record", f"{size - offset} bytes", f"{end - offset} bytes"))
            return
        if length > limits.record:
            stream.seek(end)
            yield Record(at, problem=at.refused("length of a record", f"{length} bytes", f"at most {limits.record}"))
        else:
            data = stream.read(length)
            (check,) = struct.unpack("<I", stream.read(4))
            if masked_crc32c(data) == check:
                yield Record(at, data)
            else:
                yield Record(at, problem=at.problem("record", f"{length} bytes with a wrong checksum", "its checksum"))
        offset, number = end, number + 1


def _tensor(data: bytes, at: At, tag: str) -> float | bytes | None:
    """The one number or text of a tensor; None for more than one, or another type."""
    dtype, values, content = 0, [], b""
    for field, value in protobuf.fields(data):
        if field == 1:
            dtype = protobuf.varint(value)
        elif field == 4:
            content = protobuf.data(value)
        elif field in (5, 6, 7, 8, 10):
            values.append((field, value))
    if dtype == _STRING:
        return protobuf.data(values[0][1]) if len(values) == 1 else None
    if dtype not in _SCALAR_TYPES:
        return None
    packing, holder = _SCALAR_TYPES[dtype]
    if content:
        return float(struct.unpack(packing, content)[0]) if len(content) == struct.calcsize(packing) else None
    found = [number for field, value in values if field == holder for number in protobuf.numbers(value, packing)]
    return float(found[0]) if len(found) == 1 else None


def _hyperparameters(content: bytes, at: At) -> Iterator[Item]:
    """Entries of ``session_start_info`` of the hyperparameter plugin; other messages of it carry none."""
    for field, value in protobuf.fields(content):
        if field != 3:
            continue
        for inner, entry in protobuf.fields(protobuf.data(value)):
            if inner == 1:
                name, setting = "", ""
                for part, piece in protobuf.fields(protobuf.data(entry)):
                    if part == 1:
                        name = protobuf.text(piece)
                    elif part == 2:
                        setting = protobuf.struct_value(protobuf.data(piece))
                yield ParameterItem(at.next(), metric_name(name), setting)


def _value(data: bytes, at: At, step: int, wall_time_ms: int, labels: dict[str, str]) -> Iterator[Item]:
    tag, plugin, content, kind = "", "", b"", "nothing"
    scalar: float | bytes | None = None
    for field, value in protobuf.fields(data):
        if field == 1:
            tag = protobuf.text(value)
        elif field == 2:
            scalar = protobuf.numbers(value, "<f")[0]
        elif field == 8:
            scalar, kind = _tensor(protobuf.data(value), at, tag), "a tensor"
        elif field == 9:
            plugin, content = _plugin(protobuf.data(value))
        elif field in (3, 4, 5, 6):
            kind = {3: "an old histogram", 4: "an image", 5: "a histogram", 6: "audio"}[field]
    if plugin == "hparams":
        yield from _hyperparameters(content, at)
    elif isinstance(scalar, float):
        yield MetricItem(at.next(), metric_name(tag), step, scalar, wall_time_ms, labels)
    elif isinstance(scalar, bytes) and plugin == "text":
        yield ParameterItem(at.next(), metric_name(tag.removesuffix("/text_summary")), scalar.decode("utf-8"))
    else:
        yield at.left_out(f"value of {tag!r}", f"{kind} ({plugin})" if plugin else kind, "a scalar, text or setting")


def _plugin(metadata: bytes) -> tuple[str, bytes]:
    name, content = "", b""
    for field, value in protobuf.fields(metadata):
        if field == 1:
            for inner, piece in protobuf.fields(protobuf.data(value)):
                if inner == 1:
                    name = protobuf.text(piece)
                elif inner == 2:
                    content = protobuf.data(piece)
    return name, content


def _event(record: Record, labels: dict[str, str]) -> Iterator[Item]:
    at, step, wall, summaries = record.at, 0, 0.0, []
    for field, value in protobuf.fields(record.payload):
        if field == 1:
            wall = protobuf.numbers(value, "<d")[0]
        elif field == 2:
            step = protobuf.signed(value)
        elif field == 5:
            summaries.append(protobuf.data(value))
    milliseconds = integer(round(wall * 1000), "wall_time")
    assert milliseconds is not None
    for summary in summaries:
        for field, value in protobuf.fields(summary):
            if field == 1:
                yield from _value(protobuf.data(value), at, step, milliseconds, labels)


def _parse(record: Record, labels: dict[str, str]) -> Iterator[Item]:
    try:
        yield from _event(record, labels)
    except Misread as error:
        yield record.at.problem(error.what, error.got, error.expected)
    except (BadMessage, UnicodeDecodeError, OverflowError, ValueError, struct.error) as error:
        yield record.at.problem("event", str(error), "an event of TensorBoard")


def is_event_file(name: str) -> bool:
    """Whether a file's name is that of an event file."""
    return ".tfevents." in name.rsplit("/", 1)[-1]


def looks_like_events(path: Path) -> bool:
    """Whether the first record of a file has a right checksum of its length."""
    with path.open("rb") as stream:
        head = stream.read(_HEAD.size)
    return len(head) == _HEAD.size and masked_crc32c(head[:8]) == _HEAD.unpack(head)[1]


def units(files: list[Found], limits: Limits) -> Iterator[Unit]:
    """One unit for each event file. Files below a folder carry it as the label ``run``."""
    for found in files:
        if len(files) > 1 and not is_event_file(found.name):
            continue
        folder = found.name.rpartition("/")[0]
        yield _unit(found, {"run": folder} if folder else {}, limits)


def _unit(found: Found, labels: dict[str, str], limits: Limits) -> Unit:
    def read(number: int, offset: int) -> Iterator[Record]:
        with found.path.open("rb") as stream:
            size = stream.seek(0, 2)
            stream.seek(offset)
            if size == 0:
                at = At(found.name, "record")
                yield Record(at, problem=at.truncated("file", "0 bytes", "at least one record"))
            yield from _records(stream, size, found.name, limits, number, offset)

    return Unit(found.name, read, lambda record: _parse(record, labels))
