"""The editor: what is shown comes back as it was, structural edits, refusals beside the field, nothing lost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from evidence.models import AcceptanceContract, NotesVersion
from evidence.notes import edits, shapes
from evidence.notes.form import Form, Reader
from evidence.notes.read import document_of
from evidence.notes.schema import normalise
from runs.models import Membership, Study, User

from .build import Desk, said, whole
from .walk import Element, parse

EDIT = "/studies/pilot/notes/edit/"


@pytest.fixture
def author(written: Desk) -> Client:
    """Someone who may write in the study."""
    return signed_in(written, "mara", Membership.RESEARCHER)


def signed_in(desk: Desk, name: str, role: str) -> Client:
    """A browser of a member of the study."""
    user = User.objects.create(username=name)
    Membership.objects.create(study=desk.study, user=user, role=role)
    client = Client()
    client.force_login(user)
    return client


def fields(html: str) -> dict[str, str]:
    """What a browser would send of the editor's form, without buttons."""
    found: dict[str, str] = {}
    form = next(item for item in parse(html).all() if item.attributes.get("id") == "notes-editor")
    for item in form.all():
        name = item.attributes.get("name")
        if not name or item.tag == "button":
            continue
        if item.tag == "select":
            chosen = [part for part in item.all() if part.tag == "option" and "selected" in part.attributes]
            found[name] = chosen[0].attributes["value"] if chosen else _first(item)
        elif item.tag == "textarea":
            found[name] = item.text().removeprefix("\n")
        elif item.attributes.get("type") != "checkbox" or "checked" in item.attributes:
            found[name] = item.attributes.get("value", "")
    return found


def _first(select: Element) -> str:
    return next(item.attributes["value"] for item in select.all() if item.tag == "option")


def open_part(client: Client, part: str = "page") -> dict[str, str]:
    """The fields of a part of the page."""
    answer = client.get(EDIT, {"part": part})
    assert answer.status_code == 200
    return fields(answer.content.decode())


def send(client: Client, data: dict[str, str], do: str, **changed: str) -> Any:
    """Press a button."""
    return client.post(EDIT, {**data, **changed, "do": do})


@pytest.mark.parametrize("part", ["page", *shapes.SECTIONS])
def test_a_form_that_nobody_touched_is_the_document(author: Client, written: Desk, part: str) -> None:
    """Every kind of field goes out and comes back: the document that is checked is the stored one."""
    answer = send(author, open_part(author, part), "check")
    assert answer.status_code == 200
    assert json.loads(fields(answer.content.decode())["document"]) == normalise(whole())


def test_form_and_reader_are_inverse_for_every_shape() -> None:
    document = normalise(whole())
    for node in Form().members(document, "root", ""):
        assert node.path in document
    posted = {"f:title.en": "a\r\nb\x00", "f:title.zh": "", "n:cards": "-1"}
    found = Reader(posted).members("root", "")
    assert found["title"] == {"en": "a\nb", "zh": ""} and found["cards"] == [] and found["imported"] is None


def test_a_changed_text_is_saved_as_the_next_version_with_its_reason(author: Client, written: Desk) -> None:
    data = open_part(author, "why")
    answer = send(author, data, "save", **{"f:sections.0.title.en": "Why at all", "reason": "shorter"})
    assert answer.status_code == 302 and answer["Location"] == "/studies/pilot/notes/"
    saved = NotesVersion.objects.latest("number")
    assert (saved.number, saved.reason, saved.actor.name) == (2, "shorter", "mara")
    assert document_of(saved)["sections"][0]["title"] == said("Why at all", "为什么做")


@pytest.mark.parametrize(
    "name, typed, message",
    [
        ("f:sections.0.blocks.0.text.en", "It gained 12 points", "bind the number"),
        ("f:sections.0.blocks.0.text.zh", "提升了两成", "bind the number"),
        ("f:sections.0.blocks.0.sources", "R1, R9", "a source of this study"),
        ("f:sections.0.title.en", "{{name:O42}} stops", "declares with its reason"),
    ],
)
def test_a_refused_save_keeps_what_was_typed_with_the_fault_beside_it(
    author: Client, name: str, typed: str, message: str
) -> None:
    answer = send(author, open_part(author, "why"), "save", **{name: typed, "reason": "try"})
    html = answer.content.decode()
    assert answer.status_code == 422 and "nothing is lost" in html
    again = fields(html)
    assert again[name] == typed and again["reason"] == "try"
    assert message in html and 'aria-invalid="true"' in html
    assert NotesVersion.objects.count() == 1


def test_another_part_keeps_what_was_typed_in_the_first(author: Client) -> None:
    first = send(author, open_part(author, "why"), "go:results", **{"f:sections.0.title.en": "Why at all"})
    second = fields(first.content.decode())
    assert second["part"] == "results" and "f:sections.3.title.en" in second
    back = fields(send(author, second, "go:why").content.decode())
    assert back["f:sections.0.title.en"] == "Why at all"


def test_blocks_rows_and_columns_are_added_moved_and_removed(author: Client) -> None:
    data = open_part(author, "verify")
    data = fields(send(author, data, "add:sections.2.blocks:paragraph").content.decode())
    assert data["n:sections.2.blocks"] == "2" and data["f:sections.2.blocks.1.type"] == "paragraph"
    data = fields(send(author, data, "up:sections.2.blocks.1").content.decode())
    assert data["f:sections.2.blocks.0.type"] == "paragraph"
    data = fields(send(author, data, "remove:sections.2.blocks.0").content.decode())
    data = fields(send(author, data, "add:sections.2.blocks.0.columns:text").content.decode())
    assert data["n:sections.2.blocks.0.rows.0"] == "3", "a new column gives every row a cell"
    data = fields(send(author, data, "remove:sections.2.blocks.0.columns.0").content.decode())
    assert data["n:sections.2.blocks.0.rows.0"] == "2" and data["f:sections.2.blocks.0.rows.0.0.kind"] == "state"
    data = fields(send(author, data, "add:sections.2.blocks.0.rows:row").content.decode())
    assert data["n:sections.2.blocks.0.rows"] == "3" and data["n:sections.2.blocks.0.rows.2"] == "2"


@pytest.mark.parametrize(
    "do", ["add:nowhere:paragraph", "remove:sections.99", "add:title:paragraph", "dance", "up:x.y"]
)
def test_an_edit_that_leads_nowhere_changes_nothing(author: Client, do: str) -> None:
    data = open_part(author, "why")
    again = fields(send(author, data, do).content.decode())
    assert json.loads(again["document"]) == json.loads(data["document"])


def test_who_began_from_an_older_version_is_told_and_keeps_the_words(author: Client, written: Desk) -> None:
    data = open_part(author, "why")
    written.save(whole(subtitle=said("Theirs")), "theirs")
    answer = send(author, data, "save", **{"f:sections.0.title.en": "Mine", "reason": "mine"})
    assert answer.status_code == 409 and "another version was saved meanwhile" in answer.content.decode()
    assert fields(answer.content.decode())["f:sections.0.title.en"] == "Mine"


def test_a_preview_is_the_page_and_stores_nothing(author: Client) -> None:
    answer = send(author, open_part(author), "preview", **{"f:title.en": "Seen before it is saved"})
    html = answer.content.decode()
    assert answer.status_code == 200 and "Seen before it is saved" in html and "Preview, not saved" in html
    assert "data-section" in html and NotesVersion.objects.count() == 1


@pytest.mark.parametrize("document", ["", "[]", "{", '{"sections": []}', '{"schema": 1}', "null"])
def test_a_forged_working_document_is_refused(author: Client, document: str) -> None:
    answer = send(author, open_part(author, "why"), "save", document=document)
    assert answer.status_code == 422 and "no working document" in answer.content.decode()
    assert NotesVersion.objects.count() == 1


def test_the_live_check_names_what_a_sentence_may_not_say(author: Client) -> None:
    found = author.post("/studies/pilot/notes/check/", {"text": "It improves by 12 points", "language": "en"}).json()
    assert [item["text"] for item in found["refused"]] == ["12"]
    assert found["caution"], "a description does not claim an improvement"
    clean = author.post("/studies/pilot/notes/check/", {"text": "[[pilot.share]] hold", "language": "en"}).json()
    assert clean == {"refused": [], "caution": []}


def test_only_those_who_may_write_evidence_reach_the_editor(written: Desk) -> None:
    assert Client().get(EDIT).status_code in (302, 403)
    reader = signed_in(written, "rui", Membership.REVIEWER)
    assert reader.get(EDIT).status_code == 403
    assert reader.post("/studies/pilot/notes/check/", {"text": "x"}).status_code == 403
    assert reader.post("/studies/pilot/notes/contract/", {"status": "accepted"}).status_code == 403
    Study.objects.filter(pk=written.study.pk).update(visibility=Study.PRIVATE)
    stranger = Client()
    stranger.force_login(User.objects.create(username="stranger"))
    assert stranger.get(EDIT).status_code == 404
    assert NotesVersion.objects.count() == 1


def test_a_study_without_notes_begins_with_a_blank_document(desk: Desk) -> None:
    client = signed_in(desk, "mara", Membership.RESEARCHER)
    data = open_part(client)
    assert data["base"] == "0" and data["n:cards"] == "3" and data["f:cards.1.role"] == "blocked"
    filled = {
        "f:title.en": "A note",
        "f:state.en": "open",
        **{f"f:cards.{at}.text.en": "Nothing yet" for at in range(3)},
    }
    assert send(client, data, "save", **filled).status_code == 302
    assert document_of(NotesVersion.objects.get())["sections"][10]["blocks"] == [{"type": "sources"}]


def test_a_contract_is_recorded_from_the_editor_and_refused_with_its_reason(author: Client) -> None:
    answer = author.post("/studies/pilot/notes/contract/", {"status": "accepted", "assurance": "results"}, follow=True)
    assert "manuscript_sha256: got nothing" in answer.content.decode()
    author.post("/studies/pilot/notes/contract/", {"status": "accepted", "assurance": "draft"})
    assert AcceptanceContract.objects.get().assurance == "draft"


def test_edits_refuse_paths_of_another_kind() -> None:
    document = normalise(whole())
    with pytest.raises(ValueError, match="do: got"):
        edits.apply(document, "add:sections.0.blocks:unheard")
