"""What differs between two versions of a source: values by pointer where both are JSON, and lines."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from evidence.actions.sources import BytesUnavailable, read_version
from evidence.binding.selectors import SelectorError
from evidence.models import SourceVersion
from evidence.presenters.source_values import leaves, parse
from evidence.reading import WHOLE_MOST, text_of_bytes

LINES_MOST, VALUES_MOST, TEXT_MOST, LEAVES_MOST = 4_000, 200, 400, 50_000
AROUND = 3


@dataclass(frozen=True)
class DifferentLine:
    """``kind``: same, removed, added or skipped. Numbers from 1, None on the side that does not have the line."""

    kind: str
    before: int | None
    after: int | None
    text: str


@dataclass(frozen=True)
class DifferentValue:
    """A value at a pointer on both sides; None where a side does not have it."""

    pointer: str
    before: str | None
    after: str | None


@dataclass
class Difference:
    """``equal``: the same hash. ``trouble``: why lines cannot be compared. ``more``: values that are not listed."""

    before: SourceVersion
    after: SourceVersion
    lines: list[DifferentLine] = field(default_factory=list)
    values: list[DifferentValue] = field(default_factory=list)
    added: int = 0
    removed: int = 0
    more: int = 0
    trouble: str = ""

    @property
    def equal(self) -> bool:
        """Whether both versions name the same bytes."""
        return self.before.sha256 == self.after.sha256


def compare(before: SourceVersion, after: SourceVersion) -> Difference:
    """The difference from one version to another. Bytes that are not held leave the hashes alone, and say so."""
    found = Difference(before, after)
    if found.equal:
        return found
    form = after.source.form
    try:
        for version in (before, after):
            if (version.size or 0) > WHOLE_MOST:
                raise SelectorError(f"size: got {version.size} bytes, expected at most {WHOLE_MOST} to compare lines")
        old, new = read_version(before), read_version(after)
        if form == "json":
            _values(found, old, new)
        _lines(found, text_of_bytes(old, form).lines, text_of_bytes(new, form).lines)
    except (BytesUnavailable, SelectorError) as error:
        found.trouble = str(error)
    return found


def _values(found: Difference, old: bytes, new: bytes) -> None:
    """Values that were changed, added or removed, by pointer; a document that is no JSON has none."""
    try:
        first = dict(islice(leaves(parse(old)), LEAVES_MOST))
        second = dict(islice(leaves(parse(new)), LEAVES_MOST))
    except (SelectorError, RecursionError):
        return
    for pointer in [*first, *(pointer for pointer in second if pointer not in first)]:
        one, two = first.get(pointer), second.get(pointer)
        if one == two:
            continue
        if len(found.values) >= VALUES_MOST:
            found.more += 1
            continue
        found.values.append(DifferentValue(pointer, one and one[:TEXT_MOST], two and two[:TEXT_MOST]))


def _common(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """(equal lines at the beginning, equal lines at the end), which need no comparison."""
    head, most = 0, min(len(old), len(new))
    while head < most and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < most - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return head, tail


def _lines(found: Difference, old: Sequence[str], new: Sequence[str]) -> None:
    """Changed lines with three around. Raises ``SelectorError`` for too many lines that may differ."""
    head, tail = _common(old, new)
    start = max(0, head - AROUND)
    one = old[start : len(old) - max(0, tail - AROUND)]
    two = new[start : len(new) - max(0, tail - AROUND)]
    if max(len(one), len(two)) > LINES_MOST:
        raise SelectorError(f"lines: got {max(len(one), len(two))} that may differ, expected at most {LINES_MOST}")
    matcher = difflib.SequenceMatcher(None, one, two, autojunk=False)
    before = 0
    for group in matcher.get_grouped_opcodes(AROUND):
        first = start + group[0][1]
        if first > before:
            found.lines.append(DifferentLine("skipped", None, None, str(first - before)))
        for tag, a, b, c, d in group:
            if tag == "equal":
                for place in range(b - a):
                    text = one[a + place][:TEXT_MOST]
                    found.lines.append(DifferentLine("same", start + a + place + 1, start + c + place + 1, text))
                continue
            found.lines += [DifferentLine("removed", start + n + 1, None, one[n][:TEXT_MOST]) for n in range(a, b)]
            found.lines += [DifferentLine("added", None, start + n + 1, two[n][:TEXT_MOST]) for n in range(c, d)]
            found.removed += b - a
            found.added += d - c
        before = start + group[-1][2]
    if before < len(old) and found.lines:
        found.lines.append(DifferentLine("skipped", None, None, str(len(old) - before)))
