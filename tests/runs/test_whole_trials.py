"""Whole executions with trials on SQLite and PostgreSQL with real commits: a crash in every commit changes nothing."""

from __future__ import annotations

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper

from runs.actions.closure import closure_of
from runs.models import Intervention, Job, Trial, TrialSet, UpdateBatch
from tests.runs import trials_double
from tests.runs.scripted import Lab
from tests.runs.test_whole_executions import Crash
from tests.worker.test_lifecycle import expire
from tests.worker.test_trial_jobs import TRIED
from worker import lifecycle

SEEN: set[str] = set()  # closure hashes of one plan, over both databases and both kinds of crash


def tried() -> list[int]:
    return [model.objects.count() for model in (TrialSet, Intervention, Trial, UpdateBatch)]


@pytest.mark.parametrize("point", ["worker.recorder.reach", "runs.dispatch.reach"])
def test_a_crash_in_every_commit_and_every_message_loses_and_doubles_no_trial(
    database: BaseDatabaseWrapper, lab: Lab, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """Before a commit nothing of the job is stored; after it all of it. The closure binds the same trials each time.

    Two groups of two slots: 2 sets, 4 interventions, 4 originals and 4 executions, 2 updates.
    """
    lab.script.components = trials_double.components
    crashes: list[str] = []

    def crash(name: str) -> None:
        crashes.append(name)
        if len(crashes) % 2:
            raise Crash(name)

    execution = lab.start(**TRIED)
    monkeypatch.setattr(point, crash)
    for _ in range(60):
        before = tried()
        try:
            while lab.step(execution) is not None:
                before = tried()
            break
        except Crash:
            assert (tried() == before) or point.startswith("runs")
        for job in Job.objects.filter(state="leased"):
            expire(job.key)
        with monkeypatch.context() as calm:
            calm.setattr("runs.dispatch.reach", lambda name: None)
            lifecycle.reap()
    execution.refresh_from_db()
    assert len(crashes) >= 6 and execution.state == "closed"
    assert not Job.objects.exclude(state="succeeded").exists()
    assert tried() == [2, 4, 8, 2]
    document = closure_of(execution)
    assert document is not None
    SEEN.add(document.sha256)
    assert len(SEEN) == 1
