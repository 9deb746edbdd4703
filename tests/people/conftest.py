"""A private study with everything in it, a person for each role, and a second study whose admin is a stranger here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.db import transaction
from django.utils import timezone
from pytest_django import DjangoDbBlocker

from runs.access import SCOPES
from runs.actions.actors import person_actor
from runs.actions.plans import save_draft
from runs.actions.record_metrics import write_points
from runs.actions.studies import create_study, set_visibility
from runs.actions.tokens import issue_token
from runs.actions.tracked_files import put_artifact
from runs.actions.tracking import create_logged_run
from runs.metrics.store import LoggedPoint, log_points
from runs.models import (
    Checkpoint,
    Group,
    Job,
    Membership,
    MetricSeries,
    Receipt,
    Run,
    Task,
    TaskSet,
    Trajectory,
    Turn,
    UpdateBatch,
    User,
)
from runs.presenters.layers.cards import cards_of
from runs.presenters.layers.quantities import quantities_of
from runs.storage import blob_store
from tests.branches.rows import branch_on
from tests.controls.rows import controls_on
from tests.evidence_rows import add_evidence
from tests.pages import elsewhere
from tests.pages.state import World
from tests.pages.world import build
from tests.people import rights_edit_pages, rights_reviews, rights_trials
from workbench.contracts.canonical import derive_uid
from workbench.contracts.records import MetricRecord

PASSWORD = "correct horse battery"
ROLES = ("nobody", "stranger", "viewer", "researcher", "reviewer", "worker", "admin", "site")


@dataclass
class Place:
    """The two studies. ``parts``: what addresses name, all of it in the private study. ``secrets``: tokens by role."""

    world: World
    people: dict[str, User] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    parts: dict[str, Any] = field(default_factory=dict)


def _held_checkpoint(run: Run) -> Checkpoint:
    """A policy of the run whose bytes lie in the store, so that a download can succeed."""
    last = Checkpoint.objects.filter(run=run).order_by("-policy_version").first()
    assert last is not None
    sha256, version = blob_store().put(b"adapter bytes of nobody"), last.policy_version + 100
    return Checkpoint.objects.create(
        uid=derive_uid(run.uid, f"checkpoint:{version}"),
        run=run,
        parent=last,
        sha256=sha256,
        policy_version=version,
        kind="update",
        base_model_sha256=last.base_model_sha256,
        tokenizer_sha256=last.tokenizer_sha256,
        adaptation=last.adaptation,
        blob_bytes=23,
        created_at=last.created_at,
    )


def _series(run: Run) -> str:
    """A series of the run with one point."""
    point = MetricRecord("l1.loss/1", "train", "train", {}, 0.5, 1, 0, 0, None, None, None)
    write_points(run, [point], segment="", at=run.created_at, wall_seconds=None)
    return str(MetricSeries.objects.get(run=run).uid)


def _logged(world: World) -> dict[str, Any]:
    """A run that was logged from elsewhere, with one file and one point."""
    actor, at = world.study.created_by, timezone.now()
    head = create_logged_run(world.study, "from elsewhere", by=actor, at=at, tags={"mlflow.runName": "from elsewhere"})
    put_artifact(head.run, "a.txt", [b"bytes"], limit=100, at=at)
    log_points(head.run, [LoggedPoint("loss", 0.5, 1, 1)], source="api", actor=actor, at=at)
    return {"logged": head.external_id, "logged_uid": head.run.uid}


def _layers(world: World) -> dict[str, Any]:
    """A quantity that two runs share, a card of one of them, and a foreign rollout of the logged run."""
    pair = [world.runs["e3-s17"], world.runs["e2f-s17"]]
    for run in pair:
        elsewhere.write(run, "l1.grad_norm", [1.0, 2.0])
    quantity = next(item for item in quantities_of(pair) if item.definition == "l1.grad_norm/1")
    foreign = elsewhere.imported(world.study, timezone.now(), [elsewhere.item(1)])
    return {
        "shared": quantity.key,
        "card": next(card.key for cards in cards_of(pair[0]).values() for card in cards),
        "foreign_run": foreign.run.uid,
        "foreign": foreign.run.imported_rollouts.get().uid,
    }


def _parts(world: World) -> dict[str, Any]:
    run = world.runs["e3-s17"]
    group = Group.objects.filter(run=run, purpose="train").order_by("pk").first()
    trajectory = Trajectory.objects.filter(group=group).order_by("slot").first()
    turn = Turn.objects.filter(trajectory=trajectory).exclude(capture_sha256=None).order_by("decision").first()
    receipt = Receipt.objects.filter(stream=f"run:{run.uid}").first()
    checkpoint = _held_checkpoint(run)
    job, task_set, task = Job.objects.filter(run=run).first(), TaskSet.objects.first(), Task.objects.first()
    sibling = Trajectory.objects.filter(group=group).order_by("slot").last()
    found = (group, trajectory, sibling, turn, receipt, job, task_set, task)
    assert None not in found
    return {
        "study": world.study.slug,
        "study_uid": world.study.uid,
        "study_pk": world.study.pk,
        **_logged(world),
        "plan": world.plan.slug,
        "plan_uid": world.plan.uid,
        "version_uid": world.version.uid,
        "plan_sha": world.version.sha256,
        "execution": world.execution.uid,
        "run": run.uid,
        "run_name": run.name,
        "series": _series(run),
        "update": UpdateBatch.objects.filter(run=run).order_by("batch")[0].uid,
        "other_run": world.runs["e2f-s17"].uid,
        "group": group.uid,  # type: ignore[union-attr]
        "group_sha": group.record_sha256,  # type: ignore[union-attr]
        "trajectory": trajectory.uid,  # type: ignore[union-attr]
        "sibling": sibling.uid,  # type: ignore[union-attr]
        "capture": turn.capture_sha256,  # type: ignore[union-attr]
        "receipt": receipt.sha256,  # type: ignore[union-attr]
        "checkpoint": checkpoint.uid,
        "adapter": checkpoint.sha256,
        "job": job.uid,  # type: ignore[union-attr]
        "task_set": task_set.sha256,  # type: ignore[union-attr]
        "task_set_uid": task_set.uid,  # type: ignore[union-attr]
        "task": task.uid,  # type: ignore[union-attr]
        "branch": branch_on(trajectory, timezone.now()).uid,  # type: ignore[arg-type]
        "controls": controls_on(task_set, timezone.now()).uid,  # type: ignore[arg-type]
        **_layers(world),
        **rights_reviews.parts(world),
        **rights_trials.parts(group, trajectory),
        **rights_edit_pages.parts(trajectory),  # type: ignore[arg-type]
    }


def _build() -> Place:
    place = Place(build(batches=1))
    now = timezone.now()
    for role in ROLES[1:]:
        person = User.objects.create_user(role, password=PASSWORD, is_superuser=role == "site")
        place.people[role] = person
        if role not in ("stranger", "site"):
            Membership.objects.create(study=place.world.study, user=person, role=role)
        secret = issue_token(person, name="all", scopes=SCOPES, expires_at=now + timedelta(days=1), at=now)[1]
        place.secrets[role] = secret
    set_visibility(place.world.study, "private", by=place.people["site"], at=now)
    place.world.study.refresh_from_db()
    create_study("elsewhere", title={"en": "Elsewhere"}, summary={}, by=place.people["stranger"], at=now)
    actor = person_actor(place.people["researcher"])
    draft = save_draft(place.world.study, "draft", place.world.plan.draft_text, by=actor, at=now)
    place.parts = {**_parts(place.world), "draft": draft.slug, "draft_uid": draft.uid}
    people = place.people
    place.parts |= add_evidence(place.world.study, people["researcher"], people["reviewer"], now - timedelta(hours=1))
    place.parts |= {f"{role}_pk": person.pk for role, person in place.people.items()}
    return place


@pytest.fixture(scope="package")
def place(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Place]:
    """Built once; the rows vanish with the outer transaction."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield _build()
        transaction.set_rollback(True)


@pytest.fixture(autouse=True)
def empty_counters() -> None:
    """Every test begins with its whole rate limits."""
    cache.clear()
