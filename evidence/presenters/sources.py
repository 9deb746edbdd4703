"""What the list of sources shows: rows with their states, filters and counts; few queries however many there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from evidence.models import Excerpt, Source, SourceVersion
from runs.access import Principal, visible
from runs.presenters.states import TABLES, StateView

QUERY_MOST = 200
STATES: Mapping[str, StateView] = {
    Source.VERIFIED: TABLES["evidence"]["verified"],
    Source.DRIFTED: TABLES["evidence"]["drifted"],
    Source.MISSING: StateView(_("bytes are gone"), "warn", "failed"),
    Source.CLAIMED: TABLES["evidence"]["claimed"],
}
SUPERSEDED = TABLES["evidence"]["superseded"]
MEANING: Mapping[str, Any] = {
    Source.VERIFIED: _("The bytes are held here and hash to the recorded value."),
    Source.DRIFTED: _("The bytes, or the file that is watched, no longer hash to the recorded value."),
    Source.MISSING: _("The bytes were held here once and are gone."),
    Source.CLAIMED: _("The hash was recorded elsewhere; the bytes are not held here, so nobody here has checked them."),
}
ORIGINS: Mapping[str, Any] = {
    Source.UPLOAD: _("upload"),
    Source.WATCHED: _("watched folder"),
    Source.GIT: _("git commit"),
    Source.RECEIPT: _("our own records"),
    Source.CLOSURE: _("our own closure"),
    Source.EXPORT: _("our own export"),
    Source.IMPORTED: _("imported record"),
}
# What actions write themselves, in the reader's language; what people write stays in their own words.
STORED: Mapping[str, Any] = {
    "the store holds no bytes of this hash": _("the store holds no bytes of this hash"),
    "the held bytes hash to something else": _("the held bytes hash to something else"),
    "the watched file is gone; the held bytes are unchanged": _(
        "the watched file is gone; the held bytes are unchanged"
    ),
    "the watched file has changed; the held bytes are unchanged": _(
        "the watched file has changed; the held bytes are unchanged"
    ),
    "the bytes are held now; their hash is the one that was recorded": _(
        "the bytes are held now; their hash is the one that was recorded"
    ),
    "the same record, written anew": _("the same record, written anew"),
}
FORMS: Mapping[str, Any] = {
    "text": _("text"), "markdown": "Markdown", "latex": "LaTeX", "json": "JSON", "jsonl": "JSONL", "csv": "CSV",
    "pdf": "PDF", "binary": _("binary"),
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One source of the list. ``excerpts``: of all its versions."""

    source: Source
    title: str
    state: StateView
    meaning: Any
    origin: Any
    form: Any
    excerpts: int


@dataclass(frozen=True)
class Choice:
    """A value of a filter: how many sources it leaves; ``state`` where it is one."""

    value: str
    word: Any
    count: int
    chosen: bool
    state: StateView | None = None

    @property
    def link(self) -> str | None:
        """What the address says for it; None takes it out again."""
        return None if self.chosen else self.value


@dataclass(frozen=True)
class Chosen:
    """What the address narrows the list to; empty texts narrow nothing."""

    study: str = ""
    state: str = ""
    origin: str = ""
    query: str = ""

    @property
    def any(self) -> bool:
        """Whether anything is narrowed."""
        return bool(self.study or self.state or self.origin or self.query)


def title_of(source: Source) -> str:
    """Title in the reader's language, else in the other one; empty without any."""
    chinese = (get_language() or "").startswith("zh")
    first, second = (source.title_zh, source.title_en) if chinese else (source.title_en, source.title_zh)
    return first or second


def visible_sources(principal: Principal) -> QuerySet[Source]:
    """Sources of the studies that the principal may read."""
    return visible(principal, Source.objects.all(), "study")


def version_state(version: SourceVersion, source: Source) -> StateView:
    """State of one version: an older one is superseded by definition."""
    return STATES[source.state] if version.pk == source.current_id else SUPERSEDED


def chosen_from(given: Mapping[str, str]) -> Chosen:
    """The filters of an address; a value that does not exist narrows nothing."""
    state, origin = given.get("state", ""), given.get("origin", "")
    return Chosen(
        given.get("study", "")[:100].replace("\x00", ""),
        state if state in Source.STATES else "",
        origin if origin in Source.ORIGINS else "",
        given.get("q", "")[:QUERY_MOST].replace("\x00", "").strip(),
    )


def narrowed(rows: QuerySet[Source], chosen: Chosen) -> QuerySet[Source]:
    """The rows that a choice leaves."""
    for lookup, value in (("study__slug", chosen.study), ("state", chosen.state), ("origin", chosen.origin)):
        if value:
            rows = rows.filter(**{lookup: value})
    return _searched(rows, chosen.query)


def _searched(rows: QuerySet[Source], query: str) -> QuerySet[Source]:
    """Rows with every word in path, title, reference or, for six hexadecimal digits or more, in a hash."""
    for word in query.split():
        text = Q(path__icontains=word) | Q(reference__iexact=word) | Q(title_en__icontains=word)
        text |= Q(title_zh__icontains=word)
        if len(word) >= 6 and set(word.lower()) <= set("0123456789abcdef"):
            text |= Q(pk__in=SourceVersion.objects.filter(sha256__startswith=word.lower()).values("source_id"))
        rows = rows.filter(text)
    return rows


def choices(rows: QuerySet[Source], chosen: Chosen) -> dict[str, list[Choice]]:
    """Filters with how many sources each value leaves beside the other filters. One query."""
    groups = (
        _searched(rows, chosen.query).order_by().values_list("state", "origin", "study__slug").annotate(Count("pk"))
    )
    wanted = (chosen.state, chosen.origin, chosen.study)
    counts: tuple[Counter[str], ...] = (Counter(), Counter(), Counter())
    for *values, count in groups:
        for place, found in enumerate(counts):
            others = [n for n in range(len(wanted)) if n != place]
            if all(not wanted[n] or values[n] == wanted[n] for n in others):
                found[values[place]] += count
    states, origins, studies = counts
    return {
        "state": [
            Choice(name, view.word, states[name], name == chosen.state, view)
            for name, view in STATES.items()
            if states[name] or name == chosen.state
        ],
        "origin": [
            Choice(name, word, origins[name], name == chosen.origin)
            for name, word in ORIGINS.items()
            if origins[name] or name == chosen.origin
        ],
        "study": [Choice(name, name, studies[name], name == chosen.study) for name in sorted(studies)],
    }


def listed(sources: Sequence[Source]) -> list[Row]:
    """Rows of one page of the list. One query counts their excerpts."""
    counts = dict(
        Excerpt.objects.filter(version__source__in=[source.pk for source in sources])
        .order_by()
        .values_list("version__source_id")
        .annotate(Count("pk"))
    )
    return [
        Row(
            source, title_of(source), STATES[source.state], MEANING[source.state], ORIGINS[source.origin],
            FORMS[source.form], counts.get(source.pk, 0),
        )
        for source in sources
    ]  # fmt: skip
