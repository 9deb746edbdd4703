"""A hundredth of the large database: every measured page answers with a locked number of queries."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from runs.models import Group, Membership, MetricChunk, Run, Study, TrackedRun, Trajectory, Turn, User
from tests.load.generate import SMALL
from tests.load.pages import addresses
from workbench.db import missing_triggers

MOST_QUERIES = 45
MOST_OF_NOW = 47  # two for the warnings of all running runs
MOST_OF_A_RUN = 55  # the page with most sections
MOST_OF_A_LIST = 30


def test_counts_and_guards(filled: None, db: None) -> None:
    """100 runs, 250 groups of 4 slots with 10 turns each; history is guarded again."""
    assert (Run.objects.filter(origin=Run.NATIVE).count(), Group.objects.count()) == (100, 250)
    assert TrackedRun.objects.count() == 30 and sum(MetricChunk.objects.values_list("points", flat=True)) == 30_000
    assert (Trajectory.objects.count(), Turn.objects.count()) == (1_000, 10_000)
    assert not missing_triggers(connection)


@pytest.mark.parametrize("name", addresses(SMALL))
def test_page(filled: None, db: None, client: Client, name: str) -> None:
    with CaptureQueriesContext(connection) as queries:
        answer = client.get(addresses(SMALL)[name])
    assert answer.status_code == 200, answer.content.decode()[:2000]
    kind = name.split(",")[0]
    listed = kind in ("runs", "groups", "trajectories", "evaluations", "jobs", "tasks")
    most = MOST_OF_A_LIST if listed else {"run": MOST_OF_A_RUN, "now": MOST_OF_NOW}.get(kind, MOST_QUERIES)
    assert len(queries) <= most


@pytest.mark.parametrize("role", [Membership.RESEARCHER, Membership.REVIEWER, "site admin"])
def test_first_page_of_somebody_in_every_study(filled: None, db: None, client: Client, role: str) -> None:
    """Signed in, with a role in each study: the lock is the same, since nothing is asked study by study."""
    person = User.objects.create(username="mara", is_superuser=role == "site admin")
    if not person.is_superuser:
        rows = [Membership(study=study, user=person, role=role) for study in Study.objects.all()]
        Membership.objects.bulk_create(rows)
    client.force_login(person)
    with CaptureQueriesContext(connection) as queries:
        assert client.get("/").status_code == 200
    assert len(queries) <= MOST_OF_NOW
