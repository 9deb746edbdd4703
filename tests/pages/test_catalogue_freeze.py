"""The freeze page: what would be bound, freezing exactly that, starting it, superseding it."""

from __future__ import annotations

import json
from copy import deepcopy

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from runs.actions.drafts import update_draft
from runs.actions.inspection import inspection_of
from runs.actions.plans import plan_body
from runs.models import BlobRef, Execution, Job, Plan, PlanVersion, Run
from runs.presenters.catalogue.freezing import detectable, expected
from tests.pages.catalogue_people import answer, client_of, draft, member, minimal
from tests.pages.state import World
from workbench.contracts.canonical import canonical_bytes, sha256_hex

FREEZE = "/studies/fatal-mask-pair/plans/mine/freeze/"
PLACE = "/studies/fatal-mask-pair/plans/mine/"


@pytest.fixture
def researcher(world: World, db: None) -> Client:
    return client_of(member(world.study, "researcher"))


def _said(response: object) -> str:
    return response.content.decode()  # type: ignore[attr-defined]


def test_expected_work_by_hand(world: World, db: None) -> None:
    """The world's plan: 4 arms with 1, 3, 3 and 1 seeds; 4 batches of 4 groups of 4; preflight 4 groups.

    Runs 8, updates 8 x 4 = 32 (8 steps, 2 a batch), groups 32 x 4 + 4 = 132, trajectories 528. Items of a
    checkpoint: 2 conditions x min(9, tasks of test) x 2; jobs: 1 preflight (16 of 32 rows) + 64 + 9 x shards + 1.
    """
    body = plan_body(world.version)
    tasks = min(9, len(body["bindings"]["task_set"]["splits"]["test"]))
    found = expected(body)
    each = 2 * tasks * 2
    assert (found.runs, found.updates, found.groups, found.trajectories) == (8, 32, 132, 528)
    assert found.items == 9 * each
    assert found.captures == (528 + 9 * each) * 6
    assert found.jobs == 1 + 64 + 9 * 2 * -(-tasks // 16) + 1


def test_trials_are_jobs_of_their_own(world: World, db: None) -> None:
    """The pilot tries the 4 preflight groups; the arm with 3 seeds x 4 batches x 4 groups adds 48 jobs, with
    every_arm all 8 runs: 128."""
    body = deepcopy(plan_body(world.version))  # the parsed body is shared by all that read this plan
    plain = expected(body).jobs
    section = {"seed": "0", "replays": 1, "repeats": 1, "pilot": True, "every_arm": False}
    body["plan"]["trials"] = section
    assert expected(body).jobs == plain + 4
    (arm,) = [item for item in body["arms"] if item["key"] == "e3"]
    for credit in ("edit_broadcast", "edit_localised", "edit_terminal"):
        arm["config"]["objective"]["credit"] = credit
        assert expected(body).jobs == plain + 4 + 48
    body["plan"]["trials"] = {**section, "every_arm": True, "pilot": False}
    assert expected(body).jobs == plain + 128


def test_detectable_difference_by_hand(world: World, db: None) -> None:
    """recovery_all, pair e2f and e3: n tasks x 2 repeats x 3 seeds on each side, level 0.95, power 0.8.

    (1.95996 + 0.84162) x sqrt(0.25/m + 0.25/m) with m = 6n items on each side.
    """
    body = plan_body(world.version)
    n = min(9, len(body["bindings"]["task_set"]["splits"]["test"]))
    (found,) = detectable(body)
    assert found.items == 12 * n
    assert found.difference == pytest.approx(2.80158 * (0.5 / (6 * n)) ** 0.5, rel=1e-4)


@pytest.mark.parametrize("page", [FREEZE, f"{FREEZE}live/"])
def test_looking_changes_nothing(researcher: Client, world: World, page: str) -> None:
    """Neither the page nor its moving part writes a row, whatever the inspection found."""
    plan = draft(world)
    job = answer(world, plan, stored=False)  # what the answer should have stored, no page stores later
    adapters = BlobRef.objects.filter(sha256=job.result["parent_adapter_sha256"])  # type: ignore[index]
    assert not adapters.exists()
    researcher.get(page)  # the first visit may write the session
    with CaptureQueriesContext(connection) as seen:
        assert researcher.get(page).status_code == 200
    verbs = {item["sql"].split()[0] for item in seen.captured_queries} - {"SAVEPOINT", "RELEASE"}
    assert verbs == {"SELECT"} and not adapters.exists()


def test_the_whole_way_from_a_draft_to_a_started_plan(researcher: Client, world: World) -> None:
    plan = draft(world)
    assert "is not known yet" in _said(researcher.get(FREEZE))
    researcher.post(f"{FREEZE}inspect/")
    job = inspection_of(plan)
    assert job is not None and job.state == "queued"
    assert "waits for a free worker" in _said(researcher.get(FREEZE))
    assert researcher.get(f"{FREEZE}live/").headers.get("HX-Refresh") is None
    Job.objects.filter(pk=job.pk).update(state="leased", progress={"stage": "base_model", "done": 3, "total": 8})
    assert 'width="37.5"' in _said(researcher.get(f"{FREEZE}live/"))
    answer(world, plan)
    assert researcher.get(f"{FREEZE}live/").headers["HX-Refresh"] == "true"

    page = researcher.get(FREEZE)
    assert "exactly what freezing would bind" in _said(page)
    shown = page.context["stored"]
    assert shown.sha256 == sha256_hex(canonical_bytes(page.context["body"]))
    done = researcher.post(f"{FREEZE}now/", {"sha256": shown.sha256}, follow=True)
    assert f"Frozen as {shown.sha256[:12]}" in _said(done) and "Ready to start." in _said(done)
    version = PlanVersion.objects.get(plan=plan)
    assert (version.sha256, len(bytes(version.bytes))) == (shown.sha256, shown.size)

    researcher.post(f"{PLACE}start/")
    researcher.post(f"{PLACE}start/")  # the second is the first
    execution = Execution.objects.get(plan_version=version)
    assert execution.state == "running" and Run.objects.filter(execution=execution).count() == 1
    assert "Bound and started" in _said(researcher.get(FREEZE))


def test_other_bytes_than_those_shown_are_not_frozen(researcher: Client, world: World) -> None:
    plan = draft(world)
    answer(world, plan)
    for seen in ("0" * 64, ""):
        assert "now they would be" in _said(researcher.post(f"{FREEZE}now/", {"sha256": seen}, follow=True))
    assert Plan.objects.get(pk=plan.pk).state == "draft"


def test_a_draft_saved_meanwhile_needs_another_look(researcher: Client, world: World) -> None:
    plan = draft(world)
    answer(world, plan)
    shown = researcher.get(FREEZE).context["stored"].sha256
    update_draft(plan, plan.draft_text + "# later\n", revision=1, by=world.version.created_by, at=world.clock)
    refused = researcher.post(f"{FREEZE}now/", {"sha256": shown}, follow=True)
    assert "saved again since you looked" in _said(refused)
    assert Plan.objects.get(pk=plan.pk).state == "draft"


def test_the_second_of_two_who_freeze_is_told(researcher: Client, world: World) -> None:
    plan = draft(world)
    answer(world, plan)
    shown = researcher.get(FREEZE).context["stored"].sha256
    researcher.post(f"{FREEZE}now/", {"sha256": shown})
    second = client_of(member(world.study, "admin")).post(f"{FREEZE}now/", {"sha256": shown}, follow=True)
    assert "someone froze this plan first" in _said(second)
    assert PlanVersion.objects.filter(plan=plan).count() == 1
    assert "it is frozen, expected a draft" in _said(researcher.post(f"{FREEZE}inspect/", follow=True))


def test_a_failed_look_says_why_and_may_be_tried_again(researcher: Client, world: World) -> None:
    plan = draft(world)
    researcher.post(f"{FREEZE}inspect/")
    Job.objects.filter(pk=inspection_of(plan).pk).update(state="failed", error="model: got 'x', expected a profile")  # type: ignore[union-attr]
    assert "model: got &#x27;x&#x27;, expected a profile" in _said(researcher.get(FREEZE))
    assert "expected succeeded" in _said(researcher.post(f"{FREEZE}now/", {"sha256": "0" * 64}, follow=True))
    researcher.post(f"{FREEZE}inspect/")
    assert inspection_of(plan).state == "queued"  # type: ignore[union-attr]


def test_problems_keep_the_page_from_going_on(researcher: Client, world: World) -> None:
    draft(world, minimal().replace("tasks: 4", "tasks: none"))
    text = _said(researcher.get(FREEZE))
    assert "1 problem keeps this draft from being frozen" in text and "Find out what" not in text
    assert "Refused, nothing was changed" in _said(researcher.post(f"{FREEZE}inspect/", follow=True))
    assert not Job.objects.filter(kind="inspect_plan").exists()


def test_more_tasks_than_the_split_has_is_found_by_the_look(researcher: Client, world: World) -> None:
    plan = draft(world, minimal().replace("tasks: 4", "tasks: 999"))
    answer(world, plan)
    page = researcher.get(FREEZE)
    assert page.context["problems"][0].field == "evaluation.splits[0].tasks" and "Freeze these" not in _said(page)


def test_a_pair_that_differs_in_more_than_its_treatment_is_shown(researcher: Client, world: World) -> None:
    document = json.loads(world.plan.draft_text) | {"name": "mine"}
    document["arms"][2]["overrides"]["optimizer"] = {"epochs": 3}
    draft(world, json.dumps(document))
    page = researcher.get(FREEZE)
    (pair,) = page.context["pairs"]
    assert pair.undeclared == ("optimizer.epochs",) and not pair.holds
    assert "not declared" in _said(page) and "refuses the freeze" in _said(page)


def test_superseding_needs_a_reason(world: World, db: None) -> None:
    client = client_of(member(world.study, "researcher"))
    place = "/studies/fatal-mask-pair/plans/small/supersede/"
    assert "expected 3 to 500" in _said(client.post(place, {"reason": " x "}, follow=True))
    assert "expected 3 to 500" in _said(client.post(place, {"reason": "x" * 501}, follow=True))
    client.post(place, {"reason": "a  wrong\nmargin"})
    world.plan.refresh_from_db()
    assert world.plan.state == "superseded"
    assert world.plan.transitions.order_by("-pk")[0].reason == "a wrong margin"
    again = client.post(place, {"reason": "once more"}, follow=True)
    assert "Refused, nothing was changed" in _said(again)
    started = client.post("/studies/fatal-mask-pair/plans/small/start/", follow=True)
    assert "the plan is superseded" in _said(started)


ACTIONS = (f"{FREEZE}inspect/", f"{FREEZE}now/", f"{PLACE}start/", f"{PLACE}supersede/")


@pytest.mark.parametrize("role", ["viewer", "reviewer", "worker"])
def test_other_roles_read_and_change_nothing(world: World, db: None, role: str) -> None:
    plan = draft(world)
    answer(world, plan)
    client = client_of(member(world.study, role))
    page = client.get(FREEZE)
    assert page.status_code == 200 and "Freeze these bytes" not in _said(page)
    assert {client.post(address, {"reason": "because"}).status_code for address in ACTIONS} == {403}
    assert Plan.objects.get(pk=plan.pk).state == "draft"


def test_nobody_and_get_change_nothing(client: Client, world: World, db: None) -> None:
    draft(world)
    assert {client.post(address).headers["Location"].split("?")[0] for address in ACTIONS} == {"/accounts/login/"}
    assert {client_of(member(world.study, "researcher")).get(address).status_code for address in ACTIONS} == {405}
