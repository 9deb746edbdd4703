"""Words of states, relations and groups, and exact values, for the journal and for pages at rest."""

from __future__ import annotations

from typing import Any

from django import template
from django.utils.translation import gettext_lazy as _

from evidence.journal import phrases as p

register = template.Library()
GROUP_WORDS: dict[str, Any] = {
    p.RAN: _("What ran"),
    p.FINISHED: _("What finished"),
    p.FAILED: _("What failed"),
    p.CORRECTED: _("What was corrected"),
    p.DECIDED: _("What was decided"),
    p.ADDED: _("What was added"),
    p.OPENED: _("Problems opened"),
    p.CLOSED: _("Problems closed"),
    p.PENDING: _("Pending at the end of the day"),
}
WORDS: dict[str, Any] = {
    "supported": _("supported"), "partly": _("partly supported"), "not_established": _("not established"),
    "pending": _("pending"), "refuted": _("refuted"), "withdrawn": _("withdrawn"), "stale": _("stale"),
    "bound": _("bound"), "claimed": _("claimed"), "drifted": _("drifted"), "unavailable": _("unavailable"),
    "verified": _("verified"), "missing": _("missing"), "supports": _("supports"), "contradicts": _("contradicts"),
    "bounds": _("bounds"), "background": _("background"), "accept": _("accepts"), "dispute": _("disputes"),
    "needs_evidence": _("asks for evidence"), "same_family": _("same family"), "independent": _("independent"),
    "matched": _("found in the source"), "transcribed": _("transcribed"),
}  # fmt: skip


@register.simple_tag
def group_word(name: str) -> Any:
    """Heading of a group of the journal."""
    return GROUP_WORDS.get(name, name)


@register.simple_tag
def word(name: str) -> Any:
    """A state, relation or verdict in words."""
    return WORDS.get(name, name)


@register.simple_tag
def exact_value(version: Any) -> str:
    """The exact value of a figure's version; a dash where it has none, which is no 0."""
    return "—" if version is None or version.value is None else str(version.value)
