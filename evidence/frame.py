"""How many claims, sources, figures and waiting reviews the rail of every page shows."""

from __future__ import annotations

from django.db.models import Count, Value
from django.urls import reverse
from django.utils.translation import ngettext

from evidence.models import Claim, Figure, Source
from runs.access import Principal, study_ids
from runs.models import Membership
from runs.presenters.now import Ask


def counts(principal: Principal) -> dict[str, int | None]:
    """Counts by section of everything that the principal may see: one query.

    What waits for a review is counted for reviewers only, since others can do nothing about it; authors see how many
    disputes wait for their answer.
    """
    ids = study_ids(principal)
    first, *others = (
        model.objects.filter(study__in=ids).order_by().annotate(section=Value(name)).values_list("section")
        .annotate(n=Count("pk"))
        for name, model in (("claims", Claim), ("sources", Source), ("figures", Figure))
    )  # fmt: skip
    found: dict[str, int | None] = {"claims": 0, "sources": 0, "figures": 0}
    found.update(first.union(*others, all=True))
    from evidence.queue import counts as waiting
    from evidence.queue import owed, review_ids

    if review_ids(principal) is not None or _reviews(principal):
        found["reviews"] = sum(waiting(principal).values())
    else:
        found["reviews"] = owed(principal) or None
    return found


def asks(principal: Principal) -> list[Ask]:
    """What the first page asks of an author: disputes that wait for their answer."""
    from evidence.queue import owed

    number = owed(principal)
    if not number:
        return []
    words = ngettext("%(n)d dispute to answer", "%(n)d disputes to answer", number) % {"n": number}
    return [Ask(number, words, f"{reverse('evidence:reviews')}?kind=answer")]


def _reviews(principal: Principal) -> bool:
    """Whether the person reviews in any study."""
    user = principal.user  # others than a site admin: ``review_ids`` has asked
    return (
        user is not None
        and user.is_superuser
        and Membership.objects.filter(user=user, role=Membership.REVIEWER).exists()
    )
