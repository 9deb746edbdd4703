"""Jobs: list and single page."""

from __future__ import annotations

import uuid

from django.test import Client

from runs.models import Job
from tests.pages.state import World


def test_states_are_counted_and_filtered(client: Client, world: World, db: None) -> None:
    answer = client.get("/jobs/", {"state": "errored"})
    assert dict(answer.context["counts"]) == {
        "queued": 1, "leased": 1, "succeeded": 1, "failed": 0, "errored": 1, "cancelled": 0,
    }  # fmt: skip
    assert [job.state for job in answer.context["listing"]] == ["errored"]


def test_a_job_shows_cause_attempts_and_lease(client: Client, world: World, db: None) -> None:
    job = Job.objects.get(state="errored")
    text = client.get(f"/jobs/{job.uid}/").content.decode()
    assert "MemoryError: 4.1 GiB asked" in text
    assert "1 of at most 3" in text
    assert job.key in text


def test_unknown_job(client: Client, world: World, db: None) -> None:
    assert client.get(f"/jobs/{uuid.uuid4()}/").status_code == 404
