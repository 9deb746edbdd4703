"""The expected rights of reviews, written by hand; letters and columns as in ``rights``.

Only reviewers judge: an admin of the study is none, and neither is the site's.
"""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from evidence.actions.claims import add_claim
from evidence.actions.excerpts import add_excerpt
from evidence.actions.links import add_link
from evidence.actions.reviews import review
from evidence.actions.sources import add_source
from runs.actions.actors import service_actor
from tests.pages.state import World
from tests.people.rights_row import EVERYONE, READERS, WRITERS, Row

_REVIEWERS = "lnffofff"
_API = "/api/v1/"
_ITEM = "link:{link}"
_VERDICT: dict[str, Any] = {"verdict": "accept", "reason": "it says so", "looked_at": ["quotation"]}
_ANSWER: dict[str, Any] = {"text": "it says so"}

REVIEWS = [
    Row("evidence:reviews", "GET", "/reviews/", EVERYONE),
    Row("evidence:review_take", "POST", "/reviews/take/", _REVIEWERS, {"study": "{study}"}),
    Row("evidence:review_answer", "POST", "/reviews/answers/{dispute}/", WRITERS, _ANSWER),
    Row("evidence:review_item", "GET", f"/reviews/{_ITEM}/", READERS),
    Row("evidence:review_reserve", "POST", f"/reviews/{_ITEM}/reserve/", _REVIEWERS),
    Row("evidence:review_release", "POST", f"/reviews/{_ITEM}/release/", _REVIEWERS),
    Row("evidence:review_record", "POST", f"/reviews/{_ITEM}/record/", _REVIEWERS, _VERDICT),
    Row("evidence_api:reviews", "GET", _API + "reviews", EVERYONE),
    Row("evidence_api:review_queue", "GET", _API + "reviews/queue", EVERYONE),
    # The study is named nowhere: who reviews in none is told so, the stranger too.
    Row("evidence_api:review_take", "POST", _API + "reviews/queue/take", "lfffofff"),
    Row("evidence_api:review_reserve", "POST", _API + f"reviews/queue/{_ITEM}/reserve", _REVIEWERS),
    Row("evidence_api:review_release", "POST", _API + f"reviews/queue/{_ITEM}/release", _REVIEWERS),
    Row("evidence_api:review", "GET", _API + "reviews/{dispute}", READERS),
    Row("evidence_api:review_answer", "POST", _API + "reviews/{dispute}/answers", WRITERS, _ANSWER),
    Row("evidence_api:claim_review", "POST", _API + "claims/{claim}/reviews", _REVIEWERS, _VERDICT),
]


def parts(world: World) -> dict[str, Any]:
    """A claim with a link, and a dispute of the claim: written by services, so that nobody here is their author."""
    study, at = world.study, timezone.now()
    author, auditor = service_actor("author"), service_actor("auditor")
    version = add_source(study, "rights/note.md", b"The note was read.\n", origin="upload", by=author, at=at)
    excerpt = add_excerpt(study, version, "rights.note", "quote", {"exact": "note was read"}, by=author, at=at)
    words = add_claim(study, "rights.claim", text_en="The note was read.", kind="description", by=author, at=at)
    link = add_link(words.claim, excerpt=excerpt, relation="supports", reach_en="No more.", by=author, at=at)
    dispute = review(words.claim, verdict="dispute", reason="who read it?", looked_at=["quotation"], by=auditor, at=at)
    return {"claim": words.claim.uid, "link": link.uid, "dispute": dispute.uid}
