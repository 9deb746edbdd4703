"""The way from files to items that every format shares: units, records, cursors, listing."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .items import MALFORMED, NOT_IMPORTED, REFUSED, TRUNCATED, Cursor, Item, ProblemItem
from .limits import ImportRefused, Limits

_DIGITS = re.compile(r"(\d+)")


class At:
    """The place of one record; hands out the cursor of each item made from it, in order."""

    def __init__(self, file: str, unit: str, number: int = 0, offset: int = 0):
        self.file, self.unit, self.number, self.offset, self.part = file, unit, number, offset, 0

    def next(self) -> Cursor:
        """Cursor of the next item of this record."""
        self.part += 1
        return Cursor(self.file, self.number, self.offset, self.part)

    def problem(self, what: str, got: object, expected: str, kind: str = MALFORMED) -> ProblemItem:
        """A piece that is lost, or (``not_imported``) left out on purpose."""
        return ProblemItem(self.next(), kind, self.unit, what, _short(got), expected)

    def refused(self, what: str, got: object, expected: str) -> ProblemItem:
        """A piece that is not read because of what it is or how large."""
        return self.problem(what, got, expected, REFUSED)

    def left_out(self, what: str, got: object, expected: str) -> ProblemItem:
        """A sound piece of a kind that is not kept; no loss."""
        return self.problem(what, got, expected, NOT_IMPORTED)

    def truncated(self, what: str, got: object, expected: str) -> ProblemItem:
        """The file ends inside this record: its cursor says to read it again when the file has grown."""
        return ProblemItem(
            Cursor(self.file, self.number, self.offset, 0), TRUNCATED, self.unit, what, _short(got), expected
        )


def _short(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    text = text.encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")
    return text if len(text) <= 200 else text[:200] + "…"


@dataclass(frozen=True)
class Record:
    """One line, record, row or document with its place. ``problem``: it could not be read; ``payload`` is None."""

    at: At
    payload: Any = None
    problem: ProblemItem | None = None


@dataclass(frozen=True)
class Unit:
    """One file of a source. ``read(number, offset)`` starts at that record; ``parse`` makes its items.

    Both are lazy and hold at most one record. ``number`` counts from 1.
    """

    file: str
    read: Callable[[int, int], Iterator[Record]]
    parse: Callable[[Record], Iterable[Item]]


def drive(units: Iterable[Unit], resume: Cursor | None) -> Iterator[Item]:
    """Items of all units in order, after ``resume``. Raises ``ImportRefused`` where its file is not among them."""
    waiting = resume
    for unit in units:
        if waiting is not None and unit.file != waiting.file:
            continue
        start, waiting = waiting, None
        number, offset, done = (start.number, start.offset, start.part) if start else (1, 0, 0)
        for record in _readable(unit, max(number, 1), offset):
            skip = done if start is not None and record.at.number == start.number else 0
            for item in _contained(unit, record):
                if not skip or item.cursor.part > skip:
                    yield item
    if waiting is not None:
        raise ImportRefused(f"cursor.file: got {waiting.file!r}, expected a file of the source")


def _readable(unit: Unit, number: int, offset: int) -> Iterator[Record]:
    """The unit's records; a file that cannot be read on is a problem of that file alone."""
    try:
        yield from unit.read(number, offset)
    except OSError as error:
        at = At(unit.file, "file")
        yield Record(at, problem=at.problem("file", error.strerror or str(error), "a file that can be read"))


def _contained(unit: Unit, record: Record) -> Iterator[Item]:
    """Items of a record. A shape that no reader foresaw is a problem of that record alone, never of the import."""
    if record.problem is not None:
        yield record.problem
        return
    try:
        yield from unit.parse(record)
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        yield record.at.problem("record", what, "what the format says")


def natural(name: str) -> tuple[Any, ...]:
    """Sort key: digits compare as numbers, so that step_10 follows step_9."""
    return tuple(
        (1, int(part), "") if part.isdecimal() and part.isascii() else (0, 0, part)
        for part in _DIGITS.split(name)
        if part
    )


@dataclass(frozen=True)
class Found:
    """A file of the source: name below it, and where it lies."""

    name: str
    path: Path


def list_files(source: Path, limits: Limits) -> tuple[list[Found], list[ProblemItem]]:
    """Regular files of a source in natural order. Links are refused, never followed. A file is its own source."""
    if not source.is_dir():
        return [Found(source.name, source)], []
    found: list[Found] = []
    problems: list[ProblemItem] = []
    for folder, folders, files in os.walk(source, followlinks=False):
        for name in sorted(folders + files):
            path = Path(folder) / name
            relative = path.relative_to(source).as_posix()
            if path.is_symlink():
                problems.append(At(relative, "file").refused("link", "a symbolic link", "a regular file"))
                if name in folders:
                    folders.remove(name)
            elif name in files and path.is_file():
                found.append(Found(relative, path))
            elif name in files:
                problems.append(At(relative, "file").refused("file", "a pipe, socket or device", "a regular file"))
        if len(found) > limits.files:
            raise ImportRefused(f"files: got more than {limits.files} in {source.name}, expected at most that many")
    found.sort(key=lambda item: natural(item.name))
    return found, problems


def problem_units(problems: Sequence[ProblemItem]) -> list[Unit]:
    """Problems that were found while the source was listed, as units of their own."""

    def unit(problem: ProblemItem) -> Unit:
        def read(number: int, offset: int) -> Iterator[Record]:
            yield Record(At(problem.cursor.file, problem.unit, problem.cursor.number), problem=problem)

        return Unit(problem.cursor.file, read, lambda record: ())

    return [unit(problem) for problem in problems]
