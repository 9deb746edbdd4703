"""Evaluation outcomes as n of N, by checkpoint, condition and split. A cell that is not full says what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Avg, Count, Q, QuerySet
from django.utils.translation import gettext_lazy as _

from runs.actions.plans import plan_body
from runs.models import EvaluationItem, PlanVersion, Run

T = "trajectory__"
OUTCOMES: list[tuple[str, Any, Q, Q]] = [
    # key, word, numerator, denominator
    ("finish", _("finish"), Q(**{f"{T}finished": True}), Q()),
    ("success", _("success"), Q(**{f"{T}success": True}), Q()),
    ("policy_error", _("parser or policy failure"), Q(**{f"{T}terminal": "policy_error"}), Q()),
    ("budget", _("budget spent"), Q(**{f"{T}terminal": "budget_exhausted"}), Q()),
    ("premature", _("premature finish"), Q(**{f"{T}premature_finish": True}), Q()),
    ("repeat", _("any repeat call"), Q(**{f"{T}repeat_calls__gt": 0}), Q()),
    ("recovered", _("recovery, all items"), Q(**{f"{T}recovered": True}), Q()),
    ("recovered_exposed", _("recovery, exposed items"), Q(**{f"{T}recovered": True}), Q(**{f"{T}exposed": True})),
    ("fatal", _("Fatal"), Q(**{f"{T}fatal_confirmed__isnull": False}), Q()),
    (
        "continued",
        _("continued after Fatal"),
        Q(**{f"{T}continued_after_fatal": True}),
        Q(**{f"{T}fatal_confirmed__isnull": False}),
    ),
    ("invalid", _("infrastructure-invalid"), Q(**{f"{T}status": "infrastructure_invalid"}), Q()),
]


@dataclass(frozen=True)
class Rate:
    """n of N. ``of`` 0: no case to count, which is no 0 %."""

    key: str
    word: Any
    n: int
    of: int

    @property
    def share(self) -> float | None:
        """n / N, or None without a case."""
        return self.n / self.of if self.of else None


@dataclass(frozen=True)
class CellView:
    """One condition and split of one checkpoint. ``planned`` items; ``stored`` of them exist."""

    condition: str
    split: str
    planned: int
    stored: int
    rates: dict[str, Rate]
    reward: float | None
    depth: float | None

    def shown(self, key: str) -> Rate:
        """The rate to show: without a single exposure recovery has no case to count, which is no 0 %."""
        rate = self.rates[key]
        if key == "recovered" and not self.rates["recovered_exposed"].of:
            return Rate(rate.key, rate.word, 0, 0)
        return rate

    @property
    def recovery(self) -> Rate:
        """Recovery over all items, as ``shown``."""
        return self.shown("recovered")

    @property
    def full(self) -> bool:
        """Whether every planned item is stored."""
        return self.stored >= self.planned > 0


def planned_items(version: PlanVersion) -> dict[tuple[str, str], int]:
    """Items per (condition, split) that the plan asks of every checkpoint."""
    plan = plan_body(version)["plan"]
    return {
        (condition, item["split"]): item["tasks"] * plan["evaluation"]["repeats"]
        for condition in plan["evaluation"]["conditions"]
        for item in plan["evaluation"]["splits"]
    }


def _measures() -> dict[str, Any]:
    found: dict[str, Any] = {"stored": Count("pk"), "reward": Avg(f"{T}reward_total"), "depth": Avg(f"{T}tool_depth")}
    for key, _word, numerator, denominator in OUTCOMES:
        found[f"n_{key}"] = Count("pk", filter=numerator & denominator)
        found[f"of_{key}"] = Count("pk", filter=denominator) if denominator else Count("pk")
    return found


def _cell(condition: str, split: str, planned: int, row: Mapping[str, Any] | None) -> CellView:
    row = row or {}
    rates = {key: Rate(key, word, row.get(f"n_{key}", 0), row.get(f"of_{key}", 0)) for key, word, _n, _d in OUTCOMES}
    return CellView(condition, split, planned, row.get("stored", 0), rates, row.get("reward"), row.get("depth"))


def cells_of(items: QuerySet[EvaluationItem], planned: dict[tuple[str, str], int]) -> list[CellView]:
    """Cells of one set of items (one checkpoint, usually), in the plan's order. One query."""
    rows = {
        (r["condition"], r["split"]): r for r in items.values("condition", "split").annotate(**_measures()).order_by()
    }
    keys = [*planned, *[key for key in rows if key not in planned]]
    return [
        _cell(condition, split, planned.get((condition, split), 0), rows.get((condition, split)))
        for condition, split in keys
    ]


def run_cells(run: Run) -> list[CellView]:
    """Evaluation cells of a run's own checkpoints."""
    planned = planned_items(run.plan_version) if run.plan_version is not None else {}
    return cells_of(EvaluationItem.objects.filter(run=run), planned)


def parent_cells(run: Run) -> list[CellView]:
    """The same cells of the policy that the run started from; empty for a run without a plan."""
    if run.plan_version is None:
        return []
    items = EvaluationItem.objects.filter(plan_version=run.plan_version, run__isnull=True)
    return cells_of(items, planned_items(run.plan_version))


def with_parent(own: list[CellView], parent: list[CellView]) -> list[tuple[CellView, CellView | None]]:
    """Each cell beside the parent's of the same condition and split."""
    there = {(cell.condition, cell.split): cell for cell in parent}
    return [(cell, there.get((cell.condition, cell.split))) for cell in own]
