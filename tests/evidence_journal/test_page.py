"""The journal's pages and API: days, lines with their receipts, drafting, notes."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from evidence.actions.journal import add_note, draft_day
from evidence.models import JournalDay, JournalNote
from runs.models import Membership, User
from tests.api.calls import Api, fields
from tests.api.conftest import make_caller
from tests.evidence_outward.conftest import World
from tests.evidence_outward.world import AT

pytestmark = pytest.mark.django_db
PAGE, DAY = "/studies/scripted/journal/", str(AT.date())


@pytest.fixture(autouse=True)
def empty_buckets() -> None:
    cache.clear()


@pytest.fixture
def mara(world: World) -> Client:
    client = Client()
    client.force_login(world.made["author"])
    return client


@pytest.fixture
def drafted(world: World) -> JournalDay:
    return draft_day(world.study, AT.date(), **world.made["acting"])


def test_lines_link_to_their_receipts(drafted: JournalDay, mara: Client) -> None:
    text = mara.get(PAGE).content.decode()
    for line in drafted.lines:
        assert f"/receipts/{line['receipt']}/" in text
    assert f'id="day-{DAY}"' in text and "Sources added" in text


def test_every_number_of_a_line_carries_its_place(drafted: JournalDay, mara: Client) -> None:
    """Outside values, times, hashes and names there is no digit in a line's words."""
    text = mara.get(f"{PAGE}{DAY}/").content.decode()
    for words in re.findall(r'<span class="journal-words">(.*?)</span>', text, re.S):
        bare = re.sub(r"<(a|b) class=\"journal-value[ \"].*?</\1>", "", words, flags=re.S)
        assert not any(character.isdigit() for character in bare), bare


def test_in_chinese(drafted: JournalDay, mara: Client) -> None:
    text = mara.get(PAGE, headers={"Accept-Language": "zh-hans"}).content.decode()
    assert "新增来源" in text


def test_draft_and_note(world: World, mara: Client) -> None:
    mara.post(f"{PAGE}draft/", {"day": DAY})
    assert JournalDay.objects.filter(day=DAY).count() == 1
    response = mara.post(f"{PAGE}note/", {"day": DAY, "text": "Kept [[pilot.usable]]. <b>x</b>", "language": "en"})
    assert response["Location"].endswith(f"#day-{DAY}")
    text = mara.get(f"{PAGE}{DAY}/").content.decode()
    assert "&lt;b&gt;x&lt;/b&gt;" in text and 'data-key="pilot.usable"' in text


@pytest.mark.parametrize(
    ("address", "given", "words"),
    [
        ("draft", {"day": "tomorrow"}, "2026-11-30"),
        ("draft", {"day": "1999-01-01"}, "no receipt"),
        ("note", {"day": DAY, "text": "We kept 244.", "language": "en"}, "bind"),
        ("note", {"day": DAY, "text": "", "language": "en"}, "text: got 0"),
        ("note", {"day": DAY, "text": "x", "language": "fr"}, "language"),
    ],
)
def test_refusals_say_why(world: World, mara: Client, address: str, given: dict[str, str], words: str) -> None:
    assert words in mara.post(f"{PAGE}{address}/", given, follow=True).content.decode()
    assert not JournalDay.objects.exists() and not JournalNote.objects.exists()


def test_rights(world: World, drafted: JournalDay) -> None:
    """A reviewer may write notes and not draft; a viewer reads; nobody signs in first; a hidden study is not there."""
    reader, viewer = Client(), Client()
    reader.force_login(world.made["reader"])
    vera = User.objects.create(username="vera")
    Membership.objects.create(study=world.study, user=vera, role=Membership.VIEWER)
    viewer.force_login(vera)
    note = {"day": DAY, "text": "Looked at it.", "language": "en"}
    assert reader.post(f"{PAGE}note/", note).status_code == 302 and JournalNote.objects.count() == 1
    assert reader.post(f"{PAGE}draft/", {"day": DAY}).status_code == 403
    assert viewer.post(f"{PAGE}note/", note).status_code == 403
    assert viewer.get(PAGE).status_code == 200 and "<textarea" not in viewer.get(PAGE).content.decode()
    assert Client().post(f"{PAGE}note/", note).status_code == 302 and JournalNote.objects.count() == 1
    assert viewer.get(f"{PAGE}1999-01-01/").status_code == 404 and viewer.get(f"{PAGE}x/").status_code == 404
    world.study.visibility = "private"
    world.study.save()
    assert Client().get(PAGE).status_code == 404


def test_many_days_ask_no_more_than_one(world: World, mara: Client, django_assert_max_num_queries: Any) -> None:
    acting = world.made["acting"]
    draft_day(world.study, AT.date(), **acting)
    for back in range(9):
        add_note(world.study, AT.date() - timedelta(days=back), "Looked at [[pilot.usable]].", "en", **acting)
    with django_assert_max_num_queries(45):
        assert mara.get(PAGE).content.decode().count("journal-day") >= 9


def test_api(world: World) -> None:
    mara = make_caller("mara", world.study)
    made = mara.post("studies/scripted/journal", {"day": DAY})
    assert made.status_code == 201 and made.json()["number"] == 1
    listed = mara.read(f"studies/scripted/journal?day={DAY}")["items"]
    assert listed[0]["lines"] == made.json()["lines"] and listed[0]["upto"]
    note = mara.post("studies/scripted/journal/notes", {"day": DAY, "text": "Looked.", "language": "en"})
    assert note.status_code == 201 and note.json()["by"] == "mara"
    assert mara.read(f"studies/scripted/journal/notes?day={DAY}")["items"][0]["text"] == "Looked."


def test_api_refusals(world: World) -> None:
    mara, vera = make_caller("mara", world.study), make_caller("vera", world.study, Membership.VIEWER)
    bare = mara.post("studies/scripted/journal/notes", {"day": DAY, "text": "We kept 244.", "language": "en"})
    assert bare.status_code == 422 and "bind" in bare.json()["detail"]
    assert mara.post("studies/scripted/journal", {"day": "1999-01-01"}).status_code == 422
    assert fields(mara.post("studies/scripted/journal", {"day": "soon"})) == ["day"]
    assert mara.get("studies/scripted/journal?day=soon").status_code == 400
    assert vera.post("studies/scripted/journal", {"day": DAY}).status_code == 403
    assert Api("").post("studies/scripted/journal", {"day": DAY}).status_code == 401
    assert not JournalDay.objects.exists()
