"""Pages of claims: list, one claim, forms with their refusals beside the field."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from evidence.actions.claims import add_claim
from evidence.models import Claim, ClaimVersion, Link
from runs.models import Membership, User
from tests.evidence_claims.build import Desk


@pytest.fixture
def author(desk: Desk, client: Client) -> Client:
    """A client signed in as the author."""
    client.force_login(User.objects.get(username="author"))
    return client


def words_of(response: Any) -> str:
    """The page as text."""
    found: str = response.content.decode()
    return found


def form(**more: str) -> dict[str, str]:
    """What the form of a new claim sends."""
    return {"study": "fatal-mask-pair", "key": "c1", "kind": "description", "text_en": "Runs were made.", **more}


def test_the_list_counts_and_narrows(desk: Desk, client: Client) -> None:
    desk.figure("n")
    claim = desk.claim("c1", "Counted on the note: [[n]].")
    desk.review(claim, link=desk.link(claim))
    desk.claim("c2", "Another sentence.", kind="negative")
    page = words_of(client.get(reverse("evidence:claims")))
    assert "2 claims; 1 is supported" in page and "Counted on the note: 13/27." in page and "c2@1" in page
    for query, wanted, other in (
        ("status=supported", "c1@1", "c2@1"), ("kind=negative", "c2@1", "c1@1"), ("q=another", "c2@1", "c1@1"),
        ("study=fatal-mask-pair&q=c1", "c1@1", "c2@1"),
    ):  # fmt: skip
        page = words_of(client.get(f"{reverse('evidence:claims')}?{query}"))
        assert wanted in page and other not in page, query
    assert client.get(f"{reverse('evidence:claims')}?status=splendid").status_code == 404
    assert "No claim that you can see" in words_of(client.get(f"{reverse('evidence:claims')}?flag=stale"))


def test_the_page_says_status_cap_evidence_and_history(desk: Desk, client: Client) -> None:
    desk.figure("n")
    claim = desk.claim("c1", "Counted on the note: [[n]].", scope_en="This note.")
    desk.link(claim)
    claim = desk.claim("c1", "Counted on that note: [[n]].", reason="which note", scope_en="This note.")
    page = words_of(client.get(reverse("evidence:claim", args=[claim.uid])))
    assert 'data-key="n"' in page and "13/27" in page
    assert "No reviewer has accepted these words" in page and "an acceptance by an independent reviewer" in page
    assert "<mark>13/27 tasks</mark>" in page and "It says nothing of other tasks." in page
    assert "<ins>that</ins>" in page and "<del>the</del>" in page and "which note" in page and "This note." in page
    assert "Revise the words" not in page


def test_a_hidden_study_hides_its_claims(desk: Desk, client: Client) -> None:
    claim = desk.claim()
    type(desk.study).objects.filter(pk=desk.study.pk).update(visibility="private")
    assert client.get(reverse("evidence:claim", args=[claim.uid])).status_code == 404
    assert "c1@1" not in words_of(client.get(reverse("evidence:claims")))


def test_an_author_writes_a_claim(desk: Desk, author: Client) -> None:
    page = author.get(f"{reverse('evidence:claim_new')}?study={desk.study.slug}")
    assert page.status_code == 200 and "Frozen plan" in words_of(page)
    answer = author.post(reverse("evidence:claim_new"), form())
    claim = Claim.objects.get(key="c1")
    assert answer.status_code == 302 and answer["Location"] == reverse("evidence:claim", args=[claim.uid])
    assert "Revise the words" in words_of(author.get(answer["Location"]))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"text_en": "Recovery rose by 12 points."}, "/figures/new/"),
        ({"text_en": "It improves recovery."}, "“improves” claims an improvement"),
        ({"text_zh": "恢复率提升了。"}, "“提升” claims an improvement"),
        ({"kind": "equivalence", "text_en": "They are equivalent."}, "an endpoint with an equivalence interval"),
        ({"text_en": "Counted: [[nowhere]]."}, "nowhere"),
        ({"text_en": " "}, "expected a sentence"),
        ({"key": "a b"}, "letters, digits"),
        ({"plan_version": "no"}, "got no frozen plan"),
    ],
)
def test_what_is_refused_stands_beside_its_field_with_everything_typed(
    desk: Desk, author: Client, change: dict[str, str], said: str
) -> None:
    sent = form(scope_en="Only here.", **change)
    answer = author.post(reverse("evidence:claim_new"), sent)
    page = words_of(answer)
    assert answer.status_code == 422 and said in page.replace("&quot;", '"')
    assert "Only here." in page and sent["text_en"].strip() in page
    assert not Claim.objects.exists()


def test_a_revision_needs_a_reason(desk: Desk, author: Client) -> None:
    claim = desk.claim()
    url = reverse("evidence:claim_revise", args=[claim.uid])
    assert claim.current is not None and claim.current.text_en.split(" ")[1] in words_of(author.get(url))
    answer = author.post(url, form(text_en="Other words."))
    assert answer.status_code == 422 and "why the words change" in words_of(answer)
    assert author.post(url, form(text_en="Other words.", reason="clearer")).status_code == 302
    assert ClaimVersion.objects.get(claim=claim, number=2).text_en == "Other words."


def test_a_revision_beside_another_loses_nothing(desk: Desk, author: Client) -> None:
    claim = desk.claim()
    url = reverse("evidence:claim_revise", args=[claim.uid])
    assert b'name="base" value="1"' in author.get(url).content
    desk.claim(text="Somebody else wrote this.", reason="theirs")
    answer = author.post(url, form(text_en="My own words.", reason="mine", base="1"))
    page = answer.content.decode()
    assert answer.status_code == 409 and "My own words." in page and "mine" in page
    assert "by now: “Somebody else wrote this.”" in page and 'name="base" value="2"' in page
    assert ClaimVersion.objects.filter(claim=claim).count() == 2
    assert author.post(url, form(text_en="My own words.", reason="mine", base="2")).status_code == 302
    assert ClaimVersion.objects.get(claim=claim, number=3).text_en == "My own words."


def test_a_status_is_lowered_and_never_raised(desk: Desk, author: Client) -> None:
    claim = desk.claim()
    desk.link(claim)
    url = reverse("evidence:claim_lower", args=[claim.uid])
    answer = author.post(url, {"status": "supported", "reason": "I am sure of it"})
    page = words_of(answer)
    assert answer.status_code == 422 and "expected at most partly" in page and "I am sure of it" in page
    assert author.post(url, {"status": "not_established", "reason": "too little"}).status_code == 302
    claim.refresh_from_db()
    assert (claim.status, claim.cap) == ("not_established", "partly")


def test_links_are_added_and_withdrawn(desk: Desk, author: Client) -> None:
    claim, excerpt = desk.claim(), desk.excerpt()
    url = reverse("evidence:claim_link", args=[claim.uid])
    answer = author.post(url, {"evidence": "nothing", "relation": "supports", "reach_en": "kept"})
    assert answer.status_code == 422 and "the key of an excerpt or a figure" in words_of(answer)
    assert ">kept<" in words_of(answer)
    assert author.post(url, {"evidence": f"excerpt:{excerpt.key}", "relation": "supports"}).status_code == 302
    link = Link.objects.get(claim=claim)
    gone = reverse("evidence:link_withdraw", args=[link.uid])
    assert author.post(gone, {"reason": ""}).status_code == 422
    assert author.post(gone, {"reason": "a mistake"}).status_code == 302
    assert "a mistake" in words_of(author.get(reverse("evidence:claim", args=[claim.uid])))


def test_a_withdrawn_claim_stays_readable_and_takes_no_change(desk: Desk, author: Client) -> None:
    claim = desk.claim()
    assert author.post(reverse("evidence:claim_withdraw", args=[claim.uid]), {"reason": "wrong"}).status_code == 302
    page = words_of(author.get(reverse("evidence:claim", args=[claim.uid])))
    assert "It was withdrawn: “wrong”" in page and "Revise the words" not in page
    answer = author.post(reverse("evidence:claim_revise", args=[claim.uid]), form(reason="again"))
    assert answer.status_code == 422 and "was withdrawn" in words_of(answer)


def test_only_who_may_write_evidence_changes_claims(desk: Desk, client: Client) -> None:
    claim = desk.claim()
    user = User.objects.create(username="viewer")
    Membership.objects.create(study=desk.study, user=user, role=Membership.VIEWER)
    new, lower = reverse("evidence:claim_new"), reverse("evidence:claim_lower", args=[claim.uid])
    assert client.post(new, form()).status_code == 302  # to the sign-in page
    client.force_login(user)
    assert client.get(f"{new}?study={desk.study.slug}").status_code == 403
    assert client.post(lower, {"status": "not_established", "reason": "no"}).status_code == 403
    assert ClaimVersion.objects.count() == 1


def test_the_live_check_names_the_phrase_and_where_it_stands(desk: Desk, author: Client, client: Client) -> None:
    def ask(**more: str) -> Any:
        body = {"text": "E3 improves it by 5.", "kind": "description", "language": "en", "study": desk.study.slug}
        return author.post(
            reverse("evidence:claim_check"), json.dumps({**body, **more}), content_type="application/json"
        )

    troubles = ask().json()["troubles"]
    assert {item["code"] for item in troubles} == {"bare_number", "phrase"}
    phrase = next(item for item in troubles if item["code"] == "phrase")
    assert (phrase["text"], phrase["start"], phrase["stop"], phrase["field"]) == ("improves", 3, 11, "text")
    assert ask(text="Runs were made.").json() == {"troubles": []}
    assert ask(text="").json() == {"troubles": []}
    assert ask(kind="improvement", text="It improves.").json()["troubles"][0]["field"] == "plan_version"
    assert ask(language="fr").status_code == 400 and ask(study="none").status_code == 404
    author.logout()
    assert ask().status_code == 302


def test_the_list_takes_as_many_queries_for_fifty_claims_as_for_two(
    desk: Desk, client: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    desk.figure("n")
    for number in range(50):
        add_claim(desk.study, f"k{number}", text_en="Counted: [[n]].", kind="description", **desk.by())
    with django_assert_max_num_queries(26):
        page = words_of(client.get(reverse("evidence:claims")))
    assert page.count("Counted: 13/27.") == 50


def test_the_page_of_a_claim_takes_a_fixed_number_of_queries(
    desk: Desk, client: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    claim = desk.claim()
    for number in range(12):
        desk.link(claim, excerpt=desk.excerpt(f"e{number}"))
    desk.review(claim)
    with django_assert_max_num_queries(60):
        assert client.get(reverse("evidence:claim", args=[claim.uid])).status_code == 200
