"""Search by name, uid and hash."""

from __future__ import annotations

from django.test import Client

from runs.access import Principal
from runs.models import Receipt, Study, Turn
from runs.presenters.search import find, search
from tests.pages.state import World

NOBODY = Principal(None)


def test_names_uids_and_hashes(world: World, db: None) -> None:
    run = world.runs["e3-s17"]
    receipt = Receipt.objects.first()
    turn = Turn.objects.first()
    assert receipt is not None and turn is not None and turn.capture_sha256 is not None
    assert any(hit.identity == str(run.uid) for hit in find(NOBODY, "e3-s17"))
    assert any(hit.identity == str(run.uid) for hit in find(NOBODY, str(run.uid)[:9]))
    assert [hit.url for hit in find(NOBODY, receipt.sha256[:20])] == [f"/receipts/{receipt.sha256}/"]
    assert any(hit.url.endswith(f"#d{turn.decision}") for hit in find(NOBODY, turn.capture_sha256[:16]))
    assert [hit.name for hit in find(NOBODY, world.version.sha256[:16])] == ["small"]


def test_too_short_or_unknown_finds_nothing(client: Client, world: World, db: None) -> None:
    assert find(NOBODY, "") == find(NOBODY, "a") == []
    assert "Nothing stored begins with this" in client.get("/search/", {"q": "zzzzzz"}).content.decode()


def test_markup_in_a_query_stays_text(client: Client, world: World, db: None) -> None:
    text = client.get("/search/", {"q": "<script>x</script>"}).content.decode()
    assert "<script>x" not in text


def test_a_term_leads_to_the_lists_that_know_it(client: Client, world: World, db: None) -> None:
    text = client.get("/search/", {"q": "has:fatal"}).content.decode()
    assert 'href="/trajectories/?q=has%3Afatal"' in text and 'href="/tasks/?q=' not in text


def test_a_term_that_no_list_knows_is_named(client: Client, world: World, db: None) -> None:
    answer = client.get("/search/", {"q": "has:fatl"})
    assert answer.status_code == 400 and "has:fatal" in answer.content.decode()


def test_hidden_rows_are_not_found(world: World, db: None) -> None:
    turn, run = Turn.objects.first(), world.runs["e3-s17"]
    assert turn is not None and turn.capture_sha256 is not None
    Study.objects.filter(pk=world.study.pk).update(visibility="private")
    for query in ("e3-s17", str(run.uid)[:9], turn.capture_sha256[:16], world.version.sha256[:16], "small", "invoice"):
        assert find(NOBODY, query) == []
    assert search(NOBODY, "has:fatal").routes == []
