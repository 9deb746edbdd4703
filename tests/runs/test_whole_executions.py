"""Whole executions on SQLite and PostgreSQL with real commits: crashes at every step, and many workers at once."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper

from runs.actions.closure import closure_of
from runs.models import ConsumedGroup, EvaluationItem, Execution, Group, Job, UpdateBatch
from tests.runs.scripted import Lab
from tests.runs.test_advance import ALONE, told
from tests.runs.test_jobs import together
from tests.worker.test_lifecycle import counts, expire
from worker import lifecycle


class Crash(BaseException):
    """Stands for SIGKILL: nothing in the product may catch it."""


@pytest.mark.parametrize("point", ["worker.recorder.reach", "runs.dispatch.reach"])
def test_a_crash_in_every_commit_and_every_message_changes_nothing(
    database: BaseDatabaseWrapper, lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, point: str
) -> None:
    """Each commit dies once before it ends, or each message dies after its commit; the closure stays the same.

    The expected hash is that of an undisturbed run of the same plan: uids and bytes follow from it alone.
    """
    crashes: list[str] = []

    def crash(name: str) -> None:
        crashes.append(name)
        if len(crashes) % 2:
            raise Crash(name)

    execution = lab.start(**ALONE)
    monkeypatch.setattr(point, crash)
    for _ in range(60):
        before = counts()
        try:
            while True:
                before = counts()
                if lab.step(execution) is None:
                    break
            break
        except Crash:  # before the commit nothing of the job is stored; after it, all of it
            assert (counts() == before) is point.startswith("worker")
        for job in Job.objects.filter(state="leased"):
            expire(job.key)
        with monkeypatch.context() as calm:
            calm.setattr("runs.dispatch.reach", lambda name: None)
            lifecycle.reap()
    execution.refresh_from_db()
    assert len(crashes) >= 5 and execution.state == "closed"
    assert not Job.objects.exclude(state="succeeded").exists()
    assert ConsumedGroup.objects.count() == UpdateBatch.objects.count() == 2 and Group.objects.count() == 4
    document = closure_of(execution)
    assert document is not None
    SEEN.add(document.sha256)
    assert len(SEEN) == 1


SEEN: set[str] = set()  # closure hashes of one plan, over both databases and both kinds of crash


def test_four_workers_on_two_executions_lose_and_double_nothing(database: BaseDatabaseWrapper, lab: Lab) -> None:
    """Real threads and real commits; on PostgreSQL a wrong order of locks would end in a deadlock."""
    made = [lab.start(**{**ALONE, "name": name, "seeds": ["1", "2"]}) for name in ("a", "b")]

    def work(index: int) -> int:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            waiting = list(Job.objects.filter(state="queued").order_by("pk").values_list("pk", flat=True))
            if waiting:
                lifecycle.execute(waiting[index % len(waiting)])
            elif not Execution.objects.exclude(state="closed").exists():
                return 1
            else:
                time.sleep(0.02)
        return 0

    assert together(4, work) == [1, 1, 1, 1]
    assert not Job.objects.exclude(state="succeeded").exists()
    assert not told("attempt.lost")
    assert UpdateBatch.objects.count() == ConsumedGroup.objects.count() == 2 * 2 * 2
    assert EvaluationItem.objects.count() == 2 * 3
    assert all(closure_of(execution) for execution in made)
