"""Tags of the notes page: chips, states in words, addresses of versions and languages."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import get_language, gettext_lazy

from evidence.models import AcceptanceContract, Claim, Source
from evidence.notes import rich
from evidence.presenters.chips import Chip
from evidence.templatetags.evidence_text import chip_markup
from runs.presenters.states import StateView
from runs.templatetags.ui import icon_markup

register = template.Library()

CELLS: dict[str, StateView] = {
    "done": StateView(gettext_lazy("done"), "check", "done"),
    "observed": StateView(gettext_lazy("observed"), "half", "running"),
    "to_verify": StateView(gettext_lazy("to verify"), "circle", "pending"),
    "pending": StateView(gettext_lazy("pending"), "circle", "pending"),
    "not_measured": StateView(gettext_lazy("not measured"), "minus", "pending"),
    "unavailable": StateView(gettext_lazy("unavailable"), "warn", "warned"),
    "draft": StateView(gettext_lazy("draft"), "half", "neutral"),
    "checked": StateView(gettext_lazy("checked"), "check", "done"),
    "needs_evidence": StateView(gettext_lazy("needs evidence"), "circle", "warned"),
    "blocked": StateView(gettext_lazy("blocked"), "barrier", "warned"),
    "abandoned": StateView(gettext_lazy("abandoned"), "minus", "neutral"),
    "supported": StateView(gettext_lazy("supported"), "check", "holds"),
    "partly": StateView(gettext_lazy("partly supported"), "half", "holds"),
    "not_established": StateView(gettext_lazy("not established"), "dashed", "neutral"),
    "refuted": StateView(gettext_lazy("refuted"), "cross", "refused"),
    "withdrawn": StateView(gettext_lazy("withdrawn"), "minus", "neutral"),
    "verified": StateView(gettext_lazy("verified"), "check", "verified"),
    "claimed": StateView(gettext_lazy("hash only"), "dashed", "claimed"),
    "drifted": StateView(gettext_lazy("drifted"), "notequal", "drifted"),
    "missing": StateView(gettext_lazy("bytes missing"), "warn", "failed"),
    "superseded": StateView(gettext_lazy("superseded"), "arrow", "superseded"),
    "bound": StateView(gettext_lazy("bound"), "check", "verified"),
    "found": StateView(gettext_lazy("found where it was"), "check", "verified"),
    "matched": StateView(gettext_lazy("found in the bytes"), "check", "verified"),
    "moved": StateView(gettext_lazy("found elsewhere in the newest bytes"), "arrow", "warned"),
    "orphan": StateView(gettext_lazy("not found any more"), "cross", "failed"),
    "transcribed": StateView(gettext_lazy("transcribed"), "dashed", "neutral"),
}
DISPUTED = StateView(gettext_lazy("disputed"), "flag", "disputed")
PROVISIONAL = StateView(gettext_lazy("provisional: reviewed by the author's family only"), "half", "provisional")
STALE = StateView(gettext_lazy("stale: its evidence has changed"), "hatch", "stale")
CATEGORIES = {
    "execution": gettext_lazy("Execution"), "evidence": gettext_lazy("Evidence"),
    "research": gettext_lazy("Research"), "writing": gettext_lazy("Writing"),
}  # fmt: skip
ROLES = {
    "holds": gettext_lazy("What holds"), "blocked": gettext_lazy("Biggest block"), "next": gettext_lazy("Next step"),
}  # fmt: skip
TALLIES = {
    "figures": {
        "bound": gettext_lazy("bound and recomputed"), "claimed": gettext_lazy("bound, bytes not held"),
        "drifted": gettext_lazy("drifted"), "unavailable": gettext_lazy("unavailable"),
        "pending": gettext_lazy("pending"),
    },
    "sources": {
        "verified": gettext_lazy("verified"), "claimed": gettext_lazy("by hash only"),
        "drifted": gettext_lazy("drifted"), "missing": gettext_lazy("missing"),
    },
}  # fmt: skip
CONTRACTS = {
    ("accepted", "draft"): gettext_lazy("accepted as a draft, which is no readiness"),
    ("accepted", "results"): gettext_lazy("results accepted, bound to the hash of the manuscript"),
    ("proposed", "draft"): gettext_lazy("acceptance as a draft proposed"),
    ("proposed", "results"): gettext_lazy("acceptance of results proposed"),
    ("withdrawn", "draft"): gettext_lazy("acceptance withdrawn"),
    ("withdrawn", "results"): gettext_lazy("acceptance withdrawn"),
}


def _state(view: StateView) -> SafeString:
    return format_html('<span class="state {}">{}<span>{}</span></span>', view.tone, icon_markup(view.icon), view.word)


@register.simple_tag
def cell_state(name: str) -> SafeString:
    """A stored word of state as icon, word and colour."""
    return _state(CELLS[name])


@register.simple_tag
def source_state(source: Source) -> SafeString:
    """State of a source's newest bytes."""
    return _state(CELLS[source.state])


@register.simple_tag
def source_mark(source: Source) -> SafeString:
    """The same as an icon whose word is read out and stands in its title, where the full list gives the word."""
    view = CELLS[source.state]
    return format_html(
        '<span class="state {}" title="{}">{}<span class="visually-hidden">{}</span></span>',
        view.tone if source.state != Source.CLAIMED else "neutral", view.word, icon_markup(view.icon), view.word,
    )  # fmt: skip


@register.simple_tag
def excerpt_state(name: str) -> SafeString:
    """State of an excerpt's last check."""
    return _state(CELLS[name])


@register.simple_tag
def claim_state(claim: Claim) -> SafeString:
    """The derived status, and below it what lowers it."""
    extra = [
        view
        for held, view in ((claim.disputed, DISPUTED), (claim.provisional, PROVISIONAL), (claim.stale, STALE))
        if held
    ]
    shown = [_state(CELLS[claim.status]), *(_state(view) for view in extra)]
    return format_html("{}" + "<br>{}" * len(extra), *shown)


@register.simple_tag
def figure_chip(chip: Chip | None) -> SafeString:
    """A bound figure; a dash where its key names nothing any more."""
    return format_html("—") if chip is None else chip_markup(chip, get_language())


@register.simple_tag
def figure_state(chip: Chip | None) -> SafeString:
    """State of a figure as icon and word."""
    return format_html("") if chip is None else _state(STALE if chip.stale else CELLS[chip.state])


@register.simple_tag
def figure_title(chip: Chip | None) -> str:
    """What a figure says."""
    return "" if chip is None else chip.title(get_language())


@register.simple_tag
def figure_why(chip: Chip | None) -> str:
    """Why a figure has no value, or what would fill it."""
    return "" if chip is None else chip.why(get_language())


@register.simple_tag
def plain_label(columns: list[rich.Said], at: int) -> str:
    """Text of a column's title, for tables that become cards."""
    return columns[at].plain if at < len(columns) else ""


SHORT_LABEL, SHORT_WORDS, MOST_GRID = 5, 24, 5


@register.filter
def long_labels(rows: Sequence[Any]) -> bool:
    """Whether some label of a source needs more room than R1."""
    return any(len(row.reference) > SHORT_LABEL for row in rows)


@register.filter
def is_numeric(block: Mapping[str, Any], at: int) -> bool:
    """Whether a column of a table holds figures, or a few words where there is none; never the leading one."""
    cells = [row[at] for row in block["rows"] if at < len(row)]
    some = any(cell.get("figure") for cell in cells)
    return at > 0 and some and all(cell.get("figure") or _is_short(cell) for cell in cells)


def _is_short(cell: Mapping[str, Any]) -> bool:
    said = cell.get("text")
    return said is not None and len(said.plain) <= SHORT_WORDS and "data-figure" not in str(said)


@register.filter
def is_grid(block: Mapping[str, Any]) -> bool:
    """Whether a table is a small grid of figures, which stays a table on a phone."""
    columns = len(block["columns"])
    return columns <= MOST_GRID and all(is_numeric(block, at) for at in range(1, columns))


@register.simple_tag
def tally(what: str, state: str, count: int) -> SafeString:
    """How many rows of the page are in a state."""
    return format_html(
        '<b class="tnum" data-walk="count" data-count="{}:{}">{}</b> {}', what, state, count, TALLIES[what][state]
    )


@register.simple_tag
def contract_words(contract: AcceptanceContract) -> Any:
    """What was accepted, and as what."""
    return CONTRACTS[contract.status, contract.assurance]


@register.simple_tag
def category(name: str) -> Any:
    """Category of an open problem."""
    return CATEGORIES[name]


@register.simple_tag
def card_role(name: str) -> Any:
    """What one of the cards at the top says."""
    return ROLES[name]


@register.filter
def claim_url(row: Any) -> str:
    """Address of a claim's page."""
    return reverse("evidence:claim", args=[row.claim.uid])


@register.filter
def day(value: Any) -> SafeString:
    """A day as ``<time>``."""
    text = value.date().isoformat() if isinstance(value, datetime.datetime) else str(value)
    return rich.day(text)


@register.filter
def coordinate(value: float) -> str:
    """A length of a drawing, with a point in every language."""
    return f"{value:g}"


@register.simple_tag
def notes_url(page: Any, version: int | None = None, language: str = "") -> str:
    """Address of the page in a language and version; the newest version has the plain address."""
    address = reverse(f"evidence:notes_{language or page.language}", args=[page.study.slug])
    number = page.notes.number if version is None else version
    return address if number in (0, page.newest) else f"{address}?version={number}"
