"""What a trainer sends is stored whole or refused whole; repeats and late batches change nothing."""

from __future__ import annotations

from typing import Any

import pytest

from runs.models import (
    AuditEntry,
    MetricBatch,
    MetricChunk,
    MetricLanding,
    MetricSeries,
    Receipt,
    RunParameter,
    RunSegment,
    RunTag,
    Study,
    TrackedRun,
    TrackedTransition,
)
from tests.mlflow.calls import Mlflow, point

pytestmark = pytest.mark.django_db


def test_a_batch_is_read_back_equal(mara: Mlflow, study: Study) -> None:
    run = mara.run(study.pk)
    mara.post(
        "runs/log-batch",
        run_id=run,
        metrics=[point("loss", 0.5, 2, 30), point("loss", 1.5, 0, 10), point("acc", 1, 0, 10)],
        params=[{"key": "lr", "value": "0.1"}],
        tags=[{"key": "note", "value": "first"}],
    )
    assert mara.history(run, "loss") == [(0, 10, 1.5), (2, 30, 0.5)]
    found = mara.get("runs/get", run_id=run)["run"]
    assert found["data"]["metrics"] == [
        {"key": "acc", "value": 1.0, "timestamp": 10, "step": 0},
        {"key": "loss", "value": 0.5, "timestamp": 30, "step": 2},
    ]
    assert found["data"]["params"] == [{"key": "lr", "value": "0.1"}]
    assert {"key": "note", "value": "first"} in found["data"]["tags"]
    assert found["info"]["status"] == "RUNNING" and found["info"]["start_time"] == 1000
    assert found["info"]["artifact_uri"] == f"mlflow-artifacts:/{study.pk}/{run}/artifacts"


def test_a_batch_sent_twice_stores_nothing_new(mara: Mlflow, study: Study) -> None:
    run = mara.run(study.pk)
    body: dict[str, Any] = {
        "run_id": run,
        "metrics": [point("loss", 0.5, step, step) for step in range(5)],
        "params": [{"key": "a", "value": "1"}],
        "tags": [{"key": "b", "value": "2"}],
    }
    mara.post("runs/log-batch", **body)
    before = (MetricLanding.objects.count(), RunParameter.objects.count(), RunTag.objects.count())
    mara.post("runs/log-batch", **body)
    assert (MetricLanding.objects.count(), RunParameter.objects.count(), RunTag.objects.count()) == before
    assert MetricBatch.objects.count() == 1 and len(mara.history(run, "loss")) == 5


def test_steps_that_come_late_are_read_in_order(mara: Mlflow, study: Study) -> None:
    """As an asynchronous logger sends them: steps 1, 0, 2."""
    run = mara.run(study.pk)
    for step in (1, 0, 2):
        mara.post("runs/log-batch", run_id=run, metrics=[point("loss", float(step), step, 100 + step)])
    assert mara.history(run, "loss") == [(0, 100, 0.0), (1, 101, 1.0), (2, 102, 2.0)]
    assert mara.get("runs/get", run_id=run)["run"]["data"]["metrics"][0]["step"] == 2


@pytest.mark.parametrize(
    ("sent", "kept"), [("NaN", "NaN"), ("Infinity", "Infinity"), ("-Infinity", "-Infinity"), ("1.5", 1.5), (-0.0, 0.0)]
)
def test_words_and_numbers_of_values(mara: Mlflow, study: Study, sent: Any, kept: Any) -> None:
    run = mara.run(study.pk)
    mara.post("runs/log-metric", run_id=run, **point("x", sent))
    assert mara.history(run, "x") == [(0, 1, kept)]
    assert mara.get("runs/get", run_id=run)["run"]["data"]["metrics"][0]["value"] == kept


def test_json_with_bare_nan_is_read(mara: Mlflow, study: Study) -> None:
    run = mara.run(study.pk)
    raw = f'{{"run_uuid": "{run}", "key": "x", "value": NaN, "timestamp": "7", "step": "3"}}'.encode()
    assert mara.call("POST", "runs/log-metric", raw=raw).status_code == 200
    assert mara.history(run, "x") == [(3, 7, "NaN")]


@pytest.mark.parametrize(
    "metrics",
    [
        [point("x", "abc")],
        [point("x", True)],
        [point("x", None)],
        [point("x", "1e999")],
        [point("", 1.0)],
        [point("k" * 251, 1.0)],
        [{"key": "x", "value": 1.0}],
        [point("x", 1.0, 2**63)],
        [{**point("x", 1.0), "step": 1.5}],
        [{**point("x", 1.0), "step": "one"}],
        [{**point("x", 1.0), "key": ["x"]}],
        [{**point("x", 1.0), "key": 7}],
        ["x"],
        {"key": "x"},
        [point("a\x00b", 1.0)],
        [point("x", 1.0)] * 1001,
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_bad_metric_refuses_the_whole_request(mara: Mlflow, study: Study, metrics: Any) -> None:
    run = mara.run(study.pk)
    before = RunTag.objects.count()
    body = {
        "run_id": run,
        "metrics": metrics,
        "params": [{"key": "a", "value": "1"}],
        "tags": [{"key": "b", "value": "2"}],
    }
    assert mara.post("runs/log-batch", 400, **body)["error_code"] == "INVALID_PARAMETER_VALUE"
    assert not MetricBatch.objects.exists() and not MetricSeries.objects.exists()
    assert not RunParameter.objects.exists() and RunTag.objects.count() == before


def test_a_key_of_250_characters_and_any_sign_is_kept_whole(mara: Mlflow, study: Study) -> None:
    run = mara.run(study.pk)
    for key in ("k" * 250, "reward/μ ± σ @ 中文 (a,b) 'c' \"d\" %", "../..", "a//b"):
        mara.post("runs/log-metric", run_id=run, **point(key, 2.0, 1))
        mara.post("runs/log-parameter", run_id=run, key=key, value=key)
        mara.post("runs/set-tag", run_id=run, key=key, value=key)
        assert mara.history(run, key) == [(1, 1, 2.0)]
    params = mara.get("runs/get", run_id=run)["run"]["data"]["params"]
    assert len(params) == 4 and all(item["key"] == item["value"] for item in params)


def test_limits_of_one_request(mara: Mlflow, study: Study) -> None:
    """1000 metrics, 100 parameters, 100 tags, 1000 in all; one more of any is refused."""
    run = mara.run(study.pk)
    pairs = [{"key": f"k{i}", "value": "v"} for i in range(101)]
    mara.post("runs/log-batch", run_id=run, metrics=[point("x", 1.0, step) for step in range(1000)])
    mara.post("runs/log-batch", run_id=run, params=pairs[:100], tags=pairs[:100])
    for body in (
        {"params": pairs},
        {"tags": pairs},
        {"metrics": [point("x", 1.0, step) for step in range(1000)], "tags": pairs[:1]},
    ):
        assert mara.post("runs/log-batch", 400, run_id=run, **body)["error_code"] == "INVALID_PARAMETER_VALUE"
    assert len(mara.history(run, "x")) == 1000


def test_a_parameter_has_one_value(mara: Mlflow, study: Study) -> None:
    run = mara.run(study.pk)
    mara.post("runs/log-parameter", run_id=run, key="lr", value="0.1")
    mara.post("runs/log-parameter", run_id=run, key="lr", value="0.1")
    refused = mara.post("runs/log-parameter", 400, run_id=run, key="lr", value="0.2")
    assert "0.1" in refused["message"] and "0.2" in refused["message"]
    body = {"metrics": [point("x", 1.0)], "params": [{"key": "lr", "value": "0.3"}, {"key": "new", "value": "1"}]}
    mara.post("runs/log-batch", 400, run_id=run, **body)
    assert (
        list(RunParameter.objects.values_list("key", "value")) == [("lr", "0.1")] and not MetricBatch.objects.exists()
    )
    twice = [{"key": "a", "value": "1"}, {"key": "a", "value": "2"}]
    mara.post("runs/log-batch", 400, run_id=run, params=twice)


def test_a_long_parameter_is_kept_whole_or_refused(mara: Mlflow, study: Study) -> None:
    run = mara.run(study.pk)
    mara.post("runs/log-parameter", run_id=run, key="long", value="x" * 65_536)
    assert len(mara.get("runs/get", run_id=run)["run"]["data"]["params"][0]["value"]) == 65_536
    assert "65537" in mara.post("runs/log-parameter", 400, run_id=run, key="longer", value="x" * 65_537)["message"]


def test_tags_change_and_go_and_their_history_stays(mara: Mlflow, study: Study) -> None:
    run = mara.run(study.pk)
    for value in ("1", "2", "2"):
        mara.post("runs/set-tag", run_id=run, key="note", value=value)
    assert {"key": "note", "value": "2"} in mara.get("runs/get", run_id=run)["run"]["data"]["tags"]
    mara.post("runs/delete-tag", run_id=run, key="note")
    assert not [item for item in mara.get("runs/get", run_id=run)["run"]["data"]["tags"] if item["key"] == "note"]
    assert mara.post("runs/delete-tag", 404, run_id=run, key="note")["error_code"] == "RESOURCE_DOES_NOT_EXIST"
    assert list(RunTag.objects.filter(key="note").order_by("id").values_list("value", flat=True)) == ["1", "2", None]


def test_the_name_tag_renames(mara: Mlflow, study: Study) -> None:
    run = mara.run(study.pk, "before")
    mara.post("runs/set-tag", run_id=run, key="mlflow.runName", value="after")
    assert mara.get("runs/get", run_id=run)["run"]["info"]["run_name"] == "after"
    mara.post("runs/update", run_id=run, run_name="third")
    data = mara.get("runs/get", run_id=run)["run"]
    assert data["info"]["run_name"] == "third" and {"key": "mlflow.runName", "value": "third"} in data["data"]["tags"]


def test_ending_seals_and_taking_up_again_opens_a_segment(mara: Mlflow, study: Study) -> None:
    run = mara.run(study.pk)
    mara.post("runs/log-metric", run_id=run, **point("x", 1.0, 5, 5))
    info = mara.post("runs/update", run_id=run, status="FINISHED", end_time=9000)["run_info"]
    assert (info["status"], info["end_time"]) == ("FINISHED", 9000)
    assert not MetricLanding.objects.exists() and MetricChunk.objects.count() == 1
    info = mara.post("runs/update", run_id=run, status="RUNNING")["run_info"]
    assert info["status"] == "RUNNING" and "end_time" not in info
    mara.post("runs/log-metric", run_id=run, **point("x", 2.0, 1, 7))
    assert list(MetricSeries.objects.order_by("segment").values_list("segment", flat=True)) == ["0", "1"]
    assert list(RunSegment.objects.values_list("ordinal", flat=True)) == [0, 1]
    assert mara.history(run, "x") == [(5, 5, 1.0), (1, 7, 2.0)]
    moves = list(TrackedTransition.objects.order_by("id").values_list("from_state", "to_state"))
    assert moves == [("", "running"), ("running", "finished"), ("finished", "running")]
    kinds = list(Receipt.objects.order_by("seq").values_list("kind", flat=True))
    assert kinds == ["logged_run.created", "metrics.sealed", "logged_run.moved", "logged_run.moved"]


def test_an_unknown_status_is_refused(mara: Mlflow, study: Study) -> None:
    run = mara.run(study.pk)
    assert "PAUSED" in mara.post("runs/update", 400, run_id=run, status="PAUSED")["message"]
    mara.post("runs/update", 400, run_id=run, status="FINISHED", end_time="soon")
    assert TrackedRun.objects.get().status == "running"


def test_points_after_the_end_are_kept(mara: Mlflow, study: Study) -> None:
    """The asynchronous logger may still have a batch when the run ends."""
    run = mara.run(study.pk)
    mara.post("runs/update", run_id=run, status="FINISHED")
    mara.post("runs/log-metric", run_id=run, **point("x", 1.0))
    assert mara.history(run, "x") == [(0, 1, 1.0)]


def test_a_deleted_run_takes_nothing_until_it_is_restored(mara: Mlflow, study: Study) -> None:
    run = mara.run(study.pk)
    mara.post("runs/log-metric", run_id=run, **point("x", 1.0))
    mara.post("runs/delete", run_id=run)
    mara.post("runs/delete", run_id=run)
    assert mara.get("runs/get", run_id=run)["run"]["info"]["lifecycle_stage"] == "deleted"
    for path, body in (
        ("runs/log-metric", point("x", 2.0, 1)),
        ("runs/log-parameter", {"key": "a", "value": "1"}),
        ("runs/set-tag", {"key": "a", "value": "1"}),
        ("runs/update", {"status": "FINISHED"}),
        ("runs/log-inputs", {"datasets": []}),
    ):
        assert "deleted" in mara.post(path, 400, run_id=run, **body)["message"]
    assert mara.history(run, "x") == [(0, 1, 1.0)]
    mara.post("runs/restore", run_id=run)
    mara.post("runs/log-metric", run_id=run, **point("x", 2.0, 1))
    assert len(mara.history(run, "x")) == 2
    assert list(TrackedTransition.objects.order_by("id").values_list("to_state", flat=True)) == [
        "running",
        "deleted",
        "active",
    ]


def test_inputs_and_outputs_come_back_as_they_were_sent(mara: Mlflow, study: Study) -> None:
    run = mara.run(study.pk)
    dataset = {"name": "train", "digest": "abc", "source_type": "local", "source": "{}", "profile": "p" * 100_000}
    item = {"tags": [{"key": "mlflow.data.context", "value": "training"}], "dataset": dataset}
    mara.post("runs/log-inputs", run_id=run, datasets=[item], models=[{"model_id": "m-1"}])
    mara.post("runs/log-inputs", run_id=run, datasets=[item])
    mara.post("runs/outputs", run_id=run, models=[{"model_id": "m-2", "step": 3}])
    found = mara.get("runs/get", run_id=run)["run"]
    assert found["inputs"] == {"dataset_inputs": [item], "model_inputs": [{"model_id": "m-1"}]}
    assert found["outputs"] == {"model_outputs": [{"model_id": "m-2", "step": 3}]}
    assert not [tag for tag in found["data"]["tags"] if tag["key"].startswith("workbench.")]
    mara.post("runs/log-inputs", 400, run_id=run, datasets=[{"dataset": {"name": "train"}}])


def test_changes_stand_in_the_audit_log(mara: Mlflow, study: Study) -> None:
    run = mara.run(study.pk)
    mara.post("runs/update", run_id=run, status="FAILED")
    rows = AuditEntry.objects.filter(method="change", study=study).order_by("id")
    assert [(row.route, row.study, str(row.actor)) for row in rows] == [
        ("logged_run.created", study, "mara"),
        ("logged_run.moved", study, "mara"),
    ]
    asked = AuditEntry.objects.filter(method="POST", route__startswith="mlflow:run_update").get()
    assert (asked.study, asked.status, asked.subject) == (study, 200, f"run {run}")
