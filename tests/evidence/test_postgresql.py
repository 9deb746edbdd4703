"""Evidence on PostgreSQL with real commits: imports, a flipped byte and back, reviews, reviewers at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import DatabaseError, connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from pytest_django import DjangoDbBlocker

from evidence import queue
from evidence.actions import bundle_import
from evidence.actions.claims import lower_claim
from evidence.actions.links import add_link
from evidence.actions.reviews import OwnWork, answer, review
from evidence.actions.stale import open_marks, settle
from evidence.actions.versions import add_source
from evidence.attacks.world import AttackWorld, build
from evidence.models import Figure, NotesVersion, StaleResolution
from evidence.propagation import CLAIM
from evidence.verify import verify
from runs.access import Principal
from runs.actions.actors import person_actor, service_actor
from runs.errors import DomainError
from runs.models import Actor, Membership, User
from tests.evidence_bundled import expected
from tests.evidence_bundled.conftest import AT
from tests.evidence_bundled.test_reference import shown
from tests.evidence_stale.test_flipped_byte import flip, record, states
from tests.runs import databases
from tests.runs.conftest import postgres_template as postgres_template
from tests.servers import Postgres
from workbench.blobs import BlobStore

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


@pytest.fixture
def database(postgres_template: Postgres, django_db_blocker: DjangoDbBlocker) -> Iterator[BaseDatabaseWrapper]:
    with django_db_blocker.unblock(), databases.copied_postgres(postgres_template) as own:
        assert own.vendor == "postgresql"
        yield own


@pytest.fixture
def store(tmp_path: Path, settings: LazySettings) -> BlobStore:
    settings.BLOB_ROOT = str(tmp_path / "blobs")
    return BlobStore(tmp_path / "blobs")


@pytest.fixture
def world(database: BaseDatabaseWrapper, store: BlobStore) -> AttackWorld:
    return build(store)


def test_both_reference_studies_are_imported_and_verified(database: BaseDatabaseWrapper, store: BlobStore) -> None:
    """The same figures as elsewhere, no fault, nothing to add a second time, and no row that can be changed."""
    by, at = service_actor(bundle_import.ACTOR), AT
    first = bundle_import.import_bundled(by=by, at=at)
    assert [row["changed"] for row in first] == [True, True]
    for slug, figures in (
        ("counterfactual-edit-credit", expected.EDIT_CREDIT), ("medical-deep-search", expected.MEDICAL),
    ):  # fmt: skip
        found = shown(slug)
        assert {key: found.get(key) for key in figures} == figures
    assert verify(store=store).problems == []
    again = bundle_import.import_bundled(by=by, at=at)
    assert [row["changed"] for row in again] == [False, False]
    for statement in ("UPDATE evidence_figureversion SET value = '1'", "TRUNCATE evidence_review CASCADE"):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement)
    assert NotesVersion.objects.count() == 2


def test_a_flipped_byte_marks_everything_above_and_heals(world: AttackWorld) -> None:
    sound = states(world)
    assert verify(store=world.store).problems == []
    flip(world, b"92 were", b"93 were")
    found = record(world, 1)
    assert (found["sources"], found["opened"]) == (1, 7)
    now = states(world)
    assert (now["source"], now["excerpts"]["nonzero"], now["sections"]) == ("drifted", "orphan", ["results"])
    assert now["claims"] == {"share": ("not_established", True), "duration": ("not_established", True)}
    assert {item.step for item in verify(store=world.store).faults} == {5, 12, 13, 14}
    world.restore()
    assert record(world, 2)["settled"] == 7
    assert states(world) == sound and verify(store=world.store).problems == []
    assert set(StaleResolution.objects.values_list("how", flat=True)) == {"healed"}


def test_a_dispute_is_answered_and_accepted_and_no_author_judges(world: AttackWorld) -> None:
    """The claim of the dispute stays lowered until somebody independent accepts the answer."""
    claim, at = world.claim("duration"), world.later
    looked = ["quotation"]
    assert claim.disputed and claim.status == "not_established"
    with pytest.raises(DomainError, match="expected at most"):
        lower_claim(claim, "supported", reason="it is obvious", by=world.author, at=at)
    with pytest.raises(OwnWork, match="expected somebody who wrote none"):
        review(claim, verdict="accept", reason="I wrote it.", looked_at=looked, by=world.author, at=at)
    answer(world.review("duration"), "The machine was idle.", by=world.author, at=at + timedelta(minutes=1))
    assert world.claim("duration").disputed
    for link in (None, world.link("duration")):
        given: dict[str, Any] = {"link": link, "verdict": "accept", "reason": "It is said.", "looked_at": looked}
        review(claim, by=world.reviewer, at=at + timedelta(minutes=2), **given)
    claim = world.claim("duration")
    assert (claim.disputed, claim.status) == (False, "supported")
    assert verify(store=world.store).problems == []


def test_a_superseded_source_marks_until_a_person_settles(world: AttackWorld) -> None:
    """Each mark has a path from the source; only a person confirms what still computes."""
    newer = world.store.get(world.source("pilot.md").current.sha256) + b"A line more.\n"  # type: ignore[union-attr]
    add_source(world.study, "pilot.md", newer, origin="upload", reason="a line more", by=world.author, at=world.later)
    marks = list(open_marks(world.study))
    assert marks and all(mark.path[0] == ["source", str(world.source("pilot.md").uid)] for mark in marks)
    assert {mark.reason for mark in marks} == {"superseded: a line more"}
    of_claim = next(mark for mark in marks if mark.target_kind == CLAIM)
    later = world.later + timedelta(minutes=1)
    with pytest.raises(DomainError, match="only people confirm"):
        settle(of_claim, "confirmed", "by a script", by=service_actor("script"), at=later)
    settle(of_claim, "confirmed", "the rows are the same", by=world.author, at=later)
    assert not open_marks(world.study).filter(pk=of_claim.pk).exists()
    assert verify(store=world.store).problems == []


def test_reviewers_who_ask_at_once_never_get_the_same(world: AttackWorld) -> None:
    """Six threads, each a reviewer with a connection of its own, take from six links."""
    claim = world.claim("duration")
    for number, key in enumerate(("table.masked", "cost.tokens", "closure.items", "pilot.usable", "pilot.nonzero")):
        at = world.later + timedelta(minutes=number)
        add_link(claim, figure=Figure.objects.get(key=key), relation="background", by=world.author, at=at)
    people = [_reviewer(world, f"r{number}") for number in range(6)]
    assert len(set(_taken_at_once(world, people))) == 6


def _reviewer(world: AttackWorld, name: str) -> tuple[Principal, Actor]:
    user = User.objects.create(username=name)
    Membership.objects.create(study=world.study, user=user, role=Membership.REVIEWER)
    return Principal(user), person_actor(user)


def _taken_at_once(world: AttackWorld, people: list[tuple[Principal, Actor]]) -> list[str]:
    ready, taken, faults = threading.Barrier(len(people)), [], []

    def one(principal: Principal, by: Actor) -> None:
        try:
            ready.wait(20)
            row = queue.take(principal, world.study, "link", by=by, at=world.later + timedelta(hours=1))
            taken.append("" if row is None else row.item)
        except Exception as error:
            faults.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=one, args=person) for person in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not faults
    return taken
