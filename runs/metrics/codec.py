"""Bytes of points: the landing row, the sealed chunk, and the arrays that both become.

A chunk's hash covers a canonical JSON header and then each column's raw little-endian bytes, so it does
not depend on how the columns are compressed.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

from workbench.contracts.canonical import canonical_bytes, parse_canonical
from workbench.contracts.errors import RecordError

SCHEMA = "workbench.metric-chunk/1"
FINITE, NAN, PLUS_INFINITY, MINUS_INFINITY, ABSENT = range(5)
NONFINITE = {NAN: "nan", PLUS_INFINITY: "inf", MINUS_INFINITY: "-inf"}
LANDING = np.dtype(
    [("series", "<i8"), ("step", "<i8"), ("time_ms", "<i8"), ("value", "<f8"), ("flag", "u1")]
)  # one logged point; ``series`` is a row number of this database, so the row is never evidence
COLUMNS = (("step", "<i8"), ("time_ms", "<i8"), ("value", "<f8"), ("flag", "u1"))
LEVEL = 3
WORTH = 0.95  # of its length, above which a compressed column is not worth the time to read it


@dataclass(frozen=True)
class Points:
    """Parallel arrays of one series, in order of (step, time). ``value`` is 0 where ``flag`` is not FINITE.

    ``flag``: FINITE, NAN, PLUS_INFINITY, MINUS_INFINITY, or ABSENT (measured nowhere here, which is no zero).
    The rest is None for logged points: ``version`` policy version, ``trajectories`` and ``tokens`` so far
    (-1 unknown), ``wall`` seconds since the run's start (nan unknown), ``count`` denominator (-1 none),
    ``subject`` uid texts of the group, trajectory or update behind a point ("" none).
    """

    step: NDArray[np.int64]
    time_ms: NDArray[np.int64]
    value: NDArray[np.float64]
    flag: NDArray[np.uint8]
    version: NDArray[np.int64] | None = None
    trajectories: NDArray[np.int64] | None = None
    tokens: NDArray[np.int64] | None = None
    wall: NDArray[np.float64] | None = None
    count: NDArray[np.int64] | None = None
    subject: Sequence[str] | None = None

    def __len__(self) -> int:
        return len(self.step)


def flag_of(value: float | None) -> int:
    """How a value is stored: FINITE, NAN, an infinity, or ABSENT for None."""
    if value is None:
        return ABSENT
    if math.isfinite(value):
        return FINITE
    return NAN if math.isnan(value) else (PLUS_INFINITY if value > 0 else MINUS_INFINITY)


def flags_of(values: NDArray[np.float64]) -> NDArray[np.uint8]:
    """``flag_of`` of each value; nothing is ABSENT."""
    flags = np.zeros(len(values), np.uint8)
    flags[np.isnan(values)] = NAN
    flags[values == np.inf] = PLUS_INFINITY
    flags[values == -np.inf] = MINUS_INFINITY
    return flags


def empty() -> Points:
    """No points."""
    return Points(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.uint8))


def merge(parts: Sequence[Points]) -> Points:
    """Parts of one series as one, in order of (step, time, value, flag), each different point once.

    A point that is sent twice is one point; two values at one step and time are two.
    """
    if len(parts) == 1:
        columns = [getattr(parts[0], name) for name, _ in COLUMNS]
    else:
        columns = [np.concatenate([getattr(part, name) for part in parts]) for name, _ in COLUMNS]
    step, time, value, flag = columns if columns and len(parts) else [getattr(empty(), name) for name, _ in COLUMNS]
    if len(step) > 1 and not _strictly_later(step, time):
        order = np.lexsort((flag, value, time, step))
        step, time, value, flag = step[order], time[order], value[order], flag[order]
        fresh = (np.diff(step) != 0) | (np.diff(time) != 0) | (value[1:] != value[:-1]) | (flag[1:] != flag[:-1])
        keep = np.concatenate(([True], fresh))
        step, time, value, flag = step[keep], time[keep], value[keep], flag[keep]
    return Points(step=step, time_ms=time, value=value, flag=flag)


def joined(parts: Sequence[Points]) -> Points:
    """Parts one after the other, nothing dropped."""
    return _points({name: np.concatenate([getattr(part, name) for part in parts]) for name, _ in COLUMNS})


def _strictly_later(step: NDArray[np.int64], time: NDArray[np.int64]) -> bool:
    """Whether (step, time) grows at every point: the order of an undisturbed log, where nothing is to be done."""
    if bool(np.all(step[1:] > step[:-1])):
        return True
    return bool(np.all((step[1:] > step[:-1]) | ((step[1:] == step[:-1]) & (time[1:] > time[:-1]))))


def part(points: Points, start: int, stop: int) -> Points:
    """Points of the positions from ``start`` to before ``stop``."""
    return _points({name: getattr(points, name)[start:stop] for name, _ in COLUMNS})


def take(points: Points, positions: NDArray[Any]) -> Points:
    """Points of these positions, in their order."""
    return _points({name: getattr(points, name)[positions] for name, _ in COLUMNS})


def points_of(rows: NDArray[Any]) -> Points:
    """Landing rows of one series as arrays, in the order in which they stand."""
    return _points({name: np.ascontiguousarray(rows[name]) for name, _ in COLUMNS})


def _points(columns: dict[str, NDArray[Any]]) -> Points:
    return Points(step=columns["step"], time_ms=columns["time_ms"], value=columns["value"], flag=columns["flag"])


def _header(series_uid: str, n: int) -> dict[str, Any]:
    return {"schema": SCHEMA, "series": series_uid, "points": n, "columns": [list(item) for item in COLUMNS]}


def chunk_sha256(series_uid: str, points: Points) -> str:
    """SHA-256 of a chunk's canonical header and raw columns."""
    found = hashlib.sha256(canonical_bytes(_header(series_uid, len(points))))
    for name, kind in COLUMNS:
        found.update(np.ascontiguousarray(getattr(points, name), dtype=kind).tobytes())
    return found.hexdigest()


def write_chunk(series_uid: str, points: Points) -> tuple[bytes, str]:
    """Payload and SHA-256. Payload: u32 length, canonical JSON header with part lengths, compressed columns.

    Integer columns are stored as differences: steps and times compress to almost nothing. A column that
    compression hardly shrinks (noise) is stored as it is, which a part of its full length says.
    """
    if not len(points):
        raise RecordError("points: got none, expected at least one in a chunk")
    pack = zstandard.ZstdCompressor(level=LEVEL)
    parts = []
    for name, kind in COLUMNS:
        column = np.ascontiguousarray(getattr(points, name), dtype=kind)
        if kind == "<i8":
            column = np.diff(column, prepend=np.int64(0))
        raw = column.tobytes()
        packed = pack.compress(raw)
        parts.append(packed if len(packed) < WORTH * len(raw) else raw)
    header = canonical_bytes({**_header(series_uid, len(points)), "parts": [len(part) for part in parts]})
    return struct.pack("<I", len(header)) + header + b"".join(parts), chunk_sha256(series_uid, points)


def read_chunk(payload: bytes | memoryview) -> tuple[str, Points]:
    """Series uid and points. Raises ``RecordError`` for bytes that are no chunk."""
    header, raw = _raw_columns(payload)
    columns = {name: np.empty(header["points"], kind) for name, kind in COLUMNS}
    _decode(raw, columns, 0)
    return str(header["series"]), _points(columns)


def read_chunks(payloads: Sequence[bytes | memoryview], points: int) -> Points:
    """Chunks of one series one after the other, decoded into their place. Raises ``RecordError``.

    ``points``: how many they hold together.
    """
    columns = {name: np.empty(points, kind) for name, kind in COLUMNS}
    place = 0
    for payload in payloads:
        header, raw = _raw_columns(payload)
        if place + header["points"] > points:
            raise RecordError(f"metric chunk: got more than {points} points, expected as many as their rows say")
        _decode(raw, columns, place)
        place += header["points"]
    if place != points:
        raise RecordError(f"metric chunk: got {place} points, expected {points} as their rows say")
    return _points(columns)


def _raw_columns(payload: bytes | memoryview) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Header, and the columns as they were compressed: integers as differences."""
    data = memoryview(payload)
    try:
        (size,) = struct.unpack_from("<I", data)
        header = parse_canonical(bytes(data[4 : 4 + size]))
        if header["schema"] != SCHEMA or header["columns"] != [list(item) for item in COLUMNS]:
            raise ValueError(f"schema: got {header['schema']!r}, expected {SCHEMA} and its columns")
        n, offset = int(header["points"]), 4 + size
        unpack, found = zstandard.ZstdDecompressor(), {}
        for (name, kind), length in zip(COLUMNS, header["parts"], strict=True):
            width = n * np.dtype(kind).itemsize
            part = data[offset : offset + length]
            raw = part if length == width else unpack.decompress(part, max_output_size=width)
            found[name] = np.frombuffer(raw, dtype=kind)
            if len(found[name]) != n:
                raise ValueError(f"points: got {len(found[name])} in a column, expected {n}")
            offset += length
    except (KeyError, TypeError, ValueError, struct.error, zstandard.ZstdError) as error:
        raise RecordError(f"metric chunk: {error}, expected a chunk as write_chunk writes it") from error
    return header, found


def _decode(raw: Mapping[str, NDArray[Any]], columns: Mapping[str, NDArray[Any]], place: int) -> None:
    """Write the columns of one chunk into their place."""
    for name, kind in COLUMNS:
        target = columns[name][place : place + len(raw[name])]
        if kind == "<i8":
            np.cumsum(raw[name], out=target)
        else:
            target[:] = raw[name]
