"""Points that follow from what is stored: written once, by the job that completes cell, batch or collection."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from evidence.verify import verify
from runs.actions.derived_metrics import complete_cell, parent_of, requested_items
from runs.actions.plans import plan_body
from runs.metrics.run_funnel import run_funnel
from runs.models import EvaluationItem, Job, MetricPoint, Run
from runs.statistics.funnel import STAGES
from runs.storage import blob_store
from tests.runs.builders import task_set_bytes
from tests.runs.scripted import Lab, head_of, run_of
from tests.runs.test_advance import ALONE
from workbench.contracts.canonical import canonical_bytes, parse_canonical
from workbench.contracts.records import EVALUATE
from worker import lifecycle

pytestmark = pytest.mark.django_db

SPLITS = [{"split": name, "tasks": 2} for name in ("test", "out_of_distribution", "anchor")]
WIDE: dict[str, Any] = {**ALONE, "evaluation": {"splits": SPLITS, "repeats": 2, "conditions": ["standard"]}}


@pytest.fixture(autouse=True)
def five_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two tasks of every split in the scripted task set."""
    names = ("train", "validation", "test", "out_of_distribution", "anchor")
    tasks = parse_canonical(task_set_bytes(10))
    for place, task in enumerate(tasks):
        task["split"] = names[place // 2]
    monkeypatch.setattr("tests.runs.scripted.task_set_bytes", lambda: canonical_bytes(tasks))


def points(definition: str, run: Run | None, **labels: str) -> list[MetricPoint]:
    rows = MetricPoint.objects.filter(series__definition=f"{definition}/1", series__run=run).select_related("series")
    return [row for row in rows.order_by("id") if row.series.labels == labels]


def scripted(spec: Any, group: Any, slot: int) -> float:
    """Training: 0.9 and 0.1. Evaluation: the parent earns 0.8 everywhere, a run 0.6, out of distribution 0.2 less."""
    if spec.purpose != EVALUATE:
        return (0.9, 0.1)[slot % 2]
    return (0.8 if spec.policy.policy_version == 0 else 0.6) - 0.2 * (spec.split == "out_of_distribution")


def test_cells_gap_and_forgetting_of_a_whole_execution(lab: Lab) -> None:
    """Run: 0.6 in and 0.4 out of distribution, so the gap is 0.2; on anchors 0.8 - 0.6 = 0.2 is forgotten."""
    lab.script.reward = scripted
    execution = lab.start(**WIDE)
    lab.drive(execution)
    assert execution.state == "closed"
    run = run_of(execution, "V")
    for split, value in (("test", 0.6), ("out_of_distribution", 0.4), ("anchor", 0.6)):
        start, row = sorted(_of(run, split), key=lambda row: row.policy_version)
        assert start.value == pytest.approx(value + 0.2) and start.series_id == row.series_id
        assert (start.policy_version, start.trajectories, start.wall_seconds) == (0, 0, 0.0)
        assert row.value == pytest.approx(value) and row.count == 2
        assert (row.policy_version, str(row.subject_uid)) == (2, str(head_of(execution, "V").checkpoint.uid))
    parent = {row.series.split: row.value for row in points("l5.reward", None)}
    assert parent == {
        "test": pytest.approx(0.8),
        "out_of_distribution": pytest.approx(0.6),
        "anchor": pytest.approx(0.8),
    }
    gaps = points("l5.reward_gap", run, outside="out_of_distribution")
    assert sorted(row.policy_version for row in gaps) == [0, 2]
    for row in gaps:
        assert row.value == pytest.approx(0.2) and row.series.split == "test"
    for bound in ("low", "high"):
        (row,) = points("l5.reward_forgotten", run, bound=bound)
        assert row.value == pytest.approx(0.2)
    assert not points("l5.reward_forgotten", None)  # the parent has forgotten nothing: it is the baseline
    keys = Counter(
        (row.series_id, row.policy_version) for row in MetricPoint.objects.filter(series__definition__startswith="l5.")
    )
    assert set(keys.values()) == {1}
    assert verify(store=blob_store(), steps=[4, 8]).problems == []


def _of(run: Run | None, split: str) -> list[MetricPoint]:
    return [row for row in points("l5.reward", run) if row.series.split == split]


@pytest.mark.parametrize("parent_last", [False, True])
def test_forgetting_is_written_once_whichever_cell_ends_last(lab: Lab, parent_last: bool) -> None:
    lab.script.reward = scripted
    execution = lab.start(**WIDE)
    parent, run = parent_of(execution), run_of(execution, "V")
    assert parent is not None
    anchor = "evaluate:standard:anchor"

    def held_back(key: str) -> bool:
        return anchor in key and (str(parent.uid) in key) is parent_last

    while keys := [job for job in Job.objects.filter(state="queued").order_by("key") if not held_back(job.key)]:
        lifecycle.execute(keys[0].pk)
    assert Job.objects.filter(state="queued", key__contains=anchor).exists()
    assert not points("l5.reward_forgotten", run)
    lab.drive(execution)
    assert len(points("l5.reward_forgotten", run)) == 1
    assert sorted(row.policy_version for row in _of(run, "anchor")) == [0, 2]  # it starts at the parent


def test_a_cell_is_complete_with_its_last_item_only(lab: Lab) -> None:
    """Two tasks of two repeats in shards of two rows: after the first shard there is no point yet."""
    execution = lab.start(**WIDE)
    parent = parent_of(execution)
    assert parent is not None
    assert requested_items(plan_body(execution.plan_version), "test") == 4
    assert requested_items(plan_body(execution.plan_version), "validation") == 0
    key = f"{parent.uid}:evaluate:standard:test"
    while not EvaluationItem.objects.exists():
        assert lab.step(execution, only=key) or lab.step(execution)
    assert EvaluationItem.objects.filter(split="test").count() in (2, 0)
    assert complete_cell(execution, parent, "standard", "test") is None and not points("l5.reward", None)
    lab.drive(execution)
    found = complete_cell(execution, parent, "standard", "test")
    assert found is not None and len(found.items) == 4
    assert complete_cell(execution, parent, "standard", "validation") is None


def test_the_funnel_of_every_batch_and_the_entropy_that_is_left(lab: Lab) -> None:
    """One group of two a batch. The scripted engine gives no verdicts: what nobody verified is not reconstructed.

    It measures no entropy either, so nothing is said of what is left.
    """
    execution = lab.start(**ALONE)
    lab.drive(execution)
    run = run_of(execution, "V")
    for stage, share in zip(STAGES, (1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0), strict=True):
        assert [row.value for row in points("l3.funnel_trajectories", run, stage=stage)] == [2 * share] * 2
        assert [row.value for row in points("l3.funnel_share", run, stage=stage)] == [share] * 2
        assert [row.value for row in points("l3.funnel_tokens", run, stage=stage)] == [6 * share] * 2
    assert [row.update for row in points("l3.funnel_share", run, stage="started")] == [0, 1]
    assert not points("l4.entropy_left", run)


def test_a_broken_slot_leaves_the_funnel_with_its_group(lab: Lab) -> None:
    """Slot 1 of every training group breaks: 2 started and finished, 1 not broken, none verified."""
    lab.script.invalid = lambda spec, group, slot: spec.purpose == "train" and slot == 1
    execution = lab.start(**{**ALONE, "error_gate": {"max_invalid_share": 1.0, "minimum_trajectories": 4}})
    lab.drive(execution)
    rows = [points("l3.funnel_trajectories", run_of(execution, "V"), stage=stage)[0].value for stage in STAGES]
    assert rows == [2.0, 2.0, 1.0, 0.0, 0.0, 0.0, 0.0]


def test_the_funnel_of_a_run_adds_its_batches(lab: Lab) -> None:
    """Two batches of two: 4 started, of 12 tokens; none verified, so nothing reaches the end and no cost is named."""
    execution = lab.start(**ALONE)
    run = run_of(execution, "V")
    assert run_funnel(run) is None  # no batch met its update
    lab.drive(execution)
    funnel = run_funnel(run)
    assert funnel is not None
    assert [stage.trajectories for stage in funnel.stages] == [4, 4, 4, 0, 0, 0, 0]
    assert [stage.share for stage in funnel.stages] == [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0]
    assert [stage.tokens for stage in funnel.stages] == [12, 12, 12, 0, 0, 0, 0]
    assert funnel.cost(funnel.stages[2]) == 3.0 and funnel.cost(funnel.stages[-1]) is None
    made = replace(funnel, hours=0.5)
    assert made.rate(made.stages[0]) == 8.0 and replace(funnel, hours=None).rate(made.stages[0]) is None
