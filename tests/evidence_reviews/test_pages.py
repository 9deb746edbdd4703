"""Pages of the queue: the list, an item beside its source, verdicts, refusals, answers, holds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone

from evidence.actions.reviews import item_of, reserve
from evidence.models import Answer, Claim, Link, Reservation, Review, Source
from runs.models import Membership, Receipt, Study
from runs.storage import blob_store
from tests.evidence_claims.build import Desk
from tests.evidence_reviews.conftest import signed_in

REVIEWS_COUNT = '<a href="/reviews/"><span>Reviews</span><span class="count alert">{}</span></a>'
VERDICT = {"verdict": "dispute", "reason": "it says something else", "looked_at": ["quotation", "section"]}


def made(desk: Desk) -> tuple[Claim, Link, str]:
    """A claim with a bound number and the link that supports it: (claim, link, address of its item)."""
    desk.figure("ratio")
    claim = desk.claim(text="E3 recovered in [[ratio]] of the tasks.")
    link = desk.link(claim, excerpt=desk.excerpt("both", "E3 recovered in 13/27 tasks, E2F in 1/27"))
    return claim, link, f"/reviews/{item_of('link', link.uid)}/"


def plain(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", html.split('id="main"', 1)[1]))


def test_the_list_counts_by_kind_and_opens_items(desk: Desk) -> None:
    claim, link, address = made(desk)
    answer = signed_in(desk, "rev").get("/reviews/")
    html = answer.content.decode()
    assert answer.context["headline"] == "Waiting for a person: 1 unreviewed link."
    assert f'data-href="{address}"' in html and "Take the next item" in html
    assert "E3 recovered in 13/27 of the tasks." in plain(html) and "free" in html
    assert signed_in(desk, "rev").get("/reviews/?kind=source").context["lines"] == []
    assert Client().get("/reviews/").content.decode().count("Take the next item") == 0
    assert claim.key in html and link.excerpt is not None and link.excerpt.text in plain(html)


def test_an_empty_queue_says_what_fills_it(desk: Desk) -> None:
    text = plain(Client().get("/reviews/").content.decode())
    assert "Nothing waits for a review." in text and "a dispute fills this page" in text
    assert "Every link has a verdict on the words of now." in Client().get("/reviews/?kind=link").content.decode()


def test_taking_reserves_and_opens_the_item(desk: Desk) -> None:
    _claim, _link, address = made(desk)
    client = signed_in(desk, "rev")
    answer = client.post("/reviews/take/", {"study": desk.study.slug})
    assert answer.status_code == 302 and answer["Location"] == address
    assert Reservation.objects.get().actor.name == "rev"
    assert "reserved to you until" in plain(client.get(address).content.decode())
    other = signed_in(desk, "other").get(address)
    assert "reserved to rev until" in plain(other.content.decode()) and not other.context["view"].may
    assert "rev holds this item until" in plain(other.content.decode())


def test_an_item_shows_the_quotation_in_its_lines_with_bound_numbers_underlined(desk: Desk) -> None:
    """The quotation begins on line 1; 13/27 in it is what the figure is bound to, 1/27 is not."""
    _claim, link, address = made(desk)
    html = signed_in(desk, "rev").get(address).content.decode()
    assert "Does line 1 of eval/closure.md carry claim c1?" in html
    marked = "".join(re.findall(r"<mark[^>]*>([^<]*)</mark>", html))
    assert marked == "E3 recovered in 13/27 tasks, E2F in 1/27"
    assert re.findall(r'<mark[^>]*class="bound"[^>]*>([^<]*)</mark>', html) == ["13/27"]
    text = plain(html)
    for part in ("lines 1 to 2 of 2", "quotation found once , exact", "It says nothing of other tasks.", "supports",
                 "verified", "recomputed, equal", "Nobody has reviewed it yet.", "status stays"):  # fmt: skip
        assert part in text or part.replace(" ,", ",") in text, part
    assert link.excerpt is not None and link.excerpt.version.sha256[:16] in html


def test_recording_goes_on_and_says_what_became_of_the_claim(desk: Desk) -> None:
    claim, _link, address = made(desk)
    view = signed_in(desk, "rev").get(address).context["view"]
    told = {card.verdict: card.foretold for card in view.cards}
    assert told["dispute"] == "status falls to not established until it is answered and accepted"
    client = signed_in(desk, "rev")
    answer = client.post(f"{address}record/", VERDICT, follow=True)
    assert answer.redirect_chain[0][0] == "/reviews/"
    claim.refresh_from_db()
    assert claim.status == Claim.NOT_ESTABLISHED and claim.disputed
    assert "Recorded: dispute, independent. Claim c1: not established." in plain(answer.content.decode())
    assert Review.objects.get().looked_at == ["quotation", "section"]


def test_what_is_foretold_is_what_happens(desk: Desk) -> None:
    """Every verdict from the same start, each in its own claim."""
    for number, verdict in enumerate(Review.VERDICTS):
        desk.figure(f"r{number}")
        claim = desk.claim(f"k{number}", f"E3 recovered in [[r{number}]] of the tasks.")
        link = desk.link(claim)
        address = f"/reviews/{item_of('link', link.uid)}/"
        client = signed_in(desk, "rev")
        told = next(c.foretold for c in client.get(address).context["view"].cards if c.verdict == verdict)
        client.post(f"{address}record/", {**VERDICT, "verdict": verdict})
        claim.refresh_from_db()
        assert claim.status.replace("_", " ") in told, (verdict, told, claim.status)


def test_a_refusal_names_the_field_and_keeps_what_was_typed(desk: Desk) -> None:
    _claim, _link, address = made(desk)
    client = signed_in(desk, "rev")
    answer = client.post(f"{address}record/", {"verdict": "accept", "reason": "kept <b>words</b>"})
    html = answer.content.decode()
    assert answer.status_code == 422 and "looked_at: got nothing" in html
    assert "kept &lt;b&gt;words&lt;/b&gt;</textarea>" in html and not Review.objects.exists()


def test_an_author_is_told_why_they_cannot_review(desk: Desk) -> None:
    _claim, _link, address = made(desk)
    client = signed_in(desk, "author", Membership.REVIEWER)
    assert "You wrote version 1 of claim c1" in plain(client.get(address).content.decode())
    answer = client.post(f"{address}record/", VERDICT)
    assert answer.status_code == 403 and "who wrote version 1 of claim c1" in plain(answer.content.decode())
    assert not Review.objects.exists()


def test_a_review_of_what_another_holds_is_a_conflict(desk: Desk) -> None:
    _claim, link, address = made(desk)
    client = signed_in(desk, "rev")
    reserve(desk.study, item_of("link", link.uid), by=desk.reviewer("other"), at=timezone.now())
    for part, data in (("record", VERDICT), ("reserve", {})):
        answer = client.post(f"{address}{part}/", data, headers={"HX-Request": "true"})
        assert answer.status_code == 409 and "which other holds until" in answer.content.decode(), part
    assert not Review.objects.exists()


def test_rights_are_asked_before_anything(desk: Desk) -> None:
    _claim, _link, address = made(desk)
    for name, role in (("res", Membership.RESEARCHER), ("vic", Membership.VIEWER)):
        client = signed_in(desk, name, role)
        for part in ("record", "reserve", "release"):
            assert client.post(f"{address}{part}/", VERDICT).status_code == 403, (role, part)
    assert Client().post(f"{address}record/", VERDICT).status_code == 302
    assert "Only reviewers of this study record verdicts." in plain(Client().get(address).content.decode())
    Study.objects.filter(pk=desk.study.pk).update(visibility="private")
    assert Client().get(address).status_code == 404
    assert Client().get("/reviews/link:00000000-0000-4000-8000-000000000000/").status_code == 404
    assert not Review.objects.exists() and not Reservation.objects.exists()


def test_an_author_answers_from_the_queue_and_the_reviewer_accepts(desk: Desk) -> None:
    claim, link, address = made(desk)
    dispute = desk.review(claim, "dispute", link=link)
    author = signed_in(desk, "author", Membership.RESEARCHER)
    item = f"/reviews/{item_of('answer', dispute.uid)}/"
    first = author.get("/").content.decode()
    assert '<a href="/reviews/?kind=answer">1 dispute to answer</a>' in first and "1 thing needs a look" in first
    assert REVIEWS_COUNT.format(1) in first
    for other in (signed_in(desk, "rev"), signed_in(desk, "reader", Membership.VIEWER), Client()):
        assert "dispute to answer" not in other.get("/").content.decode()
    assert "1 dispute to answer" in plain(author.get("/reviews/").content.decode())
    html = author.get(item).content.decode()
    assert "What answers rev on claim c1?" in html and f"/reviews/answers/{dispute.uid}/" in html
    answered = author.post(f"/reviews/answers/{dispute.uid}/", {"text": "line 1 says so", "next": item})
    assert answered["Location"] == item and Answer.objects.get().text == "line 1 says so"
    page = plain(author.get(item).content.decode())
    assert "answered, waits for an acceptance" in page and "line 1 says so" in page
    first = author.get("/").content.decode()
    assert "dispute to answer" not in first and "Nothing needs a look." in first and REVIEWS_COUNT[:30] in first
    (waits,) = author.get("/reviews/?kind=link").context["lines"]
    assert waits.what == "Answered dispute, waits for an acceptance"
    rev = signed_in(desk, "rev")
    rev.post(f"{address}record/", {**VERDICT, "verdict": "accept"})
    claim.refresh_from_db()
    assert claim.status == Claim.SUPPORTED and not claim.disputed


def test_an_answer_is_refused_to_reviewers_and_leads_nowhere_else(desk: Desk) -> None:
    claim, link, _address = made(desk)
    dispute = desk.review(claim, "dispute", link=link)
    url = f"/reviews/answers/{dispute.uid}/"
    assert signed_in(desk, "rev").post(url, {"text": "mine"}).status_code == 403
    author = signed_in(desk, "author", Membership.RESEARCHER)
    gone = author.post(url, {"text": "a", "next": "https://elsewhere.example/"})
    assert gone["Location"].startswith("/reviews/answer:") and not Answer.objects.exists()
    wrong = author.post(url, {"text": "because", "claim_version": "9"}, follow=True)
    assert "claim_version: got" in plain(wrong.content.decode()) and not Answer.objects.exists()


def test_release_goes_on_to_the_next(desk: Desk) -> None:
    _claim, _link, address = made(desk)
    other = desk.link(desk.claim("c2", "The note was read."))
    client = signed_in(desk, "rev")
    client.post(f"{address}reserve/")
    answer = client.post(f"{address}release/")
    assert answer["Location"] == f"/reviews/{item_of('link', other.uid)}/"
    assert [row.item for row in Reservation.objects.all()] == [item_of("link", other.uid)]


@pytest.mark.parametrize("kind", ["source", "figure"])
def test_a_source_and_a_figure_list_the_claims_that_rest_on_them(desk: Desk, kind: str) -> None:
    claim, _link, _address = made(desk)
    Source.objects.filter(study=desk.study).update(state=Source.DRIFTED)
    row = Source.objects.get(study=desk.study) if kind == "source" else desk.study.figures.get(key="ratio")
    html = signed_in(desk, "rev").get(f"/reviews/{item_of(kind, row.uid)}/").content.decode()
    assert f"/reviews/{item_of('claim', claim.uid)}/" in html and "verdict-form" not in html
    assert signed_in(desk, "rev").post(f"/reviews/{item_of(kind, row.uid)}/record/", VERDICT).status_code == 404


def test_a_claimed_source_shows_a_transcription_and_no_lines(desk: Desk) -> None:
    version = desk.source("paper.pdf", None, sha256="ab" * 32)
    excerpt = desk.excerpt("said", "a sentence of theirs", version=version, text="a sentence of theirs")
    claim = desk.claim()
    link = desk.link(claim, excerpt=excerpt)
    html = signed_in(desk, "rev").get(f"/reviews/{item_of('link', link.uid)}/").content.decode()
    text = plain(html)
    assert "a transcription, not checked" in text and "the bytes are not held here" in text
    assert "a sentence of theirs" in text and 'id="sourcetext"' not in html


def test_bytes_that_drifted_are_shown_and_named(desk: Desk) -> None:
    _claim, link, address = made(desk)
    assert link.excerpt is not None
    path = blob_store().path(link.excerpt.version.sha256)
    kept = path.read_bytes()
    mode = path.stat().st_mode
    path.chmod(0o644)
    try:
        path.write_bytes(kept.replace(b"13/27", b"12/27"))
        text = plain(signed_in(desk, "rev").get(address).content.decode())
    finally:
        path.write_bytes(kept)
        path.chmod(mode)
    assert "are not those of the recorded hash" in text and "quote: got no place" in text and "12/27" in text


def test_what_people_write_is_escaped(desk: Desk) -> None:
    version = desk.source("x.txt", b"one <script>alert(1)</script> here\n")
    excerpt = desk.excerpt("x", "<script>alert(1)</script>", version=version)
    claim = desk.claim("x1", "The note was read.")
    link = desk.link(claim, excerpt=excerpt, reach_en="<img src=x onerror=alert(2)>")
    desk.review(claim, "needs_evidence", link=link)
    html = signed_in(desk, "other").get(f"/reviews/{item_of('link', link.uid)}/").content.decode()
    assert "<script>alert" not in html and "<img src=x" not in html and "&lt;script&gt;alert(1)" in html


def test_the_shortcuts_name_every_key_of_the_review_page(desk: Desk) -> None:
    """Keys that the script reads stand in the dialog that ? opens, and those of the form are its own."""
    link = desk.link(desk.claim())
    page = signed_in(desk, "rev").get(f"/reviews/{item_of('link', link.uid)}/").content.decode()
    dialog = page.partition('id="shortcuts"')[2].partition("</dialog>")[0]
    rows = [row for row in dialog.split("<dt>") if "on a review" in row]
    named = {key for row in rows for key in re.findall(r"<kbd>(.)</kbd>", row)}
    script = (Path(__file__).parents[2] / "static/js/reviews.js").read_text()
    read = set(re.findall(r'event\.key === "(\w)"', script)) | set(re.findall(r'data-key-choice="(\w)"', page))
    assert named == read == {"j", "k", "n", "o", "1", "2", "3"}


def pane(client: Client, name: str, language: str = "en") -> str:
    """The right half of an item's page, as text."""
    client.cookies["django_language"] = language
    page = client.get(f"/reviews/{name}/").content.decode()
    half = page.partition('class="panel reviewsource"')[2].partition("</section>")[0]
    return " ".join(re.sub(r"<[^>]+>", " ", half).split())


def test_a_derived_figure_shows_everything_that_it_rests_on(desk: Desk) -> None:
    """Recovered / cut: two operands with the hash of their source and what each computes to; a lost byte shows."""
    cut = desk.excerpt("cut", "The mask cuts 4 tokens")
    desk.figure("n", "4", excerpt=cut)
    desk.figure("of", "4", excerpt=cut)
    share = {"type": "derivation", "expression": "n / of", "figures": {"n": "n", "of": "of"}}
    figure = desk.figure("share", binding=share, number="")
    claim = desk.claim(text="The share is [[share]].")
    desk.link(claim, "background")
    link = desk.link(claim, figure=figure)
    name, rev = item_of("link", link.uid), signed_in(desk, "rev")
    said = pane(rev, name)
    sha256 = cut.version.sha256
    assert said.count(sha256[:12]) == 2 and "n / of (n = n, of = of)" in said and "of its operands" in said
    assert said.count("computed again, equal") == 3 and "13/27" not in said  # of no other link's source
    path = blob_store().path(sha256)
    path.chmod(0o644)
    path.write_bytes(b"The mask cuts 4 tokens, twice.\n")
    said = pane(rev, name)
    assert "computed again, equal" not in said and said.count("the bytes differ from their recorded hash") >= 3


def test_a_figure_of_a_receipt_shows_the_receipt_with_its_hash(desk: Desk) -> None:
    """The anchor of the evidence stream: its first receipt's place is 1."""
    desk.source()
    receipt = Receipt.objects.filter(stream=f"evidence:{desk.study.uid}").order_by("seq").first()
    assert receipt is not None
    binding = {"type": "receipt", "sha256": receipt.sha256, "pointer": "/seq"}
    figure = desk.figure("place", binding=binding, number="")
    link = desk.link(desk.claim(text="It stands at [[place]]."), figure=figure)
    rev = signed_in(desk, "rev")
    said = pane(rev, item_of("link", link.uid))
    assert receipt.sha256[:12] in said and "a place in a receipt" in said and "computed again, equal" in said
    page = rev.get(f"/reviews/{item_of('link', link.uid)}/").content.decode()
    assert f'href="/receipts/{receipt.sha256}/"' in page


def test_a_pending_figure_shows_what_would_fill_it(desk: Desk) -> None:
    figure = desk.pending()
    link = desk.link(desk.claim(text="It will be [[effect]]."), figure=figure)
    said = pane(signed_in(desk, "rev"), item_of("link", link.uid))
    assert f"{desk.version.plan.slug}: recovery" in said and "pending" in said
