"""Binds figures, fills pending ones from closed executions, and keeps what a recomputation found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from typing import Any

from django.db import transaction
from django.db.models import F

from evidence.actions.excerpts import check_key
from evidence.actions.recomputing import derived_from, refresh_claims, refresh_figures
from evidence.actions.record import append, lock_evidence, record_uid
from evidence.binding.closed import CLOSED, closed_execution
from evidence.binding.expressions import parse_unit
from evidence.binding.figures import (
    CLOSED_TYPES,
    BindingError,
    Recomputed,
    Resolved,
    Resolver,
    check_binding,
    check_typed,
    operands_of,
    recompute,
)
from evidence.binding.values import MOST_DIGITS, PLAIN, RATIO, exact, show
from evidence.models import Figure, FigureInput, FigureVersion
from runs.errors import DomainError
from runs.models import Actor, Execution, PlanVersion, Study
from workbench.contracts.errors import ContractError

__all__ = [
    "Recomputed",
    "bind_figure",
    "check_figure",
    "fill_pending",
    "recompute",
    "refresh_figure",
    "refresh_figures",
]

EFFECT, NATIVE, IMPORTED = "effect", "native", "imported"
TITLE_MOST, TEXT_MOST, UNIT_MOST = 300, 4000, 64
_SHORT = {"title_en", "title_zh", "denominator_en", "denominator_zh"}


@dataclass(frozen=True)
class Bound:
    """A binding that was checked against everything: what it gives, with the columns of its version."""

    resolved: Resolved
    columns: dict[str, Any]


def _texts(given: dict[str, str]) -> dict[str, str]:
    found = {}
    for name, value in given.items():
        most = (
            TITLE_MOST
            if name in _SHORT
            else (UNIT_MOST if name == "unit" else 100 if name == "endpoint" else TEXT_MOST)
        )
        text = value.strip() if isinstance(value, str) else None
        if text is None or len(text) > most or "\x00" in text:
            raise DomainError(f"{name}: got {str(value)[:80]!r}, expected a text of at most {most} characters")
        found[name] = text
    if not found["title_en"] and not found["title_zh"]:
        raise DomainError("title_en: got nothing, expected what the figure says")
    return found


def _choices(kind: str, origin: str, style: str, digits: Any) -> None:
    for name, value, known in (
        ("kind", kind, FigureVersion.KINDS),
        ("origin", origin, FigureVersion.ORIGINS),
        ("style", style, FigureVersion.STYLES),
    ):
        if value not in known:
            raise DomainError(f"{name}: got {str(value)[:80]!r}, expected one of {', '.join(known)}")
    if not isinstance(digits, int) or isinstance(digits, bool) or not 0 <= digits <= MOST_DIGITS:
        raise DomainError(f"digits: got {str(digits)[:40]!r}, expected a whole number from 0 to {MOST_DIGITS}")


def _check_kind(kind: str, origin: str, binding: dict[str, Any], resolved: Resolved) -> None:
    """An effect rests on a closed evaluation of a frozen plan and on nothing else; what is imported stays so."""
    form = binding["type"]
    operands = [figure.current for _, figure in resolved.inputs if figure.current is not None]
    if form in CLOSED_TYPES and origin == IMPORTED:
        raise DomainError(f"origin: got imported for a binding of type {form}, expected native: it is ours")
    if form == "endpoint" and kind != EFFECT:
        raise DomainError(f"kind: got {kind} for a registered endpoint, expected effect")
    for (name, figure), operand in zip(resolved.inputs, operands, strict=True):
        if kind == EFFECT and operand.kind != EFFECT:
            raise DomainError(
                f"kind: got effect, but {name} ({figure.key}) is a {operand.kind} figure; a figure of another kind "
                "never fills an effect cell: bind it as what it is, or use figures of a closed evaluation"
            )
        if origin == NATIVE and operand.origin == IMPORTED:
            raise DomainError(
                f"origin: got native, but {name} ({figure.key}) is imported, expected imported; what is derived from "
                "other people's numbers is theirs"
            )
    if kind == EFFECT and origin == NATIVE and form not in (*CLOSED_TYPES, "derivation", "pending", "unavailable"):
        raise DomainError(
            f"kind: got effect for a binding of type {form}, expected endpoint or cell_rate of a closed execution; "
            "bind it as another kind, or as pending until the plan's evaluation is closed"
        )


def _check_shown(style: str, digits: int, resolved: Resolved) -> None:
    value = resolved.value
    if style == RATIO:
        if value is not None and (resolved.numerator is None or resolved.denominator is None):
            raise DomainError(
                "style: got ratio for a value without numerator and denominator, expected plain or percent; a ratio is "
                "bound as a number n/N, a derivation a / b, or a cell_rate"
            )
        return
    if value and not any(char in "123456789" for char in show(value, style, digits)):
        raise DomainError(f"digits: got {digits}, with which {exact(value)} would show as 0, expected more")


def _unit(given: str, resolved: Resolved, form: str) -> str:
    parse_unit(given)
    if form != "derivation":
        return given
    if given and parse_unit(given) != parse_unit(resolved.unit) and not (given == "%" and not resolved.unit):
        computed = resolved.unit or "a plain number"
        raise DomainError(f"unit: got {given!r}, expected {computed}, which the expression gives")
    unit = given or resolved.unit
    if len(unit) > UNIT_MOST:
        raise DomainError(
            f"unit: got {len(unit)} characters, expected at most {UNIT_MOST}; give operands shorter units"
        )
    return unit


def _text_or_empty(value: Fraction | None) -> str:
    return "" if value is None else exact(value)


def check_figure(
    study: Study,
    key: str,
    binding: Any,
    *,
    kind: str,
    origin: str = NATIVE,
    style: str = PLAIN,
    digits: int = 0,
    unit: str = "",
    plan_version: PlanVersion | None = None,
) -> Bound:
    """Everything that ``bind_figure`` checks of a value, without storing anything: the live check of the form."""
    check_key("key", key)
    _choices(kind, origin, style, digits)
    try:
        checked = check_binding(binding)
        resolved = Resolver(study, bound_for=key).resolve(checked, plan_version)
        if resolved.state == Figure.DRIFTED:
            raise BindingError(f"binding: got evidence that does not hold ({resolved.trouble}), expected what does")
        _check_kind(kind, origin, checked, resolved)
        check_typed(kind, checked, operands_of(resolved.inputs))
        _check_shown(style, digits, resolved)
        columns = {
            "binding": {**checked, **resolved.pins},
            "value": None if resolved.value is None else exact(resolved.value),
            "numerator": _text_or_empty(resolved.numerator),
            "denominator": _text_or_empty(resolved.denominator),
            "unit": _unit(unit.strip(), resolved, checked["type"]),
        }
        if max(len(str(columns[name])) for name in ("numerator", "denominator")) > 100:
            raise DomainError("binding: got a rate of more than 100 digits, expected a shorter one")
    except ContractError as error:
        raise BindingError(str(error)) from error
    return Bound(resolved, columns)


def _plan_of(study: Study, binding: dict[str, Any], given: PlanVersion | None, endpoint: str) -> dict[str, Any]:
    """Plan version and endpoint of a figure; a pending one is pinned to the frozen version that its plan has now."""
    if given is not None and given.plan.study_id != study.pk:
        raise DomainError(f"plan_version: got one of another study, expected one of {study.slug}")
    form = binding["type"]
    if form == "endpoint":
        if endpoint and endpoint != binding["endpoint"]:
            raise DomainError(f"endpoint: got {endpoint!r}, expected {binding['endpoint']}, which the binding names")
        return {"plan_version": given, "endpoint": binding["endpoint"]}
    if form == "pending" and "plan" in binding["fills"]:
        slug = binding["fills"]["plan"]
        if given is None:
            rows = PlanVersion.objects.filter(plan__study=study, plan__slug=slug)
            given = rows.order_by("-number").select_related("plan").first()
        elif given.plan.slug != slug:
            raise DomainError(f"plan_version: got one of {given.plan.slug}, expected one of {slug}")
        return {"plan_version": given, "endpoint": binding["fills"]["endpoint"]}
    return {"plan_version": given, "endpoint": endpoint}


def bind_figure(
    study: Study,
    key: str,
    binding: dict[str, Any],
    *,
    title_en: str,
    title_zh: str = "",
    kind: str,
    by: Actor,
    at: datetime,
    origin: str = NATIVE,
    style: str = PLAIN,
    digits: int = 0,
    unit: str = "",
    denominator_en: str = "",
    denominator_zh: str = "",
    scope_en: str = "",
    scope_zh: str = "",
    cutoff: date | None = None,
    plan_version: PlanVersion | None = None,
    endpoint: str = "",
    reason: str = "",
) -> FigureVersion:
    """Bind a figure, or bind it anew: the next version, with a reason. The same again is the same version.

    Raises ``DomainError`` naming the field that is wrong; a value is never given, it is read from the binding.
    """
    texts = _texts(
        {
            "title_en": title_en, "title_zh": title_zh, "denominator_en": denominator_en, "unit": unit,
            "denominator_zh": denominator_zh, "scope_en": scope_en, "scope_zh": scope_zh, "reason": reason,
            "endpoint": endpoint,
        }
    )  # fmt: skip
    with transaction.atomic():
        lock_evidence(study)
        bound = check_figure(
            study, key, binding, kind=kind, origin=origin, style=style, digits=digits, unit=texts.pop("unit"),
            plan_version=plan_version,
        )  # fmt: skip
        columns = {
            **texts, **bound.columns, "kind": kind, "origin": origin, "style": style, "digits": digits,
            "cutoff": cutoff, "source_version": bound.resolved.source_version, "excerpt": bound.resolved.excerpt,
            **_plan_of(study, bound.columns["binding"], plan_version, texts["endpoint"]),
        }  # fmt: skip
        figure = _head(study, key)
        old = figure.current
        if old is not None and all(getattr(old, name) == value for name, value in columns.items() if name != "reason"):
            return old
        if old is not None:
            _check_dependants(figure, kind, origin)
        if old is not None and len(texts["reason"]) < 3:
            raise DomainError(f"reason: got nothing, expected why {key} is bound anew; the old version stays readable")
        row = _append_version(figure, columns, bound.resolved, by=by, at=at)
        if old is not None:
            _follow(figure, old, row, by=by, at=at)
    return row


def _append_version(
    figure: Figure, columns: dict[str, Any], resolved: Resolved, *, by: Actor, at: datetime
) -> FigureVersion:
    """The figure's next version with its operands; the head shows it."""
    number = 1 if figure.current is None else figure.current.number + 1
    row = append(
        FigureVersion(
            uid=record_uid(figure.uid, FigureVersion.KIND, str(number)), study=figure.study, actor=by, at=at,
            figure=figure, number=number, **columns,
        )
    )  # fmt: skip
    for name, operand in resolved.inputs:
        FigureInput.objects.create(version=row, name=name, figure=operand)
    figure.current, figure.state, figure.checked_at = row, resolved.state, at
    figure.save(update_fields=["current", "state", "checked_at"])
    return row


def _check_dependants(figure: Figure, kind: str, origin: str) -> None:
    """What rests on a figure keeps its kind and origin: neither may change to one that they are not derived from."""
    rows = FigureInput.objects.filter(figure=figure, version=F("version__figure__current")).order_by("version__figure")
    held = list(rows.values_list("version__figure__key", "version__kind", "version__origin").distinct())
    effects = [key for key, its_kind, _origin in held if its_kind == EFFECT]
    if kind != EFFECT and effects:
        raise DomainError(
            f"kind: got {kind} for {figure.key}, on which the effect figures {_listed(effects)} rest, expected effect; "
            "bind those anew first"
        )
    ours = [key for key, _kind, its_origin in held if its_origin == NATIVE]
    if origin == IMPORTED and ours:
        raise DomainError(
            f"origin: got imported for {figure.key}, on which the native figures {_listed(ours)} rest, expected "
            "native; bind those anew first"
        )


def _listed(keys: Sequence[str]) -> str:
    return ", ".join(keys[:10]) + (f" and {len(keys) - 10} more" if len(keys) > 10 else "")


def _head(study: Study, key: str) -> Figure:
    """The head of a key, made on its first use."""
    uid = record_uid(study.uid, "figure", key)
    found, _new = Figure.objects.select_related("current").get_or_create(
        study=study, key=key, defaults={"uid": uid, "state": Figure.PENDING}
    )
    return found


def _follow(figure: Figure, old: FigureVersion, new: FigureVersion, *, by: Actor, at: datetime) -> None:
    """What a new version does to what shows the figure: its own marks are settled, its dependants are marked, and
    every figure that is derived from it is computed again.

    A figure that was pending and is filled corrects nothing: claims that show it are derived again.
    """
    from evidence.actions import stale

    stale.rebind("figure", figure.uid, by=by, at=at)
    names = ("kind", "origin") if old.value is None else ("value", "unit", "kind", "origin")
    told = [(name, getattr(old, name), getattr(new, name)) for name in names]
    changed = [f"{name} {was or 'none'} is now {now or 'none'}" for name, was, now in told if was != now]
    if changed:
        said = f"{figure.key}: {', '.join(changed)}; {new.reason}"
        stale.mark_changed("figure", figure.uid, said[:TEXT_MOST], by=by, at=at)
    else:
        refresh_claims([figure], at=at)
    refresh_figures(figure.study, derived_from(figure), by=by, at=at, mark=False)
    figure.refresh_from_db(fields=["stale"])


def refresh_figure(figure: Figure, *, by: Actor, at: datetime) -> Recomputed:
    """Compute a figure again, with all that is derived from it, and keep their states: ``refresh_figures``."""
    found = refresh_figures(figure.study, [str(figure.uid), *derived_from(figure)], by=by, at=at)
    figure.refresh_from_db(fields=["state", "checked_at", "stale"])
    return found.get(figure.key) or recompute(figure)  # a head without a version has none to compute


def fill_pending(version: PlanVersion, *, by: Actor, at: datetime) -> int:
    """Fill the pending effect figures of a plan from the closed execution of exactly this frozen version.

    How many were filled; claims on the plan follow. A figure of another kind, of another version, or an imported one
    is left pending, and so is one whose endpoint was not measured. Raises ``DomainError`` before the execution is
    closed.
    """
    if not Execution.objects.filter(plan_version=version, state=CLOSED).exists():
        raise DomainError(f"plan_version: got {version}, whose execution is not closed, expected a closed one")
    from evidence.status import refresh_claims_of

    closed_execution(version)
    study, filled = version.plan.study, 0
    with transaction.atomic():
        lock_evidence(study)
        rows = Figure.objects.filter(
            study=study, state=Figure.PENDING, current__plan_version=version, current__kind=EFFECT,
            current__origin=NATIVE,
        )  # fmt: skip
        for figure in rows.select_related("current").order_by("pk"):
            old = figure.current
            if old is None or old.binding["type"] != "pending" or "plan" not in old.binding["fills"]:
                continue
            filled += _fill(study, figure, old, version, by=by, at=at)
        refresh_claims_of(version, at=at)  # also those that show no figure of it, such as "no regression was observed"
    return filled


def _fill(study: Study, figure: Figure, old: FigureVersion, version: PlanVersion, *, by: Actor, at: datetime) -> int:
    fills = old.binding["fills"]
    binding: dict[str, Any] = {
        "type": "endpoint", "endpoint": fills["endpoint"], "quantity": fills.get("quantity", "difference"),
    }  # fmt: skip
    if "arms" in fills:
        binding["arms"] = fills["arms"]
    kept = {
        name: getattr(old, name)
        for name in ("title_en", "title_zh", "kind", "origin", "style", "unit", "denominator_en", "denominator_zh",
                     "scope_en", "scope_zh", "cutoff")
    }  # fmt: skip
    try:
        with transaction.atomic():
            bind_figure(
                study, figure.key, binding, **kept, digits=old.digits, by=by, at=at, plan_version=version,
                reason=f"filled by the closed execution of {version.plan.slug} version {version.number}",
            )  # fmt: skip
    except DomainError:
        return 0  # not measured: it stays pending, which differs from a value of 0
    return 1
