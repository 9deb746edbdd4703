"""Problems of a draft, each beside its field and beside its line of the text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import yaml
from django.utils.translation import gettext as _

from runs.presenters.catalogue.planform import FormList, FormSection, anchor, walk
from runs.presenters.catalogue.wordings import WORDINGS
from runs.presenters.catalogue.yamltext import Path, dotted_of, lines_of, path_of
from runs.presenters.controls import KIND_WORDS
from runs.presenters.patterns import read
from workbench.contracts.errors import Problem

_ENDPOINT = re.compile(r"endpoints\.(.+)\.([a-z]+(?:\.kind|\.arms)?)")


@dataclass(frozen=True)
class Placed:
    """One problem; ``line`` from 1, ``anchor`` the input that it stands beside, empty where there is none."""

    field: str
    got: str
    expected: str
    line: int
    anchor: str


_RANGE = re.compile(r"(int|float) in \[(\S+), (\S+)\]")
_ITEMS = re.compile(r"(\d+) to (\d+) items")
_CONTROL = re.compile(r"control (\w+) (passed|failed)")
_ADMITTED = re.compile(r"control (\w+) (passes|fails): record (\d+) of its task set")


def _kind_word(kind: str) -> str:
    return str(KIND_WORDS[kind][0]) if kind in KIND_WORDS else kind


def in_words(text: str) -> str:
    """What the validator got or expected, in the reader's language where its wording is a fixed one."""
    ranged, items = _RANGE.fullmatch(text), _ITEMS.fullmatch(text)
    if ranged:
        kind = _("a whole number") if ranged.group(1) == "int" else _("a number")
        if ranged.group(3) == "None":
            return _("%(kind)s from %(low)s") % {"kind": kind, "low": ranged.group(2)}
        return _("%(kind)s, %(low)s to %(high)s") % {"kind": kind, "low": ranged.group(2), "high": ranged.group(3)}
    if items:
        return _("%(low)s to %(high)s items") % {"low": items.group(1), "high": items.group(2)}
    control, admitted = _CONTROL.fullmatch(text), _ADMITTED.fullmatch(text)
    if control:
        words = _("control %(kind)s passed") if control.group(2) == "passed" else _("control %(kind)s failed")
        return words % {"kind": _kind_word(control.group(1))}
    if admitted:
        words = (
            _("control %(kind)s passes: record %(n)s of its task set")
            if admitted.group(2) == "passes"
            else _("control %(kind)s fails: record %(n)s of its task set")
        )
        return words % {"kind": _kind_word(admitted.group(1)), "n": admitted.group(3)}
    for start, words in (
        ("one of ", _("one of %(rest)s")),
        ("no such field; known: ", _("no such field; known: %(rest)s")),
    ):
        if text.startswith(start):
            return words % {"rest": text.removeprefix(start)}
    seed = _("a decimal string below 2**64, without leading zeros")
    fixed = {
        "nothing": _("nothing"), "a value": _("a value"), "a list": _("a list"), "an object": _("an object"),
        "str": _("text"), "bool": _("true or false"), "YAML or JSON text": _("YAML or JSON text"),
        "each key once": _("each key once"), "each seed once": _("each seed once"), "each once": _("each once"),
        "seed": seed, "a decimal string below 2**64, without leading zeros": seed,
        "equal in both arms, or declared as treatment": _("equal in both arms, or declared as treatment"),
        "the same value in both arms": _("the same value in both arms"),
        "a difference between the arms": _("a difference between the arms"),
    }  # fmt: skip
    return fixed.get(text) or read(WORDINGS, text, lambda _name, value: value) or text


def translated(problems: list[Problem]) -> list[Problem]:
    """The same faults with what was got and expected in the reader's language."""
    return [Problem(item.field, in_words(item.got), in_words(item.expected)) for item in problems]


def _spots(problem: Problem, document: dict[str, Any] | None) -> Iterable[Path]:
    """Where a problem may stand, the likeliest place first."""
    named = problem.field
    endpoint = _ENDPOINT.fullmatch(named)
    rows = (document or {}).get("endpoints")
    if endpoint and isinstance(rows, list):
        for i, row in enumerate(rows):
            if isinstance(row, dict) and str(row.get("id", "?")) == endpoint.group(1):
                yield ("endpoints", i, *path_of(endpoint.group(2)))
    head, separator, rest = named.partition(": ")
    if separator and head.startswith("arms"):
        yield (*path_of(head), "overrides", *path_of(rest))
        yield path_of(rest)
    if separator and head.startswith("strict_pairs"):
        yield (*path_of(head), *(() if head.endswith("treatment") else ("treatment",)))
    yield path_of(head)


def _stands(document: Any, path: Path) -> bool:
    for step in path:
        member = isinstance(document, dict) and isinstance(step, str) and step in document
        item = isinstance(document, list) and isinstance(step, int) and step < len(document)
        if not (member or item):
            return False
        document = document[step]
    return True


def place(
    problems: list[Problem],
    *,
    root: yaml.Node | None,
    document: dict[str, Any] | None,
    sections: list[FormSection],
    line: int | None = None,
) -> list[Placed]:
    """Give each problem its line and hang it on the field of ``sections`` that it is about.

    ``line``: where the text itself is at fault.
    """
    fields = {part.path: part for part in walk(sections)}
    by_section = {section.key: section for section in sections}
    found = []
    for problem in problems:
        if document is None:
            found.append(Placed(problem.field, in_words(problem.got), in_words(problem.expected), line or 1, ""))
            continue
        spots = list(_spots(problem, document))
        spot = next((item for item in spots if _stands(document, item)), spots[-1])
        holder, path = None, spot
        while holder is None and path:
            holder = fields.get(dotted_of(path))
            path = path[:-1]
        place_of = holder or by_section.get(str(spot[0]) if spot else "") or sections[0]
        placed = Placed(
            problem.field, in_words(problem.got), in_words(problem.expected), lines_of(root, spot),
            place_of.anchor if not isinstance(holder, FormList) else anchor(holder.path),
        )  # fmt: skip
        place_of.problems.append(placed)
        found.append(placed)
    return sorted(found, key=lambda item: item.line)
