"""How many claims, sources, figures and waiting reviews the rail of every page shows."""

from __future__ import annotations

from django.db.models import Count, Q, Value
from django.urls import reverse
from django.utils.translation import ngettext

from evidence.models import Claim, Figure, Source
from runs.access import EVIDENCE_WRITE, ROLES, Principal, study_ids
from runs.models import Membership
from runs.presenters.now import Ask

WRITERS = [role for role, held in ROLES.items() if EVIDENCE_WRITE in held]


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
    """What the first page asks of an author: disputes that wait for their answer, evidence that has changed."""
    from evidence.queue import owed

    number, found = owed(principal), []
    if number:
        words = ngettext("%(n)d dispute to answer", "%(n)d disputes to answer", number) % {"n": number}
        found.append(Ask(number, words, f"{reverse('evidence:reviews')}?kind=answer"))
    return found + _changed(principal)


def _changed(principal: Principal) -> list[Ask]:
    """Stale or drifted figures and stale claims of the studies whose evidence the reader writes. One query."""
    if principal.user is None:
        return []
    mine = Membership.objects.filter(user=principal.user, role__in=WRITERS).values("study")
    figures = Figure.objects.filter(Q(stale=True) | Q(state=Figure.DRIFTED), study__in=mine)
    claims = Claim.objects.exclude(status=Claim.WITHDRAWN).filter(stale=True, study__in=mine)
    kinds = (("figure", figures), ("claim", claims))
    rows = [of.order_by().values_list(Value(kind)).annotate(n=Count("pk")) for kind, of in kinds]
    counted = dict(rows[0].union(rows[1], all=True))
    words = {
        "figure": ngettext("%(n)d stale or drifted figure", "%(n)d stale or drifted figures", counted.get("figure", 0)),
        "claim": ngettext("%(n)d stale claim", "%(n)d stale claims", counted.get("claim", 0)),
    }
    url = reverse("evidence:stale")
    return [Ask(n, words[kind] % {"n": n}, f"{url}?kind={kind}") for kind, n in sorted(counted.items()) if n]


def _reviews(principal: Principal) -> bool:
    """Whether the person reviews in any study."""
    user = principal.user  # others than a site admin: ``review_ids`` has asked
    return (
        user is not None
        and user.is_superuser
        and Membership.objects.filter(user=user, role=Membership.REVIEWER).exists()
    )
