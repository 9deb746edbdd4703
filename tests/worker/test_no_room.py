"""A full disk in mid-study: nothing half written, nothing of the experiment lost, the cause on the pages."""

from __future__ import annotations

import errno
import os
import re
from typing import Any

import pytest
from django.test import Client

from runs.actions.inspection import KIND
from runs.actions.runs_control import resume_execution
from runs.models import Group, Job, JobTransition, Receipt, Trajectory, UpdateBatch
from runs.storage import blob_store
from tests.runs.scripted import AT, Lab, head_of
from tests.runs.test_advance import ALONE, told
from workbench.room import no_room, why_no_room
from worker import lifecycle
from worker.runner_client import RunnerFailed

CAUSE = "no room to write in the data directory: No space left on device (errno 28)"


def full(*_: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device", "/somewhere/of/this/machine")


def refuse(*_: Any) -> None:
    raise RunnerFailed("disk", boundary=None, class_name="OSError", trace="", no_room=errno.ENOSPC)


@pytest.mark.django_db
@pytest.mark.parametrize("where", ["engine", "store"])
@pytest.mark.parametrize("op", ["collect", "update"])
def test_a_full_disk_pauses_and_the_study_goes_on_with_room(lab: Lab, op: str, where: str) -> None:
    """The engine answers that it had no room, or the store fails while bytes go to disk."""
    execution = lab.start(**ALONE)
    if op == "update":
        lab.step(execution, only="collect:0")
    before = [model.objects.count() for model in (Group, Trajectory, UpdateBatch)]
    with pytest.MonkeyPatch.context() as patch:
        if where == "engine":
            patch.setattr(lab.script, "before", lambda name, spec: refuse() if name == op else None)
        else:
            patch.setattr(os, "fsync", full)
        lab.step(execution, only=f"{op}:0")
        assert lab.step(execution) is None, "nothing is tried again before somebody resumes it"
    execution.refresh_from_db()
    job = Job.objects.get(key__endswith=f":{op}:0")
    assert (execution.state, execution.reason, head_of(execution, "V").state) == ("paused", CAUSE, "running")
    assert (job.state, job.owner, job.max_attempts - job.attempt) == ("queued", "", 3), "the attempt costs nothing"
    assert JobTransition.objects.filter(job=job, to_state="queued").get().reason == CAUSE
    assert told("execution.paused") == [{"reason": CAUSE}] and not told("run.partial_invalid")
    assert [model.objects.count() for model in (Group, Trajectory, UpdateBatch)] == before
    assert [path for path in blob_store().root.rglob(".put-*")] == []
    for address in ("/", f"/jobs/{job.uid}/", f"/runs/{head_of(execution, 'V').run.uid}/"):
        assert "No space left on device" in Client().get(address).content.decode(), address

    resume_execution(execution, by=lab.actor, at=AT)
    lab.drive(execution)
    assert (execution.state, head_of(execution, "V").state) == ("closed", "completed")
    assert UpdateBatch.objects.count() == 2 and Job.objects.get(pk=job.pk).state == "succeeded"
    stored = b"".join(bytes(row) for row in Receipt.objects.values_list("bytes", flat=True))
    assert b"/somewhere" not in stored


@pytest.mark.django_db
def test_two_jobs_that_meet_it_pause_once(lab: Lab) -> None:
    execution = lab.start(**ALONE)
    job = Job.objects.get(key__endswith=":collect:0")
    held = lifecycle.jobs.claim(job.pk, owner="other", at=AT)
    assert held is not None
    lifecycle._hold(held, why_no_room(errno.EDQUOT))
    lifecycle._hold(held, why_no_room(errno.EDQUOT))  # its lease is gone: nothing happens
    execution.refresh_from_db()
    assert execution.state == "paused" and len(told("execution.paused")) == 1
    assert "Disk quota exceeded" in execution.reason


@pytest.mark.django_db
def test_an_inspection_without_room_says_so(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """It belongs to no execution: it ends with the cause, and a person asks again."""
    job = lifecycle.jobs.ensure_job(
        key="inspect:1", kind=KIND, queue="rollout", execution=None, run=None,
        spec={"threads": 1, "describe": {}}, max_attempts=3, at=AT,
    )  # fmt: skip
    monkeypatch.setitem(lifecycle._HANDLERS, KIND, full)
    lifecycle.execute(job.pk)
    job.refresh_from_db()
    assert (job.state, job.error) == ("errored", CAUSE)


def test_which_errors_are_for_want_of_room() -> None:
    for code in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
        assert no_room(OSError(code, "x")) == code and re.search(rf"\(errno {code}\)$", why_no_room(code))
    assert [no_room(error) for error in (OSError(errno.EACCES, "x"), OSError("x"), ValueError("28"), None)] == [
        None
    ] * 4
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    assert no_room(first) is None, "a ring of causes ends"
