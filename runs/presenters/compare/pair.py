"""A strict pair: is it comparable, what differs, what came of it by condition, and what may be said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.actions.plans import plan_body
from runs.models import Arm, EvaluationItem, Group, PlanVersion
from runs.presenters import results
from runs.presenters.compare.identity import (
    Caution,
    Comparability,
    arm_values,
    fingerprint,
    recorded_identities,
    witnesses,
)
from runs.presenters.compare.pairing import OUTCOMES, Flips, Strip, flips, paired_rows, strips
from runs.presenters.evaluation import OUTCOMES as COUNTED
from runs.presenters.evaluation import CellView, Rate, cells_of, planned_items
from runs.presenters.plans import Contract, contracts
from workbench.contracts.canonical import decode_float

# Counted outcome -> metric of the stored aggregate that means the same.
STORED = {
    "finish": "finish",
    "success": "success",
    "budget": "budget_exhausted",
    "premature": "premature_finish_all",
    "repeat": "repeat_any",
    "recovered": "recovery_all",
    "fatal": "fatal",
}


@dataclass(frozen=True)
class StoredContrast:
    """Second arm minus first, from the aggregate that closing stored."""

    difference: float | None
    low: float | None
    high: float | None
    level: float
    tasks: int
    seeds: int
    paired: int
    requested: int
    gained: int | None
    lost: int | None


@dataclass(frozen=True)
class Line:
    """One outcome of one condition and split; ``stored`` None while no aggregate holds it."""

    key: str
    word: Any
    left: Rate
    right: Rate
    stored: StoredContrast | None


@dataclass(frozen=True)
class Place:
    """One condition and split."""

    condition: str
    split: str
    planned: int
    left: CellView
    right: CellView
    lines: list[Line]
    reward: StoredContrast | None

    @property
    def full(self) -> bool:
        """Whether both arms have every planned item."""
        return self.left.full and self.right.full


def find_pair(version: PlanVersion, arms: tuple[str, str]) -> Contract | None:
    """The frozen strict pair of the two arms, in the plan's order whichever way it was asked."""
    return next((pair for pair in contracts(version) if set(pair.arms) == set(arms)), None)


def comparability(version: PlanVersion, contract: Contract, places: Sequence[Place]) -> Comparability:
    """Fingerprints of both arms, what their captures name, and what limits the meaning."""
    body = plan_body(version)
    groups = Group.objects.filter(plan_version=version, purpose="evaluate", run__arm__key__in=contract.arms)
    recorded = recorded_identities(groups, "run__arm__key")
    rows = fingerprint([arm_values(body, arm) for arm in contract.arms])
    treatment = set(contract.treatment)
    # A treatment that the plan declared is the question, not an obstacle; the contract lists it.
    rows = [row for row in rows if _PATHS.get(row.key) not in treatment or row.state == "equal"]
    found = witnesses([recorded.get(arm) for arm in contract.arms])
    return Comparability(rows, found, _cautions(version, contract, places))


_PATHS = {"decisions": "rollout.max_decisions", "new_tokens": "rollout.sampling.max_new_tokens"}


def _cautions(version: PlanVersion, contract: Contract, places: Sequence[Place]) -> list[Caution]:
    arms = {arm.key: arm for arm in Arm.objects.filter(plan_version=version, key__in=contract.arms)}
    seeds = min(len(arm.seeds) for arm in arms.values())
    found = []
    if seeds < 2:
        found.append(Caution(_("one training seed: nothing separates the treatment from the seed")))
    waiting = [place for place in places if not place.full]
    if waiting:
        found.append(
            Caution(
                ngettext(
                    "evaluation incomplete in %(n)d of %(of)d cells: no word is read off before all items are in",
                    "evaluation incomplete in %(n)d of %(of)d cells: no word is read off before all items are in",
                    len(waiting),
                )
                % {"n": len(waiting), "of": len(places)}
            )
        )
    if plan_body(version)["plan"]["smallest_detectable_difference"] is None:
        found.append(Caution(_("no smallest detectable difference is registered: a tie shows no equality")))
    return found


def _stored(aggregate: Mapping[str, Any] | None, arms: tuple[str, str]) -> dict[tuple[str, str, str], StoredContrast]:
    """Contrasts of the pair by (condition, split, metric)."""
    found = {}
    for item in (aggregate or {"comparisons": {"strict_pairs": []}})["comparisons"]["strict_pairs"]:
        if tuple(item["arms"]) != arms:
            continue
        over, each = item["over_seeds"], item["per_seed"]
        binary = all(one["gained"] is not None for one in each)
        found[item["condition"], item["split"], item["metric"]] = StoredContrast(
            decode_float(over["task_difference"]["value"]),
            decode_float(over["interval"]["low"]),
            decode_float(over["interval"]["high"]),
            over["interval"]["level"],
            over["interval"]["tasks"],
            over["seeds"]["numerator"],
            sum(one["pairs"]["numerator"] for one in each),
            sum(one["pairs"]["denominator"] for one in each),
            sum(one["gained"]["numerator"] for one in each) if binary else None,
            sum(one["lost"]["numerator"] for one in each) if binary else None,
        )
    return found


def outcome_places(version: PlanVersion, contract: Contract, aggregate: Mapping[str, Any] | None) -> list[Place]:
    """Every planned condition and split with both arms' counts. Three queries."""
    planned = planned_items(version)
    seeds = {arm.key: len(arm.seeds) for arm in version.arms.filter(key__in=contract.arms)}
    cells = {}
    for arm in contract.arms:
        items = EvaluationItem.objects.filter(plan_version=version, run__arm__key=arm)
        scaled = {place: n * max(1, seeds.get(arm, 1)) for place, n in planned.items()}
        cells[arm] = {(cell.condition, cell.split): cell for cell in cells_of(items, scaled)}
    stored = _stored(aggregate, contract.arms)
    found = []
    for place in planned:
        left, right = cells[contract.arms[0]][place], cells[contract.arms[1]][place]
        lines = [
            Line(key, word, left.shown(key), right.shown(key), stored.get((*place, STORED.get(key, ""))))
            for key, word, _n, _d in COUNTED
        ]
        found.append(Place(*place, left.planned, left, right, lines, stored.get((*place, "reward"))))
    return found


@dataclass(frozen=True)
class Choice:
    """Which cell the strips show."""

    condition: str
    split: str
    metric: str


def choose(version: PlanVersion, arms: tuple[str, str], wanted: Mapping[str, str]) -> Choice:
    """What the query names, where the plan has it; else the pair's first registered binary endpoint."""
    places = list(planned_items(version))
    registered = [
        (e["condition"], e["split"], e["metric"])
        for e in plan_body(version)["plan"]["endpoints"]
        if e["compare"]["kind"] == "pair" and tuple(e["compare"]["arms"]) == arms and e["metric"] in OUTCOMES
    ]
    condition, split, metric = registered[0] if registered else (*places[-1], "success")
    if (wanted.get("condition"), wanted.get("split")) in places:
        condition, split = wanted["condition"], wanted["split"]
    return Choice(condition, split, wanted["metric"] if wanted.get("metric") in OUTCOMES else metric)


@dataclass(frozen=True)
class FlipView:
    """Strips of one cell with their sums; ``stored`` the aggregate's own count of the same flips."""

    choice: Choice
    strips: list[Strip]
    totals: Flips
    stored: StoredContrast | None
    good: bool

    @property
    def agrees(self) -> bool | None:
        """Whether gained and lost equal what the stored aggregate counted; None without it."""
        if self.stored is None or self.stored.gained is None:
            return None
        return (self.totals.gained, self.totals.lost) == (self.stored.gained, self.stored.lost)


def flip_view(
    version: PlanVersion, contract: Contract, choice: Choice, aggregate: Mapping[str, Any] | None
) -> FlipView:
    """Flips per task of one cell."""
    arm = version.arms.filter(key=contract.arms[0]).first()
    rows = paired_rows(version, contract.arms, (choice.condition, choice.split))
    outcome = OUTCOMES[choice.metric]
    found = strips(rows, contract.arms, outcome, arm.seeds if arm is not None else ())
    stored = _stored(aggregate, contract.arms).get((choice.condition, choice.split, choice.metric))
    return FlipView(choice, found, flips(found), stored, outcome.good)


def endpoints_of(
    version: PlanVersion, contract: Contract, aggregate: dict[str, Any] | None
) -> list[results.EndpointView]:
    """The registered endpoints that compare exactly these arms."""
    document = plan_body(version)["plan"]
    return [
        view
        for view in results.endpoint_views(document, aggregate)
        if view.endpoint["compare"]["kind"] == "pair" and tuple(view.endpoint["compare"]["arms"]) == contract.arms
    ]


def headline(contract: Contract, found: Comparability) -> str:
    """The sentence that opens the page: may the two be compared, and what differs by design."""
    a, b = contract.arms
    if not found.comparable:
        return _("%(a)s and %(b)s may not be compared: %(names)s.") % {"a": a, "b": b, "names": found.names()}
    return _("%(a)s and %(b)s may be compared: they differ in %(treatment)s alone, as the plan declared.") % {
        "a": a,
        "b": b,
        "treatment": ", ".join(field.path for field in contract.different),
    }


def finding(contract: Contract, endpoints: Sequence[results.EndpointView]) -> str:
    """What the registered endpoints found, never stronger than their stored verdicts."""
    settled = [view for view in endpoints if view.verdict != "pending"]
    if not endpoints:
        return _("No endpoint of this pair is registered: results can be observed, and no effect may be claimed.")
    if not settled:
        return _("Every registered endpoint of this pair is pending.")
    return " ".join(results.headline([view], []) for view in settled[:3])
