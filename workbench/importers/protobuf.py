"""The wire form of protocol buffers, as far as event files need it: tags, varints, lengths, packed numbers."""

from __future__ import annotations

import struct
from collections.abc import Iterator


class BadMessage(ValueError):
    """Bytes that are no message."""


Value = int | bytes  # a varint, or the bytes of a fixed or length-delimited field


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if place >= len(data) or shift > 63:
            raise BadMessage(f"varint at byte {place}: got no end, expected at most 10 bytes")
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, place


def fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """Field numbers and values of a message, in order. Raises ``BadMessage``."""
    place, end = 0, len(data)
    while place < end:
        tag, place = _varint(data, place)
        kind = tag & 7
        if kind == 0:
            value, place = _varint(data, place)
            yield tag >> 3, value
            continue
        if kind == 2:
            length, place = _varint(data, place)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise BadMessage(f"field {tag >> 3}: got wire type {kind}, expected 0, 1, 2 or 5")
        if place + length > end:
            raise BadMessage(f"field {tag >> 3}: got {end - place} bytes, expected {length}")
        yield tag >> 3, data[place : place + length]
        place += length


def data(value: Value) -> bytes:
    """The bytes of a length-delimited field."""
    if isinstance(value, int):
        raise BadMessage("field: got a number, expected bytes")
    return value


def text(value: Value) -> str:
    """The text of a field."""
    return data(value).decode("utf-8")


def varint(value: Value) -> int:
    """An unsigned number."""
    if not isinstance(value, int):
        raise BadMessage("field: got bytes, expected a number")
    return value


def signed(value: Value) -> int:
    """A number in two's complement of 64 bits."""
    found = varint(value)
    return found - (1 << 64) if found >= 1 << 63 else found


def numbers(value: Value, packing: str) -> list[float]:
    """Fixed-size numbers of a field, packed or single; varints for the integer packings."""
    if isinstance(value, int):
        return [signed(value)]
    if packing in ("<i", "<q"):
        found, place = [], 0
        while place < len(value):
            number, place = _varint(value, place)
            found.append(float(signed(number)))
        return found
    size = struct.calcsize(packing)
    if not value or len(value) % size:
        raise BadMessage(f"numbers: got {len(value)} bytes, expected a multiple of {size}")
    return [item[0] for item in struct.iter_unpack(packing, value)]


def struct_value(message: bytes) -> str:
    """``google.protobuf.Value`` as text: number, text, truth; others as their kind."""
    for field, value in fields(message):
        if field == 1:
            return "null"
        if field == 2:
            return repr(numbers(value, "<d")[0])
        if field == 3:
            return text(value)
        if field == 4:
            return "true" if varint(value) else "false"
        return {5: "(an object)", 6: "(a list)"}.get(field, "")
    return ""
