"""Runs that a trainer elsewhere logs: begun, written to, ended, taken up again, deleted as a mark, linked to a plan.

Each function is one change in one transaction, with the head locked. Changes of state leave a transition,
a receipt on the study's chain and a line in the audit log; what is logged leaves its own append-only row
with time and actor. Callers check the right ``log.write`` in the study first.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from runs.actions.audit import record_change
from runs.actions.members import stream_of
from runs.actions.receipts import append_receipt
from runs.errors import DomainError, StaleTransition
from runs.metrics.sealing import seal
from runs.models import Actor, PlanVersion, Run, RunParameter, RunSegment, RunTag, Study, TrackedRun, TrackedTransition
from workbench.contracts.canonical import derive_uid
from workbench.contracts.chain import time_text

KEY_LENGTH, NAME_LENGTH, REASON_LENGTH = 500, 500, 2000
VALUE_LENGTH = 65_536  # characters of a parameter or a tag: kept whole or refused
LARGE_LENGTH = 2 * 1024 * 1024
KEYS_MOST = 10_000  # parameters of a run, and different tags of a run
DELETED, ACTIVE = "deleted", "active"
Tags = Mapping[str, str | None] | Mapping[str, str]


class ParameterChanged(DomainError):
    """A parameter has one value for good."""


class RunDeleted(DomainError):
    """The run is marked as deleted: restore it before anything is written to it."""


def checked_text(field: str, value: Any, limit: int, *, least: int = 1) -> str:
    """``value`` where it is text that can be kept whole. Raises ``DomainError``; nothing is ever shortened."""
    if not isinstance(value, str):
        raise DomainError(f"{field}: got {type(value).__name__}, expected text")
    if not least <= len(value) <= limit:
        raise DomainError(f"{field}: got {len(value)} characters, expected {least} to {limit}")
    if "\x00" in value or (not value.isascii() and any("\ud800" <= item <= "\udfff" for item in value)):
        raise DomainError(f"{field}: got a character that cannot be stored, expected plain text")
    return value


def locked(run: Run) -> TrackedRun:
    """Head of a logged run, locked until the transaction ends. Raises ``DomainError`` for a run made here."""
    head = TrackedRun.objects.select_for_update(of=("self",)).select_related("run", "study").filter(run=run).first()
    if head is None:
        raise DomainError(f"run: got {run.uid} of origin {run.origin}, expected a run that is logged from elsewhere")
    return head


def must_be_active(head: TrackedRun) -> None:
    """Raise ``RunDeleted`` for a run that is marked as deleted."""
    if head.deleted:
        raise RunDeleted(f"run: got {head.external_id}, which is deleted, expected an active run; restore it first")


def create_logged_run(
    study: Study,
    name: str,
    *,
    by: Actor,
    at: datetime,
    origin: str = Run.TRACKED,
    framework: str = "",
    started_at: datetime | None = None,
    tags: Mapping[str, str] | None = None,
    key: str | None = None,
) -> TrackedRun:
    """A run that is logged from now on (tracked), or whose files are read (imported).

    ``name`` empty: one is made from its uid. ``key``: its natural key in the study, random where None;
    the same key again is refused.
    """
    if origin not in (Run.TRACKED, Run.IMPORTED):
        raise DomainError(f"origin: got {origin!r}, expected {Run.TRACKED} or {Run.IMPORTED}")
    checked_text("name", name, NAME_LENGTH, least=0)
    checked_text("framework", framework, 32, least=0)
    uid = uuid.UUID(str(derive_uid(study.uid, f"logged:{key or uuid.uuid4().hex}")))
    name = name or f"run-{uid.hex[:8]}"
    with transaction.atomic():
        if key is not None and Run.objects.filter(uid=uid).exists():
            raise DomainError(f"key: got {key[:80]!r}, which a run of study {study.slug} has, expected a new one")
        run = Run(uid=uid, origin=origin, name=name[:200], seed="", created_at=at)
        run.save()
        head = TrackedRun(
            run=run, study=study, external_id=uid.hex, name=name, framework=framework,
            started_at=started_at or at, updated_at=at,
        )  # fmt: skip
        head.save(force_insert=True)
        RunSegment(run=run, ordinal=0, reason="begun", actor=by, at=at).save()
        TrackedTransition(run=run, from_state="", to_state=TrackedRun.RUNNING, actor=by, at=at).save()
        _set_tags(head, tags or {}, at)
        body = {"name": name, "origin": origin}
        append_receipt(stream_of(study), "logged_run.created", uid, body, actor=by, at=at)
        record_change("logged_run.created", by=by, at=at, subject=f"run {uid.hex} {name}", study=study)
    return head


def set_status(
    run: Run, status: str, *, by: Actor, at: datetime, ended_at: datetime | None = None, reason: str = ""
) -> TrackedRun:
    """Move a run to a status; the same one again only corrects ``ended_at``.

    Ending seals its points into chunks. An ended run that becomes running (or scheduled) again opens
    the next segment: what is logged from then on is a series of its own.
    """
    if status not in TrackedRun.STATES:
        raise DomainError(f"status: got {str(status)[:32]!r}, expected one of {', '.join(TrackedRun.STATES)}")
    checked_text("reason", reason, REASON_LENGTH, least=0)
    with transaction.atomic():
        head = locked(run)
        must_be_active(head)
        before = head.status
        ends, was_over = status in TrackedRun.ENDED, before in TrackedRun.ENDED
        if ends:
            head.ended_at = ended_at or (head.ended_at if was_over else None) or at
            seal(run, at=at)
        else:
            head.ended_at = None
        if was_over and not ends:
            head.segment += 1
            RunSegment(
                run=run, ordinal=head.segment, reason=reason or f"taken up after {before}", actor=by, at=at
            ).save()
        head.status, head.updated_at = status, at
        head.save(update_fields=["status", "ended_at", "segment", "updated_at"])
        if before != status:
            _moved(head, before, status, reason, by, at)
    return head


def _moved(head: TrackedRun, before: str, after: str, reason: str, by: Actor, at: datetime) -> None:
    """A transition with its receipt and its line in the audit log."""
    TrackedTransition(run=head.run, from_state=before, to_state=after, reason=reason, actor=by, at=at).save()
    body: dict[str, Any] = {"from": before, "to": after, "segment": head.segment, "reason": reason}
    if head.ended_at is not None:
        body["ended_at"] = time_text(head.ended_at)
    append_receipt(stream_of(head.study), "logged_run.moved", head.run.uid, body, actor=by, at=at)
    subject = f"run {head.external_id} {head.name}"
    record_change("logged_run.moved", by=by, at=at, subject=subject, study=head.study, detail=f"{before} -> {after}")


def rename(run: Run, name: str, *, by: Actor, at: datetime) -> TrackedRun:
    """Give a run another name; the name that it was created with stays in its receipt."""
    checked_text("name", name, NAME_LENGTH)
    with transaction.atomic():
        head = locked(run)
        must_be_active(head)
        before = head.name
        if before != name:
            head.name, head.updated_at = name, at
            head.save(update_fields=["name", "updated_at"])
            body = {"from": before, "to": name}
            append_receipt(stream_of(head.study), "logged_run.renamed", run.uid, body, actor=by, at=at)
            detail = f"{before} -> {name}"
            record_change("logged_run.renamed", by=by, at=at, subject=f"run {head.external_id}", study=head.study,
                          detail=detail)  # fmt: skip
    return head


def set_deleted(run: Run, deleted: bool, *, by: Actor, at: datetime) -> TrackedRun:
    """Mark a run as deleted, or take the mark away. Nothing that it logged is removed; the same again is no change."""
    with transaction.atomic():
        head = locked(run)
        if head.deleted != deleted:
            head.deleted, head.updated_at = deleted, at
            head.save(update_fields=["deleted", "updated_at"])
            before, after = (ACTIVE, DELETED) if deleted else (DELETED, ACTIVE)
            _moved(head, before, after, "", by, at)
    return head


def link_plan(run: Run, version: PlanVersion, *, by: Actor, at: datetime, reason: str) -> TrackedRun:
    """Say that a run belongs to a frozen plan of its study. It stays a run from elsewhere and fills no figure.

    Raises ``DomainError`` for a plan of another study, ``StaleTransition`` where another one is linked.
    """
    checked_text("reason", reason, REASON_LENGTH)
    with transaction.atomic():
        head = locked(run)
        must_be_active(head)
        if version.plan.study_id != head.study_id:
            raise DomainError(
                f"plan: got {version.uid} of study {version.plan.study.slug}, expected one of study {head.study.slug}"
            )
        if head.linked_plan_id not in (None, version.pk):
            raise StaleTransition(f"run {head.external_id}: it is linked to another plan already")
        if head.linked_plan_id is None:
            head.linked_plan, head.updated_at = version, at
            head.save(update_fields=["linked_plan", "updated_at"])
            TrackedTransition(
                run=run, from_state="exploratory", to_state="linked", reason=reason, actor=by, at=at
            ).save()
            body = {"plan_version": str(version.uid), "plan_sha256": version.sha256, "reason": reason}
            append_receipt(stream_of(head.study), "logged_run.linked", run.uid, body, actor=by, at=at)
            record_change("logged_run.linked", by=by, at=at, subject=f"run {head.external_id}", study=head.study,
                          detail=f"plan {version.uid}")  # fmt: skip
    return head


def set_framework(run: Run, framework: str, *, at: datetime) -> None:
    """Say which trainer's names the run uses; "" for unknown."""
    checked_text("framework", framework, 32, least=0)
    TrackedRun.objects.filter(run=run).exclude(framework=framework).update(framework=framework, updated_at=at)


def log_parameters(head: TrackedRun, parameters: Mapping[str, str], *, at: datetime) -> int:
    """Store parameters that are new; returns how many. The same value again is no change.

    Call with the head locked. Raises ``ParameterChanged`` for another value; then nothing is stored.
    """
    must_be_active(head)
    for key, value in parameters.items():
        checked_text("key", key, KEY_LENGTH)
        checked_text(f"value of {key[:80]}", value, VALUE_LENGTH, least=0)
    stored: dict[str, str] = {}
    keys = list(parameters)
    for start in range(0, len(keys), 500):
        rows = RunParameter.objects.filter(run=head.run, key__in=keys[start : start + 500])
        stored.update(rows.values_list("key", "value"))
    for key, value in stored.items():
        if parameters[key] != value:
            raise ParameterChanged(
                f"{key[:80]}: got {parameters[key][:80]!r}, expected {value[:80]!r}, which was logged before"
            )
    fresh = [RunParameter(run=head.run, key=key, value=parameters[key], at=at) for key in keys if key not in stored]
    if fresh and RunParameter.objects.filter(run=head.run).count() + len(fresh) > KEYS_MOST:
        raise DomainError(f"parameters: got more than {KEYS_MOST} in one run, expected fewer")
    RunParameter.objects.bulk_create(fresh, batch_size=200)
    return len(fresh)


def set_tags(head: TrackedRun, tags: Tags, *, at: datetime) -> int:
    """Set tags, None takes one away; returns how many changed. Call with the head locked."""
    must_be_active(head)
    return _set_tags(head, tags, at)


def store_large_tags(head: TrackedRun, tags: Mapping[str, str], *, at: datetime) -> int:
    """``set_tags`` for values of up to ``LARGE_LENGTH``: descriptions of data sets. Call with the head locked."""
    must_be_active(head)
    return _set_tags(head, tags, at, limit=LARGE_LENGTH)


def _set_tags(head: TrackedRun, tags: Tags, at: datetime, limit: int = VALUE_LENGTH) -> int:
    if not tags:
        return 0
    for key, value in tags.items():
        checked_text("key", key, KEY_LENGTH)
        if value is not None:
            checked_text(f"value of {key[:80]}", value, limit, least=0)
    current = tags_of(head.run)
    fresh = [
        RunTag(run=head.run, key=key, value=value, at=at) for key, value in tags.items() if current.get(key) != value
    ]
    if len(current) + len(fresh) > KEYS_MOST:
        raise DomainError(f"tags: got more than {KEYS_MOST} in one run, expected fewer")
    RunTag.objects.bulk_create(fresh, batch_size=200)
    return len(fresh)


def tags_of(run: Run) -> dict[str, str]:
    """Standing tags of a run: the newest of each key, without those taken away."""
    newest = dict(RunTag.objects.filter(run=run).order_by("id").values_list("key", "value"))
    return {key: value for key, value in newest.items() if value is not None}
