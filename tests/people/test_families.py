"""Families of people: given when an account is made, proved by a receipt, kept for good."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils import timezone

from evidence.models import Review
from evidence.report import PROBLEM
from evidence.reviewing import family_of, independence
from evidence.verify import verify
from runs.actions.actors import person_actor, service_actor
from runs.actions.members import create_user
from runs.errors import DomainError
from runs.models import Actor, Receipt, User
from runs.storage import blob_store
from tests.people.conftest import Place
from tests.people.test_pages import confirmed

pytestmark = pytest.mark.django_db


def test_a_site_admin_gives_a_family_and_a_receipt_says_so(place: Place) -> None:
    client = confirmed(place)
    answer = client.post("/users/new/", {"name": "noa", "family": " Group-North "})
    assert answer.status_code == 201, answer.content[-900:]
    actor = person_actor(User.objects.get(username="noa"))
    assert actor.family == "group-north"
    receipt = Receipt.objects.get(stream="people", kind="actor.family")
    assert receipt.subject_uid == actor.uid and receipt.actor.name == "site"
    assert ">group-north</td>" in client.get("/users/").content.decode()


@pytest.mark.parametrize("family", ["person", "Workbench", "two words", "x" * 65, "-a"])
def test_a_family_that_is_no_name_or_is_taken_by_the_system_is_refused(place: Place, family: str) -> None:
    answer = confirmed(place).post("/users/new/", {"name": "noa", "family": family})
    assert answer.status_code == 422 and "family: got" in answer.content.decode().replace("&#x27;", "'")
    assert not User.objects.filter(username="noa").exists()


def test_without_a_family_everybody_is_of_their_own(place: Place) -> None:
    by, at = place.people["site"], timezone.now()
    first, second = (person_actor(create_user(name, by=by, at=at)[0]) for name in ("noa", "lin"))
    assert family_of(first) != family_of(second)
    assert independence(first, [second]) == Review.INDEPENDENT
    assert independence(first, [second, first]) == Review.SAME_FAMILY
    third, fourth = (person_actor(create_user(name, by=by, at=at, family="north")[0]) for name in ("kim", "ola"))
    assert independence(third, [first, fourth]) == Review.SAME_FAMILY
    assert independence(third, [service_actor("worker")]) == Review.INDEPENDENT
    assert independence(service_actor("scheduler"), [service_actor("worker")]) == Review.SAME_FAMILY


def test_a_family_is_asked_for_by_a_site_admin_only(place: Place) -> None:
    with pytest.raises(DomainError, match="expected a site admin"):
        create_user("noa", by=place.people["viewer"], at=timezone.now(), family="north")
    client = Client()
    client.force_login(place.people["viewer"])
    assert client.post("/users/new/", {"name": "noa", "family": "north"}).status_code == 404


def test_verify_misses_the_receipt_of_a_family_that_was_written_by_hand(place: Place) -> None:
    """The one with a receipt passes; the one without is named by row and column."""
    made, _password = create_user("noa", by=place.people["site"], at=timezone.now(), family="north")
    person_actor(made)
    before = [item for item in verify(store=blob_store()).problems if item.table == "runs_actor"]
    user = User.objects.create(username="eve")
    forged = person_actor(user, "elsewhere")
    found = [
        item for item in verify(store=blob_store()).problems if item.table == "runs_actor" and item.severity == PROBLEM
    ]
    assert before == [] and [(item.row, item.column) for item in found] == [(str(forged.uid), "family")]
    assert Actor.objects.get(user=user).family == "elsewhere"
