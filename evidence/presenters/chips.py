"""Bound values as texts show them: a chip holds everything that its hover card says, read in two queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, override

from evidence.binding.expressions import constants
from evidence.binding.figures import fills_words
from evidence.binding.tokens import figure_keys, source_references
from evidence.binding.values import ABSENT, show_stored
from evidence.models import Figure, FigureInput, FigureVersion, Source
from runs.models import Study
from runs.presenters.states import StateView

MOST_KEYS = 900  # values of one IN list
STATES: dict[str, StateView] = {
    Figure.BOUND: StateView(gettext_lazy("bound"), "check", "verified"),
    Figure.CLAIMED: StateView(gettext_lazy("claimed"), "dashed", "claimed"),
    Figure.DRIFTED: StateView(gettext_lazy("drifted"), "notequal", "drifted"),
    Figure.UNAVAILABLE: StateView(gettext_lazy("unavailable"), "warn", "unavailable"),
    Figure.PENDING: StateView(gettext_lazy("pending"), "circle", "pending"),
}
STALE = StateView(gettext_lazy("stale"), "hatch", "stale")
EXPLAINED: dict[str, Any] = {
    Figure.BOUND: gettext_lazy("computed again from held bytes, and equal"),
    Figure.CLAIMED: gettext_lazy("hash recorded elsewhere, bytes not held"),
    Figure.DRIFTED: gettext_lazy("computes to another value, or its source has drifted"),
    Figure.UNAVAILABLE: gettext_lazy("there is no value; this is no zero"),
    Figure.PENDING: gettext_lazy("not measured yet; this is no zero"),
}
KINDS: dict[str, Any] = {
    "mechanism": gettext_lazy("mechanism"),
    "parameter_change": gettext_lazy("parameter change"),
    "environment": gettext_lazy("environment"),
    "cost": gettext_lazy("cost"),
    "effect": gettext_lazy("effect"),
}
TYPES: dict[str, Any] = {
    "excerpt": gettext_lazy("a number in an excerpt"),
    "pointer": gettext_lazy("a place in a JSON source"),
    "cell": gettext_lazy("a cell of a table"),
    "derivation": gettext_lazy("a derivation over figures"),
    "receipt": gettext_lazy("a place in a receipt"),
    "endpoint": gettext_lazy("a registered endpoint of a closed execution"),
    "cell_rate": gettext_lazy("an evaluation cell of a closed execution"),
    "pending": gettext_lazy("pending"),
    "unavailable": gettext_lazy("unavailable"),
}
RELATED = ("current__source_version__source", "current__excerpt__version__source", "current__plan_version__plan")
HEAVY = ("current__plan_version__bytes", "current__plan_version__strict_pairs")


def is_chinese(language: str | None) -> bool:
    """Whether a language code asks for Chinese."""
    return (language or "").lower().startswith("zh")


def in_language(english: str, chinese: str, language: str | None) -> str:
    """The text of a language; the other one where it is empty."""
    return (chinese or english) if is_chinese(language) else (english or chinese)


def shown(version: FigureVersion | None, state: str) -> str:
    """A figure's value as pages show it. Pending is an em dash, unavailable its word; neither is ever a 0."""
    if version is None or version.value is None:
        return str(STATES[Figure.UNAVAILABLE].word) if state == Figure.UNAVAILABLE else ABSENT
    text = show_stored(version.value, version.style, version.digits, version.numerator, version.denominator)
    return f"{text} %" if version.unit == "%" and not text.endswith("%") else text


@dataclass(frozen=True)
class Chip:
    """One figure ready to be shown. ``inputs``: (name, key) of a derivation's operands.

    ``earlier``: values that it showed before it was corrected, the oldest first, without the one of now.
    """

    figure: Figure
    version: FigureVersion
    inputs: tuple[tuple[str, str], ...] = ()
    earlier: tuple[str, ...] = ()
    _rows: dict[str, list[tuple[str, str]]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def uid(self) -> str:
        """Uid of the figure."""
        return str(self.figure.uid)

    @property
    def key(self) -> str:
        """Key of the figure, as texts name it."""
        return self.figure.key

    @property
    def url(self) -> str:
        """Its page."""
        return reverse("evidence:figure", args=[self.figure.uid])

    @property
    def state(self) -> str:
        """State of the figure."""
        return self.figure.state

    @property
    def stale(self) -> bool:
        """Whether something that it rests on has changed."""
        return self.figure.stale

    @property
    def look(self) -> StateView:
        """Word, icon and tone; stale stands before the state, since it is what to do something about."""
        return STALE if self.stale else STATES[self.state]

    @property
    def value(self) -> str | None:
        """The exact value as text."""
        return self.version.value

    @property
    def shown(self) -> str:
        """The value as pages show it."""
        return shown(self.version, self.state)

    @property
    def sha256(self) -> str:
        """Hash of what it was read from; empty for a derivation."""
        binding = self.version.binding
        source = self.version.source_version
        found = source.sha256 if source else binding.get("aggregate_sha256") or binding.get("sha256") or ""
        return str(found)

    @property
    def source_name(self) -> str:
        """Reference and path of its source, the plan of an evaluation, or nothing."""
        if self.version.source_version is not None:
            source = self.version.source_version.source
            return f"{source.reference} · {source.path}" if source.reference else source.path
        if self.version.plan_version is not None:
            return f"{self.version.plan_version.plan.slug} · {self.version.endpoint}".rstrip(" ·")
        return ""

    @property
    def expression(self) -> str:
        """A derivation with the figures that its names stand for."""
        if self.version.binding["type"] != "derivation":
            return ""
        names = ", ".join(f"{name} = {key}" for name, key in self.inputs)
        return f"{self.version.binding['expression']}  ({names})"

    def title(self, language: str | None = None) -> str:
        """What the figure says."""
        return in_language(self.version.title_en, self.version.title_zh, language)

    def denominator(self, language: str | None = None) -> str:
        """Of what it is a part, in words."""
        return in_language(self.version.denominator_en, self.version.denominator_zh, language)

    def scope(self, language: str | None = None) -> str:
        """Where it holds."""
        return in_language(self.version.scope_en, self.version.scope_zh, language)

    def why(self, language: str | None = None) -> str:
        """Why there is no value, or what would fill it; empty for a figure with a value."""
        binding = self.version.binding
        if binding["type"] == "pending":
            return fills_words(binding, is_chinese(language))
        if binding["type"] == "unavailable":
            return in_language(binding.get("reason_en", ""), binding.get("reason_zh", ""), language)
        return ""

    def rows(self, language: str | None = None) -> list[tuple[str, str]]:
        """(label, text) of the hover card, in order, without what is empty."""
        chinese = "zh-hans" if is_chinese(language) else "en"
        if chinese not in self._rows:
            with override(chinese):
                self._rows[chinese] = [(label, text) for label, text in self._card(chinese) if text]
        return self._rows[chinese]

    def _card(self, language: str) -> list[tuple[str, str]]:
        version, state = self.version, STATES[self.state]
        excerpt = version.excerpt
        exact = "" if version.value == self.shown else version.value or ""
        rate = f"{version.numerator}/{version.denominator}" if version.numerator and version.denominator else ""
        return [
            (_("Exact value"), "" if rate == self.shown else rate or exact),
            (_("Would be filled by") if self.state == Figure.PENDING else _("Reason"), self.why(language)),
            (_("Of"), self.denominator(language)),
            (_("Unit"), version.unit),
            (_("State"), _(": ").join((str(state.word), str(EXPLAINED[self.state])))),
            (_("Stale"), _("what it rests on has changed") if self.stale else ""),
            (_("Kind"), str(KINDS[version.kind])),
            (_("Origin"), _("imported, other people's record") if version.origin == "imported" else ""),
            (_("Scope"), self.scope(language)),
            (_("Source"), self.source_name),
            (_("Excerpt"), f"“{excerpt.text[:300]}”" if excerpt else ""),
            (_("Derivation"), self.expression),
            (_("Constants"), constants_words(version)),
            (_("Hash"), self.sha256),
            (_("Evidence cut-off"), version.cutoff.isoformat() if version.cutoff else ""),
            (_("Recomputed"), moment(self.figure.checked_at)),
        ]


def constants_words(version: FigureVersion) -> str:
    """Which numbers of its own a derivation holds, in words; empty for none, and for another binding."""
    held = constants(version.binding["expression"]) if version.binding["type"] == "derivation" else []
    return _("holds the constants %(numbers)s") % {"numbers": ", ".join(held)} if held else ""


def moment(at: datetime | None) -> str:
    """A time in UTC with year and zone; empty for none."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ") if at else ""


def chip_list(figures: Iterable[Figure]) -> list[Chip]:
    """Chips of figures that were read with ``RELATED``, in order; one query for the operands of derivations, and one
    for earlier values where a figure was bound anew."""
    rows = [(figure, figure.current) for figure in figures if figure.current is not None]
    derived = [version.pk for _figure, version in rows if version.binding["type"] == "derivation"]
    inputs: dict[int, list[tuple[str, str]]] = {}
    for start in range(0, len(derived), MOST_KEYS):
        part = FigureInput.objects.filter(version__in=derived[start : start + MOST_KEYS]).order_by("name")
        for pk, name, key in part.values_list("version_id", "name", "figure__key"):
            inputs.setdefault(pk, []).append((name, key))
    before = _earlier([version for _figure, version in rows if version.number > 1])
    return [
        Chip(figure, version, tuple(inputs.get(version.pk, ())), before.get(version.pk, ())) for figure, version in rows
    ]


def _earlier(versions: Sequence[FigureVersion]) -> dict[int, tuple[str, ...]]:
    """Binding of now -> values that were shown before it and differ from it, each once; one without a value is none."""
    now = {version.figure_id: version for version in versions}
    found: dict[int, dict[str, None]] = {}
    keys = sorted(now)
    for start in range(0, len(keys), MOST_KEYS):
        rows = FigureVersion.objects.filter(figure__in=keys[start : start + MOST_KEYS], value__isnull=False)
        for row in rows.order_by("figure", "number"):
            present = now[row.figure_id]
            text = shown(row, Figure.BOUND)
            if row.number < present.number and text != shown(present, Figure.BOUND):
                found.setdefault(present.pk, {})[text] = None
    return {pk: tuple(texts) for pk, texts in found.items()}


def chips_of(figures: Iterable[Figure]) -> dict[str, Chip]:
    """``chip_list`` of one study's figures by key."""
    return {chip.key: chip for chip in chip_list(figures)}


def chips_for(study: Study, keys: Iterable[str]) -> dict[str, Chip]:
    """Chips of a study's figures by key, unknown keys left out. Two queries, however many keys."""
    wanted = sorted(set(keys))
    found: list[Figure] = []
    for start in range(0, len(wanted), MOST_KEYS):
        rows = Figure.objects.filter(study=study, key__in=wanted[start : start + MOST_KEYS])
        found.extend(rows.select_related(*RELATED).defer(*HEAVY))
    return chips_of(found) if found else {}


@dataclass(frozen=True)
class Shown:
    """What the texts of one page name: chips by key, sources by reference. In a template's context as ``shown``."""

    chips: Mapping[str, Chip]
    sources: Mapping[str, Source]


def shown_for(study: Study, texts: Iterable[str], keys: Iterable[str] = (), references: Iterable[str] = ()) -> Shown:
    """Everything that the texts of a page name, and the keys and references besides, in three queries."""
    every = [text for text in texts if text]
    named = set(source_references(every)) | set(references)
    sources = Source.objects.filter(study=study, reference__in=named).select_related("current") if named else ()
    return Shown(chips_for(study, [*figure_keys(every), *keys]), {source.reference: source for source in sources})


def source_url(source: Source) -> str:
    """The page of a source; empty where this installation has none."""
    try:
        return reverse("evidence:source", args=[source.uid])
    except NoReverseMatch:
        return ""
