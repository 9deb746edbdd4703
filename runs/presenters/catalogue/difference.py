"""What differs between two plans: field by field over the completed documents, and line by line of their texts."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any

from runs.actions.plans import parse_plan_text, plan_body
from runs.models import Plan, PlanVersion
from runs.presenters.catalogue.yamltext import MISSING, dump_plan
from workbench.contracts.canonical import canonical_bytes
from workbench.contracts.errors import CanonicalError, PlanInvalid
from workbench.contracts.plan_schema import validate_fields

MAX_LINES = 4000
_NAMES = {"arms": "key", "endpoints": "id", "splits": "split"}


@dataclass(frozen=True)
class Side:
    """One plan of a comparison, defaults filled in. ``document`` None: unreadable; ``whole``: each field is sound."""

    label: str
    text: str
    document: dict[str, Any] | None
    whole: bool
    frozen: bool


@dataclass(frozen=True)
class Row:
    """One field; ``here`` and ``there`` say whether each side has it."""

    path: str
    left: Any
    right: Any
    here: bool
    there: bool


@dataclass(frozen=True)
class Difference:
    """``lines``: (kind, text) with kind same, added, removed or place; None where the texts are too long."""

    different: list[Row]
    equal: list[tuple[str, Any]]
    lines: list[tuple[str, str]] | None


def draft_side(plan: Plan, text: str | None = None) -> Side:
    """A draft, or the text that stands in its editor."""
    text = plan.draft_text if text is None else text
    label = f"{plan.study.slug} / {plan.slug}"
    try:
        document = parse_plan_text(text)
    except PlanInvalid:
        return Side(label, text, None, False, False)
    complete, problems = validate_fields(document)
    known = {key: value for key, value in document.items() if key not in complete}
    return Side(label, text, {**complete, **known}, not problems, False)


def version_side(version: PlanVersion) -> Side:
    """A frozen version: its complete document, written as text."""
    document = plan_body(version)["plan"]
    label = f"{version.plan.study.slug} / {version.plan.slug} {version.sha256[:12]}"
    return Side(label, dump_plan(document), document, True, True)


def leaves(value: Any, prefix: str = "") -> dict[str, Any]:
    """Fields by path; arms, endpoints and splits by their names, so that an added one shifts no other."""
    if isinstance(value, dict) and value:
        found: dict[str, Any] = {}
        for key, item in value.items():
            found |= leaves(item, f"{prefix}.{key}" if prefix else str(key))
        return found
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        name = _NAMES.get(prefix.rsplit(".", 1)[-1], "")
        found = {}
        for i, item in enumerate(value):
            place = f"{prefix}[{item.get(name, i) if name else i}]"
            found |= leaves(item, place if not any(key.startswith(place) for key in found) else f"{prefix}[{i}]")
        return found
    return {prefix: value}


def _same(a: Any, b: Any) -> bool:
    try:
        return canonical_bytes(a) == canonical_bytes(b)
    except CanonicalError:
        return type(a) is type(b) and a == b


def compare(left: Side, right: Side) -> Difference:
    """Every field of both, and their texts."""
    a, b = leaves(left.document or {}), leaves(right.document or {})
    different, equal = [], []
    for path in [*a, *(path for path in b if path not in a)]:
        one, two = a.get(path, MISSING), b.get(path, MISSING)
        if one is not MISSING and two is not MISSING and _same(one, two):
            equal.append((path, one))
        else:
            different.append(
                Row(path, None if one is MISSING else one, None if two is MISSING else two, path in a, path in b)
            )
    return Difference(different, equal, text_lines(left.text, right.text))


def text_lines(left: str, right: str) -> list[tuple[str, str]] | None:
    """Changed lines of two texts with three lines around; None for texts that are too long to compare."""
    before, after = left.splitlines(), right.splitlines()
    if max(len(before), len(after)) > MAX_LINES:
        return None
    kinds = {"+": "added", "-": "removed", " ": "same", "@": "place"}
    found = list(difflib.unified_diff(before, after, lineterm="", n=3))[2:]
    return [(kinds[line[0]], line if line[0] == "@" else line[1:]) for line in found]
