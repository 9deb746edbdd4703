"""The review queue: what waits for a person, by kind, in the order in which it came.

Nothing is stored: each kind is one query over what there is, and the number of queries does not depend on how many
rows that gives. A hold (``Reservation``) takes an item out of the others' way and out of nobody's sight.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.http import Http404

from evidence.actions.record import lock_evidence
from evidence.actions.reviews import HELD_MINUTES, KINDS, item_of, parse_item, reserve
from evidence.models import Claim, ClaimFigure, ClaimVersion, Figure, Link, Reservation, Review, Source
from runs.access import REVIEW_WRITE, Principal, can, get_visible, visible, visible_studies
from runs.errors import DomainError
from runs.models import Actor, Study

LISTED = 50


@dataclass(frozen=True)
class Item:
    """One thing that waits. ``row``: Link, Source, Figure, Claim, or the Review that an author has to answer.

    ``claim`` None for a source or a figure, on which several claims may rest. ``held``: who holds it now.
    """

    kind: str
    row: Any
    study: Study
    claim: Claim | None = None
    held: Reservation | None = None

    @property
    def name(self) -> str:
        """``kind:uid``, its name in addresses and in reservations."""
        return item_of(self.kind, self.row.uid)


def actor_of(principal: Principal) -> Actor | None:
    """The caller's actor, where there is one already: reading makes none."""
    if principal.user is None:
        return None
    found: Actor | None = principal.once("actor", lambda: Actor.objects.filter(user=principal.user).first())
    return found


def _same_words() -> dict[str, Any]:
    """What ``evidence.status.same_words`` says, as a condition on reviews: they saw the words that stand now."""
    names = ("text_en", "text_zh", "kind", "scope_en", "scope_zh", "denominator_en", "denominator_zh", "endpoint")
    return {f"claim_version__{name}": F(f"claim__current__{name}") for name in names}


def _judged(reviews: QuerySet[Review]) -> QuerySet[Review]:
    """Reviews that still count: unanswered, of the words that stand now, and of the figures' present bindings."""
    plan = Q(claim_version__plan_version=F("claim__current__plan_version")) | Q(
        claim_version__plan_version__isnull=True, claim__current__plan_version__isnull=True
    )
    bound_later = ClaimFigure.objects.filter(version=OuterRef("claim__current"), figure__current__at__gt=OuterRef("at"))
    found = reviews.filter(plan, answers__isnull=True, **_same_words())
    return found.filter(Q(link__figure__isnull=True) | Q(link__figure__current__at__lte=F("at"))).exclude(
        Exists(bound_later)
    )


def _links() -> QuerySet[Link]:
    """Links without a verdict that still counts, or with an answered one that nobody took up again."""
    here = Review.objects.filter(link=OuterRef("pk"))
    return (
        Link.objects.filter(withdrawal__isnull=True)
        .exclude(claim__status=Claim.WITHDRAWN)
        .filter(~Exists(_judged(here)) | Exists(_taken_up_by_nobody(here)))
    )


def _taken_up_by_nobody(rows: QuerySet[Review]) -> QuerySet[Review]:
    """Answered disputes and requests after which neither their reviewer nor an acceptance has spoken."""
    later = Review.objects.filter(claim=OuterRef("claim"), pk__gt=OuterRef("pk")).filter(
        Q(actor=OuterRef("actor")) | Q(verdict=Review.ACCEPT)
    )
    same = Q(link__isnull=False) & ~Exists(later.filter(link=OuterRef("link")))
    whole = Q(link__isnull=True) & ~Exists(later.filter(link__isnull=True))
    return rows.exclude(verdict=Review.ACCEPT).filter(answers__isnull=False).filter(same | whole)


def _answers() -> QuerySet[Review]:
    """Disputes and requests for evidence that stand and that nobody has answered."""
    later = Review.objects.filter(claim=OuterRef("claim"), actor=OuterRef("actor"), pk__gt=OuterRef("pk"))
    same = Q(link__isnull=False) & ~Exists(later.filter(link=OuterRef("link")))
    whole = Q(link__isnull=True) & ~Exists(later.filter(link__isnull=True))
    waiting = Review.objects.exclude(verdict=Review.ACCEPT).filter(answers__isnull=True)
    return waiting.exclude(claim__status=Claim.WITHDRAWN).filter(same | whole)


def _rows(kind: str) -> QuerySet[Any]:
    if kind == "link":
        return _links()
    if kind == "source":
        return Source.objects.filter(state__in=(Source.DRIFTED, Source.MISSING))
    if kind == "figure":
        return Figure.objects.filter(Q(state=Figure.DRIFTED) | Q(stale=True))
    if kind == "claim":
        again = _taken_up_by_nobody(Review.objects.filter(claim=OuterRef("pk"), link__isnull=True))
        return Claim.objects.exclude(status=Claim.WITHDRAWN).filter(Q(stale=True) | Exists(again))
    if kind == "answer":
        return _answers()
    raise DomainError(f"kind: got {kind[:40]!r}, expected one of {', '.join(KINDS)}")


RELATED: dict[str, tuple[str, ...]] = {
    "link": (
        "study", "claim__current", "claim_version", "actor", "excerpt__version__source",
        "figure__current__source_version__source", "figure__current__excerpt__version__source",
    ),
    "source": ("study", "current"),
    "figure": (
        "study", "current__source_version__source", "current__excerpt__version__source", "current__plan_version__plan",
    ),
    "claim": ("study", "current", "author"),
    "answer": ("study", "claim__current", "claim__author", "actor", "link__excerpt", "link__figure"),
}  # fmt: skip


def rows_of(principal: Principal, kind: str, study: Study | None = None) -> QuerySet[Any]:
    """Visible rows of one kind, without what the caller wrote and so cannot review, in order of their keys."""
    rows = visible(principal, _rows(kind), "study")
    if study is not None:
        rows = rows.filter(study=study)
    me = actor_of(principal)
    if me is None or kind not in ("link", "claim"):
        return rows.order_by("pk")
    claim = "pk" if kind == "claim" else "claim"
    rows = rows.filter(~Exists(ClaimVersion.objects.filter(claim=OuterRef(claim), actor=me)))
    if kind == "link":
        rows = rows.exclude(actor=me)
    return rows.order_by("pk")


def counts(principal: Principal, study: Study | None = None) -> dict[str, int]:
    """How much waits, by kind. One query for each of the five."""
    return {kind: rows_of(principal, kind, study).count() for kind in KINDS}


def _item(kind: str, row: Any) -> Item:
    claim = row if kind == "claim" else None if kind in ("source", "figure") else row.claim
    return Item(kind, row, row.study, claim)


def _with_holders(items: list[Item], at: datetime) -> list[Item]:
    held = {
        row.item: row
        for row in Reservation.objects.select_related("actor").filter(
            item__in=[item.name for item in items], until__gt=at
        )
    }
    return [replace(item, held=held.get(item.name)) for item in items]


def queue_items(
    principal: Principal,
    study: Study | None = None,
    kind: str | None = None,
    *,
    at: datetime,
    limit: int = LISTED,
    after: int = 0,
) -> list[Item]:
    """The first ``limit`` items of a kind (of every kind in their order, without one), with who holds them.

    ``after``: the key of the last row of the page before; of one kind only.
    """
    if kind is None and after:
        raise DomainError("after: got a position without a kind, expected a kind with it")
    found: list[Item] = []
    for name in (kind,) if kind is not None else KINDS:
        if len(found) < limit:
            rows = rows_of(principal, name, study).filter(pk__gt=after).select_related(*RELATED[name])
            found += [_item(name, row) for row in rows[: limit - len(found)]]
    return _with_holders(found, at)


MODELS: dict[str, type[Any]] = {"link": Link, "source": Source, "figure": Figure, "claim": Claim, "answer": Review}


def get_item(principal: Principal, name: str, *, at: datetime) -> Item:
    """The visible item of a name, whether it still waits or not. Raises ``Http404``."""
    try:
        kind, uid = parse_item(name)
    except DomainError as error:
        raise Http404(str(error)) from error
    rows = MODELS[kind]._default_manager.select_related(*RELATED[kind])
    row = get_visible(principal, rows, "study", uid=uid)
    return _with_holders([_item(kind, row)], at)[0]


@dataclass(frozen=True)
class Place:
    """Where an item stands in its kind: ``number`` from 1, None where it waits no more; names of its neighbours."""

    number: int | None
    before: str | None
    after: str | None


def _held_by_others(kind: str, me: Actor | None, at: datetime) -> list[uuid.UUID]:
    rows = Reservation.objects.filter(item__startswith=f"{kind}:", until__gt=at)
    if me is not None:
        rows = rows.exclude(actor=me)
    return [uuid.UUID(item.partition(":")[2]) for item in rows.values_list("item", flat=True)]


def place_of(principal: Principal, item: Item, study: Study | None, *, at: datetime) -> Place:
    """Place and neighbours of an item; what others hold is stepped over. The queue wraps to its first items."""
    rows = rows_of(principal, item.kind, study)
    others = rows.exclude(uid__in=_held_by_others(item.kind, actor_of(principal), at)).exclude(pk=item.row.pk)
    number = rows.filter(pk__lt=item.row.pk).count() + 1 if rows.filter(pk=item.row.pk).exists() else None
    before = others.filter(pk__lt=item.row.pk).order_by("-pk").values_list("uid", flat=True).first()
    after = others.filter(pk__gt=item.row.pk).values_list("uid", flat=True).first()
    if after is None:
        after = others.filter(pk__lt=item.row.pk).values_list("uid", flat=True).first()
    return Place(
        number,
        None if before is None else item_of(item.kind, before),
        None if after is None else item_of(item.kind, after),
    )


def _first_free(
    principal: Principal, kinds: Iterable[str], study: Study, me: Actor, at: datetime, skip: str
) -> str | None:
    for kind in kinds:
        rows = rows_of(principal, kind, study).exclude(uid__in=_held_by_others(kind, me, at))
        for start in (_key(kind, skip), 0):
            uids = rows.filter(pk__gt=start).values_list("uid", flat=True)[:2]
            name = next((item_of(kind, uid) for uid in uids if item_of(kind, uid) != skip), None)
            if name is not None:
                return name
    return None


def _key(kind: str, name: str) -> int:
    """Key of the named row where it is of this kind, else 0: the walk goes on behind it."""
    if not name.startswith(f"{kind}:"):
        return 0
    uid = parse_item(name)[1]
    return MODELS[kind]._default_manager.filter(uid=uid).values_list("pk", flat=True).first() or 0


def take(
    principal: Principal,
    study: Study | None = None,
    kind: str | None = None,
    *,
    by: Actor,
    at: datetime,
    skip: str = "",
    minutes: int = HELD_MINUTES,
) -> Reservation | None:
    """Reserve the first item that nobody else holds, behind ``skip`` where that is given; None: nothing waits.

    Under the study's lock, so that two reviewers who ask at once never get the same. An author's answers are no
    item that a reviewer takes. Only studies in which the caller may review.
    """
    kinds = [name for name in ((kind,) if kind else KINDS) if name != "answer"]
    if kind is not None:
        _rows(kind)  # names the kinds where this is none
    studies = [study] if study is not None else list(visible_studies(principal).order_by("slug"))
    for candidate in studies:
        if not can(principal, REVIEW_WRITE, candidate):
            continue
        with transaction.atomic():
            lock_evidence(candidate)
            name = _first_free(principal, kinds, candidate, by, at, skip)
            if name is not None:
                return reserve(candidate, name, by=by, at=at, minutes=minutes)
    return None
