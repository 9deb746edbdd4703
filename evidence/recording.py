"""Writes down what has changed in evidence: checks of sources, states of excerpts and figures, marks, statuses.

``verify`` reads and names; this writes, in the order in which evidence rests on evidence: bytes, excerpts, figures,
claims. Both ask the same functions, so that what is written is what ``verify`` finds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from evidence.actions.excerpts import check_excerpt
from evidence.actions.figures import refresh_figures
from evidence.actions.record import lock_evidence
from evidence.actions.stale import rebind
from evidence.actions.versions import check_version
from evidence.binding.figures import recompute
from evidence.binding.places import place_of
from evidence.checks.evidence_bytes import excerpts_by_source, hash_missing, newest_checks, state_now, versions
from evidence.checks.evidence_figures import figures
from evidence.hashing import Held
from evidence.models import Claim, ExcerptHead, Source, SourceCheck, SourceVersion, StaleMark, StaleResolution
from evidence.status import derive, refresh_claim
from runs.models import Actor, Study
from runs.storage import blob_store
from workbench.blobs import BlobStore
from workbench.celery import app

CHUNK = 200
TASK = "worker.tasks.record_evidence"
logger = logging.getLogger(__name__)
Progress = Callable[[str, int], None]


@dataclass
class Recorded:
    """What a pass wrote: how many sources, excerpts, figures and claims changed; marks opened and settled."""

    sources: int = 0
    excerpts: int = 0
    figures: int = 0
    claims: int = 0
    opened: int = 0
    settled: int = 0

    def as_json(self) -> dict[str, int]:
        """Plain values for commands and pages."""
        return asdict(self)


def record_checks(
    *, store: BlobStore, by: Actor, at: datetime, study: Study | None = None, on_progress: Progress | None = None
) -> Recorded:
    """Look at all evidence (of one study, or of every one) and write what differs from what is stored.

    Each change commits by itself with its receipts, so that a pass that stops half way leaves nothing half done and
    the next one goes on. Nothing is written where nothing has changed.
    """
    say = on_progress or (lambda _what, _count: None)
    found = Recorded()
    before = StaleMark.objects.count(), StaleResolution.objects.count()
    found.sources = _sources(store, study, by, at)
    say("sources", found.sources)
    found.excerpts = _excerpts(study, at)
    say("excerpts", found.excerpts)
    found.figures = _figures(study, by, at)
    say("figures", found.figures)
    for row in Study.objects.filter(pk=study.pk) if study else Study.objects.all():
        rebind("study", row.uid, by=by, at=at)
    found.claims = _claims(study, at)
    say("claims", found.claims)
    found.opened = StaleMark.objects.count() - before[0]
    found.settled = StaleResolution.objects.count() - before[1]
    return found


def _sources(store: BlobStore, study: Study | None, by: Actor, at: datetime) -> int:
    rows = versions() if study is None else versions().filter(study=study)
    every = list(rows.filter(held=True))
    hashed = hash_missing({}, (version.sha256 for version in every), store)
    last = newest_checks()
    changed = 0
    for version in every:
        held, check = hashed[version.sha256], last.get(version.pk)
        if not _is_recorded(version, state_now(version, hashed, check), held, check):
            check_version(version, by=by, at=at)
            changed += 1
    return changed


def _is_recorded(version: SourceVersion, state: str, held: Held, check: SourceCheck | None) -> bool:
    """Whether the newest check and the source's head say what was found."""
    if version.source.current_id == version.pk and version.source.state != state:
        return False
    if state != (check.state if check else Source.VERIFIED):
        return False
    other_bytes = check is not None and state == Source.DRIFTED and not held.intact
    return not other_bytes or held.found == check.found_sha256  # drifted already, and by now to something else


def _excerpts(study: Study | None, at: datetime) -> int:
    changed = 0
    for excerpt, cache in excerpts_by_source(study):
        place, head = place_of(excerpt, cache), getattr(excerpt, "head", None)
        found: Any = (place.state, place.first_line, place.last_line)
        lines = place.state in (ExcerptHead.FOUND, ExcerptHead.MOVED)
        if (
            head is None
            or head.state != place.state
            or (lines and found != (head.state, head.first_line, head.last_line))
        ):
            check_excerpt(excerpt, at=at)
            changed += 1
    return changed


def _figures(study: Study | None, by: Actor, at: datetime) -> int:
    wrong: dict[Study, list[str]] = {}
    for figure, resolver in figures(study):
        if recompute(figure, resolver).state != figure.state:
            wrong.setdefault(figure.study, []).append(str(figure.uid))
    for owner, uids in wrong.items():
        refresh_figures(owner, uids, by=by, at=at)
    return sum(map(len, wrong.values()))


def _claims(study: Study | None, at: datetime) -> int:
    rows = Claim.objects.select_related("study").order_by("pk")
    changed = 0
    for claim in (rows if study is None else rows.filter(study=study)).iterator(chunk_size=CHUNK):
        found = derive(claim)
        now = (claim.status, claim.cap, claim.disputed, claim.provisional)
        if now != (found.status, found.cap, found.disputed, found.provisional):
            with transaction.atomic():
                lock_evidence(claim.study)
                refresh_claim(claim, at=at)
            changed += 1
    return changed


def request_recording(study: Study, *, by: Actor) -> None:
    """Have a worker look at a study's evidence once the transaction has committed.

    A message that is lost changes nothing: the next request, or ``verify --record``, finds the same.
    """
    study_id, actor_id = study.pk, by.pk

    def send() -> None:
        try:
            app.send_task(TASK, args=[study_id, actor_id], queue="io", retry=False)
        except Exception as error:  # any transport error
            logger.warning("evidence of study %s was not sent to be looked at: %s", study_id, error)

    transaction.on_commit(send, robust=True)


def record_study(study_id: int, actor_id: int, *, at: datetime) -> Recorded:
    """What the message asks for."""
    study, by = Study.objects.get(pk=study_id), Actor.objects.get(pk=actor_id)
    return record_checks(store=blob_store(), by=by, at=at, study=study)
