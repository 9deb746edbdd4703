"""The first page."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from runs.access import Principal
from runs.models import Execution, Job, Plan, RunHead, Study, User
from runs.presenters.executions import part_left, read_preparing
from runs.visibility import INSPECTION, troubled_jobs
from tests.mlflow.conftest import AT, make_study
from tests.pages import elsewhere
from tests.pages.state import World
from workbench.paths import Home


def test_running_attention_and_studies(client: Client, world: World, db: None) -> None:
    """The run that goes on has done 8 of 16 groups: 2 of the plan's 4 batches, P = 4."""
    text = client.get("/").content.decode()
    assert "1 run goes on; 2 of 8 runs completed; 1 thing needs a look." in text
    assert "8 of 16 groups" in text
    assert "collecting rollouts, 9 of 16" in text
    assert "gate: 2 actionable cases, minimum 3" in text.split("Refused by their gates")[1]
    assert "MemoryError" in text
    assert 'href="/studies/fatal-mask-pair/"' in text


def test_live_fragment_polls_slowly_when_nothing_runs(client: Client, world: World, db: None) -> None:
    """It never stops, so that an open page wakes up when something begins."""
    assert "every 2s" in client.get("/now/live/").content.decode()
    RunHead.objects.filter(state="running").update(state="completed")
    Execution.objects.update(state="closed", phase="done")
    text = client.get("/now/live/").content.decode()
    assert "every 5s" in text and "every 2s" not in text and "make run" not in text
    assert "Runs begin when a frozen plan is started" in text and 'href="/plans/"' in text
    assert "manage.py study run" not in text


def test_before_the_first_execution_the_bundled_study_is_offered(client: Client, db: None) -> None:
    """The server answers, so that no command is offered that starts it."""
    Study.objects.update(visibility="private")
    text = client.get("/now/live/").content.decode()
    assert "manage.py study run fatal-mask-pair --scale small" in text and "make run" not in text
    assert "Nothing has run here yet." in text


def test_logged_runs_count_where_no_plan_ran(client: Client, db: None) -> None:
    Study.objects.update(visibility="private")
    study = make_study("outside", visibility="public")
    empty = client.get("/").content.decode()
    assert "no run yet" in empty and "logged run" not in empty.split('id="main"')[1].split("no run yet")[1]
    assert "or are logged from elsewhere" in client.get("/studies/outside/").content.decode()
    elsewhere.full(study, AT)
    text, own = client.get("/").content.decode(), client.get("/studies/outside/").content.decode()
    assert "1 run was logged." in text and "no run yet" not in text
    for page in (text, own):
        assert '<a href="/logged/?study=outside">1' in page
    assert "No run of a plan here." in own and "fatal-mask-pair" not in own.split('id="main"')[1]
    listed = client.get("/logged/?study=outside")
    assert len(listed.context["rows"]) == 1 and 'name="study" value="outside"' in listed.content.decode()
    make_study("other", visibility="public")
    assert client.get("/logged/?study=other").context["rows"] == []
    make_study("hidden")
    assert [client.get(f"/logged/?study={slug}").status_code for slug in ("hidden", "none")] == [404, 404]


@pytest.mark.parametrize(
    ("state", "phase", "sentence", "words"),
    [
        ("running", "preflight", "Preflight of small", "probing the parent&#x27;s signal"),
        ("running", "close", "Closing small", "manifest and aggregate are being stored"),
        ("running", "train", "small goes on", "training and evaluating its runs"),
        ("paused", "train", "small is paused", "manage.py study resume fatal-mask-pair --scale small"),
        (
            "interrupted",
            "train",
            "small is interrupted",
            "manage.py study recover fatal-mask-pair --scale small --plan FILE",
        ),
    ],
)
def test_an_open_execution_is_shown_as_what_it_is(
    client: Client, world: World, db: None, state: str, phase: str, sentence: str, words: str
) -> None:
    RunHead.objects.filter(state="running").update(state="completed")
    Execution.objects.update(state=state, phase=phase)
    text = client.get("/").content.decode()
    assert sentence in text and words in text
    assert "make run" not in text and "Nothing runs now" not in text


def test_a_run_of_a_paused_plan_is_paused_once(client: Client, world: World, db: None) -> None:
    Execution.objects.update(state="paused")
    text = client.get("/").content.decode()
    assert "paused with its plan" in text and "collecting rollouts" not in text and "run goes on" not in text


def test_a_paused_run_does_nothing_now(client: Client, world: World, db: None) -> None:
    RunHead.objects.filter(run=world.runs["e3-s17"]).update(state="paused", reason="paused")
    text = client.get(f"/runs/{world.runs['e3-s17'].uid}/live/").content.decode()
    assert "Now:" not in text and "Paused, stable until then" in text
    assert text.count(">paused<") == 1


def test_preparation_is_named_while_its_note_is_fresh(
    client: Client, world: World, db: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("django.conf.settings.HOME", Home(tmp_path))
    place = tmp_path / "run" / "preparing.json"
    place.parent.mkdir()
    note = {"study": "fatal-mask-pair", "scale": "small", "stage": "warm_start", "pid": 1}
    now = datetime.now(UTC)
    place.write_text(json.dumps({**note, "at": now.isoformat()}))
    assert "Preparing fatal-mask-pair: training the warm start" in client.get("/").content.decode()
    place.write_text(json.dumps({**note, "at": (now - timedelta(minutes=16)).isoformat()}))
    assert "Preparing" not in client.get("/").content.decode()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"study":"s","scale":"x","stage":"y","at":"2026-11-30T00:00:00"}'])
def test_an_unreadable_note_is_absent(tmp_path: Path, text: str) -> None:
    """Nothing, a wrong type, missing fields, a time without zone."""
    place = tmp_path / "preparing.json"
    assert read_preparing(place, datetime(2026, 11, 30, tzinfo=UTC)) is None
    place.write_text(text)
    assert read_preparing(place, datetime(2026, 11, 30, tzinfo=UTC)) is None


def test_query_count_is_bounded(
    client: Client, world: World, db: None, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_max_num_queries(32):
        client.get("/")


def test_post_is_refused(client: Client, world: World, db: None) -> None:
    assert client.post("/").status_code == 405


def test_a_failed_inspection_counts_until_its_plan_was_inspected_again(world: World, db: None) -> None:
    """Two attempts at one plan and one at another: the first is no news once the second exists."""
    study = Study.objects.get(slug="fatal-mask-pair")
    at = datetime(2026, 11, 1, tzinfo=UTC)

    def inspect(plan: int, number: int, state: str) -> None:
        key = f"inspect:{UUID(int=plan)}:r{number}:1"
        Job.objects.create(
            uid=uuid4(), key=key, kind=INSPECTION, queue="rollout", study=study, state=state, created_at=at
        )

    principal = Principal(User.objects.create_superuser("site"))
    before = troubled_jobs(principal).count()
    inspect(1, 1, "failed")
    inspect(2, 1, "failed")
    assert troubled_jobs(principal).count() == before + 2
    inspect(1, 2, "queued")
    assert troubled_jobs(principal).count() == before + 1
    inspect(2, 2, "failed")
    assert troubled_jobs(principal).count() == before + 1
    assert set(troubled_jobs(principal).filter(kind=INSPECTION).values_list("key", flat=True)) == {
        f"inspect:{UUID(int=2)}:r2:1"
    }


def _inspection(plan: Plan, state: str, **progress: object) -> Job:
    return Job.objects.create(
        uid=uuid4(), key=f"inspect:{plan.uid}:r1:{uuid4()}", kind=INSPECTION, queue="rollout", study=plan.study,
        state=state, created_at=datetime(2026, 11, 1, tzinfo=UTC), spec={"plan": str(plan.uid)}, progress=progress,
    )  # fmt: skip


def test_an_inspection_that_builds_a_warm_start_is_shown_with_its_progress(
    client: Client, world: World, db: None
) -> None:
    """21 of 320 steps of the part in question; a part that has not gone on says no time."""
    job = _inspection(world.plan, "leased", stage="warm_start", part="sft", done=21, total=320, left_s=250)
    running = client.get("/now/live/").content.decode().split("Needs attention")[0]
    assert "Now: training the warm start, sft 21/320, about 4 min 10 s left of this part" in running
    assert f"Inspecting {world.plan.slug}: training the warm start" in running and f"/jobs/{job.uid}/" in running
    Job.objects.filter(pk=job.pk).update(progress={"stage": "warm_start", "part": "sft", "done": 0, "total": 320})
    assert "left of this part" not in client.get("/now/live/").content.decode()
    Job.objects.filter(pk=job.pk).update(state="queued")
    waiting = client.get("/now/live/").content.decode()
    assert "waits for a free worker" in waiting and "Inspecting" not in waiting
    Job.objects.filter(pk=job.pk).update(state="succeeded")
    assert "waits for a free worker" not in client.get("/now/live/").content.decode()


def test_an_inspection_alone_is_no_idle_page_and_is_hidden_with_its_study(
    client: Client, world: World, db: None
) -> None:
    RunHead.objects.filter(state="running").update(state="completed")
    Execution.objects.update(state="closed", phase="done")
    _inspection(world.plan, "leased", stage="describe")
    text = client.get("/now/live/").content.decode()
    assert "Inspecting" in text and "every 2s" in text and "No run goes on." not in text
    Study.objects.update(visibility="private")
    assert "Inspecting" not in client.get("/now/live/").content.decode()


@pytest.mark.parametrize("left", [None, True, -3, "7", 1e9])
def test_time_left_that_is_no_number_of_seconds_is_not_said(left: object) -> None:
    assert part_left({"left_s": left}) is None and part_left({"left_s": 7}) == 7.0 and part_left("x") is None
