"""Words of the notes editor."""

from __future__ import annotations

from typing import Any

from django import template
from django.utils.translation import gettext_lazy as _

register = template.Library()

WORDS: dict[str, Any] = {
    "page_date": _("page date"), "cutoff": _("evidence cut-off"), "record_ends": _("the record of runs ends on"),
    "manuscript": _("manuscript version"), "imported": _("imported record (leave empty for a study of this house)"),
    "of": _("of what or whom"), "note": _("note"), "title": _("title"), "subtitle": _("subtitle"),
    "state": _("state"), "cards": _("cards at the top"), "card": _("card"), "role": _("role"), "text": _("text"),
    "names": _("names that hold a digit"), "name": _("name"), "why": _("why"), "summary": _("summary"),
    "blocks": _("blocks"), "sources": _("sources"), "decision": _("decision flow"), "steps": _("steps"),
    "step": _("step"), "items": _("items"), "frames": _("frames"), "frame": _("frame"), "id": _("frame"),
    "columns": _("columns"), "rows": _("rows"), "row": _("row"), "figure": _("figure"), "label": _("label"),
    "claim": _("claim"), "claims": _("claims"), "category": _("category"), "priority": _("priority"),
    "affects": _("claim affected"), "evidence": _("present evidence"), "action": _("action"), "done": _("done when"),
    "product": _("product and judgement"), "date": _("date"), "part": _("part"), "gap": _("gap"),
    "what": _("what was corrected"), "figures": _("figures"), "paragraph": _("paragraph"), "strip": _("strip"),
    "contributions": _("contributions"), "contribution": _("contribution"), "storyboard": _("storyboard"),
    "table": _("table"), "bars": _("bars"), "bar": _("bar"), "details": _("folded details"),
    "problems": _("open problems"), "problem": _("open problem"), "decisions": _("decisions"),
    "timeline": _("milestones"), "moment": _("milestone"), "progress": _("writing progress"),
    "versions": _("list of versions"), "corrections": _("corrections"), "correction": _("correction"),
    "figure_item": _("figure card"), "holds": _("what holds"), "blocked": _("biggest block"), "next": _("next step"),
}  # fmt: skip


@register.simple_tag
def field_word(name: str) -> Any:
    """What a field is called; a stored word without one is shown with spaces."""
    return WORDS.get(name, name.replace("_", " "))


@register.filter
def rows_of(text: str) -> int:
    """Height of a text field in lines; a Chinese character is about as wide as two letters."""
    width = sum(2 if ord(char) > 0x2E7F else 1 for char in text)
    return min(14, width // 56 + text.count("\n") + 1)
