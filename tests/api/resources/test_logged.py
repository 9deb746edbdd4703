"""Logged runs over the API: bodies, refusals, links to plans, windows and charts."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from runs.api import logged
from runs.models import MetricBatch, TrackedRun, TrackedTransition
from tests.api.calls import Api, content, fields
from tests.api.conftest import Caller
from tests.pages.state import World

pytestmark = pytest.mark.django_db


def begin(mara: Api, world: World, **body: Any) -> str:
    answer = mara.post(f"studies/{world.study.slug}/logged-runs", body)
    assert answer.status_code == 201 and answer["Location"] == f"/api/v1/logged-runs/{answer.json()['uid']}"
    return str(answer.json()["uid"])


def points(count: int, name: str = "loss", first: int = 0) -> list[dict[str, Any]]:
    return [{"name": name, "value": step / 4, "step": step, "time_ms": step} for step in range(first, first + count)]


def test_a_run_from_beginning_to_end(mara: Api, world: World) -> None:
    uid = begin(mara, world, name="one", framework="verl", tags={"a": "b"})
    body = {"points": points(3), "parameters": {"lr": "1"}, "tags": {"a": None, "c": "d"}}
    assert mara.post(f"logged-runs/{uid}/log", body).json() == {
        "stored": 3, "repeated": 0, "parameters": 1, "tags": 2,
    }  # fmt: skip
    assert mara.post(f"logged-runs/{uid}/log", body).json() == {
        "stored": 0, "repeated": 3, "parameters": 0, "tags": 0,
    }  # fmt: skip
    found = mara.read(f"logged-runs/{uid}")
    assert (found["parameters"], found["tags"], found["status"]) == ({"lr": "1"}, {"c": "d"}, "running")
    moved = mara.post(f"logged-runs/{uid}/status", {"status": "finished", "ended_at": "2026-05-01T12:00:00Z"}).json()
    assert (moved["status"], moved["ended_at"], moved["segment"]) == ("finished", "2026-05-01T12:00:00Z", 0)
    again = mara.post(f"logged-runs/{uid}/status", {"status": "running", "reason": "more steps"}).json()
    assert (again["segment"], again["ended_at"]) == (1, None)
    listed = mara.read("logged-runs?framework=verl")["items"]
    assert [item["uid"] for item in listed] == [uid] and listed[0]["study"] == world.study.slug
    assert mara.read("logged-runs?status=failed&framework=verl")["items"] == []


def test_a_key_names_one_run(mara: Api, world: World) -> None:
    first = begin(mara, world, key="job-17", name="one")
    assert begin(mara, world, key="job-17", name="another") == first
    assert begin(mara, world, key="job-18") != first
    assert TrackedRun.objects.filter(name="one").count() == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"points": [{"name": "x", "value": "1", "step": 0, "time_ms": 0}]}, "points.0.value"),
        ({"points": [{"name": "x", "value": {"nonfinite": "big"}, "step": 0, "time_ms": 0}]}, "points.0.value"),
        ({"points": [{"name": "", "value": 1, "step": 0, "time_ms": 0}]}, "points.0.name"),
        ({"points": [{"name": 5, "value": 1, "step": 0, "time_ms": 0}]}, "points.0.name"),
        ({"points": [{"name": "x", "value": 1, "step": 0.5, "time_ms": 0}]}, "points.0.step"),
        ({"points": [{"name": "x", "value": 1, "step": True, "time_ms": 0}]}, "points.0.step"),
        ({"points": [{"name": "x", "value": 1, "step": 0}]}, "points.0.time_ms"),
        ({"parameters": {"lr": 1}}, "parameters.lr"),
        ({"tags": {"a": ["b"]}}, "tags.a"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_bad_member_refuses_everything(mara: Api, world: World, body: dict[str, Any], field: str) -> None:
    uid = begin(mara, world)
    answer = mara.post(f"logged-runs/{uid}/log", {"points": points(1), **body} if "points" not in body else body)
    assert answer.status_code == 422 and fields(answer) == [field]
    assert not MetricBatch.objects.filter(run__uid=uid).exists()


def test_another_value_of_a_parameter_stores_nothing(mara: Api, world: World) -> None:
    uid = begin(mara, world)
    mara.post(f"logged-runs/{uid}/log", {"parameters": {"lr": "1"}})
    answer = mara.post(f"logged-runs/{uid}/log", {"points": points(1), "parameters": {"lr": "2"}})
    assert answer.status_code == 422 and not MetricBatch.objects.filter(run__uid=uid).exists()


def test_a_link_to_a_frozen_plan_of_the_study(mara: Api, world: World, caller: Caller) -> None:
    uid, version = begin(mara, world), world.version.uid
    for body in ({"plan_version": str(version)}, {"plan_version": "x", "reason": "it follows it"}):
        assert mara.post(f"logged-runs/{uid}/link", body).status_code == 422
    strange = {"plan_version": uid, "reason": "it follows it"}
    assert mara.post(f"logged-runs/{uid}/link", strange).status_code == 404
    answer = mara.post(f"logged-runs/{uid}/link", {"plan_version": str(version), "reason": "it follows it"})
    assert answer.status_code == 200 and answer.json()["linked_plan"] == str(version)
    last = TrackedTransition.objects.filter(run__uid=uid).order_by("-id").first()
    assert last is not None and (last.to_state, last.reason) == ("linked", "it follows it")
    assert answer.json()["origin"] == "tracked"  # a link makes nobody's run a native one
    made = mara.post("studies", {"slug": "another-study", "title_en": "Another"})
    assert made.status_code == 201
    other = mara.post("studies/another-study/logged-runs", {}).json()["uid"]
    refused = mara.post(f"logged-runs/{other}/link", {"plan_version": str(version), "reason": "it follows it"})
    assert refused.status_code == 422 and "another-study" in refused.json()["detail"]


def test_points_as_columns_chart_and_arrow(mara: Api, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    uid = begin(mara, world)
    odd = [{"name": "loss", "value": {"nonfinite": "nan"}, "step": 500, "time_ms": 500}]
    mara.post(f"logged-runs/{uid}/log", {"points": [*points(500), *odd, *points(500, first=501)]})
    whole = mara.read(f"logged-runs/{uid}/history?name=loss")
    assert whole["points"] == 1001 and whole["value"][500] == {"nonfinite": "nan"} and whole["step"][-1] == 1000
    window = mara.read(f"logged-runs/{uid}/history?name=loss&start=10&stop=12")
    assert window["step"] == [10, 11, 12] and window["value"] == [2.5, 2.75, 3.0]
    chart = mara.read(f"logged-runs/{uid}/chart?name=loss&limit=40")
    assert chart["n_stored"] == 1001 and chart["n_shown"] == len(chart["step"]) <= 41 and chart["sampler"] == "m4"
    assert {0, 500, 1000} <= set(chart["step"]) and {"nonfinite": "nan"} in chart["value"]
    assert chart == mara.read(f"logged-runs/{uid}/chart?name=loss&limit=40")
    answer = mara.get(f"logged-runs/{uid}/history.arrow")
    table = pa.ipc.open_stream(content(answer)).read_all()
    assert table.num_rows == 1001 and table["value"].null_count == 1 and answer["ETag"]
    assert mara.get(f"logged-runs/{uid}/history.arrow", If_None_Match=answer["ETag"]).status_code == 304
    monkeypatch.setattr(logged, "JSON_MOST", 1000)
    assert mara.get(f"logged-runs/{uid}/history?name=loss").status_code == 413
    assert mara.get(f"logged-runs/{uid}/history?name=loss&stop=900").status_code == 200
    for path in ("history", "history?name=nothing", "chart?name=loss&limit=13", "history?name=loss&start=x",
                 "chart?name=loss&colour=red"):  # fmt: skip
        assert mara.get(f"logged-runs/{uid}/{path}").status_code in (400, 404), path


def test_the_search_of_the_list(mara: Api, world: World) -> None:
    uid = begin(mara, world, name="low")
    mara.post(f"logged-runs/{uid}/log", {"points": points(1, "searched")})
    other = begin(mara, world, name="high")
    mara.post(f"logged-runs/{other}/log", {"points": points(1, "searched", first=9)})
    found = mara.read("logged-runs?where=metrics.searched+%3C+1")["items"]
    assert [item["name"] for item in found] == ["low"]
    found = mara.read("logged-runs?where=metrics.searched+IS+NOT+NULL+and+run_name+LIKE+'%25g%25'")["items"]
    assert [item["name"] for item in found] == ["high"]
    refused = mara.get("logged-runs?where=metrics.searched")
    assert refused.status_code == 400 and fields(refused) == ["where"]


def test_a_strangers_run_does_not_exist(mara: Api, world: World, caller: Caller) -> None:
    uid = begin(mara, world)
    world.study.__class__.objects.filter(pk=world.study.pk).update(visibility="private")
    eve = caller("eve")
    assert eve.get(f"logged-runs/{uid}").status_code == 404
    assert eve.post(f"logged-runs/{uid}/log", {"points": points(1)}).status_code == 404
    viewer = caller("vera", world.study, "viewer")
    assert viewer.get(f"logged-runs/{uid}").status_code == 200
    assert viewer.post(f"logged-runs/{uid}/log", {"points": points(1)}).status_code == 403
    assert caller("").post(f"logged-runs/{uid}/log", {"points": points(1)}).status_code == 401
