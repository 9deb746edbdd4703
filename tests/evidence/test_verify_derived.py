"""verify on values over several documents: a forged one is named though its document, hash and row agree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.db import transaction

from evidence.checks.derived import last_frames, pass_any, pass_every
from evidence.verify import verify
from runs.actions.derived_metrics import batch_groups, evaluation_metrics, funnel_metrics
from runs.actions.record_metrics import write_points
from runs.actions.record_update import UPDATE, parse_update
from runs.models import Document
from runs.storage import blob_store
from tests.evidence.test_verify import found, sql
from tests.runs.builders import AT, World
from tests.runs.scripted import Lab
from tests.runs.scripted import lab as lab
from tests.runs.test_derived_metrics import WIDE, five_splits, scripted
from tests.sweeps import sweep
from workbench.contracts.estimators import task_pass_at_k, task_pass_hat_k
from workbench.contracts.records import MetricRecord
from worker.engine.update_metrics import update_metrics

FAULT = {(8, "runs_metricpoint", "value")}
__all__ = ["five_splits", "lab"]


def forged(records: list[MetricRecord], definition: str, labels: dict[str, str]) -> list[MetricRecord]:
    """``records`` with another value in the first point of a series."""
    place = next(
        place
        for place, item in enumerate(records)
        if item.definition == f"{definition}/1" and item.labels.items() >= labels.items()
    )
    return [*records[:place], replace(records[place], value=0.0625), *records[place + 1 :]]


@pytest.mark.django_db
@pytest.mark.usefixtures("five_splits")
def test_a_missing_group_behind_a_cell_is_named_in_its_points(lab: Lab) -> None:
    """A group that is gone takes its task out of every value of its cell."""
    lab.script.reward = scripted
    lab.drive(lab.start(**WIDE))
    sql("DELETE FROM runs_document WHERE kind = 'group' AND subject_uid IN "
        "(SELECT uid FROM runs_group WHERE purpose = 'evaluate' AND split = 'test' ORDER BY id LIMIT 1)")  # fmt: skip
    assert (8, "runs_metricpoint", "value") in found(verify(store=blob_store(), steps=(8,)))


@pytest.mark.django_db
@pytest.mark.usefixtures("five_splits")
@pytest.mark.parametrize(
    ("definition", "labels"),
    sweep(
        [
            ("l5.reward", {}),
            ("l5.reward", {"bound": "low"}),
            ("l5.success_rate", {}),
            ("l5.pass_at_k", {"k": "2"}),
            ("l5.pass_hat_k", {"k": "2"}),
            ("l5.reward_gap", {"bound": "high"}),
            ("l5.success_gap", {}),
            ("l5.reward_forgotten", {}),
            ("l5.success_forgotten", {"bound": "low"}),
        ],
        (("l5.success_rate", {}), ("l5.success_forgotten", {"bound": "low"})),
    ),
)
def test_a_forged_value_of_an_evaluation_is_named(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, definition: str, labels: dict[str, str]
) -> None:
    done: list[str] = []

    def forge(*arguments: Any) -> list[Any]:
        parts = evaluation_metrics(*arguments)
        for place, part in enumerate(parts):
            known = any(item.definition == f"{definition}/1" for item in part.records)
            if known and not done:
                parts[place] = replace(part, records=forged(part.records, definition, labels))
                done.append(part.source)
        return parts

    monkeypatch.setattr("worker.recorder.evaluation_metrics", forge)
    lab.script.reward = scripted
    lab.drive(lab.start(**WIDE))
    assert len(done) == 1
    report = verify(store=blob_store(), steps=(8,))
    assert found(report) == FAULT and len(report.faults) == 1


@pytest.fixture
def measured(world: World) -> Iterator[tuple[World, list[MetricRecord]]]:
    """The world's first update with all that the engine measures of it."""
    record = parse_update(bytes(Document.objects.filter(kind=UPDATE).order_by("id")[0].bytes))
    frames = last_frames(record, world.store)
    assert frames is not None and len(frames) == len(record.credits) > 1
    records = [*update_metrics(record, batch_groups(record), {}, list(frames.values())), *funnel_metrics(record)]
    yield world, records


def write(world: World, records: list[MetricRecord]) -> None:
    with transaction.atomic():
        write_points(world.run, records, segment="", at=AT, wall_seconds=None, source="test")


def test_what_the_engine_measures_of_an_update_has_no_fault(measured: tuple[World, list[MetricRecord]]) -> None:
    world, records = measured
    names = {item.definition for item in records}
    assert {"l1.trajectory_age/1", "l1.effective_sample_size/1", "l3.funnel_share/1"} <= names
    write(world, records)
    report = verify(store=world.store, steps=(8,))
    assert report.problems == [] and report.checked[8] > len(records)


@pytest.mark.parametrize(
    ("definition", "labels"),
    [
        ("l1.trajectory_age", {}),
        ("l1.sequence_ratio", {}),
        ("l1.trajectory_kl_k3", {}),
        ("l1.trajectory_clip_share", {}),
        ("l1.effective_sample_size", {"over": "trajectory"}),
        ("l1.effective_sample_size", {"over": "token"}),
        ("l1.engine_drift_mean", {}),
        ("l3.effective_batch", {}),
        ("l3.groups_with_update", {}),
        ("l3.funnel_trajectories", {"stage": "finished"}),
        ("l3.funnel_share", {"stage": "with_signal"}),
        ("l3.funnel_tokens", {"stage": "started"}),
    ],
)
def test_a_forged_value_of_an_update_is_named(
    measured: tuple[World, list[MetricRecord]], definition: str, labels: dict[str, str]
) -> None:
    world, records = measured
    write(world, forged(records, definition, labels))
    report = verify(store=world.store, steps=(8,))
    assert found(report) == FAULT and len(report.faults) == 1


ENTROPIES = (2.0, 1.5, 1.0)


def decayed(world: World, left: float | None, slope: float | None) -> set[tuple[int, str, str]]:
    """Faults after three collections of entropy 2, 1.5 and 1 at versions 0, 1, 2, and what is said of them."""

    def one(definition: str, value: float | None, count: int, version: int, **labels: str) -> MetricRecord:
        return MetricRecord(
            f"{definition}/1", "train", "train", labels, value, count, version, None, None, None, None
        )  # fmt: skip

    for version, value in enumerate(ENTROPIES):
        write(world, [one("l2.entropy_sampled", value, 9, version, segment="all")])
    write(world, [one("l4.entropy_left", left, 1, 2), one("l4.entropy_slope", slope, 3, 2)])
    return found(verify(store=world.store, steps=(8,)))


@pytest.mark.parametrize(
    ("left", "slope", "expected"), [(0.5, -0.5, set()), (0.4, -0.5, FAULT), (0.5, 0.0, FAULT), (0.5, None, FAULT)]
)
def test_entropy_left_and_slope_by_hand(world: World, left: float, slope: float | None, expected: Any) -> None:
    """1 of 2 nats is left: 0.5. 2, 1.5, 1 over versions 0, 1, 2: -0.5 a version."""
    assert decayed(world, left, slope) == expected


@pytest.mark.parametrize(("own", "shared"), [(pass_any, task_pass_at_k), (pass_every, task_pass_hat_k)])
def test_both_forms_of_pass_at_k_agree(own: Callable[..., float], shared: Callable[..., float]) -> None:
    """Product form against binomials, for every n up to 9."""
    for n in range(1, 10):
        for c in range(n + 1):
            for k in range(1, n + 1):
                assert own(n, c, k) == pytest.approx(shared(n, c, k), abs=1e-12)
