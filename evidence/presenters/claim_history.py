"""The versions of a claim: what differs from one to the next, and which values each showed."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _

from evidence.models import Claim, ClaimFigure, ClaimVersion
from evidence.presenters import reviews as shown

HISTORY_MOST = 40


@dataclass(frozen=True)
class VersionView:
    """One version of a claim: what differs from the one before, and the values that it showed when it was written."""

    version: ClaimVersion
    changes: tuple[tuple[Any, tuple[tuple[str, str], ...]], ...]
    shown: tuple[tuple[str, str, bool], ...]


_WORDS = re.compile(r"\[\[[^\[\]]*\]\]|\{\{[^{}]*\}\}|[一-鿿]|[^\s一-鿿\[{]+|\s+|.", re.DOTALL)


def differences(before: str, after: str) -> tuple[tuple[str, str], ...]:
    """(same, del or ins; text) runs that lead from one text to the other, by words and by Chinese signs."""
    first, second = _WORDS.findall(before), _WORDS.findall(after)
    found: list[tuple[str, str]] = []
    for what, a, b, c, d in difflib.SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        if what == "equal":
            found.append(("same", "".join(first[a:b])))
            continue
        found += [(name, text) for name, text in (("del", "".join(first[a:b])), ("ins", "".join(second[c:d]))) if text]
    return tuple(found)


COMPARED: tuple[tuple[str, Any], ...] = (
    ("text_en", _("English")), ("text_zh", _("Chinese")), ("kind", _("kind")), ("plan_version", _("plan")),
    ("endpoint", _("endpoint")), ("scope_en", _("scope")), ("scope_zh", _("scope, Chinese")),
    ("denominator_en", _("denominator")), ("denominator_zh", _("denominator, Chinese")),
    ("missing_en", _("still missing")), ("missing_zh", _("still missing, Chinese")), ("held_to", _("lowered to")),
)  # fmt: skip


def _said(version: ClaimVersion, name: str) -> str:
    """A column of a version as the history shows it."""
    value = getattr(version, name)
    if name == "kind":
        return str(shown.CLAIM_KINDS.get(value, value))
    return str(value or "") if name != "plan_version" or value is None else f"{value.plan.slug} {value.sha256[:12]}"


def history_of(claim: Claim) -> tuple[tuple[VersionView, ...], int]:
    """The newest versions, newest first, each beside the one before it. Three queries."""
    rows = list(
        claim.versions.select_related("actor", "plan_version__plan")
        .defer("plan_version__bytes")
        .order_by("-number")[: HISTORY_MOST + 1]
    )
    values: dict[int, dict[str, tuple[str, bool]]] = {}
    figures = ClaimFigure.objects.filter(version__in=[row.pk for row in rows]).select_related(
        "figure", "figure_version"
    )
    for item in figures.order_by("language", "ordinal"):
        old = item.figure.current_id != item.figure_version_id
        value = shown.value_of(item.figure_version, item.figure.state if not old else "bound")
        values.setdefault(item.version_id, {}).setdefault(item.figure.key, (value, old))
    found = []
    for at, row in enumerate(rows[:HISTORY_MOST]):
        before = rows[at + 1] if at + 1 < len(rows) else None
        changes = tuple(
            (word, differences(_said(before, name), _said(row, name)) if before else (("same", _said(row, name)),))
            for name, word in COMPARED
            if _said(row, name) != (_said(before, name) if before is not None else "")
        )
        old_values = tuple((key, value, old) for key, (value, old) in values.get(row.pk, {}).items())
        found.append(VersionView(row, changes, old_values))
    total = rows[0].number if rows else 0
    return tuple(found), max(0, total - len(found))
