"""Claims, links and reviews by the thousand, written in bulk: rows as the actions write them, without receipts."""

from __future__ import annotations

from datetime import timedelta

from evidence.models import Claim, ClaimVersion, Excerpt, Link, Review
from evidence.waiting import rebuild
from runs.models import Actor
from tests.evidence_claims.build import Desk
from workbench.contracts.canonical import derive_uid

BATCH = 2000


def fill(desk: Desk, claims: int, links: int, excerpts: list[Excerpt], reviewer: Actor, reviewed: int = 0) -> None:
    """``links`` links spread over ``claims`` claims and the excerpts; the first ``reviewed`` links are accepted."""
    study, at = desk.study, desk.tick()
    before = Claim.objects.count()
    heads = [
        Claim(
            uid=derive_uid(study.uid, f"many:{before + n}"), study=study, key=f"many-{before + n}", author=desk.author,
            status=Claim.PARTLY, cap=Claim.PARTLY, created_at=at,
        )
        for n in range(claims)
    ]  # fmt: skip
    Claim.objects.bulk_create(heads, batch_size=BATCH)
    versions = [
        ClaimVersion(
            uid=derive_uid(claim.uid, "version:1"), study=study, actor=desk.author, at=at, claim=claim, number=1,
            text_en=f"The note was read, part {{{{name:n{n}}}}}.", kind="description",
        )
        for n, claim in enumerate(heads)
    ]  # fmt: skip
    ClaimVersion.objects.bulk_create(versions, batch_size=BATCH)
    for claim, version in zip(heads, versions, strict=True):
        claim.current = version
    Claim.objects.bulk_update(heads, ["current"], batch_size=500)
    rows = [
        Link(
            uid=derive_uid(heads[n % claims].uid, f"link:{n}"), study=study, actor=desk.author, at=at,
            claim=heads[n % claims], claim_version=versions[n % claims], excerpt=excerpts[n % len(excerpts)],
            relation="supports", reach_en="It says nothing of other tasks.",
        )
        for n in range(links)
    ]  # fmt: skip
    Link.objects.bulk_create(rows, batch_size=BATCH)
    Review.objects.bulk_create(
        [
            Review(
                uid=derive_uid(link.uid, "review"), study=study, actor=reviewer, at=at + timedelta(seconds=1),
                claim=link.claim, claim_version=link.claim_version, link=link, verdict="accept", reason="read it",
                looked_at=["quotation"], independence="independent",
            )
            for link in rows[:reviewed]
        ],
        batch_size=BATCH,
    )  # fmt: skip
    rebuild(study)
