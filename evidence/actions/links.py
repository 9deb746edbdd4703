"""Links: a claim and one piece of evidence, added and withdrawn. Callers check ``evidence.write`` first."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from evidence.actions.claims import EFFECTS, _locked, _reason
from evidence.actions.record import append, lock_evidence, record_uid
from evidence.models import Claim, ClaimVersion, Excerpt, Figure, Link, LinkWithdrawal, Source
from evidence.status import refresh_claim
from runs.errors import DomainError
from runs.models import Actor

REACH_MOST = 4000
SUPPORTS, CONTRADICTS, BOUNDS, BACKGROUND = Link.RELATIONS


def add_link(
    claim: Claim,
    *,
    excerpt: Excerpt | None = None,
    figure: Figure | None = None,
    relation: str,
    reach_en: str = "",
    reach_zh: str = "",
    by: Actor,
    at: datetime,
) -> Link:
    """Join a claim and an excerpt or a figure. ``reach``: what the evidence cannot show.

    Raises ``DomainError`` for evidence of another study, a link that stands already, a figure that cannot carry the
    claim, or a quotation of a version that was superseded.
    """
    if relation not in Link.RELATIONS:
        raise DomainError(f"relation: got {relation[:32]!r}, expected one of {', '.join(Link.RELATIONS)}")
    if (excerpt is None) == (figure is None):
        got = "neither" if excerpt is None else "both"
        raise DomainError(f"evidence: got {got}, expected an excerpt or a figure, and one of them")
    reach = {"reach_en": reach_en.strip(), "reach_zh": reach_zh.strip()}
    for name, text in reach.items():
        if len(text) > REACH_MOST or "\x00" in text:
            raise DomainError(f"{name}: got {len(text)} characters, expected at most {REACH_MOST}")
    with transaction.atomic():
        lock_evidence(claim.study)
        claim = _locked(claim)
        assert claim.current is not None
        _must_reach(claim.current, relation, excerpt, figure)
        evidence = excerpt or figure
        assert evidence is not None
        if evidence.study_id != claim.study_id:
            raise DomainError(f"evidence: got {evidence.key} of another study, expected one of {claim.study.slug}")
        same = Link.objects.filter(claim=claim, excerpt=excerpt, figure=figure, relation=relation)
        if same.filter(withdrawal__isnull=True).exists():
            raise DomainError(f"evidence: got {evidence.key}, linked as {relation} already, expected other evidence")
        key = f"{evidence.uid}:{relation}:{same.count() + 1}"
        row = Link(
            uid=record_uid(claim.uid, "link", key), study=claim.study, actor=by, at=at, claim=claim,
            claim_version=claim.current, excerpt=excerpt, figure=figure, relation=relation, **reach,
        )  # fmt: skip
        append(row)
        refresh_claim(claim, at=at)
    return row


def _must_reach(version: ClaimVersion, relation: str, excerpt: Excerpt | None, figure: Figure | None) -> None:
    """Raise ``DomainError`` where this evidence cannot stand in this relation."""
    if relation not in (SUPPORTS, BOUNDS):
        return
    if figure is not None and figure.current is None:
        raise DomainError(f"figure: got {figure.key}, which is bound to nothing, expected a figure with a binding")
    kind = figure.current.kind if figure is not None and figure.current is not None else None
    if figure is not None and version.kind in EFFECTS and kind != "effect":
        raise DomainError(
            f"figure: got {figure.key} of kind {kind}, expected an effect: no other figure carries a "
            f"claim of kind {version.kind}; link it as {BACKGROUND}"
        )
    if excerpt is not None:
        source = Source.objects.get(pk=excerpt.version.source_id)  # as it is now, under the lock
        if source.current_id is not None and source.current_id != excerpt.version_id:
            raise DomainError(
                f"excerpt: got {excerpt.key} in a version of {source.path} that was superseded, expected one in the "
                f"newest version; make the excerpt there, or link this one as {BACKGROUND}"
            )


def withdraw_link(link: Link, *, reason: str, by: Actor, at: datetime) -> LinkWithdrawal:
    """Take a link back, with a reason; it and its reviews stay readable. Raises ``DomainError`` for a second time."""
    said = _reason(reason)
    with transaction.atomic():
        lock_evidence(link.study)
        claim = Claim.objects.select_for_update(of=("self",)).select_related("study").get(pk=link.claim_id)
        if LinkWithdrawal.objects.filter(link=link).exists():
            raise DomainError(f"link: got {link.uid}, which is withdrawn already, expected one that stands")
        uid = record_uid(link.uid, "link_withdrawal", "")
        row = append(LinkWithdrawal(uid=uid, study=claim.study, actor=by, at=at, link=link, reason=said))
        refresh_claim(claim, at=at)
    return row
