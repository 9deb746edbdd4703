"""Search by name, uid and hash."""

from __future__ import annotations

from django.test import Client

from runs.access import Principal
from runs.models import Receipt, Turn
from runs.presenters.search import find
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
