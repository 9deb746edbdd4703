"""How many claims, sources, figures and waiting reviews the rail of every page shows."""

from __future__ import annotations

from django.db.models import Count, Value

from evidence.models import Claim, Figure, Source
from runs.access import Principal, study_ids
from runs.models import Membership


def counts(principal: Principal) -> dict[str, int | None]:
    """Counts by section of everything that the principal may see: one query.

    What waits for a review is counted for reviewers only, since others can do nothing about it.
    """
    ids = study_ids(principal)
    first, *others = (
        model.objects.filter(study__in=ids).order_by().annotate(section=Value(name)).values_list("section")
        .annotate(n=Count("pk"))
        for name, model in (("claims", Claim), ("sources", Source), ("figures", Figure))
    )  # fmt: skip
    found: dict[str, int | None] = {"claims": 0, "sources": 0, "figures": 0}
    found.update(first.union(*others, all=True))
    if _reviews(principal):
        from evidence.queue import counts as waiting

        found["reviews"] = sum(waiting(principal).values())
    return found


def _reviews(principal: Principal) -> bool:
    """Whether the person reviews in any study."""
    user = principal.user
    return user is not None and Membership.objects.filter(user=user, role=Membership.REVIEWER).exists()
