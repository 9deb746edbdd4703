"""What of a claim waits for a person: a projection of its links, reviews and answers, so that counting is cheap.

``project`` follows every change of a claim (``status.refresh_claim`` calls it); ``verify`` builds the rows again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from evidence.models import Claim, ClaimFigure, Link, LinkWithdrawal, Review, Waiting
from runs.models import Study

LINK, CLAIM, ANSWER = Waiting.KINDS
# What ``evidence.status.same_words`` compares, besides the plan.
WORDS = ("text_en", "text_zh", "kind", "scope_en", "scope_zh", "denominator_en", "denominator_zh", "endpoint")
Key = tuple[str, int]  # (kind, primary key of the link, claim or review)


def _judged(reviews: QuerySet[Review]) -> QuerySet[Review]:
    """Reviews that still count: unanswered, of the words that stand now, of the figures' present bindings.

    One from before a link was withdrawn was of other evidence. A link that was added since waits itself.
    """
    plan = Q(claim_version__plan_version=F("claim__current__plan_version")) | Q(
        claim_version__plan_version__isnull=True, claim__current__plan_version__isnull=True
    )
    bound_later = ClaimFigure.objects.filter(version=OuterRef("claim__current"), figure__current__at__gt=OuterRef("at"))
    withdrawn_later = LinkWithdrawal.objects.filter(link__claim=OuterRef("claim"), at__gt=OuterRef("at"))
    same_words = {f"claim_version__{name}": F(f"claim__current__{name}") for name in WORDS}
    found = reviews.filter(plan, answers__isnull=True, **same_words)
    return found.filter(Q(link__figure__isnull=True) | Q(link__figure__current__at__lte=F("at"))).exclude(
        Exists(bound_later) | Exists(withdrawn_later)
    )


def _later(**more: Any) -> QuerySet[Review]:
    return Review.objects.filter(claim=OuterRef("claim"), pk__gt=OuterRef("pk"), **more)


def _taken_up_by_nobody(rows: QuerySet[Review]) -> QuerySet[Review]:
    """Answered disputes and requests after which neither their reviewer nor an acceptance has spoken."""
    spoke = _later().filter(Q(actor=OuterRef("actor")) | Q(verdict=Review.ACCEPT))
    same = Q(link__isnull=False) & ~Exists(spoke.filter(link=OuterRef("link")))
    whole = Q(link__isnull=True) & ~Exists(spoke.filter(link__isnull=True))
    return rows.exclude(verdict=Review.ACCEPT).filter(answers__isnull=False).filter(same | whole)


def _withdrawal_unjudged() -> Q:
    """Links that were withdrawn over a dispute or an accepted contradiction, which nobody has accepted yet."""
    here = Review.objects.filter(link=OuterRef("pk"))
    before = here.filter(at__lte=OuterRef("withdrawal__at"))
    agreed = here.filter(at__gte=OuterRef("withdrawal__at"), verdict=Review.ACCEPT)
    again = _later(actor=OuterRef("actor"), link=OuterRef("link"))
    disputed = before.filter(~Exists(again), verdict=Review.DISPUTE)
    accepted = before.filter(~Exists(again), verdict=Review.ACCEPT, link__relation="contradicts")
    return Q(withdrawal__isnull=False) & (Q(Exists(disputed)) | Q(Exists(accepted))) & ~Q(Exists(agreed))


def links() -> QuerySet[Link]:
    """Links without a verdict that still counts, with an answered one that nobody took up again, or whose withdrawal
    somebody else has to judge."""
    here = Review.objects.filter(link=OuterRef("pk"))
    stands = Q(withdrawal__isnull=True) & (~Exists(_judged(here)) | Exists(_taken_up_by_nobody(here)))
    return Link.objects.exclude(claim__status=Claim.WITHDRAWN).filter(stands | _withdrawal_unjudged())


def claims() -> QuerySet[Claim]:
    """Claims with an answered dispute of the whole that nobody took up again."""
    again = _taken_up_by_nobody(Review.objects.filter(claim=OuterRef("pk"), link__isnull=True))
    return Claim.objects.exclude(status=Claim.WITHDRAWN).filter(Exists(again))


def answered(links: Iterable[int], whole: Iterable[int]) -> tuple[set[int], set[int]]:
    """Of those links and of those claims: which wait because an answered dispute was not taken up again. One query."""
    reviews = Review.objects.filter(Q(link__in=list(links)) | Q(link__isnull=True, claim__in=list(whole)))
    rows = list(_taken_up_by_nobody(reviews).values_list("link", "claim"))
    return {link for link, _ in rows if link is not None}, {claim for link, claim in rows if link is None}


def answers() -> QuerySet[Review]:
    """Disputes and requests for evidence that stand and that nobody has answered."""
    again = _later(actor=OuterRef("actor"))
    said = Q(link__withdrawal__isnull=True) | Q(link__withdrawal__at__lt=F("at"))  # else the withdrawal is the answer
    same = Q(link__isnull=False) & said & ~Exists(again.filter(link=OuterRef("link")))
    whole = Q(link__isnull=True) & ~Exists(again.filter(link__isnull=True))
    rows = Review.objects.exclude(verdict=Review.ACCEPT).filter(answers__isnull=True)
    return rows.exclude(claim__status=Claim.WITHDRAWN).filter(same | whole)


def expected(study: Study, claim: Claim | None = None) -> dict[Key, int]:
    """(kind, key) -> key of the claim, of everything that waits in a study, or of one claim. Three queries.

    Two of a claim that nobody has reviewed: every standing link waits, and nothing else can.
    """
    if claim is not None and not Review.objects.filter(claim=claim).exists():
        standing = Link.objects.filter(study=study, claim=claim, withdrawal__isnull=True)
        standing = standing.exclude(claim__status=Claim.WITHDRAWN)
        return {(LINK, pk): claim.pk for pk in standing.values_list("pk", flat=True)}
    of_claim = {} if claim is None else {"claim": claim}
    found: dict[Key, int] = {}
    for kind, rows in ((LINK, links()), (ANSWER, answers())):
        for pk, owner in rows.filter(study=study, **of_claim).values_list("pk", "claim_id"):
            found[(kind, pk)] = owner
    whole = claims().filter(study=study) if claim is None else claims().filter(pk=claim.pk)
    found.update({(CLAIM, pk): pk for pk in whole.values_list("pk", flat=True)})
    return found


def stored(study: Study, claim: Claim | None = None) -> dict[Key, int]:
    """The same as it is stored: (kind, key) -> key of the row. One query."""
    rows = Waiting.objects.filter(study=study) if claim is None else Waiting.objects.filter(claim=claim)
    return {
        (kind, {LINK: link, ANSWER: review, CLAIM: owner}[kind]): pk
        for pk, kind, link, review, owner in rows.values_list("pk", "kind", "link_id", "review_id", "claim_id")
    }


def _sync(study: Study, wanted: dict[Key, int], there: dict[Key, int]) -> None:
    gone = [pk for key, pk in there.items() if key not in wanted]
    for part in _chunks(gone):
        Waiting.objects.filter(pk__in=part).delete()
    Waiting.objects.bulk_create(
        [
            Waiting(
                study=study, claim_id=owner, kind=kind, link_id=pk if kind == LINK else None,
                review_id=pk if kind == ANSWER else None,
            )
            for (kind, pk), owner in sorted(wanted.items())
            if (kind, pk) not in there
        ],
        batch_size=500,
    )  # fmt: skip


def _chunks(values: list[int], size: int = 900) -> Iterable[list[int]]:
    return (values[start : start + size] for start in range(0, len(values), size))


def project(claim: Claim) -> None:
    """Store what of a claim waits now. Called with the study's evidence locked, after everything that changes it."""
    _sync(claim.study, expected(claim.study, claim), stored(claim.study, claim))


def rebuild(study: Study) -> None:
    """The same for a whole study: after rows came in that no action wrote (an import, a repair)."""
    _sync(study, expected(study), stored(study))
