"""Reviews over the API: the rules of the page, with statuses and problems of the API."""

from __future__ import annotations

import uuid

import pytest
from django.utils import timezone

from evidence.actions.reviews import item_of, reserve
from evidence.models import Answer, Claim, Reservation, Review
from runs.models import Membership, Receipt, Study
from tests.api.calls import Api, fields
from tests.api.conftest import make_caller
from tests.evidence_claims.build import Desk

BODY = {"verdict": "accept", "reason": "it says so", "looked_at": ["quotation"]}


def caller(desk: Desk, name: str = "rev", role: str = Membership.REVIEWER, **more: object) -> Api:
    return make_caller(name, desk.study, role, **more)  # type: ignore[arg-type]


def test_a_verdict_is_recorded_read_and_listed(desk: Desk) -> None:
    claim = desk.claim()
    link = desk.link(claim)
    rev = caller(desk)
    answer = rev.post(f"claims/{claim.uid}/reviews", {**BODY, "link": str(link.uid)})
    assert answer.status_code == 201, answer.content
    made = answer.json()
    assert (made["claim_status"], made["claim_disputed"], made["independence"]) == ("supported", False, "independent")
    assert made["link"] == str(link.uid) and made["answers"] == [] and made["claim_version"] == 1
    path = answer["Location"].removeprefix("/api/v1/")
    one = rev.read(path)
    assert one == {name: value for name, value in made.items() if name not in
                   ("claim_status", "claim_cap", "claim_disputed", "claim_provisional")}  # fmt: skip
    assert [row["uid"] for row in rev.read(f"reviews?claim={claim.uid}&verdict=accept")["items"]] == [made["uid"]]
    assert rev.read("reviews?verdict=dispute")["items"] == []
    assert Receipt.objects.filter(subject_uid=made["uid"], kind="evidence.review").count() == 1


def test_a_key_makes_one_review(desk: Desk) -> None:
    claim = desk.claim()
    rev = caller(desk)
    first, again = (rev.post(f"claims/{claim.uid}/reviews", BODY, Idempotency_Key="k-1") for _ in range(2))
    assert first.status_code == again.status_code == 201 and first.json() == again.json()
    assert again["Idempotency-Replayed"] == "true" and Review.objects.count() == 1


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"verdict": "maybe"}, "verdict"),
        ({"reason": "x"}, "reason"),
        ({"reason": 3}, "reason"),
        ({"looked_at": []}, "looked_at"),
        ({"looked_at": ["sky"]}, "looked_at[0]"),
        ({"independence": "independent"}, "independence"),
        ({"link": str(uuid.uuid4())}, "link"),
    ],
)
def test_a_wrong_member_is_named(desk: Desk, change: dict[str, object], field: str) -> None:
    claim = desk.claim()
    answer = caller(desk).post(f"claims/{claim.uid}/reviews", {**BODY, **change})
    assert answer.status_code == 422 and fields(answer)[0].startswith(field.partition("[")[0]), answer.content
    assert not Review.objects.exists()


def test_an_author_is_refused_and_told_why(desk: Desk) -> None:
    claim = desk.claim()
    answer = caller(desk, "author").post(f"claims/{claim.uid}/reviews", BODY)
    assert answer.status_code == 403
    assert "who wrote version 1 of claim c1" in answer.json()["detail"]
    assert "ask a reviewer of another family" in answer.json()["detail"] and not Review.objects.exists()


def test_what_another_holds_is_a_conflict(desk: Desk) -> None:
    claim = desk.claim()
    link = desk.link(claim)
    name = item_of("link", link.uid)
    reserve(desk.study, name, by=desk.reviewer("other"), at=timezone.now())
    rev = caller(desk)
    for path, body in (
        (f"reviews/queue/{name}/reserve", {}),
        (f"claims/{claim.uid}/reviews", {**BODY, "link": str(link.uid)}),
    ):
        answer = rev.post(path, body)
        assert answer.status_code == 409 and "which other holds until" in answer.json()["detail"], path
    assert not Review.objects.exists()


def test_the_queue_is_read_taken_held_and_released(desk: Desk) -> None:
    links = [desk.link(desk.claim(f"c{n}", f"The note was read{'.' * n}")) for n in (1, 2, 3)]
    names = [item_of("link", link.uid) for link in links]
    rev, other = caller(desk), caller(desk, "other")
    found = rev.read("reviews/queue")
    assert found["counts"] == {"link": 3, "source": 0, "figure": 0, "claim": 0, "answer": 0}
    assert [row["item"] for row in found["items"]] == names and found["items"][0]["held_by"] is None
    first = rev.read("reviews/queue?kind=link&limit=2")
    rest = rev.read(f"reviews/queue?kind=link&limit=2&after={first['next_after']}")
    assert [row["item"] for row in first["items"] + rest["items"]] == names and rest["next_after"] is None
    taken = rev.post("reviews/queue/take", {"study": desk.study.slug, "minutes": 5})
    assert taken.status_code == 200 and taken.json()["item"] == names[0]
    assert other.post("reviews/queue/take", {"kind": "link"}).json()["item"] == names[1]
    assert rev.read("reviews/queue")["items"][0]["held_by"] == "rev"
    assert rev.post(f"reviews/queue/{names[0]}/release").json() == {"item": names[0], "released": True}
    assert rev.post(f"reviews/queue/{names[0]}/release").json()["released"] is False
    assert [row.item for row in Reservation.objects.all()] == [names[1]]
    assert rev.post("reviews/queue/take", {"kind": "source"}).status_code == 404


@pytest.mark.parametrize(
    ("query", "field"), [("kind=rubbish", "kind"), ("after=3", "after"), ("study=none", "study"), ("limit=0", "limit"),
                         ("queue=1", "queue")],
)  # fmt: skip
def test_a_wrong_parameter_is_named(desk: Desk, query: str, field: str) -> None:
    answer = caller(desk).get(f"reviews/queue?{query}")
    assert answer.status_code == 400 and fields(answer) == [field]


def test_an_answer_is_the_authors_and_shows_with_the_review(desk: Desk) -> None:
    claim = desk.claim()
    link = desk.link(claim)
    dispute = desk.review(claim, "dispute", link=link)
    path = f"reviews/{dispute.uid}/answers"
    assert caller(desk).post(path, {"text": "mine"}).status_code == 403
    author = caller(desk, "author", Membership.RESEARCHER)
    wrong = author.post(path, {"text": "because", "claim_version": 9})
    assert wrong.status_code == 422 and fields(wrong) == ["claim_version"] and not Answer.objects.exists()
    made = author.post(path, {"text": "line 1 says so"})
    assert made.status_code == 201 and made.json()["claim_version"] is None
    assert author.read(f"reviews/{dispute.uid}")["answers"][0]["text"] == "line 1 says so"
    claim.refresh_from_db()
    assert claim.status == Claim.NOT_ESTABLISHED


def test_rights_and_scopes(desk: Desk) -> None:
    """A token without the scope review reads and changes nothing; strangers find nothing in a private study."""
    claim = desk.claim()
    name = item_of("link", desk.link(claim).uid)
    calls = [
        (f"claims/{claim.uid}/reviews", BODY), (f"reviews/queue/{name}/reserve", {}),
        (f"reviews/queue/{name}/release", None), ("reviews/queue/take", {}),
    ]  # fmt: skip
    for path, body in calls:
        assert caller(desk, "res", Membership.RESEARCHER).post(path, body).status_code == 403, path
        assert caller(desk, "reader", scopes=("read",)).post(path, body).status_code == 403, path
        assert Api("").post(path, body).status_code == 401, path
    Study.objects.filter(pk=desk.study.pk).update(visibility="private")
    stranger = make_caller("stranger")
    for path, body in calls[:3]:
        assert stranger.post(path, body).status_code == 404, path
    assert stranger.read("reviews/queue")["items"] == [] and stranger.read("reviews")["items"] == []
    assert not Review.objects.exists() and not Reservation.objects.exists()
