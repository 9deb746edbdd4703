"""Marks on what no longer rests on what it was bound to, and how each is settled.

A mark is opened where a source is superseded or drifts or a figure recomputes to another value. It stays until the
dependant binds current evidence (``rebind``), a person confirms it with a note (``settle``), or the cause is gone
(``heal``). Marks and resolutions are records of the study's evidence stream; ``stale`` on heads follows from them.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F, Max, QuerySet

from evidence.actions.record import append, lock_evidence, record_uid
from evidence.models import Claim, ClaimFigure, Figure, Link, Source, StaleMark, StaleResolution
from evidence.models.base import stream_of
from evidence.propagation import (
    CLAIM,
    EXCERPT,
    FIGURE,
    SECTION,
    SOURCE,
    VERSION,
    cause_of,
    chunks,
    dependants,
    names_of_section,
    sections_naming,
    study_of_cause,
)
from runs.errors import DomainError
from runs.models import Actor, Receipt, Study
from workbench.blobs import BlobStore

REBOUND, CONFIRMED, HEALED = StaleResolution.HOW
REASON_LEAST, REASON_MOST = 3, 4000
HEADS: tuple[tuple[str, Any], ...] = ((FIGURE, Figure), (CLAIM, Claim))
PLACES = (SOURCE, VERSION, EXCERPT)  # causes that are a place in bytes; the others are a value
Target = tuple[str, str]  # (kind, uid)


def _text(name: str, value: str) -> str:
    found = value.strip()
    if not REASON_LEAST <= len(found) <= REASON_MOST or "\x00" in found:
        raise DomainError(f"{name}: got {len(found)} characters, expected {REASON_LEAST} to {REASON_MOST}")
    return found


def open_marks(study: Study | None = None) -> QuerySet[StaleMark]:
    """Marks that nothing has settled, oldest first."""
    rows = StaleMark.objects.filter(resolution__isnull=True).order_by("pk")
    return rows if study is None else rows.filter(study=study)


def mark_changed(
    kind: str, uid: uuid.UUID | str, reason: str, *, by: Actor, at: datetime, store: BlobStore | None = None
) -> int:
    """Mark every figure, claim and section that rests on what has changed; how many marks were opened.

    ``kind``: source (superseded), version (its bytes drifted or are gone), excerpt, figure, claim, plan, receipt.
    A dependant is not marked twice for one change: not where an open mark of the same cause names it, and not where
    the cause is itself marked by a change that has marked the dependant. Raises ``DomainError`` for an
    unknown cause or an empty reason.
    """
    said = _text("reason", reason)
    study = study_of_cause(kind, uid)
    cause_kind, cause_uid = cause_of(kind, uid)
    with transaction.atomic():
        lock_evidence(study)
        paths = dependants(cause_kind, cause_uid, store=store)
        earlier, marked = _marks_of((cause_kind, cause_uid))
        marked |= _covered(study, (cause_kind, cause_uid))
        new = [path for path in paths if (path.kind, path.uid) not in marked]
        for path in new:
            number = earlier.get((path.kind, path.uid), 0) + 1
            append(
                StaleMark(
                    uid=record_uid(path.uid, "stale_mark", f"{cause_kind}:{cause_uid}:{number}"),
                    study=study, actor=by, at=at, cause_kind=cause_kind, cause_uid=uuid.UUID(cause_uid),
                    target_kind=path.kind, target_uid=uuid.UUID(path.uid),
                    path=[list(step) for step in path.steps], reason=said,
                )
            )  # fmt: skip
        project_stale(study, {(path.kind, path.uid) for path in new}, at=at)
        return len(new)


def _marks_of(cause: Target) -> tuple[dict[Target, int], set[Target]]:
    """(how many marks of this cause each target has had, targets of those that are open)."""
    earlier: dict[Target, int] = {}
    marked: set[Target] = set()
    same = StaleMark.objects.filter(cause_kind=cause[0], cause_uid=cause[1])
    for kind, uid, resolution in same.values_list("target_kind", "target_uid", "resolution__pk"):
        target = (kind, str(uid))
        earlier[target] = earlier.get(target, 0) + 1
        if resolution is None:
            marked.add(target)
    return earlier, marked


def _covered(study: Study, cause: Target) -> set[Target]:
    """What is marked already by the change that the cause itself is marked by: one change, one mark of each target."""
    above = open_marks(study).filter(target_kind=cause[0], target_uid=cause[1])
    roots = list(above.values_list("cause_uid", flat=True))
    if not roots:
        return set()
    rows = open_marks(study).filter(cause_uid__in=roots).values_list("target_kind", "target_uid")
    return {(kind, str(uid)) for kind, uid in rows}


def settle(mark: StaleMark, how: str, note: str, *, by: Actor, at: datetime) -> StaleResolution:
    """Settle one mark: a person confirms that the dependant still holds, with a note.

    ``how`` rebound needs a dependant that binds current evidence by now. Raises ``DomainError`` for a mark that is
    settled, one that is not rebound, a confirmation that no person gives, or an empty note.
    """
    if how not in (REBOUND, CONFIRMED):
        raise DomainError(
            f"how: got {how[:40]!r}, expected rebound or confirmed; bytes that are back heal by themselves"
        )
    said = _text("note", note) if how == CONFIRMED else note.strip()[:REASON_MOST]
    if how == CONFIRMED:
        _must_be_person(by)
    with transaction.atomic():
        lock_evidence(mark.study)
        if StaleResolution.objects.filter(mark=mark).exists():
            raise DomainError(f"mark: got {mark.uid}, which is settled, expected an open one")
        if how == REBOUND and mark not in _rebound([mark]):
            raise DomainError(
                f"how: got rebound, but the {mark.target_kind} still rests on what changed; bind it to current "
                "evidence, or confirm it with a note"
            )
        if how == CONFIRMED:
            _must_compute(mark)
        found = _resolve(mark, how, said, by=by, at=at)
        project_stale(mark.study, {(mark.target_kind, str(mark.target_uid))}, at=at)
        return found


def _must_be_person(by: Actor) -> None:
    if by.kind != Actor.PERSON:
        raise DomainError(f"actor: got the service {by.name}, expected a person; only people confirm")


def _must_compute(mark: StaleMark) -> None:
    """Nobody confirms a number that is another one by now. Raises ``DomainError`` naming the figures."""
    from evidence.actions.recomputing import outdated_figures

    target = {str(mark.target_uid)}
    figures = Figure.objects.filter(uid__in=target) if mark.target_kind == FIGURE else Figure.objects.none()
    claims = Claim.objects.filter(uid__in=target) if mark.target_kind == CLAIM else Claim.objects.none()
    if mark.target_kind == SECTION:
        keys = names_of_section(mark.study, mark.target_uid)
        figures = Figure.objects.filter(study=mark.study, key__in=keys.figures)
        claims = Claim.objects.filter(study=mark.study, key__in=keys.claims)
    pks = (list(figures.values_list("pk", flat=True)), list(claims.values_list("pk", flat=True)))
    found = outdated_figures(mark.study, *pks)
    if found:
        raise DomainError(
            f"how: got confirmed, but the {mark.target_kind} rests on what does not compute as shown "
            f"({found[0][:300]}), expected rebound: bind the figure to what it is now, and words to the figure; a "
            "confirmation cannot do it"
        )


def rebind(kind: str, uid: uuid.UUID | str, *, by: Actor, at: datetime) -> int:
    """Settle what a new version of a figure, claim or notes has bound to current evidence; how many marks.

    ``kind`` figure, claim or section (or study: every open mark of it). Marks of the same cause further along are
    looked at too: a section is current again once the figures that it names are.
    """
    rows = open_marks()
    if kind == "study":
        rows = rows.filter(study__uid=uid)
    else:
        mine = rows.filter(target_kind=kind, target_uid=uid).values_list("cause_uid", flat=True)
        rows = rows.filter(cause_uid__in=list(mine))
    first = rows.select_related("study").first()
    if first is None:
        return 0
    with transaction.atomic():
        lock_evidence(first.study)
        settled = _rebound(rows.select_related("study"))
        for mark in settled:
            _resolve(mark, REBOUND, "", by=by, at=at)
        project_stale(first.study, {(mark.target_kind, str(mark.target_uid)) for mark in settled}, at=at)
        return len(settled)


def heal(kind: str, uid: uuid.UUID | str, *, by: Actor, at: datetime, note: str = "") -> int:
    """The cause is gone (the bytes are back, the value is again what it was): settle its open marks; how many."""
    cause_kind, cause_uid = cause_of(kind, uid)
    rows = open_marks().filter(cause_kind=cause_kind, cause_uid=cause_uid).select_related("study")
    first = rows.first()
    if first is None:
        return 0
    with transaction.atomic():
        lock_evidence(first.study)
        marks = list(rows)
        for mark in marks:
            _resolve(mark, HEALED, note.strip()[:REASON_MOST], by=by, at=at)
        project_stale(first.study, {(mark.target_kind, str(mark.target_uid)) for mark in marks}, at=at)
        return len(marks)


def heal_figures(study: Study, uids: Collection[uuid.UUID], *, by: Actor, at: datetime, note: str) -> None:
    """Settle what figures had marked that give their stored values again; one query for any number of them."""
    marks: list[StaleMark] = []
    for part in chunks(uids):
        marks.extend(open_marks(study).filter(cause_kind=FIGURE, cause_uid__in=part).select_related("study"))
    for mark in marks:
        _resolve(mark, HEALED, note, by=by, at=at)
    if marks:
        project_stale(study, {(mark.target_kind, str(mark.target_uid)) for mark in marks}, at=at)


def _resolve(mark: StaleMark, how: str, note: str, *, by: Actor, at: datetime) -> StaleResolution:
    uid = record_uid(mark.uid, "stale_resolution", how)
    return append(StaleResolution(uid=uid, study=mark.study, actor=by, at=at, mark=mark, how=how, note=note))


def _rebound(marks: Iterable[StaleMark]) -> list[StaleMark]:
    """Those marks whose target rests on its cause no longer.

    A changed place (source, version, excerpt): no path leads from it to the target. A changed value (figure, claim,
    plan, receipt): the target has a version that was recorded after the mark. A claim must show current versions
    of all its figures besides, and a section name no claim that does not.
    """
    by_cause: dict[tuple[str, str], list[StaleMark]] = {}
    for mark in marks:
        by_cause.setdefault((mark.cause_kind, str(mark.cause_uid)), []).append(mark)
    found: list[StaleMark] = []
    for cause, same in by_cause.items():
        outdated = [(CLAIM, uid) for uid in _outdated({str(m.target_uid) for m in same if m.target_kind == CLAIM})]
        held: set[Target] = set(outdated)
        if cause[0] in PLACES:
            held |= {(path.kind, path.uid) for path in dependants(*cause, superseded_only=cause[0] == SOURCE)}
            held |= {(SECTION, uid) for uid in sections_naming(same[0].study, outdated)}
        else:
            newer = _versions_after(same)
            held |= {(mark.target_kind, str(mark.target_uid)) for mark in same if mark.pk not in newer}
        found.extend(mark for mark in same if (mark.target_kind, str(mark.target_uid)) not in held)
    return found


def _outdated(claims: Collection[str]) -> list[str]:
    """Claims whose words show a version of a figure that is not its current one."""
    found: list[str] = []
    for part in chunks(claims):
        rows = ClaimFigure.objects.filter(version__claim__uid__in=part, version=F("version__claim__current"))
        stale = rows.exclude(figure_version=F("figure__current")).values_list("version__claim__uid", flat=True)
        found.extend(str(uid) for uid in stale)
    return found


def _versions_after(marks: Collection[StaleMark]) -> set[int]:
    """Marks whose target has a version that the study's receipts tell of after the mark."""
    if not marks:
        return set()
    study = next(iter(marks)).study
    newest: dict[Target, uuid.UUID | None] = {}
    for kind, model in HEADS:
        for part in chunks(str(mark.target_uid) for mark in marks if mark.target_kind == kind):
            for uid, version in model.objects.filter(uid__in=part).values_list("uid", "current__uid"):
                newest[(kind, str(uid))] = version
    notes = Receipt.objects.filter(stream=stream_of(study), kind="evidence.notes_version")
    notes_seq = notes.aggregate(newest=Max("seq"))["newest"] or 0
    seqs: dict[str, int] = {}
    wanted = {str(mark.uid) for mark in marks} | {str(uid) for uid in newest.values() if uid}
    for part in chunks(wanted):
        rows = Receipt.objects.filter(stream=stream_of(study), subject_uid__in=part)
        for subject, seq in rows.values_list("subject_uid", "seq"):
            seqs[str(subject)] = max(seq, seqs.get(str(subject), 0))
    found = set()
    for mark in marks:
        version = newest.get((mark.target_kind, str(mark.target_uid)))
        seq = notes_seq if mark.target_kind == SECTION else seqs.get(str(version), 0)
        if seq > seqs.get(str(mark.uid), 0):
            found.add(mark.pk)
    return found


def stale_targets(study: Study) -> set[Target]:
    """(kind, uid) of everything in a study that an open mark names."""
    rows = open_marks(study).values_list("target_kind", "target_uid")
    return {(kind, str(uid)) for kind, uid in rows}


def project_stale(study: Study, targets: Collection[Target], *, at: datetime) -> None:
    """Set ``stale`` of figures and claims from their open marks; derive what claims on them may say again."""
    standing: set[Target] = set()
    for part in chunks(uid for _, uid in targets):
        rows = open_marks(study).filter(target_uid__in=part)
        standing |= {(kind, str(uid)) for kind, uid in rows.values_list("target_kind", "target_uid")}
    for kind, model in HEADS:
        for value in (True, False):
            for part in chunks(uid for found, uid in targets if found == kind and ((found, uid) in standing) == value):
                model.objects.filter(uid__in=part).update(stale=value)
    claims = {uid for kind, uid in targets if kind == CLAIM}
    for part in chunks(uid for kind, uid in targets if kind == FIGURE):  # a claim's status reads its figures' flags
        shown = ClaimFigure.objects.filter(figure__uid__in=part, version=F("version__claim__current"))
        claims.update(str(uid) for uid in shown.values_list("version__claim__uid", flat=True))
        linked = Link.objects.filter(figure__uid__in=part, withdrawal__isnull=True)
        claims.update(str(uid) for uid in linked.values_list("claim__uid", flat=True))
    _refresh(sorted(claims), at=at)


def _refresh(claims: Collection[str], *, at: datetime) -> None:
    if not claims:
        return
    from evidence.status import refresh_claim

    for part in chunks(claims):
        for claim in Claim.objects.filter(uid__in=part).order_by("pk"):
            refresh_claim(claim, at=at)


def source_of(mark: StaleMark) -> Source | None:
    """The source at the beginning of a mark's path, where there is one."""
    found: Any = None
    if mark.cause_kind == "source":
        found = Source.objects.filter(uid=mark.cause_uid).first()
    elif mark.cause_kind == "version":
        found = Source.objects.filter(versions__uid=mark.cause_uid).first()
    return found
