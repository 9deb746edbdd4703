"""What a binding is, and what it gives now: every kind resolved to an exact value with its unit.

excerpt: a number inside a quotation · pointer, cell: a place of a source · derivation: an expression over figures ·
receipt: a place of a receipt's body · endpoint, cell_rate: a closed execution · pending, unavailable: no value, and
why. Resolving reads and changes nothing; the same binding over the same bytes gives the same fraction everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple

from evidence.binding.bindings import CLOSED_TYPES, BindingError, check_binding, fills_words
from evidence.binding.closed import Closed, cell_counts, closed_execution, endpoint_value
from evidence.binding.expressions import (
    ExpressionError,
    Quantity,
    check_constants,
    check_measured,
    evaluate,
    parse_unit,
    show_unit,
)
from evidence.binding.places import Around, Held, Kept, around, held, place_of
from evidence.binding.selectors import SelectorError, at_cell, at_pointer, is_number, value_at
from evidence.binding.values import exact, open_edge, places_of, read_exact, written
from evidence.models import Excerpt, ExcerptHead, Figure, FigureVersion, Source, SourceVersion
from runs.errors import DomainError
from runs.models import PlanVersion, Receipt, StreamHead, Study
from workbench.contracts.canonical import sha256_hex
from workbench.contracts.errors import ContractError

DEEPEST = 100  # figures that rest on each other
SINGLY = 4  # excerpts that are read one by one


__all__ = [
    "CLOSED_TYPES",
    "BindingError",
    "Operand",
    "Recomputed",
    "Resolved",
    "Resolver",
    "Unreachable",
    "check_binding",
    "check_typed",
    "fills_words",
    "operands_of",
    "recompute",
]


class Unreachable(BindingError):
    """The bytes that a binding needs are not held here: nothing can be recomputed."""


@dataclass(frozen=True)
class Resolved:
    """What a binding gives. ``value`` None: none yet. ``trouble``: what weakens it; ``lost``: a quotation gone."""

    value: Fraction | None
    state: str = Figure.BOUND
    unit: str = ""
    numerator: Fraction | None = None
    denominator: Fraction | None = None
    trouble: str = ""
    source_version: SourceVersion | None = None
    excerpt: Excerpt | None = None
    inputs: tuple[tuple[str, Figure], ...] = ()
    pins: Mapping[str, str] = field(default_factory=dict)
    lost: str = ""


class Recomputed(NamedTuple):
    """A figure computed again: its state, its exact value as text (None: none), and what is wrong with it."""

    state: str
    value: str | None
    trouble: str


# The worst state of what a value rests on is its own.
_ORDER = (Figure.BOUND, Figure.CLAIMED, Figure.DRIFTED)
_OF_PLACE = {
    ExcerptHead.FOUND: Figure.BOUND, ExcerptHead.MOVED: Figure.BOUND, ExcerptHead.TRANSCRIBED: Figure.CLAIMED,
    ExcerptHead.ORPHAN: Figure.DRIFTED, ExcerptHead.UNAVAILABLE: Figure.CLAIMED,
}  # fmt: skip


def number_in(text: str, wanted: str, occurrence: int = 1, around: Around = ("", "")) -> Fraction:
    """The value of a number as it stands in a text, its ``occurrence`` from 1. Raises ``BindingError``.

    ``around``: what stands in the source before and after the text; None where nobody can tell (a transcription).
    """
    value = written(wanted)
    places = places_of(text, wanted)
    if len(places) < occurrence:
        raise BindingError(
            f"binding.number: got {wanted[:40]!r}, occurrence {occurrence}, of which the excerpt holds {len(places)}; "
            "expected a number as it is written there, with its sign, all its digits and its power; where a dash "
            "after a digit may be a range, a difference or a power, bind a cell or pointer, or another quotation"
        )
    start = places[occurrence - 1]
    stop, (before, after) = start + len(wanted), around
    for side, first, touches in ((before, True, start == 0), (after, False, stop == len(text))):
        if side is None and touches and open_edge(wanted, first):
            raise BindingError(
                f"binding.number: got {wanted[:40]!r} at the {'first' if first else 'last'} place of the excerpt, an "
                "edge of the transcription, where it may be the rest of a longer number; expected a word or mark "
                f"beside it: transcribe one more, or state it as selector.{'prefix' if first else 'suffix'}"
            )
    whole = (before or "") + text + (after or "")
    if start + len(before or "") not in places_of(whole, wanted):
        raise BindingError(
            f"binding.number: got {wanted[:40]!r} at an edge of the excerpt, where the source writes a longer number; "
            "expected a whole one: take the excerpt anew from the beginning of the number to its end"
        )
    return value


class Resolver:
    """Resolves the figures of one study. Keeps what it has read, so that many figures cost few reads."""

    def __init__(self, study: Study, bound_for: str = "") -> None:
        """``bound_for``: the key that a binding is meant for, so that one which leads back to it is a circle."""
        self.study = study
        self._figures: dict[str, Figure] = {}
        self._sources: dict[str, Source] = {}
        self._kept: Kept = {}
        self._excerpts: dict[str, Excerpt] = {}
        self._closed: dict[int, Closed] = {}
        self._done: dict[int, Resolved | DomainError] = {}
        self._path: list[str] = [bound_for] if bound_for else []

    def figure(self, key: str) -> Figure:
        """The figure of a key. Raises ``BindingError``."""
        if key not in self._figures:
            rows = Figure.objects.filter(study=self.study, key=key).select_related(*HEAD)
            found = rows.first()
            if found is None or found.current is None:
                raise BindingError(f"figure: got {key[:100]!r}, expected the key of a figure of {self.study.slug}")
            self._figures[key] = found
        return self._figures[key]

    def load(self, figures: list[Figure]) -> None:
        """Take in figures that have been read with ``HEAD`` already."""
        self._figures.update((figure.key, figure) for figure in figures)

    def resolve(self, binding: Mapping[str, Any], plan_version: PlanVersion | None = None) -> Resolved:
        """What a checked binding gives now. Raises ``BindingError`` and its like, naming what is wrong."""
        try:
            found: Resolved = getattr(self, f"_{binding['type']}")(binding, plan_version)
        except (SelectorError, ExpressionError) as error:
            raise BindingError(str(error)) from error
        return found

    def of_figure(self, figure: Figure) -> Resolved:
        """What a figure's current binding gives now; a figure that rests on itself is refused by name."""
        if figure.key in self._path:
            circle = " -> ".join([*self._path[self._path.index(figure.key) :], figure.key])
            raise BindingError(f"derivation: got a circle {circle}, expected figures that rest on others")
        if len(self._path) >= DEEPEST:
            raise BindingError(f"derivation: got more than {DEEPEST} figures that rest on each other, expected fewer")
        if figure.pk not in self._done:
            assert figure.current is not None
            self._path.append(figure.key)
            try:
                self._done[figure.pk] = self.resolve(figure.current.binding, figure.current.plan_version)
            except DomainError as error:
                self._done[figure.pk] = error
            finally:
                self._path.pop()
        found = self._done[figure.pk]
        if isinstance(found, DomainError):
            raise found
        return found

    def _source(self, path: str) -> tuple[Source, SourceVersion]:
        if path not in self._sources:
            found = Source.objects.filter(study=self.study, path=path).select_related("current").first()
            if found is None:
                raise BindingError(f"binding.source: got {path[:200]!r}, expected the path of a source of this study")
            self._sources[path] = found
        source = self._sources[path]
        if source.current is None:
            raise BindingError(f"binding.source: got {path[:200]!r}, which has no version, expected one with bytes")
        source.current.source = source
        return source, source.current

    def _read(self, path: str) -> tuple[SourceVersion, Held, str]:
        """(newest version of a source, its bytes as they lie there, trouble)."""
        source, version = self._source(path)
        found = held(version, self._kept)
        if found is None:
            why = "are gone" if version.held else "are not held here, only their hash"
            raise Unreachable(f"binding.source: got {path[:200]!r}, whose bytes {why}; expected bytes to read")
        trouble = "" if found.own else "the bytes of the source differ from their hash"
        return version, found, trouble or _drift(source)

    def _place(self, version: SourceVersion, text: str, trouble: str) -> Resolved:
        state = Figure.DRIFTED if trouble else Figure.BOUND
        return Resolved(written(text), state, trouble=trouble, source_version=version)

    def _pointer(self, binding: Mapping[str, Any], _version: Any) -> Resolved:
        version, found, trouble = self._read(binding["source"])
        value = value_at(found.document, binding["pointer"])
        if not is_number(value):
            kind = type(value).__name__
            raise BindingError(f"binding.pointer: got a {kind} at {binding['pointer'][:80]!r}, expected a number")
        return self._place(version, str(value), trouble)

    def _cell(self, binding: Mapping[str, Any], _version: Any) -> Resolved:
        version, found, trouble = self._read(binding["source"])
        text = at_cell(found.data, binding["column"], binding["key_column"], binding["key"])
        return self._place(version, text, trouble)

    def _excerpt(self, binding: Mapping[str, Any], _version: Any) -> Resolved:
        excerpt = self._quoted(binding["excerpt"])
        beside = around(excerpt, self._kept)
        value = number_in(excerpt.text, binding["number"], binding.get("occurrence", 1), beside)
        place = place_of(excerpt, self._kept)
        state = _OF_PLACE[place.state]
        trouble = place.trouble or (_drift(excerpt.version.source) if excerpt.kind == Excerpt.MATCHED else "")
        if trouble and place.state != ExcerptHead.UNAVAILABLE:
            state = Figure.DRIFTED
        first, slash, second = binding["number"].partition("/")
        n, of = (written(first), written(second)) if slash else (None, None)
        lost = f"{excerpt.key}: {place.trouble}" if place.state == ExcerptHead.ORPHAN else ""
        return Resolved(value, state, "", n, of, trouble, excerpt.version, excerpt, lost=lost)

    def _quoted(self, key: str) -> Excerpt:
        """The excerpt of a key; once several were asked for, all of the study's are read together."""
        if key not in self._excerpts:
            rows = Excerpt.objects.filter(study=self.study).select_related("version__source__current")
            many = len(self._excerpts) >= SINGLY
            self._excerpts.update((row.key, row) for row in (rows if many else rows.filter(key=key)))
        if key not in self._excerpts:
            raise BindingError(f"binding.excerpt: got {key[:100]!r}, expected the key of an excerpt of this study")
        return self._excerpts[key]

    def _derivation(self, binding: Mapping[str, Any], _version: Any) -> Resolved:
        inputs = tuple((name, self.figure(key)) for name, key in sorted(binding["figures"].items()))
        quantities, states, troubles, lost = {}, [Figure.BOUND], [], ""
        for name, figure in inputs:
            found = self.of_figure(figure)
            if found.value is None:
                raise BindingError(f"{name}: got {figure.key}, which has no value ({found.state}), expected one")
            assert figure.current is not None
            quantities[name] = Quantity(found.value, parse_unit(figure.current.unit))
            states.append(found.state)
            troubles += [f"{figure.key}: {found.trouble}"] if found.trouble else []
            lost = lost or found.lost
        value = evaluate(binding["expression"], quantities)
        n, of = None, None
        parts = [part.strip() for part in binding["expression"].split("/")]
        if len(parts) == 2 and all(part in quantities for part in parts):
            n, of = quantities[parts[0]].value, quantities[parts[1]].value
        state = max(states, key=_ORDER.index)
        trouble = "; ".join(troubles)[:2000]
        return Resolved(value.value, state, show_unit(value.unit), n, of, trouble, inputs=inputs, lost=lost)

    def _receipt(self, binding: Mapping[str, Any], _version: Any) -> Resolved:
        row = Receipt.objects.filter(sha256=binding["sha256"]).first()
        if row is None or not StreamHead.objects.filter(stream=row.stream, study=self.study).exists():
            raise BindingError(f"binding.sha256: got {binding['sha256'][:64]!r}, expected a receipt of this study")
        data = bytes(row.bytes)
        value = at_pointer(data, binding["pointer"])
        if not is_number(value):
            raise BindingError(f"binding.pointer: got no number at {binding['pointer'][:80]!r}, expected one")
        trouble = "" if sha256_hex(data) == row.sha256 else "the receipt's bytes differ from their hash"
        return Resolved(written(str(value)), Figure.DRIFTED if trouble else Figure.BOUND, trouble=trouble)

    def _of_plan(self, version: PlanVersion | None) -> Closed:
        if version is None:
            raise BindingError("plan_version: got none, expected the frozen version whose closed execution is read")
        if version.plan.study_id != self.study.pk:
            raise BindingError(f"plan_version: got one of another study, expected one of {self.study.slug}")
        if version.pk not in self._closed:
            self._closed[version.pk] = closed_execution(version)
        return self._closed[version.pk]

    def _pinned(self, binding: Mapping[str, Any], closed: Closed, found: Resolved) -> Resolved:
        other = [name for name, value in closed.pins.items() if binding.get(name, value) != value]
        if not other:
            return replace(found, pins=closed.pins)
        trouble = f"{other[0]}: got {closed.pins[other[0]]}, expected {binding[other[0]]}, which was bound"
        return replace(found, pins=closed.pins, state=Figure.DRIFTED, trouble=trouble)

    def _endpoint(self, binding: Mapping[str, Any], version: PlanVersion | None) -> Resolved:
        closed = self._of_plan(version)
        value = endpoint_value(closed, binding["endpoint"], binding["quantity"], binding.get("arms"))
        return self._pinned(binding, closed, Resolved(value))

    def _cell_rate(self, binding: Mapping[str, Any], version: PlanVersion | None) -> Resolved:
        closed = self._of_plan(version)
        place = (binding["checkpoint"], binding["condition"], binding["split"], binding["outcome"])
        n, of = cell_counts(closed, *place)
        part = binding.get("part")
        whole = Resolved(n / of, numerator=n, denominator=of)
        return self._pinned(binding, closed, whole if part is None else Resolved(n if part == "n" else of))

    def _pending(self, binding: Mapping[str, Any], _version: Any) -> Resolved:
        return Resolved(None, Figure.PENDING, trouble=fills_words(binding))

    def _unavailable(self, binding: Mapping[str, Any], _version: Any) -> Resolved:
        return Resolved(None, Figure.UNAVAILABLE, trouble=binding["reason_en"] or binding.get("reason_zh", ""))


CLAIM_CARRYING = ("effect",)  # kinds on which a claim of what was measured may stand: no typed number enters them


class Operand(NamedTuple):
    """What a derivation computes with: the key of a figure, its exact value as text (None: it has none), its unit."""

    key: str
    value: str | None
    unit: str


def operands_of(inputs: Iterable[tuple[str, Figure]]) -> dict[str, Operand]:
    """Operands by the names that an expression calls them, as their figures stand now."""
    rows = {name: (figure.key, figure.current) for name, figure in inputs}
    return {
        name: Operand(key, None, "") if row is None else Operand(key, row.value, row.unit)
        for name, (key, row) in rows.items()
    }


def check_typed(kind: str, binding: Mapping[str, Any], operands: Mapping[str, Operand]) -> None:
    """Refuse a derivation that lets a typed number pass as measured.

    The one rule of what may be bound, of what ``verify`` finds bound and of what a bundle holds. Where an operand has
    no value, or the text cannot be computed with them (it drifts for that), the text alone is judged. Raises
    ``BindingError``.
    """
    if kind not in CLAIM_CARRYING or binding["type"] != "derivation":
        return
    text, keys = binding["expression"], {name: item.key for name, item in operands.items()}
    try:
        check_constants(text, keys)
        values = {
            name: Quantity(read_exact(item.value), parse_unit(item.unit))
            for name, item in operands.items()
            if item.value is not None
        }
        if len(values) == len(operands) and _computes(text, values):
            check_measured(text, values, keys)
    except ExpressionError as error:
        raise BindingError(str(error)) from error


def _computes(text: str, values: Mapping[str, Quantity]) -> bool:
    try:
        evaluate(text, values)
    except ExpressionError:
        return False
    return True


HEAD = ("current", "current__plan_version__plan")  # what ``Resolver`` reads of a figure


def _drift(source: Source) -> str:
    return "the source has drifted" if source.state == Source.DRIFTED else ""


def stored_difference(version: FigureVersion, found: Resolved) -> str:
    """How what a binding gives now differs from what its version stored; empty where it does not."""
    now = {
        "value": None if found.value is None else exact(found.value),
        "numerator": "" if found.numerator is None else exact(found.numerator),
        "denominator": "" if found.denominator is None else exact(found.denominator),
    }
    for name, value in now.items():
        if getattr(version, name) != value:
            return f"{name}: recomputes to {value}, stored is {getattr(version, name)}"
    return ""


def recompute(figure: Figure, resolver: Resolver | None = None) -> Recomputed:
    """A figure computed again from what it is bound to. Reads, changes nothing and raises nothing of a binding."""
    version = figure.current
    if version is None:
        return Recomputed(Figure.UNAVAILABLE, None, "the figure has no version")
    if resolver is None:
        resolver = Resolver(figure.study)
    try:
        found = resolver.of_figure(figure)
    except Unreachable as error:
        return Recomputed(Figure.CLAIMED, None, str(error))
    except (DomainError, ContractError) as error:
        return Recomputed(Figure.DRIFTED, None, str(error))
    value = None if found.value is None else exact(found.value)
    difference = stored_difference(version, found)
    if difference:
        return Recomputed(Figure.DRIFTED, value, difference)
    return Recomputed(found.state, value, found.trouble)
