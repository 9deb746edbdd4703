"""The status of a claim, derived: from its figures, its links, what reviewers said and what its plan registered.

Every rule that applies is a cap with the event that would lift it; the lowest cap holds. A person may set the
status anywhere at or below the cap (``actions.claims.lower_claim``) and never above it (spec "evidence and
notes", Claim). The rules, in the order in which ``reasons_of`` reads them:

(1) no link supports it: not_established · (2) a figure shown or linked is pending: pending · (3) a figure or source
has drifted, is missing, stale or has no value: not_established · (4) evidence is claimed or imported: at most
partly · (5) an open dispute: not_established; an open request for evidence: at most partly · (6) an accepted
contradiction: refuted; withdrawn, and nobody else has said that this is right: not_established; one that nobody has
judged: at most partly · (7) nobody independent has accepted these words on the evidence as it stands: at most
partly · (8) the kind's own demand on the plan's endpoint: not_established, pending while unmeasured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from evidence.evidence_of import Evidence, evidence_of
from evidence.models import (
    Claim,
    ClaimVersion,
    Excerpt,
    ExcerptHead,
    Figure,
    FigureVersion,
    Link,
    LinkWithdrawal,
    Review,
    Source,
)
from evidence.registered import (
    NO_REGRESSION_OBSERVED,
    Registered,
    carries_endpoint,
    compared,
    promises_endpoint,
    registered,
)
from evidence.reviewing import ANSWERED, OPEN, STANDS, Told
from evidence.waiting import WORDS, project
from evidence.wording import NO_REGRESSION, RULED
from runs.actions.actors import service_actor
from runs.actions.audit import record_change
from runs.models import PlanVersion

# From what says least to what says most; a cap allows itself and everything before it.
ORDER = (Claim.WITHDRAWN, Claim.REFUTED, Claim.PENDING, Claim.NOT_ESTABLISHED, Claim.PARTLY, Claim.SUPPORTED)
SUPPORTS, CONTRADICTS, BOUNDS, BACKGROUND = Link.RELATIONS


def rank(status: str) -> int:
    """How much a status says."""
    return ORDER.index(status)


@dataclass(frozen=True)
class Reason:
    """Why a claim cannot be higher: at most ``at_most``, until ``lifted_by``. ``code`` is stable, texts are shown."""

    code: str
    text: str
    lifted_by: str
    at_most: str


@dataclass(frozen=True)
class Derived:
    """``status``: the lower of ``cap`` and what a person set. ``reasons``: lowest first, each a cap of its own."""

    status: str
    cap: str
    reasons: tuple[Reason, ...]
    disputed: bool
    provisional: bool
    accepted: str  # Review.INDEPENDENT, Review.SAME_FAMILY or ""


def same_words(first: ClaimVersion, second: ClaimVersion) -> bool:
    """Whether two versions say the same: a review of one is a review of the other."""
    return first.plan_version_id == second.plan_version_id and all(
        getattr(first, name) == getattr(second, name) for name in WORDS
    )


def derive(claim: Claim) -> Derived:
    """The status that the claim may have now. Reads, changes nothing; about ten queries."""
    return decide(claim, evidence_of(claim))


def decide(claim: Claim, found: Evidence) -> Derived:
    """The status that a claim may have on this evidence, which may hold a review that nobody has recorded yet."""
    if found.version is None:
        reason = Reason("no_words", _("It has no words yet."), _("write a version"), Claim.NOT_ESTABLISHED)
        return Derived(Claim.NOT_ESTABLISHED, Claim.NOT_ESTABLISHED, (reason,), False, False, "")
    accepted = acceptance(found)
    reasons = sorted(reasons_of(found, accepted), key=lambda item: rank(item.at_most))
    cap = reasons[0].at_most if reasons else Claim.SUPPORTED
    held = found.version.held_to
    status = cap if not held or rank(held) > rank(cap) else held
    if held and rank(held) < rank(cap):
        reasons.insert(0, _held(found.version))
    disputed = any(item.review.verdict == Review.DISPUTE for item in open_reviews(found))
    provisional = accepted == Review.SAME_FAMILY
    return Derived(status, cap, tuple(reasons), disputed, provisional, accepted)


def _held(version: ClaimVersion) -> Reason:
    if version.held_to == Claim.WITHDRAWN:
        return Reason("withdrawn", _("It was withdrawn: “%s”") % version.reason, _("a new claim"), Claim.WITHDRAWN)
    text = _("A person lowered it: “%s”") % version.reason
    return Reason("lowered", text, _("a person sets it again, at or below the cap"), version.held_to)


def reasons_of(found: Evidence, accepted: str) -> Iterator[Reason]:
    """Every cap that applies, in the order of the rules above."""
    if not found.supporting:
        yield Reason(
            "no_support", _("No link supports it."), _("link an excerpt or a figure that supports it"),
            Claim.NOT_ESTABLISHED,
        )  # fmt: skip
    for figure in found.figures:
        yield from _of_figure(figure)
    for link in found.carrying:
        if link.excerpt is not None:
            yield from _of_excerpt(link.excerpt)
    if found.stale:
        yield _low("stale", _("Something that it rests on has changed."), _("bind it again, or confirm it with a note"))
    if found.imported:
        keys = ", ".join(sorted(found.imported))
        run = _("a native execution of a frozen plan")
        yield Reason("imported", _("It rests on imported figures: %s.") % keys, run, Claim.PARTLY)
    yield from _of_reviews(found, accepted)
    yield from _of_kind(found)


def _low(code: str, text: str, lifted_by: str) -> Reason:
    return Reason(code, text, lifted_by, Claim.NOT_ESTABLISHED)


def _of_figure(figure: Figure) -> Iterator[Reason]:
    """Caps that one figure sets, shown in the text or linked as evidence."""
    key, again = figure.key, _("bind the figure again to bytes that verify")
    if figure.state == Figure.PENDING:
        yield Reason("pending", _("Figure %s is pending.") % key, _fills(figure.current), Claim.PENDING)
    elif figure.state == Figure.UNAVAILABLE:
        yield _low("unavailable", _("Figure %s has no value.") % key, _("a figure that has one"))
    elif figure.state == Figure.DRIFTED:
        yield _low("drifted", _("Figure %s recomputes to another value, or its source drifted.") % key, again)
    elif figure.state == Figure.CLAIMED:
        yield Reason("claimed", _("Figure %s rests on bytes that are not held here.") % key,
                     _("the bytes, added to their source"), Claim.PARTLY)  # fmt: skip
    if figure.stale:
        yield _low("stale", _("Figure %s is stale.") % key, _("bind it again, or confirm it with a note"))
    version = figure.current.source_version if figure.current is not None else None
    if version is not None and figure.state == Figure.BOUND:
        yield from _of_source(version.source)


def _fills(version: FigureVersion | None) -> str:
    fills = (version.binding.get("fills") if version is not None else None) or {}
    if fills.get("endpoint"):
        return _("a closed execution of plan %(plan)s, endpoint %(endpoint)s") % {
            "plan": fills.get("plan", ""), "endpoint": fills["endpoint"],
        }  # fmt: skip
    chinese = (get_language() or "").startswith("zh")
    return str((chinese and fills.get("words_zh")) or fills.get("words_en") or _("what the figure names"))


def _of_source(source: Source) -> Iterator[Reason]:
    if source.state == Source.DRIFTED:
        yield _low("source_drifted", _("The bytes of %s no longer match their hash.") % source.path,
                   _("the recorded bytes restored, or the evidence bound again"))  # fmt: skip
    elif source.state == Source.MISSING:
        yield _low("source_missing", _("The bytes of %s are gone.") % source.path, _("the recorded bytes restored"))
    elif source.state == Source.CLAIMED:
        yield Reason("claimed", _("The bytes of %s are not held here.") % source.path,
                     _("the bytes, added to their source"), Claim.PARTLY)  # fmt: skip


def _of_excerpt(excerpt: Excerpt) -> Iterator[Reason]:
    head: ExcerptHead | None = getattr(excerpt, "head", None)
    source = excerpt.version.source
    if head is not None and head.state == ExcerptHead.ORPHAN:
        yield _low("orphan", _("Excerpt %s is not found in its source.") % excerpt.key, _("a new excerpt, linked"))
    elif head is not None and head.state == ExcerptHead.UNAVAILABLE:
        yield _low(
            "unavailable", _("The bytes of excerpt %s are gone.") % excerpt.key, _("the recorded bytes restored")
        )
    if excerpt.kind == Excerpt.TRANSCRIBED or not excerpt.version.held:
        yield Reason("claimed", _("Excerpt %s is a transcription: its bytes are not held here.") % excerpt.key,
                     _("the bytes, added to their source"), Claim.PARTLY)  # fmt: skip
    else:
        yield from _of_source(source)


def open_reviews(found: Evidence) -> list[Told]:
    """Disputes and requests for evidence that still stand, on the claim or on a link, a withdrawn one too.

    A request for more evidence falls with its link; a dispute does not.
    """
    links = {link.pk for link in found.links}
    return [
        item
        for item in found.told
        if item.fate in (OPEN, ANSWERED)
        and item.review.verdict != Review.ACCEPT
        and (item.review.verdict == Review.DISPUTE or item.review.link_id is None or item.review.link_id in links)
    ]


def _acceptances(found: Evidence) -> list[Review]:
    """Acceptances of these words that their reviewer has not superseded."""
    version = found.version
    assert version is not None
    return [
        item.review
        for item in found.told
        if item.fate == STANDS
        and item.review.verdict == Review.ACCEPT
        and same_words(item.review.claim_version, version)
    ]


def _standing(found: Evidence, links: Sequence[Link]) -> list[Review]:
    """Acceptances that stand of these words, on the claim or on one of ``links``, with the evidence as it is now.

    One that has not seen a link, the withdrawal of one or a figure's present binding was of other evidence and does
    not count.
    """
    keys = {None, *(link.pk for link in links)}
    return [
        review
        for review in _acceptances(found)
        if review.link_id in keys and all(found.judges.after(review, change) for change in found.changes)
    ]


def _best(found: Evidence, reviews: Sequence[Review]) -> str:
    if any(found.judges.independent(item) for item in reviews):
        return Review.INDEPENDENT
    return Review.SAME_FAMILY if reviews else ""


def _contradicted(found: Evidence) -> Iterator[Reason]:
    """Accepted contradictions, which no later link, withdrawal or binding makes undone."""
    against = {link.pk for link in found.of_relation(CONTRADICTS)}
    accepted = [item for item in _acceptances(found) if item.link is not None and item.link.relation == CONTRADICTS]
    if any(item.link_id in against for item in accepted):
        yield Reason("contradicted", _("A reviewer accepted evidence that contradicts it."),
                     _("that link withdrawn and the withdrawal accepted, or other words"), Claim.REFUTED)  # fmt: skip
    elif against:
        yield Reason("contradiction", _("Linked evidence contradicts it, and nobody has judged that."),
                     _("a review of that link"), Claim.PARTLY)  # fmt: skip
    for item in accepted:
        taken = found.judges.withdrawal(item)
        if taken is None or any(_agrees(found, other, item, taken) for other in accepted):
            continue
        yield _low("contradiction_withdrawn", _("An accepted contradiction was withdrawn: “%s”") % taken.reason,
                   _("an independent reviewer accepts that withdrawal, or other words"))  # fmt: skip


def _agrees(found: Evidence, other: Review, with_: Review, taken: LinkWithdrawal) -> bool:
    """Whether ``other`` accepts that an accepted contradiction was withdrawn."""
    return (
        other.link_id == with_.link_id
        and other.actor_id != taken.actor_id
        and found.judges.after(other, taken)
        and found.judges.independent(other)
    )


def acceptance(found: Evidence) -> str:
    """Who has accepted the claim's words on the evidence that supports it: independent, same_family or nobody."""
    return _best(found, _standing(found, found.supporting))


def _of_reviews(found: Evidence, accepted: str) -> Iterator[Reason]:
    for item in open_reviews(found):
        who = item.review.actor.name
        if item.review.verdict == Review.DISPUTE:
            next_step = _("an acceptance after the answer") if item.answers else _("an answer, and then an acceptance")
            yield _low(
                "disputed", _("%(who)s disputes it: “%(why)s”") % {"who": who, "why": item.review.reason}, next_step
            )
        else:
            text = _("%(who)s asks for evidence: “%(why)s”") % {"who": who, "why": item.review.reason}
            yield Reason("needs_evidence", text, _("such evidence, linked and accepted"), Claim.PARTLY)
    yield from _contradicted(found)
    if accepted == Review.SAME_FAMILY:
        yield Reason("provisional", _("Only reviewers of the author's own family have accepted it."),
                     _("an acceptance by an independent reviewer"), Claim.PARTLY)  # fmt: skip
    elif not accepted:
        yield Reason("unreviewed", _("No reviewer has accepted these words on this evidence."),
                     _("an acceptance by an independent reviewer"), Claim.PARTLY)  # fmt: skip


def _of_kind(found: Evidence) -> Iterator[Reason]:
    """What the kind demands of the plan's endpoint (rule 8)."""
    version = found.version
    assert version is not None
    if version.kind not in (*RULED, NO_REGRESSION):
        return
    known = registered(version.plan_version, version.endpoint)
    if version.kind == NO_REGRESSION:
        shown = compared((figure.current for figure in found.figures), version)
        if known is not None and any(
            known.measured(arms) and NO_REGRESSION_OBSERVED not in known.holds(arms) for arms in shown
        ):
            yield _low("regression", _("The closed execution measured a step back."), _("other words"))
        return
    if known is None or version.kind not in known.kinds:
        yield _low("unregistered", _("Its plan registered nothing that a claim of this kind takes."),
                   _("a new frozen plan whose endpoint registers it"))  # fmt: skip
        return
    yield from _of_endpoint(found, version, known)


def _of_endpoint(found: Evidence, version: ClaimVersion, known: Registered) -> Iterator[Reason]:
    effects = [figure.current for figure in found.figures if carries_endpoint(figure.current, version)]
    if not effects and not any(promises_endpoint(figure.current, version) for figure in found.figures):
        yield _low("no_effect", _("No effect figure of endpoint %s is shown or linked.") % version.endpoint,
                   _("that figure in the text, or linked as support"))  # fmt: skip
    run = _("a closed execution of its plan")
    for arms in compared(effects, version):
        if not known.closed:
            yield Reason("unmeasured", _("Its plan has no closed execution yet."), run, Claim.PENDING)
        elif not known.measured(arms):
            yield Reason("unmeasured", _("The closed execution left the endpoint without a value."), run, Claim.PENDING)
        elif version.kind not in known.holds(arms):
            yield _low("interval", _("The interval that was measured does not support it."),
                       _("a claim of what was measured, or another plan"))  # fmt: skip


_PUT_OFF: ContextVar[dict[int, Claim] | None] = ContextVar("claims whose status is derived at the end", default=None)


@contextmanager
def derived_once(*, at: datetime) -> Iterator[None]:
    """Within it a claim may be written and linked many times; its status is derived at the end. One transaction."""
    waiting: dict[int, Claim] = {}
    with transaction.atomic():
        token = _PUT_OFF.set(waiting)
        try:
            yield
        finally:
            _PUT_OFF.reset(token)
        for claim in waiting.values():
            refresh_claim(claim, at=at)


def refresh_claim(claim: Claim, *, at: datetime) -> None:
    """Write the derived status to the claim's head; a change leaves a line in the audit log. Inside a transaction."""
    waiting = _PUT_OFF.get()
    if waiting is not None:
        waiting[claim.pk] = claim
        return
    found = derive(claim)
    before = Claim.objects.filter(pk=claim.pk).values_list("status", flat=True).get()
    values = {name: getattr(found, name) for name in ("status", "cap", "disputed", "provisional")}
    Claim.objects.filter(pk=claim.pk).update(**values)
    for name, value in values.items():
        setattr(claim, name, value)
    if before != found.status:
        record_change(
            "claim.status", by=service_actor("evidence"), at=at, subject=f"claim {claim.key}", study=claim.study,
            detail=f"{before} -> {found.status}; cap {found.cap}",
        )  # fmt: skip
    project(claim)


def refresh_claims_of(version: PlanVersion, *, at: datetime) -> None:
    """Derive every claim on a plan again: its execution was closed. Inside a transaction."""
    for claim in Claim.objects.filter(current__plan_version=version).order_by("pk"):
        refresh_claim(claim, at=at)
