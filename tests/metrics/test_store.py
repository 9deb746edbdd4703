"""Logged points: landing, repeats, order, non-finite values, segments, sealing, reading."""

from __future__ import annotations

import math
import uuid
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runs.actions.actors import service_actor
from runs.metrics import codec, sealing, store
from runs.metrics.read import load, series_of
from runs.metrics.store import LoggedPoint, log_points, seal
from runs.models import MetricBatch, MetricChunk, MetricLanding, MetricLatest, Run, TrackedRun
from workbench.contracts.errors import RecordError

from .conftest import AT

pytestmark = pytest.mark.django_db


def write(run: Run, points: Sequence[LoggedPoint]) -> store.Accepted:
    return log_points(run, points, source="api", actor=service_actor("tests"), at=AT)


def read(run: Run, name: str) -> list[tuple[int, int, float | str]]:
    (info,) = series_of(run, names=[name])
    points = load(run, [info])[info.pk]
    return [
        (int(step), int(time), float(value) if flag == 0 else codec.NONFINITE[int(flag)])
        for step, time, value, flag in zip(points.step, points.time_ms, points.value, points.flag, strict=True)
    ]


def test_late_and_repeated_points_are_read_once_in_order(run: Run) -> None:
    """Steps 2, 0 then 1, 0 (sent again): three points, in order of the step."""
    write(run, [LoggedPoint("loss", 0.5, 2, 30), LoggedPoint("loss", 2.0, 0, 10)])
    write(run, [LoggedPoint("loss", 1.0, 1, 20), LoggedPoint("loss", 2.0, 0, 10)])
    assert read(run, "loss") == [(0, 10, 2.0), (1, 20, 1.0), (2, 30, 0.5)]
    seal(run, at=AT)
    assert read(run, "loss") == [(0, 10, 2.0), (1, 20, 1.0), (2, 30, 0.5)]


def test_two_values_at_one_step_are_both_kept(run: Run) -> None:
    write(run, [LoggedPoint("loss", 1.0, 1, 5), LoggedPoint("loss", 3.0, 1, 5)])
    assert read(run, "loss") == [(1, 5, 1.0), (1, 5, 3.0)]


def test_a_batch_sent_again_stores_nothing(run: Run) -> None:
    batch = [LoggedPoint("a", 1.0, 1, 1), LoggedPoint("b", 2.0, 1, 1)]
    assert write(run, batch) == store.Accepted(2, 0)
    assert write(run, batch) == store.Accepted(0, 2)
    assert (MetricBatch.objects.count(), MetricLanding.objects.count()) == (1, 1)
    seal(run, at=AT)
    assert write(run, batch) == store.Accepted(0, 2)
    assert MetricLanding.objects.count() == 0


def test_non_finite_values_stay_what_they_are(run: Run) -> None:
    values = [math.nan, math.inf, -math.inf, 0.0]
    write(run, [LoggedPoint("x", value, step, 0) for step, value in enumerate(values)])
    expected = [(0, 0, "nan"), (1, 0, "inf"), (2, 0, "-inf"), (3, 0, 0.0)]
    assert read(run, "x") == expected
    seal(run, at=AT)
    assert read(run, "x") == expected
    latest = MetricLatest.objects.get(run=run)
    assert (latest.step, latest.value, latest.nonfinite) == (3, 0.0, "")


def test_latest_is_the_newest_step_and_not_the_last_write(run: Run) -> None:
    write(run, [LoggedPoint("x", 5.0, 9, 9)])
    write(run, [LoggedPoint("x", 1.0, 3, 10)])
    assert (MetricLatest.objects.get().step, MetricLatest.objects.get().value) == (9, 5.0)
    write(run, [LoggedPoint("x", math.nan, 10, 11)])
    assert (MetricLatest.objects.get().value, MetricLatest.objects.get().nonfinite) == (None, "nan")


def test_a_later_attempt_is_a_series_of_its_own(run: Run) -> None:
    write(run, [LoggedPoint("x", 1.0, 1, 1)])
    TrackedRun.objects.filter(run=run).update(segment=1)
    write(run, [LoggedPoint("x", 2.0, 1, 1)])
    infos = series_of(run, names=["x"])
    assert [info.segment for info in infos] == ["0", "1"]
    assert [float(load(run, [info])[info.pk].value[0]) for info in infos] == [1.0, 2.0]


@pytest.mark.parametrize("name", ["", "n" * 501, "a\x00b"])
def test_a_name_that_cannot_be_kept_whole_is_refused(run: Run, name: str) -> None:
    with pytest.raises(RecordError, match="name: got"):
        write(run, [LoggedPoint("fine", 1.0, 1, 1), LoggedPoint(name, 1.0, 1, 1)])
    assert MetricBatch.objects.count() == 0


@pytest.mark.parametrize("step", [2**62, -(2**62), 2**70])
def test_a_step_out_of_range_is_refused(run: Run, step: int) -> None:
    with pytest.raises(RecordError, match="step: got"):
        write(run, [LoggedPoint("x", 1.0, step, 1)])


def test_a_native_run_takes_no_logged_points(run: Run) -> None:
    TrackedRun.objects.all().delete()
    with pytest.raises(RecordError, match="expected a run that logs its metrics"):
        write(run, [LoggedPoint("x", 1.0, 1, 1)])


def test_a_full_run_is_sealed_by_itself(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealing, "SEAL_LEAST", 10)
    monkeypatch.setattr(sealing, "SEAL_POINTS", 2)
    monkeypatch.setattr(sealing, "CHUNK_POINTS", 4)
    write(run, [LoggedPoint("x", float(step), step, step) for step in range(11)])
    assert MetricLanding.objects.count() == 0 and TrackedRun.objects.get(run=run).landed == 0
    assert [row.points for row in MetricChunk.objects.order_by("ordinal")] == [4, 4, 3]
    assert [step for step, _, _ in read(run, "x")] == list(range(11))


POINT = st.tuples(st.floats(), st.integers(-50, 50), st.integers(0, 5))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(st.lists(st.lists(POINT, min_size=1, max_size=8), min_size=1, max_size=5), st.data())
def test_order_repetition_and_sealing_do_not_change_what_is_read(run: Run, batches: list, data: st.DataObject) -> None:
    """Batches in any order, some twice, sealed at any time: the set of different points, sorted."""
    name = uuid.uuid4().hex  # one series an example: rows outlive it
    again = data.draw(st.permutations([*batches, *data.draw(st.lists(st.sampled_from(batches), max_size=3))]))
    for batch in again:
        write(run, [LoggedPoint(name, *point) for point in batch])
        if data.draw(st.booleans()):
            seal(run, at=AT)
    flat = [
        (step, time, codec.flag_of(value), value if math.isfinite(value) else 0.0)
        for b in batches
        for value, step, time in b
    ]
    expected = sorted({(step, time, value, flag) for step, time, flag, value in flat})
    (info,) = series_of(run, names=[name])
    points = load(run, [info])[info.pk]
    found = list(
        zip(points.step.tolist(), points.time_ms.tolist(), points.value.tolist(), points.flag.tolist(), strict=True)
    )
    assert found == expected


def test_a_chunk_says_what_it_holds_and_a_changed_one_is_found() -> None:
    points = codec.Points(np.array([1, 5]), np.array([10, 11]), np.array([0.5, 0.0]), np.array([0, 1], np.uint8))
    payload, sha256 = codec.write_chunk("00000000-0000-0000-0000-000000000001", points)
    uid, back = codec.read_chunk(payload)
    assert codec.chunk_sha256(uid, back) == sha256 and back.step.tolist() == [1, 5] and back.flag.tolist() == [0, 1]
    changed = codec.Points(back.step, back.time_ms, np.array([0.5, 1.0]), back.flag)
    assert codec.chunk_sha256(uid, changed) != sha256
    both = codec.read_chunks([payload, payload], 4)
    assert both.step.tolist() == [1, 5, 1, 5] and both.flag.tolist() == [0, 1, 0, 1]
    for count in (3, 5):
        with pytest.raises(RecordError, match="as their rows say"):
            codec.read_chunks([payload, payload], count)
    for broken in (payload[:-3], payload[:10], b"", payload.replace(b"points", b"pointz")):
        with pytest.raises(RecordError, match="metric chunk"):
            codec.read_chunk(broken)
