"""Metric points that follow from what is recorded already: L5 of complete cells, the funnel, entropy decay.

Each is written in the transaction of the job that completes it, once: a cell, a batch and a collection are
completed by exactly one job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from runs import projection
from runs.actions.closure import item_facts
from runs.actions.plans import plan_body
from runs.actions.record_group import GROUP, parse_group
from runs.models import Checkpoint, Document, EvaluationItem, Execution, MetricPoint, Run
from runs.statistics import decay, generalisation
from runs.statistics.bootstrap import Bootstrap
from runs.statistics.funnel import Stage, build_funnel
from runs.statistics.generalisation import ANCHOR, IN_DISTRIBUTION, OUT_OF_DISTRIBUTION, Cell
from workbench.contracts import layout
from workbench.contracts.records import TRAIN, GroupRecord, MetricRecord, UpdateRecord

ENTROPY = "l2.entropy_sampled/1"
ALL_SEGMENTS = {"segment": "all"}


def requested_items(body: dict[str, Any], split: str) -> int:
    """Items of a cell that the plan asks for; 0 for a split that it does not evaluate."""
    asked = next((item["tasks"] for item in body["plan"]["evaluation"]["splits"] if item["split"] == split), 0)
    return min(asked, len(layout.split_tasks(body, split))) * int(body["plan"]["evaluation"]["repeats"]) if asked else 0


def complete_cell(execution: Execution, checkpoint: Checkpoint, condition: str, split: str) -> Cell | None:
    """The cell with all its items, or None while some are missing or where the plan asks for none."""
    wanted = requested_items(plan_body(execution.plan_version), split)
    where = {"checkpoint": checkpoint, "condition": condition, "split": split}
    if not wanted or EvaluationItem.objects.filter(plan_version=execution.plan_version, **where).count() != wanted:
        return None
    items = tuple(item_facts(execution, **where))
    return Cell(str(checkpoint.uid), checkpoint.policy_version, condition, split, items)


def parent_of(execution: Execution) -> Checkpoint | None:
    """The checkpoint that every run of the execution started from."""
    uid = layout.parent_checkpoint_uid(str(execution.plan_version.uid))
    return Checkpoint.objects.filter(uid=uid).first()


@dataclass(frozen=True)
class Writing:
    """Records of one call of ``write_points``. ``run`` None: the parent's own. ``source``: unique a writing.

    ``at_start``: they speak of the checkpoint that the run started from, so they stand at its start.
    """

    run: Run | None
    source: str
    records: list[MetricRecord]
    at_start: bool = False


def evaluation_metrics(execution: Execution, checkpoint: Checkpoint, condition: str, split: str) -> list[Writing]:
    """What the cell that a job just added to completes.

    A gap, a run's baseline and its forgetting belong to whichever of their cells is complete last.
    """
    cell = complete_cell(execution, checkpoint, condition, split)
    if cell is None:
        return []
    scene = _Scene(execution, condition, generalisation.bootstrap_of(execution.plan_version.sha256))
    own = generalisation.performance(cell, scene.bootstrap) + scene.gaps(checkpoint, cell)
    found = [Writing(checkpoint.run, f"evaluation:{checkpoint.uid}:{condition}:{split}", own)]
    for later, before, after in scene.pairs(checkpoint, cell):
        found += scene.against_parent(later, before, after)
    return found


@dataclass(frozen=True)
class _Scene:
    """One execution under one condition."""

    execution: Execution
    condition: str
    bootstrap: Bootstrap

    def cell(self, checkpoint: Checkpoint, split: str) -> Cell | None:
        return complete_cell(self.execution, checkpoint, self.condition, split)

    def gaps(self, checkpoint: Checkpoint, cell: Cell, like: Checkpoint | None = None) -> list[MetricRecord]:
        """Gaps of the checkpoint that ``cell`` is a side of, where the other side is complete (of ``like``, too)."""
        found: list[MetricRecord] = []
        for other in _gap_partners(cell.split):
            partner = self.cell(checkpoint, other)
            if partner is not None and (like is None or self.cell(like, other) is not None):
                inside, outside = (partner, cell) if cell.split == OUT_OF_DISTRIBUTION else (cell, partner)
                found += generalisation.gap(inside, outside, self.bootstrap)
        return found

    def pairs(self, checkpoint: Checkpoint, cell: Cell) -> list[tuple[Checkpoint, Cell, Cell]]:
        """(a run's checkpoint, the parent's cell, the run's) where ``cell`` is the last of the two."""
        parent = parent_of(self.execution)
        if parent is None:
            return []
        if checkpoint.pk != parent.pk:
            before = self.cell(parent, cell.split)
            return [] if before is None else [(checkpoint, before, cell)]
        waiting = EvaluationItem.objects.filter(
            plan_version=self.execution.plan_version, condition=self.condition, split=cell.split
        ).exclude(checkpoint=parent)
        later = Checkpoint.objects.filter(pk__in=waiting.values("checkpoint")).select_related("run").order_by("pk")
        cells = [(item, self.cell(item, cell.split)) for item in later]
        return [(item, cell, found) for item, found in cells if found is not None]

    def against_parent(self, later: Checkpoint, before: Cell, after: Cell) -> list[Writing]:
        """The parent's values in the run's own series, so that they start there; on anchors, what was forgotten."""
        parent = parent_of(self.execution)
        baseline = generalisation.performance(before, self.bootstrap)
        if parent is not None:
            baseline += self.gaps(parent, before, like=later)
        started = [replace(item, trajectories=0, generated_tokens=0) for item in baseline]
        where = f"{later.uid}:{self.condition}:{after.split}"
        found = [Writing(later.run, f"baseline:{where}", started, at_start=True)]
        if after.split == ANCHOR:
            lost = generalisation.forgetting(before, after, self.bootstrap)
            found.append(Writing(later.run, f"forgetting:{where}", lost))
        return found


def _gap_partners(split: str) -> tuple[str, ...]:
    """Splits that ``split`` forms a gap with."""
    if split == OUT_OF_DISTRIBUTION:
        return IN_DISTRIBUTION
    return (OUT_OF_DISTRIBUTION,) if split in IN_DISTRIBUTION else ()


# --- training -------------------------------------------------------------------------------------


def batch_groups(record: UpdateRecord) -> list[GroupRecord]:
    """Records of the groups of a batch, in its order."""
    rows = Document.objects.filter(kind=GROUP, subject_uid__in=record.group_uids)
    found = {str(row.subject_uid): parse_group(bytes(row.bytes)) for row in rows}
    return [found[uid] for uid in record.group_uids]


def funnel_records(record: UpdateRecord, stages: Sequence[Stage], split: str) -> list[MetricRecord]:
    """Count, share of the started and generated tokens of every stage of a batch."""
    found = []
    for stage in stages:
        for name, value, count in (
            ("funnel_trajectories", float(stage.trajectories), stages[0].trajectories),
            ("funnel_share", stage.share, stages[0].trajectories),
            ("funnel_tokens", float(stage.tokens), stage.trajectories),
        ):
            found.append(
                MetricRecord(
                    f"l3.{name}/1", TRAIN, split, {"stage": stage.name}, value, count, record.policy_version,
                    record.batch, None, None, record.uid,
                )
            )  # fmt: skip
    return found


def funnel_metrics(record: UpdateRecord) -> list[MetricRecord]:
    """The funnel of a batch."""
    groups = batch_groups(record)
    return funnel_records(record, build_funnel(groups, record.policy_version), groups[0].split if groups else "")


def decay_metrics(run: Run, split: str, policy_version: int) -> list[MetricRecord]:
    """Share of the first collection's entropy that is left, and its slope over the last collections.

    Reads the run's own points, the present collection's included. Empty where none was measured.
    """
    chosen = MetricPoint.objects.filter(
        series__run=run, series__definition=ENTROPY, series__phase=TRAIN, series__split=split,
        series__labels_key=projection.labels_key(ALL_SEGMENTS), value__isnull=False,
    )  # fmt: skip
    latest = [
        (version, value)
        for version, value in chosen.order_by("-id").values_list("policy_version", "value")[: decay.WINDOW]
        if value is not None
    ][::-1]
    first = chosen.order_by("id").values_list("value", flat=True).first()
    return [] if first is None else decay_records(first, latest, split, policy_version)


def decay_records(
    first: float, latest: Sequence[tuple[int, float]], split: str, policy_version: int
) -> list[MetricRecord]:
    """Both values from the first entropy and the latest (policy version, entropy) pairs, oldest first."""
    pairs = (
        ("entropy_left", decay.left(first, latest[-1][1]), 1),
        ("entropy_slope", decay.slope(latest), len(latest)),
    )
    return [
        MetricRecord(f"l4.{name}/1", TRAIN, split, {}, value, count, policy_version, None, None, None, None)
        for name, value, count in pairs
    ]
