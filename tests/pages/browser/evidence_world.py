"""A small study with evidence of every kind for the walk over every page, and the addresses of its pages."""

from __future__ import annotations

from evidence.actions.journal import add_note, draft_day
from evidence.actions.reviews import review
from evidence.models import Claim, Figure, Link, Source
from runs.actions.actors import person_actor
from runs.models import Membership, User
from tests.evidence_notes.build import PILOT, Desk, make_desk


def build() -> tuple[Desk, dict[str, str]]:
    """Everything through the actions: notes, a review that disputes, a changed source with its marks, a journal day."""
    desk = make_desk()
    desk.save()
    claim, link = Claim.objects.get(key="signal"), Link.objects.get(claim__key="signal")
    reviewer = User.objects.create_user("rhea")
    Membership.objects.create(study=desk.study, user=reviewer, role=Membership.REVIEWER)
    by = person_actor(reviewer)
    review(
        claim, link=link, verdict="dispute", reason="the share counts other rows", looked_at=["quotation"], by=by,
        at=desk.tick(),
    )  # fmt: skip
    desk.replace(PILOT.replace("nonzero", "different"))
    at = desk.tick()
    draft_day(desk.study, at.date(), by=desk.by, at=at)
    add_note(desk.study, at.date(), "Of [[pilot.usable]] rows, some differ.", "en", by=desk.by, at=desk.tick())
    source, figure = Source.objects.get(path="pilot.md"), Figure.objects.get(key="pilot.usable")
    return desk, {
        "source": f"/sources/{source.uid}/",
        "claimed_source": f"/sources/{Source.objects.get(path='paper.pdf').uid}/",
        "source_difference": f"/sources/{source.uid}/diff/1/2/",
        "figure": f"/figures/{figure.uid}/",
        "figure_card": f"/figures/{figure.uid}/card/",
        "pending_figure": f"/figures/{Figure.objects.get(key='effect').uid}/",
        "claim": f"/claims/{claim.uid}/",
        "claim_revise": f"/claims/{claim.uid}/revise/",
        "review_item": f"/reviews/link:{link.uid}/",
        "claim_item": f"/reviews/claim:{claim.uid}/",
        "stale_graph": f"/stale/graph/source/{source.uid}/",
        "journal_day": f"/studies/{desk.study.slug}/journal/{at.date()}/",
    }
