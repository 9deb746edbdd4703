"""The review queue: what waits for a person, by kind, in the order in which it came.

Links, answers and answered disputes are counted in ``Waiting``, which follows every change of a claim; drifted sources,
changed figures and stale claims are read where they stand. The number of queries does not depend on how many wait.
A hold (``Reservation``) takes an item out of the others' way and out of nobody's sight.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.http import Http404

from evidence.actions.record import lock_evidence
from evidence.actions.reviews import HELD_MINUTES, KINDS, check_minutes, hold, item_of, parse_item
from evidence.models import Claim, ClaimVersion, Figure, Link, Reservation, Review, Source, Waiting
from evidence.parts import Part, Parts
from evidence.waiting import ANSWER, CLAIM, LINK
from runs.access import REVIEW_WRITE, Principal, can, get_visible, visible, visible_studies
from runs.errors import DomainError
from runs.models import Actor, Membership, Study

LISTED = 50
WALKED, WALKED_MOST = 20, 200  # items whose parts are read together: first, and after that


@dataclass(frozen=True)
class Item:
    """One thing that waits. ``row``: Link, Source, Figure, Claim, or the Review that an author has to answer.

    ``claim`` None for a source or a figure, on which several claims may rest. ``held``: who holds it now.
    ``key``: its place in the order of its kind, None where it waits no more.
    """

    kind: str
    row: Any
    study: Study
    claim: Claim | None = None
    held: Reservation | None = None
    key: int | None = None

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


def _rows(kind: str) -> QuerySet[Any]:
    """Rows of a kind: of ``Waiting`` for links and answers, else what waits itself."""
    if kind in (LINK, ANSWER):
        return Waiting.objects.filter(kind=kind)
    if kind == "source":
        return Source.objects.filter(state__in=(Source.DRIFTED, Source.MISSING))
    if kind == "figure":
        return Figure.objects.filter(Q(state=Figure.DRIFTED) | Q(stale=True))
    if kind == CLAIM:
        again = Waiting.objects.filter(kind=CLAIM).values("claim")
        return Claim.objects.exclude(status=Claim.WITHDRAWN).filter(Q(stale=True) | Q(pk__in=again))
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


# From a row of ``rows_of`` to what waits: the relation, and where its uid stands.
SUBJECT = {LINK: "link", ANSWER: "review"}


def _through(kind: str, *names: str) -> list[str]:
    """Lookups of the subject as lookups of a row of ``rows_of``."""
    prefix = f"{SUBJECT[kind]}__" if kind in SUBJECT else ""
    return [f"{prefix}{name}" for name in names]


def review_ids(principal: Principal) -> list[int] | None:
    """Keys of the studies in which a reviewer reviews; None for a site admin and for who reviews nowhere. One query."""
    if principal.user is None or principal.user.is_superuser:
        return None
    rows = Membership.objects.filter(user=principal.user, role=Membership.REVIEWER)
    found: list[int] = principal.once("review_ids", lambda: list(rows.values_list("study_id", flat=True)))
    return found or None


def _scoped(principal: Principal, rows: QuerySet[Any], study: Study | None) -> QuerySet[Any]:
    """Rows of a study, or else those that a reviewer may judge, with the answers that she owes as an author."""
    rows = visible(principal, rows, "study")
    if study is not None:
        return rows.filter(study=study)
    ids = review_ids(principal)
    if ids is None:
        return rows
    mine = Q(study__in=ids)
    if rows.model is Waiting:
        wrote = Exists(ClaimVersion.objects.filter(claim=OuterRef("claim"), actor__user=principal.user))
        mine |= Q(kind=ANSWER) & (wrote | Q(claim__author__user=principal.user))
    return rows.filter(mine)


def rows_of(principal: Principal, kind: str, study: Study | None = None) -> QuerySet[Any]:
    """Rows of one kind that are the caller's (``_scoped``), in the order in which they came."""
    return _scoped(principal, _rows(kind), study).order_by("pk")


def _not_written(rows: QuerySet[Any], kind: str, me: Actor) -> QuerySet[Any]:
    """Without claims and links that the caller wrote: that much of ``evidence.parts`` the database can leave out."""
    if kind not in (LINK, CLAIM):
        return rows
    claim = "pk" if kind == CLAIM else "claim"
    rows = rows.filter(~Exists(ClaimVersion.objects.filter(claim=OuterRef(claim), actor=me)))
    return rows.exclude(link__actor=me) if kind == LINK else rows


def _first_not_mine(rows: QuerySet[Any], kind: str, me: Actor) -> uuid.UUID | None:
    """Uid of the first in which the caller has no part, so that ``review`` takes a verdict on it from them."""
    columns = ["pk", *_through(kind, "uid"), *(("claim", "link") if kind == LINK else ())]
    after, batch = 0, WALKED
    while True:
        found = list(rows.filter(pk__gt=after).values_list(*columns)[:batch])
        if not found:
            return None
        for pk, uid, parts in _with_parts(kind, found):
            if me.pk not in {part.actor.pk for part in parts}:
                return uid
            after = pk
        batch = WALKED_MOST


def _with_parts(kind: str, rows: list[Any]) -> Iterator[tuple[int, uuid.UUID, list[Part]]]:
    """(key, uid, parts) of rows of ``_first_not_mine``, read together."""
    if kind == LINK:
        every = Parts(claim for _pk, _uid, claim, _link in rows)
        return ((pk, uid, every.of(claim, link)) for pk, uid, claim, link in rows)
    if kind == CLAIM:
        every = Parts(pk for pk, _uid in rows)
        return ((pk, uid, every.of(pk)) for pk, uid in rows)
    if kind == "figure":
        every = Parts(figures=[pk for pk, _uid in rows])
        return ((pk, uid, every.of_figure(pk)) for pk, uid in rows)
    return ((pk, uid, []) for pk, uid in rows)


def counts(principal: Principal, study: Study | None = None) -> dict[str, int]:
    """How much waits, by kind. Four queries, asked once in a request."""
    found: dict[str, int] = principal.once(f"waiting:{study.pk if study else ''}", lambda: _counts(principal, study))
    return found


def _counts(principal: Principal, study: Study | None) -> dict[str, int]:
    rows = _scoped(principal, Waiting.objects.all(), study)
    found: dict[str, int] = dict(rows.order_by().values("kind").annotate(n=Count("pk")).values_list("kind", "n"))
    direct = {kind: rows_of(principal, kind, study).order_by().count() for kind in ("source", "figure", CLAIM)}
    return {kind: direct.get(kind, found.get(kind, 0)) for kind in KINDS}


def owed(principal: Principal) -> int:
    """Disputes and requests for evidence that wait for an answer of the caller, as an author. One query, asked once.

    An author wrote a version of the claim, or the link that is disputed; nobody answers a review of their own.
    """
    if principal.user is None:
        return 0
    found: int = principal.once("owed", lambda: _owed(principal, principal.user))
    return found


def _owed(principal: Principal, user: Any) -> int:
    wrote = Exists(ClaimVersion.objects.filter(claim=OuterRef("claim"), actor__user=user))
    rows = visible(principal, Waiting.objects.filter(kind=ANSWER), "study")
    mine = rows.filter(wrote | Q(claim__author__user=user) | Q(review__link__actor__user=user))
    return mine.exclude(review__actor__user=user).count()


def _item(kind: str, row: Any) -> Item:
    if isinstance(row, Waiting):
        key, row = row.pk, row.link if kind == LINK else row.review
    else:
        key = row.pk
    claim = row if kind == CLAIM else None if kind in ("source", "figure") else row.claim
    return Item(kind, row, row.study, claim, key=key)


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
            rows = rows_of(principal, name, study).filter(pk__gt=after).select_related(*_through(name, *RELATED[name]))
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
    key = _rows(kind).filter(**{_through(kind, "pk")[0]: row.pk}).values_list("pk", flat=True).first()
    return _with_holders([replace(_item(kind, row), key=key)], at)[0]


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


def _free(rows: QuerySet[Any], kind: str, me: Actor | None, at: datetime) -> QuerySet[Any]:
    """Without what others hold now."""
    held = _held_by_others(kind, me, at)
    return rows.exclude(**{_through(kind, "uid__in")[0]: held}) if held else rows


def place_of(principal: Principal, item: Item, study: Study | None, *, at: datetime) -> Place:
    """Place and neighbours of an item; what others hold is stepped over. The queue wraps to its first items."""
    rows = rows_of(principal, item.kind, study)
    key = item.key or 0
    (uid,) = _through(item.kind, "uid")
    others = _free(rows, item.kind, actor_of(principal), at).exclude(pk=key)
    before = others.filter(pk__lt=key).order_by("-pk").values_list(uid, flat=True).first()
    after = others.filter(pk__gt=key).values_list(uid, flat=True).first()
    if after is None:
        after = others.filter(pk__lt=key).values_list(uid, flat=True).first()
    return Place(
        None if item.key is None else rows.filter(pk__lt=key).order_by().count() + 1,
        None if before is None else item_of(item.kind, before),
        None if after is None else item_of(item.kind, after),
    )


def _first_free(
    principal: Principal, kinds: Iterable[str], study: Study, me: Actor, at: datetime, skip: str
) -> str | None:
    """The first item that the caller may judge and nobody else holds; behind ``skip`` first, then from the start."""
    for kind in kinds:
        rows = _not_written(_free(rows_of(principal, kind, study), kind, me, at), kind, me)
        start = _key(kind, skip)
        for part in (rows.filter(pk__gt=start), rows.filter(pk__lt=start)) if start else (rows,):
            found = _first_not_mine(part, kind, me)
            if found is not None:
                return item_of(kind, found)
    return None


def _key(kind: str, name: str) -> int:
    """Place of the named item in its kind; 0 where it is of another or waits no more: the walk begins anew."""
    if not name.startswith(f"{kind}:"):
        return 0
    (uid,) = _through(kind, "uid")
    return _rows(kind).filter(**{uid: parse_item(name)[1]}).values_list("pk", flat=True).first() or 0


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
    check_minutes(minutes)
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
                return hold(candidate, name, by=by, at=at, minutes=minutes)
    return None
