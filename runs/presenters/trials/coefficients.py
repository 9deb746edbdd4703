"""Credit from edits of one update: where B and M put mass, and that the totals agree.

With s, lambda, D, L and m of a trajectory: signed mass s*lambda*D*L and L1 mass s*lambda*|D|*L for both arms; squared
mass (s*lambda*D*L)^2/m localised and (s*lambda*D)^2*L broadcast, which differ by the factor L/m.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from runs.actions.plans import plan_body
from runs.models import TrajectoryCredit, Turn, UpdateBatch
from runs.presenters.trials.rows import NEAR
from runs.presenters.trials.words import sentence
from workbench.contracts import layout
from workbench.contracts.records import TRAIN

WIDTH, HALF = 560.0, 34.0  # drawing units: all policy tokens; the cap
APPLIED = "applied"


@dataclass(frozen=True)
class Box:
    """A rectangle of mass: ``x`` over ``width`` tokens, ``y`` and ``height`` of the coefficient; area is mass."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Masses:
    """Signed, absolute and squared mass of one arm on one trajectory."""

    signed: float
    l1: float
    squared: float


@dataclass(frozen=True)
class Term:
    """One trajectory of the update. ``edit``: its stored record. ``turns``: (decision, x, width, is chosen).

    ``defined``: what the definition gives for each of B and M (for E its own), None where nothing was applied.
    ``agrees``: stored signed and L1 mass are those of the definition, to 1e-9; None where nothing was applied.
    """

    credit: TrajectoryCredit
    edit: dict[str, Any]
    turns: tuple[tuple[int, float, float, bool], ...]
    boxes: dict[str, Box]
    defined: dict[str, Masses]
    agrees: bool | None

    @property
    def is_applied(self) -> bool:
        """Whether something was added."""
        return bool(self.edit["status"] == APPLIED)

    @property
    def values(self) -> list[tuple[str, float, Masses]]:
        """(arm, its coefficient on each token that carries it, its masses); zeros where nothing was applied."""
        if not self.is_applied:
            arms = ("E",) if self.edit["arm"] == "E" else ("B", "M")
            return [(arm, 0.0, Masses(0.0, 0.0, 0.0)) for arm in arms]
        return [(arm, _value(self.edit, arm, masses), masses) for arm, masses in self.defined.items()]

    @property
    def stored(self) -> float:
        """The coefficient that was added: on every token in arm B, on those of the chosen turn in M and E."""
        return coefficients_on(self.edit)[0]

    @property
    def ratio(self) -> float | None:
        """L / m; None without m."""
        return self.edit["tokens"] / self.edit["selected_tokens"] if self.edit["selected_tokens"] else None


@dataclass(frozen=True)
class Totals:
    """Sums over an update's trajectories, as stored and as defined for B and for M."""

    stored: Masses
    defined: dict[str, Masses]
    agrees: bool
    applied: int
    nonzero: int  # of those applied; the others have D = 0 (or, in arm E, A = 0) and a coefficient of 0
    trajectories: int
    capped: int

    @property
    def zero(self) -> int:
        """Applied, with a coefficient of 0 on every token."""
        return self.applied - self.nonzero


def _value(edit: Mapping[str, Any], arm: str, masses: Masses) -> float:
    return masses.signed / (edit["tokens"] if arm == "B" else edit["selected_tokens"])


def close(got: float, wanted: float) -> bool:
    """Equal to 1e-9 of the larger of 1 and the wanted value."""
    return abs(got - wanted) <= NEAR * max(1.0, abs(wanted))


def masses_of(edit: Mapping[str, Any], advantage: float, weight: float, cap: float) -> dict[str, Masses]:
    """What the definition gives: {"B": ..., "M": ...}, or {"E": ...} for that arm; empty where nothing was applied."""
    if edit["status"] != APPLIED:
        return {}
    tokens, chosen = edit["tokens"], edit["selected_tokens"]
    if edit["arm"] == "E":
        value = max(-cap, min(cap, weight * advantage * tokens / chosen))
        return {"E": Masses(value * chosen, abs(value) * chosen, value * value * chosen)}
    wide = edit["shrinkage"] * weight * edit["difference"]
    local = wide * tokens / chosen
    return {
        "B": Masses(wide * tokens, abs(wide) * tokens, wide * wide * tokens),
        "M": Masses(local * chosen, abs(local) * chosen, local * local * chosen),
    }


def coefficients_on(edit: Mapping[str, Any]) -> tuple[float, float]:
    """The stored coefficient on tokens of the chosen turn, and on the others: a mass over the tokens that carry it."""
    if edit["status"] != APPLIED:
        return 0.0, 0.0
    if edit["arm"] == "B":
        value = edit["signed_mass"] / edit["tokens"]
        return value, value
    return edit["signed_mass"] / edit["selected_tokens"], 0.0


def _box(first: float, width: float, value: float, cap: float) -> Box:
    height = HALF * min(1.0, abs(value) / cap)
    return Box(round(first, 2), round(HALF - height if value > 0 else HALF, 2), round(width, 2), round(height, 2))


def _boxes(
    edit: Mapping[str, Any], defined: Mapping[str, Masses], place: tuple[float, float], cap: float
) -> dict[str, Box]:
    found = {}
    for arm, masses in defined.items():
        first, width = (0.0, WIDTH) if arm == "B" else place
        found[arm] = _box(first, width, _value(edit, arm, masses), cap)
    return found


def _term(credit: TrajectoryCredit, turns: Sequence[tuple[int, int]], weight: float, cap: float) -> Term:
    edit: dict[str, Any] = credit.edit or {}
    total = sum(tokens for _decision, tokens in turns) or 1
    strip, x, place = [], 0.0, (0.0, 0.0)
    for decision, tokens in turns:
        width = WIDTH * tokens / total
        strip.append((decision, round(x, 2), round(width, 2), decision == edit["selected"]))
        if decision == edit["selected"]:
            place = (x, width)
        x += width
    defined = masses_of(edit, credit.advantage or 0.0, weight, cap)
    agrees = None
    if defined:
        agrees = all(
            close(edit["signed_mass"], item.signed) and close(edit["l1_mass"], item.l1) for item in defined.values()
        )
    return Term(credit, edit, tuple(strip), _boxes(edit, defined, place, cap), defined, agrees)


def objective_of(update: UpdateBatch) -> dict[str, Any]:
    """The frozen objective of the update's arm. Needs ``run__arm`` and ``run__plan_version`` loaded."""
    run = update.run
    if run.plan_version is None or run.arm is None:
        return {}
    found: dict[str, Any] = layout.arm_of(plan_body(run.plan_version), run.arm.key)["config"]["objective"]
    return found


def terms_of(update: UpdateBatch) -> list[Term]:
    """Stored terms, largest L1 mass first; empty for an arm without credit from edits. Two queries."""
    credits = list(
        update.credits.filter(edit__isnull=False, trajectory__group__purpose=TRAIN)
        .select_related("trajectory__group__task")
        .order_by("pk")
    )
    credits = [credit for credit in credits if credit.edit is not None]
    objective = objective_of(update)
    turns: dict[int, list[tuple[int, int]]] = {}
    for trajectory, decision, tokens in (
        Turn.objects.filter(trajectory__in=[credit.trajectory_id for credit in credits])
        .order_by("decision")
        .values_list("trajectory_id", "decision", "policy_tokens")
    ):
        turns.setdefault(trajectory, []).append((decision, tokens))
    weight, cap = objective.get("edit_weight", 1.0), objective.get("edit_cap", 1.0)
    found = [_term(credit, turns.get(credit.trajectory_id, []), weight, cap) for credit in credits]
    return sorted(found, key=lambda term: -term.edit["l1_mass"])


def _sum(items: Sequence[Masses]) -> Masses:
    return Masses(
        math.fsum(item.signed for item in items),
        math.fsum(item.l1 for item in items),
        math.fsum(item.squared for item in items),
    )


def totals_of(terms: Sequence[Term]) -> Totals:
    """Sums, and whether every term agrees."""
    stored = _sum([Masses(t.edit["signed_mass"], t.edit["l1_mass"], t.edit["squared_mass"]) for t in terms])
    arms = sorted({arm for term in terms for arm in term.defined})
    defined = {arm: _sum([term.defined[arm] for term in terms if term.is_applied]) for arm in arms}
    applied = [term for term in terms if term.is_applied]
    return Totals(
        stored, defined, all(term.agrees for term in applied), len(applied),
        sum(bool(term.edit["l1_mass"]) for term in applied), len(terms),
        sum(bool(term.edit["capped"]) for term in applied),
    )  # fmt: skip


def headline(update: UpdateBatch, arm: str, totals: Totals) -> str:
    """The sentence that opens the page: who got a term that is not 0, and how many got a 0 or nothing."""
    if arm != "E" and not totals.agrees:
        return _("Update %(batch)d: stored masses do not agree with the definition.") % {"batch": update.batch}
    if not totals.applied:
        return _("Update %(batch)d added no credit from edits: none of %(of)d trajectories has a usable term.") % {
            "batch": update.batch,
            "of": totals.trajectories,
        }
    parts = {
        "batch": update.batch, "n": totals.nonzero, "of": totals.trajectories, "capped": totals.capped,
        "zero": totals.zero, "none": totals.trajectories - totals.applied,
    }  # fmt: skip
    if arm == "E":
        added = _("Update %(batch)d added terminal credit that is not 0 to %(n)d of %(of)d trajectories")
    else:
        added = _("Update %(batch)d added edit credit that is not 0 to %(n)d of %(of)d trajectories")
    found = [added]
    if totals.zero:
        found.append(_("%(zero)d have a coefficient of 0"))
    if parts["none"]:
        found.append(_("%(none)d have none"))
    if arm != "E":
        found.append(_("broadcast and localised, signed and L1 totals agree"))
    found.append(_("the cap acted on %(capped)d"))
    return sentence([part % parts for part in found])
