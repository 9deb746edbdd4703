"""Branches: means and signs by hand, the job, the record, its rows, pages and API, and what is changed afterwards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from evidence.verify import verify
from runs.actions.actors import service_actor
from runs.actions.record_branches import BRANCH_RECORDED, record_branch, request_branch
from runs.errors import DomainError
from runs.models import BranchContinuation, Job, Receipt, StateBranch, Trajectory, User
from runs.presenters import branches as branches_shown
from runs.storage import blob_store
from tests.branches.rows import answer, branch_on, branch_record
from tests.evidence.test_verify import found, sql
from tests.runs.scripted import Lab
from tests.runs.scripted import lab as lab
from tests.runs.test_advance import ALONE, QUICK
from tests.worker.test_inspection import run_with
from workbench.contracts.branches import (
    AFTER,
    BEFORE,
    BranchSpec,
    mean_reward,
    parse_branch,
    point_of,
    same_state,
    signs_agree,
    standard_error,
    turn_value,
)
from workbench.contracts.errors import RecordError
from workbench.contracts.wire import from_wire, record_bytes, to_wire
from worker.runner_client import RunnerFailed

pytestmark = pytest.mark.django_db


@pytest.fixture
def trajectory(lab: Lab) -> Trajectory:
    """A valid one of a closed execution; the scripted engine writes one turn."""
    lab.drive(lab.start(**{**QUICK, **ALONE}))
    rows = Trajectory.objects.select_related("group__checkpoint", "group__plan_version__plan__study", "group__task")
    return max(rows.filter(status="valid"), key=lambda row: row.turns.count())


def faults() -> set[tuple[int, str, str]]:
    return found(verify(store=blob_store(), steps=(1, 3, 4, 5)))


def test_means_signs_and_errors_by_hand(trajectory: Trajectory) -> None:
    """Before: 0.25 and 0.75, one broken: mean 0.5 of 2, error sqrt(0.125 / 2) = 0.25. After: 2/3 of 3."""
    record = branch_record(trajectory)
    before, after = point_of(record, BEFORE), point_of(record, AFTER)
    assert mean_reward(before, record.reward) == (0.5, 2) and standard_error(before) == pytest.approx(0.25)
    assert mean_reward(after, record.reward) == (pytest.approx(2 / 3), 3)
    assert turn_value(record) == pytest.approx(2 / 3 - 0.5)
    assert [signs_agree(0.2, value) for value in (1.0, 0.0, -1.0, None)] == [True, False, False, None]
    assert signs_agree(0.0, 0.0) is True and signs_agree(None, 1.0) is None
    broken = replace(before, continuations=before.continuations[2:])
    assert mean_reward(broken, record.reward) == (None, 0) and standard_error(broken) is None


def test_a_proof_that_does_not_hold_is_refused(trajectory: Trajectory) -> None:
    record = branch_record(trajectory)
    assert all(same_state(point) for point in record.points)
    for name in ("replayed_state_sha256", "restored_state_sha256"):
        wrong = replace(record.points[0], **{name: "0" * 64})
        with pytest.raises(RecordError, match="the proof does not hold"):
            parse_branch(record_bytes(replace(record, points=(wrong, record.points[1]))))
    elsewhere = replace(record.points[1].continuations[0], start_state_sha256="0" * 64)
    wrong = replace(record.points[1], continuations=(elsewhere, *record.points[1].continuations[1:]))
    with pytest.raises(RecordError, match="the proof does not hold"):
        parse_branch(record_bytes(replace(record, points=(record.points[0], wrong))))


def test_a_job_asks_the_engine_and_records(trajectory: Trajectory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after the execution is closed; two in a row are two records, one under way is one."""
    by = service_actor("test")
    job = request_branch(trajectory, 0, 3, by=by, at=timezone.now())
    assert (job.kind, job.queue, job.study) == ("branch_state", "rollout", trajectory.group.plan_version.plan.study)
    assert request_branch(trajectory, 0, 3, by=by, at=timezone.now()).pk == job.pk
    client = run_with(monkeypatch, job, to_wire(answer(branch_record(trajectory))))
    assert job.state == "succeeded", job.error
    spec = from_wire(BranchSpec, client.asked[0][1])
    turn = trajectory.turns.get(decision=0)
    assert client.asked[0][0] == "branch" and spec.count == 3 and spec.capture.capture_sha256 == turn.capture_sha256
    assert spec.policy.adapter_sha256 == trajectory.group.checkpoint.sha256 and spec.runtime == "runtime-test"
    made = StateBranch.objects.get()
    assert job.result == {"branch": str(made.uid)} and made.value == pytest.approx(2 / 3 - 0.5)
    assert BranchContinuation.objects.filter(branch=made).count() == 6
    assert Receipt.objects.filter(kind=BRANCH_RECORDED).count() == 1
    assert faults() == set()
    again = request_branch(trajectory, 0, 3, by=by, at=timezone.now())
    assert again.pk != job.pk and again.spec["ordinal"] == 2


def test_a_job_that_cannot_be_done_says_why(trajectory: Trajectory, monkeypatch: pytest.MonkeyPatch) -> None:
    by = service_actor("test")
    job = request_branch(trajectory, 0, 3, by=by, at=timezone.now())
    run_with(monkeypatch, job, RunnerFailed("other state", boundary="EnvironmentFault", class_name="X", trace=""))
    assert job.state == "failed" and "other state" in job.error
    job = request_branch(trajectory, 0, 3, by=by, at=timezone.now())
    wrong = answer(replace(branch_record(trajectory), reward=9.0))
    run_with(monkeypatch, job, to_wire(wrong))
    assert job.state == "failed" and "reward: got 9.0" in job.error and not StateBranch.objects.exists()


@pytest.mark.parametrize(("place", "message"), [(0, "state before: got 0000"), (1, "state after: got 0000")])
def test_a_proof_of_another_state_is_refused(trajectory: Trajectory, place: int, message: str) -> None:
    """Its hashes agree with each other, and not with the state that was recorded."""
    record = branch_record(trajectory)
    names = ("recorded_state_sha256", "replayed_state_sha256", "restored_state_sha256")
    items = tuple(replace(item, start_state_sha256="0" * 64) for item in record.points[place].continuations)
    points = list(record.points)
    points[place] = replace(points[place], **dict.fromkeys(names, "0" * 64), continuations=items)
    with pytest.raises(RecordError, match=message):
        record_branch(answer(replace(record, points=tuple(points))), by=service_actor("worker"), at=timezone.now())
    assert not StateBranch.objects.exists()


@pytest.mark.parametrize(
    ("decision", "count", "message"), [(99, 3, "decision: got 99"), (0, 0, "continuations: got 0")]
)
def test_what_is_not_there_is_not_asked_for(trajectory: Trajectory, decision: int, count: int, message: str) -> None:
    with pytest.raises(DomainError, match=message):
        request_branch(trajectory, decision, count, by=service_actor("test"), at=timezone.now())
    assert not Job.objects.filter(kind="branch_state").exists()


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("UPDATE runs_statebranch SET value = 5", (4, "runs_statebranch", "value")),
        ("UPDATE runs_branchcontinuation SET reward = 5 WHERE reward = 0.75", (4, "runs_branchcontinuation", "reward")),
        ("DELETE FROM runs_branchcontinuation WHERE point = 'after'", (4, "runs_branchcontinuation", "id")),
        ("UPDATE runs_turn SET state_before = 'x' WHERE decision = 0", (4, "runs_statebranch", "state")),
        ("DELETE FROM runs_receipt WHERE kind = 'branch.recorded'", (4, "runs_receipt", "kind")),
    ],
)
def test_what_is_changed_afterwards_is_named(trajectory: Trajectory, change: str, fault: tuple[int, str, str]) -> None:
    branch_on(trajectory, timezone.now())
    sql(change)
    assert fault in faults()


def test_the_page_shows_both_states_and_asks_for_more(trajectory: Trajectory, client: Client) -> None:
    branch_on(trajectory, timezone.now())
    branch_on(trajectory, timezone.now(), 0, 2, is_last=True)
    address = f"/trajectories/{trajectory.uid}/branches/"
    page = client.get(address)
    assert [view.own.ordinal for view in page.context["views"]] == [2, 1] and not page.context["may_ask"]
    assert all(point.holds for view in page.context["views"] for point in view.points)
    ended = page.context["views"][0].points[1]
    assert ended.proof["terminal"] and (ended.mean, ended.n) == (trajectory.reward_total, 1) and ended.rows == []
    assert b"one hash" in page.content and address.encode() in client.get(f"/trajectories/{trajectory.uid}/").content
    assert client.post(f"{address}ask/", {"decision": "0", "continuations": "2"}).status_code == 302  # to the login
    assert not Job.objects.filter(kind="branch_state").exists()
    client.force_login(User.objects.create_user("site", is_superuser=True))
    assert client.get(address).context["may_ask"]
    assert client.post(f"{address}ask/", {"decision": "0", "continuations": "2"}).status_code == 302
    assert Job.objects.get(kind="branch_state").spec["count"] == 2
    for given in ({"decision": "x", "continuations": "2"}, {"decision": "0", "continuations": "99"}, {}):
        assert b"Refused" in client.post(f"{address}ask/", given, follow=True).content


@pytest.mark.parametrize(
    ("value", "words"), [(None, "sign not known"), (0.25, "same sign"), (-0.25, "other sign"), (0.0, "other sign")]
)
def test_a_sign_that_nobody_knows_is_no_other_sign(
    trajectory: Trajectory, client: Client, monkeypatch: pytest.MonkeyPatch, value: float | None, words: str
) -> None:
    """D = 1/2 beside a turn's value; without a valid continuation the value is unknown, and so is the agreement."""
    branch_on(trajectory, timezone.now())
    plain = branches_shown.view_of

    def view(own: StateBranch) -> branches_shown.BranchView:
        own.value = value
        return replace(plain(own), difference=0.5, agree=signs_agree(value, 0.5))

    monkeypatch.setattr(branches_shown, "view_of", view)
    page = client.get(f"/trajectories/{trajectory.uid}/branches/").content.decode()
    assert [word for word in ("sign not known", "same sign", "other sign") if word in page] == [words]


def test_the_api_lists_reads_and_asks(trajectory: Trajectory, client: Client) -> None:
    made = branch_on(trajectory, timezone.now())
    items = client.get(f"/api/v1/branches?trajectory={trajectory.uid}").json()["items"]
    assert [item["uid"] for item in items] == [str(made.uid)] and items[0]["before"] == 0.5
    one = client.get(f"/api/v1/branches/{made.uid}").json()
    assert [item["reward"] for item in one["continuations"] if item["point"] == "before"] == [0.25, 0.75, None]
    client.force_login(User.objects.create_user("site", is_superuser=True))

    def post(**body: Any) -> Any:
        address = f"/api/v1/trajectories/{trajectory.uid}/branches"
        return client.post(address, body, content_type="application/json")

    assert post(decision=0, continuations=4).status_code == 202
    assert post(decision=0, continuations=17).status_code == 422
    assert post(decision=99, continuations=4).status_code in (409, 422)
    assert post(decision=0, continuations=4, checkpoint=str(made.uid)).status_code == 422
