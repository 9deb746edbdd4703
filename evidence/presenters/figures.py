"""What the pages of figures show: the list with its filters, one figure with its chain, the search of the editor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import Count, F, Q, QuerySet
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext_lazy as _

from evidence.actions.figures import Bound
from evidence.binding.figures import Recomputed, Resolver, recompute
from evidence.binding.values import show_stored
from evidence.models import (
    Claim,
    ClaimFigure,
    Excerpt,
    ExcerptHead,
    Figure,
    FigureInput,
    FigureVersion,
    Link,
)
from evidence.presenters.chips import (
    HEAVY,
    KINDS,
    RELATED,
    STATES,
    TYPES,
    Chip,
    chips_of,
    constants_words,
    in_language,
    shown,
    source_url,
)
from runs.access import Principal, visible
from runs.errors import DomainError
from runs.models import Study
from runs.presenters.states import StateView

QUERY_MOST, FOUND_MOST = 200, 20
PLACES: dict[str, StateView] = {
    ExcerptHead.FOUND: StateView(_("found once, where it was"), "check", "verified"),
    ExcerptHead.MOVED: StateView(_("found once, elsewhere"), "arrow", "warned"),
    ExcerptHead.ORPHAN: StateView(_("orphan: not found exactly once"), "notequal", "drifted"),
    ExcerptHead.TRANSCRIBED: StateView(_("transcribed, bytes not held"), "dashed", "claimed"),
    ExcerptHead.UNAVAILABLE: StateView(_("the bytes are gone"), "warn", "drifted"),
}


def show_bound(bound: Bound, style: str, digits: int) -> dict[str, Any]:
    """What a checked binding gives, as the live check and the API say it."""
    columns = bound.columns
    text = show_stored(columns["value"], style, digits, columns["numerator"], columns["denominator"])
    return {
        "value": columns["value"], "shown": text, "unit": columns["unit"], "numerator": columns["numerator"],
        "denominator": columns["denominator"], "state": bound.resolved.state, "trouble": bound.resolved.trouble,
    }  # fmt: skip


# --- the list --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Choice:
    """One filter of the list: parameter, value, word, and how many figures it holds."""

    name: str
    value: str
    word: Any
    count: int
    current: bool
    address: str


def _address_of(given: Mapping[str, str], name: str, value: str) -> str:
    """The list with one filter changed, at its first page; an empty value takes the filter back."""
    kept = {**given, name: value, "page": ""}
    return "?" + urlencode({key: text for key, text in kept.items() if text})


def figure_rows(principal: Principal) -> QuerySet[Figure]:
    """Visible figures with everything that a chip says."""
    rows = Figure.objects.filter(current__isnull=False).select_related("study", *RELATED).defer(*HEAVY)
    return visible(principal, rows, "study")


def filtered(rows: QuerySet[Figure], given: Mapping[str, str]) -> QuerySet[Figure]:
    """The figures that ``?study= &kind= &state= &stale= &q=`` ask for; a value that does not exist finds nothing."""
    lookups = {"study": "study__slug", "kind": "current__kind", "state": "state", "origin": "current__origin"}
    for name, lookup in lookups.items():
        if given.get(name):
            rows = rows.filter(**{lookup: given[name][:QUERY_MOST]})
    if given.get("stale") in ("1", "0"):
        rows = rows.filter(stale=given["stale"] == "1")
    text = given.get("q", "")[:QUERY_MOST].strip()
    if text:
        titles = Q(current__title_en__icontains=text) | Q(current__title_zh__icontains=text)
        rows = rows.filter(Q(key__icontains=text) | titles | Q(current__value=text))
    return rows.order_by("study__slug", "key")


def choices(rows: QuerySet[Figure], given: Mapping[str, str]) -> list[tuple[Any, list[Choice]]]:
    """Filters with counts over what the other filters leave; two queries."""
    states = dict(_counted(filtered(rows, {**given, "state": ""}), "state"))
    kinds = dict(_counted(filtered(rows, {**given, "kind": ""}), "current__kind"))
    stale = filtered(rows, {**given, "stale": ""}).filter(stale=True).count()
    chosen_stale = given.get("stale", "")
    return [
        (_("State"), _choices("state", {key: view.word for key, view in STATES.items()}, states, given)),
        (_("Kind"), _choices("kind", KINDS, kinds, given)),
        (_("Changed"), [_choice("stale", "1", _("stale"), stale, given)] if stale or chosen_stale else []),
    ]


def _counted(rows: QuerySet[Figure], name: str) -> list[tuple[str, int]]:
    return list(rows.order_by().values_list(name).annotate(n=Count("pk")))


def _choice(name: str, value: str, word: Any, count: int, given: Mapping[str, str]) -> Choice:
    current = given.get(name) == value
    return Choice(name, value, word, count, current, _address_of(given, name, "" if current else value))


def _choices(name: str, words: Mapping[str, Any], counts: Mapping[str, int], given: Mapping[str, str]) -> list[Choice]:
    return [
        _choice(name, value, word, counts.get(value, 0), given)
        for value, word in words.items()
        if counts.get(value) or given.get(name) == value
    ]


# --- one figure ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Operand:
    """A name of a derivation with its figure."""

    name: str
    chip: Chip


@dataclass(frozen=True)
class Quotation:
    """An excerpt with the bound number marked: text before it, the number, text after it."""

    excerpt: Excerpt
    before: str
    number: str
    after: str
    look: StateView
    url: str


@dataclass(frozen=True)
class VersionRow:
    """A version in the history; ``old``: struck, still legible."""

    version: FigureVersion
    shown: str
    old: bool


@dataclass(frozen=True)
class Dependant:
    """What rests on the figure: a derived figure, a claim, a section of the notes."""

    kind: str
    word: Any
    name: str
    text: str
    url: str
    stale: bool


def sentence(chip: Chip, found: Recomputed) -> Any:
    """The verdict that opens the page, from the recomputation that was just done."""
    if chip.state == Figure.PENDING:
        return _("Pending: nothing has been measured yet.")
    if chip.state == Figure.UNAVAILABLE:
        return _("There is no value, and that is no zero.")
    if found.state == Figure.DRIFTED:
        return _("It no longer computes to what is stored.")
    if found.state == Figure.CLAIMED:
        return _("It rests on bytes that are not held here: claimed, not verified.")
    if chip.stale:
        return _("It computes to what is stored, and something that it rests on has changed.")
    return _("Computed again from held bytes just now, and equal to what is stored.")


def quotation(version: FigureVersion) -> Quotation | None:
    """The excerpt of a version with its number marked where it stands."""
    from evidence.binding.places import place_of
    from evidence.binding.values import places_of

    excerpt = version.excerpt
    if excerpt is None:
        return None
    number = version.binding["number"]
    places = places_of(excerpt.text, number)
    at = min(version.binding.get("occurrence", 1), len(places) or 1) - 1
    start = places[at] if places else len(excerpt.text)
    stop = min(len(excerpt.text), start + len(number))
    url, line = source_url(excerpt.version.source), excerpt.selector.get("line")
    place = f"?version={excerpt.version.number}" + (f"&line={line}" if line else "")
    return Quotation(
        excerpt, excerpt.text[:start], excerpt.text[start:stop], excerpt.text[stop:],
        PLACES[place_of(excerpt).state], f"{url}{place}" if url and excerpt.version.held else url,
    )  # fmt: skip


def operands(chip: Chip) -> list[Operand]:
    """Operands of a derivation, each with what its own chip says."""
    if not chip.inputs:
        return []
    rows = Figure.objects.filter(study=chip.figure.study_id, key__in=[key for _, key in chip.inputs])
    chips = chips_of(rows.select_related(*RELATED).defer(*HEAVY))
    return [Operand(name, chips[key]) for name, key in chip.inputs if key in chips]


def history(figure: Figure) -> list[VersionRow]:
    """Every version, newest first."""
    rows = figure.versions.select_related("actor").order_by("-number")
    return [
        VersionRow(row, shown(row, "unavailable" if row.binding["type"] == "unavailable" else ""), old)
        for old, row in ((row.pk != figure.current_id, row) for row in rows)
    ]


def _address(name: str, uid: Any) -> str:
    try:
        return reverse(f"evidence:{name}", args=[uid])
    except NoReverseMatch:
        return ""


def depends(figure: Figure, language: str | None) -> list[Dependant]:
    """Derived figures, claims that show or link it, and sections of the notes, in that order."""
    found: list[Dependant] = []
    used = FigureInput.objects.filter(figure=figure, version__figure__current=F("version"))
    derived = Figure.objects.filter(pk__in=used.values("version__figure")).select_related("current").order_by("key")
    for item in derived:
        title = in_language(item.current.title_en, item.current.title_zh, language) if item.current else ""
        found.append(
            Dependant("figure", _("derived figure"), item.key, title, _address("figure", item.uid), item.stale)
        )
    shown_in = ClaimFigure.objects.filter(figure=figure, version__claim__current=F("version")).values("version__claim")
    linked = Link.objects.filter(figure=figure, withdrawal__isnull=True).values("claim")
    claims = Claim.objects.filter(Q(pk__in=shown_in) | Q(pk__in=linked)).select_related("current").order_by("key")
    for claim in claims:
        text = in_language(claim.current.text_en, claim.current.text_zh, language) if claim.current else ""
        found.append(Dependant("claim", _("claim"), claim.key, text, _address("claim", claim.uid), claim.stale))
    return [*found, *_sections(figure)]


def _sections(figure: Figure) -> list[Dependant]:
    """Sections of the study's newest notes that name the figure."""
    from evidence.propagation import newest_notes, sections_of

    notes = newest_notes(figure.study)
    if notes is None:
        return []
    try:
        sections = sections_of(notes)
    except (DomainError, OSError, ValueError):
        return []  # notes whose bytes are gone: verify names them
    url = _notes_address(figure.study)
    return [
        Dependant("section", _("section of the notes"), name, "", f"{url}#{name}" if url else "", False)
        for name, named in sections.items()
        if figure.key in named.figures
    ]


def _notes_address(study: Study) -> str:
    try:
        return reverse("evidence:notes", args=[study.slug])
    except NoReverseMatch:
        return ""


def page_of(chip: Chip, language: str | None) -> dict[str, Any]:
    """Context of a figure's page; its value is computed again."""
    found = recompute(chip.figure, Resolver(chip.figure.study))
    version = chip.version
    again = None
    if found.value is not None:
        again = show_stored(found.value, "plain" if version.style == "ratio" else version.style, version.digits or 6)
    return {
        "chip": chip, "version": version, "title_text": chip.title(language), "rows": chip.rows(language),
        "found": found, "found_look": STATES[found.state], "sentence": sentence(chip, found), "again": again,
        "equal": found.value == version.value, "quotation": quotation(version), "operands": operands(chip),
        "history": history(chip.figure), "dependants": depends(chip.figure, language),
        "type_word": TYPES[version.binding["type"]], "kind_word": KINDS[version.kind],
        "binding": _binding_rows(version),
    }  # fmt: skip


# Members that the page shows in another way: as a quotation, as operands, in words.
_WORDS = {
    "occurrence": _("occurrence"), "source": _("source"), "pointer": _("JSON pointer"), "column": _("column"),
    "key_column": _("key column"), "key": _("row"), "sha256": _("hash of the receipt"), "endpoint": _("endpoint"),
    "quantity": _("quantity"), "arms": _("arms"), "checkpoint": _("checkpoint"), "condition": _("condition"),
    "split": _("split"), "outcome": _("outcome"), "part": _("part"),
}  # fmt: skip
_HIDDEN = ("type", "figures", "fills", "reason_en", "reason_zh", "expression", "excerpt", "number")


def _binding_rows(version: FigureVersion) -> list[tuple[str, str]]:
    """Members of a binding as they are stored, but for those that the page shows in another way."""
    rows = [
        (str(_WORDS.get(name, name)), ", ".join(map(str, value)) if isinstance(value, list) else str(value))
        for name, value in version.binding.items()
        if name not in _HIDDEN
    ]
    held = constants_words(version)
    return [*rows, (str(_("constants")), held)] if held else rows


# --- the editor's search ---------------------------------------------------------------------------


def search(study: Study, text: str, language: str | None) -> dict[str, list[dict[str, str]]]:
    """Figures and excerpts whose key or words hold ``text``, at most ``FOUND_MOST`` of each; three queries."""
    text = text[:QUERY_MOST].strip()
    rows = Figure.objects.filter(study=study, current__isnull=False).select_related(*RELATED).defer(*HEAVY)
    chips = chips_of(filtered(rows, {"q": text})[:FOUND_MOST])
    quoted = Excerpt.objects.filter(study=study).select_related("version__source", "head")
    if text:
        quoted = quoted.filter(Q(key__icontains=text) | Q(text__icontains=text))
    return {
        "figures": [
            {
                "key": chip.key, "token": f"[[{chip.key}]]", "title": chip.title(language), "shown": chip.shown,
                "state": chip.state, "word": str(chip.look.word), "kind": chip.version.kind, "unit": chip.version.unit,
                "source": chip.source_name, "url": chip.url,
            }
            for chip in chips.values()
        ],
        "excerpts": [
            {
                "key": row.key, "text": row.text[:300], "source": row.version.source.path, "kind": row.kind,
                "reference": row.version.source.reference, "token": _reference(row), "state": row.head.state,
                "bind": f"{reverse('evidence:figure_new')}?study={study.slug}&excerpt={row.key}",
            }
            for row in quoted.order_by("key")[:FOUND_MOST]
        ],
    }  # fmt: skip


def _reference(row: Excerpt) -> str:
    return f"[@{row.version.source.reference}]" if row.version.source.reference else ""
