"""The query funnel of the pilot and of each arm: planned, recorded, every exclusion, usable, nonzero."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.utils.translation import gettext_lazy as _

from runs.actions.plans import plan_body
from runs.models import PlanVersion, Run
from runs.presenters.compare.discarded import ENDED, requested_slots
from runs.presenters.trials.rows import PILOT, Middle, Rate, Row, Signs, middle, missing, shrinkage, signs_of
from runs.presenters.trials.words import STATUS
from workbench.contracts import layout
from workbench.contracts.plan_schema import EDIT_CREDITS
from workbench.contracts.records import PREFLIGHT, TRAIN, VALID
from workbench.contracts.trials import (
    AVAILABLE,
    FORMAT_ERROR,
    NO_ELIGIBLE_BLOCK,
    NO_ORIGINAL_UTILITY,
    SELECT,
    SELECTED,
    TRIAL_INCOMPLETE,
    UNAVAILABLE,
)

READS_D = ("B", "M")  # arms whose coefficient is made of D


@dataclass(frozen=True)
class Part:
    """One fate of planned queries. ``tone``: as in accounts of slots."""

    key: str
    word: Any
    why: Any
    count: int
    tone: str


@dataclass(frozen=True)
class Geometry:
    """Where the coefficient stands, over terms that are not zero: where D is 0, s is 1 and no cap can act.

    ``applied`` False: computed, nothing was trained.
    """

    shrinkage: Middle
    capped: Rate
    applied: bool


@dataclass(frozen=True)
class Column:
    """One scope: the pilot, or an arm. ``mode`` None: the plan asks for no trials here. ``letter``: O, B, M, E, ""."""

    scope: int | None
    key: str
    title: Any
    letter: str
    mode: str | None
    weight: float | None
    cap: float | None
    planned: int
    parts: tuple[Part, ...]
    rows: tuple[Row, ...]
    geometry: Geometry | None

    @cached_property
    def is_pilot(self) -> bool:
        """Whether it speaks of preflight groups."""
        return self.scope is PILOT

    @cached_property
    def recorded(self) -> int:
        """Interventions that are recorded, whatever became of them."""
        return len(self.rows)

    @cached_property
    def count(self) -> dict[str, int]:
        """Fates by key."""
        return {part.key: part.count for part in self.parts}

    @cached_property
    def balanced(self) -> bool:
        """Whether the parts add up to what was planned."""
        return self.planned == sum(part.count for part in self.parts)

    @cached_property
    def band(self) -> list[tuple[Part, float, float]]:
        """Parts as pieces of a bar of 100 units: (part, x, width)."""
        found, x = [], 0.0
        for part in self.parts:
            width = 100.0 * part.count / self.planned if self.planned else 0.0
            if width:
                found.append((part, x, width))
                x += width
        return found

    @cached_property
    def usable(self) -> Rate:
        """Queries with a D, of all planned."""
        return Rate(sum(row.status == AVAILABLE for row in self.rows), self.planned)

    @cached_property
    def signs(self) -> Signs:
        """Of all usable differences."""
        return signs_of(self.rows)

    @cached_property
    def failed(self) -> Signs:
        """Of usable differences whose original failed."""
        return signs_of(row for row in self.rows if row.failed)

    @cached_property
    def succeeded(self) -> Signs:
        """Of usable differences whose original succeeded."""
        return signs_of(row for row in self.rows if row.outcome == "success")

    @cached_property
    def known_failed(self) -> int:
        """Recorded originals with a known failed verdict, queried or not."""
        return sum(row.failed for row in self.rows)

    @cached_property
    def chosen(self) -> list[Row]:
        """Where a block was chosen."""
        return [row for row in self.rows if row.selected is not None]

    @cached_property
    def ratio(self) -> Middle:
        """m / L of the chosen turns."""
        return middle(row.ratio for row in self.rows)

    @cached_property
    def touched(self) -> Middle:
        """Share of the finally changed paths that the chosen block touches."""
        return middle(row.touched for row in self.chosen)

    @cached_property
    def empty(self) -> Rate:
        """Nothing is left of the patch without the block, of the blocks chosen."""
        return Rate(sum(bool(row.empty) for row in self.chosen), len(self.chosen))

    @cached_property
    def elsewhere(self) -> Rate:
        """Nonzero differences whose block touches no path of the final patch, of the nonzero ones.

        A final patch that is empty holds none of its paths either: its share is None, of nothing.
        """
        some = [row for row in self.rows if row.difference]
        return Rate(sum(not row.touched for row in some), len(some))

    @cached_property
    def replays(self) -> Rate:
        """Factual replays that agree with the original's labels, of the complete ones."""
        return Rate(sum(row.replays_agree for row in self.rows), sum(row.replays for row in self.rows))

    @cached_property
    def repeats(self) -> Rate:
        """Repeats of interventions that agree with the first, of the complete ones."""
        return Rate(sum(row.repeats_agree for row in self.rows), sum(row.repeats for row in self.rows))

    @cached_property
    def missing(self) -> Rate:
        """Without feedback, of those to be executed."""
        return missing(self.rows)

    @cached_property
    def missing_failed(self) -> Rate:
        """The same among known failed originals: completeness rules can withhold negative feedback."""
        return missing(row for row in self.rows if row.failed)

    @cached_property
    def missing_succeeded(self) -> Rate:
        """The same among successful originals."""
        return missing(row for row in self.rows if row.outcome == "success")

    @cached_property
    def infrastructure(self) -> int:
        """Slots without an outcome: they stand under "no original utility"."""
        return sum(row.valid != VALID for row in self.rows)

    @cached_property
    def broken(self) -> int:
        """Interventions of groups whose trials job broke."""
        return sum(row.broken is not None for row in self.rows)


def _parts(planned: int, never: int, rows: Sequence[Row]) -> tuple[Part, ...]:
    status = Counter(row.status for row in rows)
    nonzero = sum(bool(row.difference) for row in rows)
    usable = status[AVAILABLE]
    waiting = planned - len(rows) - never
    found = [
        Part("nonzero", _("usable, D not zero"), _("measured, with a sign"), nonzero, "trained"),
        Part("zero", _("usable, D = 0"), _("measured: no difference"), usable - nonzero, "zero"),
        Part(SELECTED, *STATUS[SELECTED], status[SELECTED], "zero"),
        *(Part(key, *STATUS[key], status[key], "lost") for key in UNAVAILABLE),
        Part("never", _("never asked"), _("its run ended before"), never, "never"),
        Part("waiting", _("not asked yet"), _("its group is not collected or not tried yet"), waiting, "waiting"),
    ]
    return tuple(found)


def _applied(credits: Sequence[dict[str, Any]]) -> Geometry:
    terms = [item for item in credits if item["status"] == "applied" and item["l1_mass"] > 0]
    return Geometry(
        middle(item["shrinkage"] for item in terms),
        Rate(sum(bool(item["capped"]) for item in terms), len(terms)),
        applied=True,
    )


def _computed(rows: Sequence[Row], weight: float, cap: float) -> Geometry:
    found = [value for row in rows if row.difference and (value := shrinkage(weight, cap, row)) is not None]
    capped = Rate(sum(value < 1.0 for value in found), len(found))
    return Geometry(middle(found), capped, applied=False)


def _shared_terms(body: dict[str, Any]) -> tuple[float | None, float | None]:
    """lambda and c where every arm that reads D has the same; (None, None) else."""
    found = {
        (item["config"]["objective"].get("edit_weight", 1.0), item["config"]["objective"].get("edit_cap", 1.0))
        for item in body["arms"]
        if EDIT_CREDITS.get(item["config"]["objective"]["credit"]) in READS_D
    }
    return next(iter(found)) if len(found) == 1 else (None, None)


def _pilot(body: dict[str, Any], rows: Sequence[Row], ended: bool) -> Column:
    plan, settings = body["plan"], layout.trial_settings(body, PREFLIGHT, None)
    groups = plan["preflight"]["groups"] if plan["preflight"] else 0
    planned = groups * plan["rollout"]["group_size"] if settings else 0
    weight, cap = _shared_terms(body)
    geometry = _computed(rows, weight, cap) if weight is not None and cap is not None else None
    parts = _parts(planned, planned - len(rows) if ended else 0, rows)
    mode = settings["mode"] if settings else None
    return Column(PILOT, "pilot", _("pilot"), "", mode, weight, cap, planned, parts, tuple(rows), geometry)


def build_columns(
    version: PlanVersion,
    runs: Sequence[Run],
    rows: dict[int | None, list[Row]],
    credits: dict[int, list[dict[str, Any]]],
    *,
    ended: bool,
) -> list[Column]:
    """The pilot, then every arm in the plan's order. ``ended``: no trial will follow. Runs need ``head``, ``arm``."""
    body = plan_body(version)
    columns = [_pilot(body, rows.get(PILOT, []), ended)]
    for arm in version.arms.order_by("position"):
        config = layout.arm_of(body, arm.key)["config"]
        settings = layout.trial_settings(body, TRAIN, arm.key)
        objective, own = config["objective"], rows.get(arm.pk, [])
        mine = [run for run in runs if run.arm_id == arm.pk]
        planned, never = 0, 0
        if settings is not None:
            by_run = Counter(row.run for row in own)
            for run in mine:
                asked = requested_slots(run)
                planned += asked
                never += asked - by_run[run.pk] if run.head.state in ENDED else 0
        letter = EDIT_CREDITS.get(objective["credit"], "O" if objective["credit"] == "vanilla" else "")
        terms = credits.get(arm.pk, [])
        columns.append(
            Column(
                arm.pk, arm.key, {"en": arm.title_en, "zh": arm.title_zh}, letter,
                settings["mode"] if settings else None, objective.get("edit_weight", 1.0),
                objective.get("edit_cap", 1.0), planned, _parts(planned, never, own), tuple(own),
                _applied(terms) if terms else None,
            )
        )  # fmt: skip
    return columns


def executes(column: Column) -> bool:
    """Whether D is measured in the scope at all."""
    return column.mode is not None and column.mode != SELECT


LEADING = ("waiting", "never", FORMAT_ERROR, NO_ELIGIBLE_BLOCK, NO_ORIGINAL_UTILITY, TRIAL_INCOMPLETE, SELECTED)
ALWAYS = UNAVAILABLE


def fates(columns: Sequence[Column]) -> list[tuple[Part, list[tuple[Column, int]]]]:
    """Lines of the funnel between planned and usable: every exclusion, and other fates where some query has them."""
    found = []
    for key in LEADING:
        part = next(part for part in columns[0].parts if part.key == key)
        cells = [(column, column.count[key]) for column in columns]
        if key in ALWAYS or any(n for _column, n in cells):
            found.append((part, cells))
    return found
