"""Quoting a place of a source on its page: what is found once becomes an excerpt, anything else is refused."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from evidence.actions.sources import add_source
from evidence.models import Excerpt, SourceVersion
from runs.models import Membership, Study, User

NOTE = b"Rounds: 31 of 40.\nIn the end 31 of them held.\n"


def post(client: Client, version: SourceVersion, **given: Any) -> Any:
    address = f"/sources/{version.source.uid}/quote/"
    return client.post(address, {"version": version.number, "key": "rounds", "form": "quote", **given})


@pytest.fixture
def version(study: Study, acting: dict[str, Any]) -> SourceVersion:
    return add_source(study, "notes/a.md", NOTE, origin="upload", **acting)


def test_a_place_is_quoted_and_shown(signed_in: Client, version: SourceVersion) -> None:
    page = signed_in.get(f"/sources/{version.source.uid}/").content.decode()
    assert 'id="quote-exact"' in page and "quote-pointer" not in page
    answer = post(signed_in, version, exact="31 of 40", note="first line")
    found = Excerpt.objects.get()
    assert answer["Location"] == f"/sources/{version.source.uid}/?version=1#e-rounds"
    assert (found.key, found.text, found.note, found.kind) == ("rounds", "31 of 40", "first line", "matched")
    assert found.selector["line"] == 1 and found.actor.name == "mara"
    assert 'id="e-rounds"' in signed_in.get(answer["Location"]).content.decode()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"exact": "31 of"}, "expected exactly one"),
        ({"exact": "32 of 40"}, "expected exactly one"),
        ({"exact": ""}, "exact"),
        ({"exact": "1 of 40"}, "31"),
        ({"exact": "31 of 40", "key": "no key"}, "key: got"),
        ({"exact": "31 of 40", "form": "other"}, "form: got"),
    ],
)
def test_what_is_not_one_place_is_refused_and_keeps_what_was_typed(
    signed_in: Client, version: SourceVersion, given: dict[str, str], words: str
) -> None:
    answer = post(signed_in, version, note="mine", **given)
    page = answer.content.decode()
    assert answer.status_code == 422 and not Excerpt.objects.exists()
    assert words in page and 'value="mine"' in page and 'role="alert"' in page


def test_text_around_tells_two_places_apart(signed_in: Client, version: SourceVersion) -> None:
    assert post(signed_in, version, exact="31 of", prefix="Rounds: ").status_code == 302
    assert post(signed_in, version, exact="31 of", suffix=" them", key="end").status_code == 302
    assert [item.selector["line"] for item in Excerpt.objects.order_by("pk")] == [1, 2]


def test_line_ends_of_a_browser_are_those_of_the_file(signed_in: Client, version: SourceVersion) -> None:
    assert post(signed_in, version, exact="of 40.\r\nIn the end").status_code == 302
    assert Excerpt.objects.get().text == "of 40.\nIn the end"


def test_values_of_json_and_cells_of_tables_are_quoted_by_their_place(
    signed_in: Client, study: Study, acting: dict[str, Any]
) -> None:
    document = add_source(study, "a.json", b'{"rows": [{"n": 31}]}', origin="upload", **acting)
    table = add_source(study, "a.csv", b"arm,n\nB,30\nM,31\n", origin="upload", **acting)
    assert post(signed_in, document, form="pointer", pointer="/rows/0/n").status_code == 302
    given = {"form": "cell", "column": "n", "key_column": "arm", "row": "M", "key": "cell"}
    assert post(signed_in, table, **given).status_code == 302
    assert [item.text for item in Excerpt.objects.order_by("pk")] == ["31", "31"]
    assert post(signed_in, table, **{**given, "row": "X", "key": "none"}).status_code == 422


def test_bytes_that_are_not_held_are_transcribed(signed_in: Client, study: Study, acting: dict[str, Any]) -> None:
    claimed = add_source(study, "b.md", None, origin="imported", sha256="ab" * 32, **acting)
    assert "Transcription" in signed_in.get(f"/sources/{claimed.source.uid}/").content.decode()
    assert post(signed_in, claimed, exact="31 of 40").status_code == 302
    assert Excerpt.objects.get().kind == "transcribed"


def test_only_who_writes_evidence_quotes(client: Client, study: Study, version: SourceVersion) -> None:
    reviewer = User.objects.create(username="rita")
    Membership.objects.create(study=study, user=reviewer, role=Membership.REVIEWER)
    client.force_login(reviewer)
    assert 'id="quote-exact"' not in client.get(f"/sources/{version.source.uid}/").content.decode()
    assert post(client, version, exact="31 of 40").status_code == 403 and not Excerpt.objects.exists()
