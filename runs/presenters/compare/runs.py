"""Two to six runs side by side: comparability first, then configuration, code, outcomes and curves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Avg, Count, Q
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from runs.actions.plans import plan_body
from runs.models import EvaluationItem, Run
from runs.presenters.compare.identity import (
    EQUAL,
    Caution,
    Comparability,
    evaluation_groups,
    fingerprint,
    recorded_identities,
    side_values,
    state_of,
    witnesses,
)
from runs.presenters.evaluation import OUTCOMES, planned_items
from workbench.contracts.spec import flatten

MOST = 6
NOT_CODE = ("task_set",)  # compared as data


@dataclass(frozen=True)
class Difference:
    """One field over the runs; ``values`` in the runs' order, None where a run has no such field."""

    path: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Differences:
    """Fields that differ, and how many are equal."""

    different: list[Difference]
    equal: int

    @property
    def total(self) -> int:
        """Fields compared."""
        return len(self.different) + self.equal


def differences(sides: Sequence[Mapping[str, Any]]) -> Differences:
    """Field by field over any number of flat documents. Equal means equal canonical bytes on every side."""
    found, equal = [], 0
    for path in sorted({path for side in sides for path in side}):
        values = tuple(side.get(path) for side in sides)
        present = all(path in side for side in sides)
        if present and (values == (None,) * len(values) or state_of(values) == EQUAL):
            equal += 1
        else:
            found.append(Difference(path, values))
    return Differences(found, equal)


def code_of(run: Run) -> dict[str, Any]:
    """Bound identities of code and machine by dotted path: harness, environment, reward, formatter, runtime, lock."""
    if run.plan_version is None:
        return {}
    bindings = plan_body(run.plan_version)["bindings"]
    return flatten({key: value for key, value in bindings.items() if key not in NOT_CODE})


def comparability(runs: Sequence[Run]) -> Comparability:
    """The verdict over the runs. Needs arms, plan versions and heads loaded. Two queries."""
    recorded = recorded_identities(evaluation_groups(runs), "run")
    rows = fingerprint([side_values(run) for run in runs])
    return Comparability(rows, witnesses([recorded.get(run.pk) for run in runs]), _cautions(runs))


def _cautions(runs: Sequence[Run]) -> list[Caution]:
    found = []
    plans = {run.plan_version_id for run in runs}
    if len(plans) > 1:
        found.append(
            Caution(_("several plans: evaluation seeds derive from the plan, so repeats are not paired across them"))
        )
    arms = [(run.plan_version_id, run.arm_id) for run in runs]
    if all(arms.count(arm) < 2 for arm in arms):
        found.append(Caution(_("one seed of each arm: nothing here separates a treatment from a seed")))
    open_runs = [run.name for run in runs if run.head.state != "completed"]
    if open_runs:
        found.append(
            Caution(
                ngettext(
                    "%(n)d run has not completed: %(names)s", "%(n)d runs have not completed: %(names)s", len(open_runs)
                )
                % {"n": len(open_runs), "names": gettext(", ").join(open_runs)}
            )
        )
    found.append(Caution(_("descriptive: no interval is stored for a comparison that no plan registered")))
    return found


@dataclass(frozen=True)
class OutcomeCell:
    """n of N of one run; ``difference`` of task means against the first run over ``tasks`` shared tasks."""

    n: int
    of: int
    difference: float | None
    tasks: int

    @property
    def share(self) -> float | None:
        """n / N, or None without a case."""
        return self.n / self.of if self.of else None


@dataclass(frozen=True)
class OutcomeRow:
    """One outcome over the runs."""

    word: Any
    cells: list[OutcomeCell]


@dataclass(frozen=True)
class OutcomeTable:
    """One condition and split: items per run, rates, and the mean reward over tasks."""

    condition: str
    split: str
    stored: list[int]
    planned: list[int]
    rows: list[OutcomeRow]
    rewards: list[tuple[float | None, float | None, int]]


SHOWN = ("success", "finish", "recovered", "fatal", "repeat", "policy_error", "budget")
TaskRow = Mapping[str, Any]


def _task_rows(runs: Sequence[Run]) -> list[TaskRow]:
    """Counts by run's final policy, condition, split and task. One query."""
    chosen = [(key, n, d) for key, _word, n, d in OUTCOMES if key in SHOWN]
    measures: dict[str, Any] = {"items": Count("pk"), "reward": Avg("trajectory__reward_total")}
    measures |= {"valid": Count("pk", filter=Q(trajectory__status="valid"))}
    measures |= {"exposed": Count("pk", filter=Q(trajectory__exposed=True))}
    measures |= {f"n_{key}": Count("pk", filter=n & d) for key, n, d in chosen}
    own = Q()
    for run in runs:
        own |= Q(run=run, checkpoint=run.head.checkpoint_id)
    rows: Any = EvaluationItem.objects.filter(own).order_by().values("run", "condition", "split", "task__task_sha256")
    found: list[Any] = list(rows.annotate(**measures))
    return found


def outcome_tables(runs: Sequence[Run]) -> list[OutcomeTable]:
    """Every condition and split that any of the runs plans. One query."""
    planned = [planned_items(run.plan_version) if run.plan_version is not None else {} for run in runs]
    rows = _task_rows(runs)
    places = list(dict.fromkeys(place for plan in planned for place in plan))
    words = {key: word for key, word, _n, _d in OUTCOMES}
    found = []
    for place in places:
        here: list[dict[str, TaskRow]] = [
            {r["task__task_sha256"]: r for r in rows if r["run"] == run.pk and (r["condition"], r["split"]) == place}
            for run in runs
        ]
        table = [OutcomeRow(words[key], _cells(here, f"n_{key}")) for key in SHOWN]
        rewards = [(_mean(side.values()), *paired_difference(here[0], side, "reward")) for side in here]
        found.append(
            OutcomeTable(
                *place,
                [sum(r["items"] for r in side.values()) for side in here],
                [plan.get(place, 0) for plan in planned],
                table,
                rewards,
            )
        )
    return found


def _mean(rows: Any) -> float | None:
    """Mean over tasks of the mean over repeats."""
    values = [row["reward"] for row in rows if row["reward"] is not None]
    return math.fsum(values) / len(values) if values else None


def _cells(sides: Sequence[Mapping[str, TaskRow]], key: str) -> list[OutcomeCell]:
    """One outcome over the runs. Where nobody met a failure, recovery has no case to count, which is no 0 %."""
    if key == "n_recovered" and not any(row["exposed"] for side in sides for row in side.values()):
        return [OutcomeCell(0, 0, None, 0) for _side in sides]
    return [
        OutcomeCell(
            sum(row[key] for row in side.values()),
            sum(row["items"] for row in side.values()),
            *paired_difference(sides[0], side, key),
        )
        for side in sides
    ]


def paired_difference(base: Mapping[str, TaskRow], side: Mapping[str, TaskRow], key: str) -> tuple[float | None, int]:
    """Mean over shared tasks of (side - base), each task's share of its valid items; and the number of tasks.

    The first side against itself, and sides without a shared task, have none.
    """
    if side is base:
        return None, len(base)
    steps = []
    for task in base.keys() & side.keys():
        values = [_share(row, key) for row in (base[task], side[task])]
        if values[0] is not None and values[1] is not None:
            steps.append(values[1] - values[0])
    return (math.fsum(steps) / len(steps) if steps else None), len(steps)


def _share(row: TaskRow, key: str) -> float | None:
    if key == "reward":
        value: float | None = row["reward"]
        return value
    return row[key] / row["valid"] if row["valid"] else None


@dataclass(frozen=True)
class Style:
    """How a run is drawn: colour of its arm, dash of its seed."""

    run: Run
    colour: int
    dash: str
    label: str


DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


def styles(runs: Sequence[Run]) -> list[Style]:
    """Seeds of one arm share a colour and differ by dash; runs of one name in two plans name the plan."""
    arms: dict[Any, list[Run]] = {}
    for run in runs:
        arms.setdefault((run.plan_version_id, run.arm_id or run.pk), []).append(run)
    colours = {key: i % 6 + 1 for i, key in enumerate(arms)}
    names = [run.name for run in runs]
    found = []
    for run in runs:
        key = (run.plan_version_id, run.arm_id or run.pk)
        plan = f" {run.plan_version.plan.slug}" if run.plan_version is not None and names.count(run.name) > 1 else ""
        found.append(Style(run, colours[key], DASHES[arms[key].index(run)], f"{run.name}{plan}"))
    return found


def headline(runs: Sequence[Run], verdict: Comparability, config: Differences) -> Any:
    """The sentence that opens the page."""
    parts = {"n": len(runs), "names": verdict.names(), "d": len(config.different), "of": config.total}
    if not verdict.comparable:
        return _("These %(n)d runs may not be compared: %(names)s.") % parts
    return _("These %(n)d runs may be compared; %(d)d of %(of)d configuration fields differ.") % parts
