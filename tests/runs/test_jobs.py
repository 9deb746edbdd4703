"""Jobs: one winner a claim, fencing, heartbeats, the reaper's queries, and messages that may be lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone

from runs import dispatch
from runs.actions import jobs
from runs.errors import StaleLease
from runs.models import Execution, Job, JobTransition, RunHead
from runs.states import JOB_TRANSITIONS, allowed
from tests.runs.scripted import AT, Lab, run_of

LATER = AT + timedelta(seconds=1)


def make(execution: Execution, key: str = "k", **changes: Any) -> Job:
    values: dict[str, Any] = {"kind": "collect_shard", "queue": "rollout", "run": None, "spec": {}, "max_attempts": 3}
    return jobs.ensure_job(key=key, execution=execution, at=AT, **{**values, **changes})


def together(count: int, work: Callable[[int], Any]) -> list[Any]:
    """Run ``work`` in threads that start at once; their results. An error in one of them is raised here."""
    barrier, results = threading.Barrier(count), [None] * count

    def body(index: int) -> None:
        try:
            barrier.wait(20)
            results[index] = work(index)
        except Exception as error:
            results[index] = error
        finally:
            connections.close_all()

    threads = [threading.Thread(target=body, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


def test_exactly_one_of_many_threads_wins_a_claim(database: BaseDatabaseWrapper, lab: Lab) -> None:
    execution = lab.start()
    made = [make(execution, f"k{i}") for i in range(6)]
    for job in made:
        won = [found for found in together(8, lambda i, pk=job.pk: jobs.claim(pk, owner=f"w{i}", at=LATER)) if found]
        assert len(won) == 1 and won[0].attempt == 1
        assert Job.objects.get(pk=job.pk).owner == won[0].owner
    assert JobTransition.objects.filter(to_state="leased").count() == 6


def test_one_key_is_one_job_for_many_threads(database: BaseDatabaseWrapper, lab: Lab) -> None:
    execution = lab.start()
    lab.sent.clear()
    found = together(6, lambda i: make(execution, "same").pk)
    assert len(set(found)) == 1 and Job.objects.filter(key="same").count() == 1
    assert lab.sent == [found[0]]


def test_exactly_one_attempt_finishes(database: BaseDatabaseWrapper, lab: Lab) -> None:
    """Two threads hold the same attempt (a worker and the reaper that gives it back): one of them is stale."""
    job = jobs.claim(make(lab.start()).pk, owner="w", at=LATER)
    assert job is not None

    def end(index: int) -> str:
        try:
            with transaction.atomic():
                if index % 2:
                    jobs.finish(job, "succeeded", at=LATER)
                else:
                    jobs.give_back(job, reason="lost", at=LATER)
        except StaleLease:
            return "stale"
        return "won"

    assert sorted(together(4, end)) == ["stale", "stale", "stale", "won"]
    assert JobTransition.objects.filter(from_state="leased").count() == 1


pytest_db = pytest.mark.django_db


@pytest_db
def test_a_claim_leases_and_logs(lab: Lab) -> None:
    job = jobs.claim(make(lab.start()).pk, owner="w", at=LATER)
    assert job is not None
    assert (job.state, job.owner, job.attempt, job.lease_until) == ("leased", "w", 1, LATER + jobs.LEASE)
    log = JobTransition.objects.get(job=job)
    assert (log.from_state, log.to_state, log.attempt, log.owner) == ("queued", "leased", 1, "w")
    assert jobs.claim(job.pk, owner="other", at=LATER) is None
    assert jobs.claim(10**6, owner="w", at=LATER) is None


@pytest_db
@pytest.mark.parametrize("state", sorted(set(JOB_TRANSITIONS) - {"queued"}))
def test_only_a_queued_job_can_be_claimed(lab: Lab, state: str) -> None:
    job = make(lab.start())
    Job.objects.filter(pk=job.pk).update(state=state)
    assert jobs.claim(job.pk, owner="w", at=LATER) is None and not JobTransition.objects.exists()
    assert not allowed("job", state, "leased")


@pytest_db
def test_a_job_that_is_not_yet_available_waits(lab: Lab) -> None:
    job = make(lab.start())
    assert jobs.claim(job.pk, owner="w", at=AT - timedelta(seconds=1)) is None
    assert jobs.claim(job.pk, owner="w", at=AT) is not None


@pytest_db
@pytest.mark.parametrize("state", ["pending", "paused", "interrupted", "stopped", "cancelled", "closed"])
def test_nothing_is_claimed_or_sent_again_while_the_execution_does_not_run(lab: Lab, state: str) -> None:
    execution = lab.start()
    job = make(execution)
    Execution.objects.filter(pk=execution.pk).update(state=state)
    assert jobs.claim(job.pk, owner="w", at=LATER) is None
    assert jobs.resend_unanswered(LATER + timedelta(minutes=5)) == 0
    Execution.objects.filter(pk=execution.pk).update(state="running")
    assert jobs.claim(job.pk, owner="w", at=LATER) is not None


@pytest_db
def test_a_paused_run_holds_its_own_jobs_only(lab: Lab) -> None:
    execution = lab.start()
    run, other = run_of(execution, "V"), run_of(execution, "F")
    RunHead.objects.filter(run=run).update(state="paused")
    held, free, parent = make(execution, "a", run=run), make(execution, "b", run=other), make(execution, "c")
    assert jobs.claim(held.pk, owner="w", at=LATER) is None
    assert jobs.claim(free.pk, owner="w", at=LATER) and jobs.claim(parent.pk, owner="w", at=LATER)


@pytest_db
def test_an_old_attempt_neither_renews_nor_finishes_nor_gives_back(lab: Lab) -> None:
    pk = make(lab.start()).pk
    old = jobs.claim(pk, owner="w1", at=LATER)
    assert old is not None and jobs.heartbeat(old, at=LATER)
    assert jobs.give_back(old, reason="lost", at=LATER)
    assert not jobs.heartbeat(old, at=LATER)
    new = jobs.claim(pk, owner="w2", at=LATER)
    assert new is not None and new.attempt == 2
    assert not jobs.heartbeat(old, at=LATER) and not jobs.holds(old) and jobs.holds(new)
    for act in (
        lambda: jobs.finish(old, "succeeded", at=LATER),
        lambda: jobs.give_back(old, reason="again", at=LATER),
    ):
        with pytest.raises(StaleLease, match="attempt 1 no longer holds the lease"):
            act()
    jobs.finish(new, "succeeded", at=LATER)
    assert Job.objects.get(pk=pk).state == "succeeded"
    assert not jobs.heartbeat(new, at=LATER)


@pytest_db
def test_a_heartbeat_moves_the_lease_and_keeps_progress(lab: Lab) -> None:
    job = jobs.claim(make(lab.start()).pk, owner="w", at=LATER)
    assert job is not None
    assert jobs.heartbeat(job, at=LATER + timedelta(seconds=9), progress={"turn": 3})
    assert jobs.heartbeat(job, at=LATER + timedelta(seconds=10))
    row = Job.objects.get(pk=job.pk)
    assert (row.lease_until, row.progress) == (LATER + timedelta(seconds=10) + jobs.LEASE, {"turn": 3})


@pytest_db
def test_attempts_end_but_an_attempt_that_tried_nothing_is_free(lab: Lab) -> None:
    pk = make(lab.start(), max_attempts=2).pk
    one = jobs.claim(pk, owner="w", at=LATER)
    assert one is not None and jobs.give_back(one, reason="x", at=LATER)
    two = jobs.claim(pk, owner="w", at=LATER)
    assert two is not None and not jobs.give_back(two, reason="x", at=LATER)
    assert Job.objects.get(pk=pk).state == "leased"  # nothing changed: the caller records the loss
    assert jobs.give_back(two, reason="another runtime", at=LATER, charged=False)
    three = jobs.claim(pk, owner="w", at=LATER)
    assert three is not None and (three.attempt, three.max_attempts) == (3, 3)


@pytest_db
def test_only_leases_that_ran_out_are_expired(lab: Lab) -> None:
    job = jobs.claim(make(lab.start()).pk, owner="w", at=LATER)
    assert job is not None
    end = LATER + jobs.LEASE
    assert jobs.expired(end) == [] and jobs.expired(end + timedelta(microseconds=1)) == [job]
    assert not jobs.holds(job, expired_at=end) and jobs.holds(job, expired_at=end + timedelta(microseconds=1))


@pytest_db
def test_a_dead_process_loses_its_own_leases_only(lab: Lab) -> None:
    execution = lab.start()
    for owner in ("rollout-1/12", "rollout-1/123", "rollout-10/7"):
        assert jobs.claim(make(execution, owner).pk, owner=owner, at=LATER)
    assert jobs.expire_leases_of("rollout-1/12", at=LATER) == 1
    assert [job.owner for job in jobs.expired(LATER)] == ["rollout-1/12"]
    assert jobs.expire_leases_of("rollout-1/", at=LATER) == 2


@pytest_db
def test_a_lost_message_is_sent_again_but_not_over_and_over(lab: Lab) -> None:
    """Not sent: after 1 s. Unanswered: after 8 s, or 60 s while the queue's workers are busy. Other queues: apart."""
    execution = lab.start()
    Job.objects.all().delete()
    job, slow = make(execution), make(execution, "update", queue="update")

    def resend(seconds: float) -> list[int]:
        lab.sent.clear()
        jobs.resend_unanswered(AT + timedelta(seconds=seconds))
        return list(lab.sent)

    assert resend(0.5) == [] and resend(2) == [job.pk, slow.pk]
    Job.objects.update(dispatched_at=AT)
    assert resend(7) == [] and resend(9) == [job.pk, slow.pk]
    Job.objects.update(dispatched_at=AT)
    busy = jobs.claim(make(execution, "busy").pk, owner="w", at=AT)
    assert busy is not None
    assert resend(9) == [slow.pk]
    Job.objects.update(dispatched_at=AT, lease_until=AT + timedelta(minutes=5))
    assert resend(61) == [job.pk, slow.pk]
    jobs.finish(busy, "succeeded", at=AT)
    Job.objects.update(dispatched_at=AT)
    assert job.pk in resend(9)


@pytest_db
def test_cancelling_ends_what_waits_and_what_runs(lab: Lab) -> None:
    execution = lab.start()
    Job.objects.all().delete()
    run = run_of(execution, "V")
    waiting, running = make(execution, "a", run=run), jobs.claim(make(execution, "b", run=run).pk, owner="w", at=LATER)
    done, parent = jobs.claim(make(execution, "c", run=run).pk, owner="w", at=LATER), make(execution, "d")
    assert running is not None and done is not None
    jobs.finish(done, "succeeded", at=LATER)
    assert jobs.cancel_jobs(run=run, at=LATER, reason="why") == 2
    states = dict(Job.objects.values_list("key", "state"))
    assert states == {"a": "cancelled", "b": "cancelled", "c": "succeeded", "d": "queued"}
    assert not jobs.heartbeat(running, at=LATER) and jobs.claim(waiting.pk, owner="w", at=LATER) is None
    with pytest.raises(StaleLease):
        jobs.finish(running, "succeeded", at=LATER)
    assert jobs.cancel_jobs(execution=execution, at=LATER, reason="all") == 1
    assert Job.objects.get(pk=parent.pk).state == "cancelled"


def test_a_message_goes_out_after_the_commit_and_never_without_it(database: BaseDatabaseWrapper, lab: Lab) -> None:
    execution = lab.start()
    seen: list[bool] = []
    lab.sent.clear()
    with transaction.atomic():
        job = make(execution, "inside")
        seen.append(job.pk in lab.sent)
    seen.append(job.pk in lab.sent)
    assert seen == [False, True]
    assert Job.objects.get(pk=job.pk).dispatched_at is not None
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        make(execution, "rolled back")
        raise ZeroDivisionError
    assert lab.sent == [job.pk] and not Job.objects.filter(key="rolled back").exists()


def test_a_broker_that_is_away_loses_no_job(
    database: BaseDatabaseWrapper, lab: Lab, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def away(*_: Any, **__: Any) -> None:
        raise ConnectionError("no broker")

    execution = lab.start()
    with monkeypatch.context() as patch:
        patch.setattr(dispatch.app, "send_task", away)
        job = make(execution, "unsent")
        make(execution, "second")  # an error of the first message does not swallow the second
    row = Job.objects.get(pk=job.pk)
    assert (row.state, row.dispatched_at) == ("queued", None) and "no broker" in caplog.text
    lab.sent.clear()
    now: datetime = timezone.now()
    assert jobs.resend_unanswered(now) >= 2 and job.pk in lab.sent
