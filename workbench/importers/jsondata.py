"""JSON from elsewhere, bounded: one document, or one a line.

NaN and Infinity are accepted (trainers write them) and stay what they are. Bytes that are no UTF-8, NUL
bytes, text that UTF-8 cannot carry, deep nesting and too many values are named, never repaired.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from .items import REFUSED, Item, ProblemItem
from .limits import Limits
from .reading import At, Found, Record, Unit

_CHUNK = 1 << 20


def _deeper_than(value: Any, limit: int) -> bool:
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > limit:
            return True
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below += [child for child in item.values() if isinstance(child, dict | list)]
            elif isinstance(item, list):
                below += [child for child in item if isinstance(child, dict | list)]
        level = below
    return False


def parse_document(data: bytes, at: At, limits: Limits) -> tuple[Any, ProblemItem | None]:
    """Value of one JSON document, or why there is none."""
    size = data.count(b",") + data.count(b"[") + data.count(b"{")
    if size > limits.values:
        return None, at.refused("values of one document", f"up to {size}", f"at most {limits.values}")
    try:
        value = json.loads(data.decode("utf-8"))
        if b"\\u" in data:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return None, at.problem("text", "a lone surrogate", "text that UTF-8 can carry")
    except UnicodeDecodeError as error:
        return None, at.problem("bytes", f"byte {error.start}: {error.reason}", "UTF-8")
    except RecursionError:
        return None, at.refused("nesting", "too deep to parse", f"at most {limits.nesting} levels")
    except ValueError as error:
        return None, at.problem("JSON", str(error), "one JSON document")
    if size > limits.nesting and _deeper_than(value, limits.nesting):
        return None, at.refused("nesting", f"more than {limits.nesting} levels", f"at most {limits.nesting}")
    return value, None


def parse_object(data: bytes, at: At, limits: Limits) -> tuple[dict[str, Any] | None, ProblemItem | None]:
    """As ``parse_document``, for an object."""
    value, problem = parse_document(data, at, limits)
    if problem is None and not isinstance(value, dict):
        return None, at.problem("JSON", type(value).__name__, "an object")
    return value, problem


def _skip_line(stream: BinaryIO) -> tuple[int, bool]:
    """Bytes up to and with the next newline, and whether there was one."""
    skipped = 0
    while chunk := stream.readline(_CHUNK):
        skipped += len(chunk)
        if chunk.endswith(b"\n"):
            return skipped, True
    return skipped, False


def _record(line: bytes, at: At, limits: Limits) -> Record:
    value, problem = parse_object(line, at, limits)
    if problem is not None and not line.endswith(b"\n") and problem.kind != REFUSED:
        at.part = 0
        problem = at.truncated("last line", f"{len(line)} bytes without an end", "a whole JSON object and a newline")
    return Record(at, value, problem)


def lines_of(stream: BinaryIO, file: str, limits: Limits, number: int = 1, offset: int = 0) -> Iterator[Record]:
    """One object a line from an open stream that stands at ``offset``; blank lines count but yield nothing."""
    while line := stream.readline(limits.line + 1):
        at = At(file, "line", number, offset)
        offset, number = offset + len(line), number + 1
        if len(line) > limits.line and not line.endswith(b"\n"):
            rest, _ = _skip_line(stream)
            got = f"{len(line) + rest} bytes"
            offset += rest
            yield Record(at, problem=at.refused("length of a line", got, f"at most {limits.line} bytes"))
        elif line.strip():
            yield _record(line, at, limits)


def read_lines(path: Path, file: str, limits: Limits, number: int = 1, offset: int = 0) -> Iterator[Record]:
    """One object a line of a file from line ``number``, which begins at byte ``offset``."""
    with path.open("rb") as stream:
        stream.seek(offset)
        yield from lines_of(stream, file, limits, number, offset)


def line_unit(found: Found, limits: Limits, parse: Callable[[Record], Iterable[Item]]) -> Unit:
    """A file of one object a line as a unit."""

    def read(number: int, offset: int) -> Iterator[Record]:
        return read_lines(found.path, found.name, limits, number, offset)

    return Unit(found.name, read, parse)


def read_document(path: Path, file: str, limits: Limits) -> Record:
    """A file that is one JSON object."""
    at = At(file, "document", 1)
    with path.open("rb") as stream:
        data = stream.read(limits.line + 1)
    if len(data) > limits.line:
        return Record(
            at, problem=at.refused("size of a document", f"over {limits.line} bytes", f"at most {limits.line}")
        )
    value, problem = parse_object(data, at, limits)
    return Record(at, value, problem)
