"""Reasons of marks and refusals in the reader's language: recorded in English, read by patterns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse
from django.utils.translation import override

from evidence.actions.reviews import OwnWork, parse_item
from evidence.actions.stale import mark_changed
from evidence.models import Source, StaleMark
from evidence.presenters import troubles
from evidence.presenters.refusals import CHANGES, PARTS, REFUSALS
from evidence.presenters.troubles import told
from runs.presenters import patterns
from tests.evidence_stale.rows import AT, Web
from tests.refusals import literal_refusals

COMMANDS = ("bundles.py", "signing.py")  # their refusals are told on the command line, in English
REFUSING = ("DomainError", "OwnWork", "Reserved")
ACTIONS = [path for path in sorted(Path("evidence/actions").glob("*.py")) if path.name not in COMMANDS]


@pytest.fixture
def chinese(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A reader of Chinese; a translation is the message itself between brackets."""
    for module in (troubles, patterns):
        monkeypatch.setattr(module, "gettext", lambda message: f"「{message}」")
    with override("zh-hans"):
        yield


@pytest.mark.parametrize("pattern", [*PARTS, *REFUSALS])
def test_each_refusal_is_read_by_its_own_pattern(chinese: None, pattern: str) -> None:
    """Filled with plain values, it is read by itself and by none before it, with every value kept."""
    filled = re.sub(r"%\((\w+)\)s", r"x\1y", pattern)
    assert told(filled) == f"「{filled}」"


def test_the_reason_of_a_mark_is_read_with_what_people_wrote_in_it(chinese: None) -> None:
    assert told("superseded: 汇总脚本漏了一行") == "「superseded: 汇总脚本漏了一行」"
    assert told("superseded: the same record, written anew").startswith("「superseded: 「the same record")
    assert told("drifted: the held bytes hash to something else") == (
        "「drifted: 「the held bytes hash to something else」」"
    )
    assert told("rate: value: recomputes to 108, stored is 152") == "「rate: value: recomputes to 108, stored is 152」"


def test_a_changed_figure_says_each_change_and_then_the_reason_as_it_was_given(chinese: None) -> None:
    assert told("gap.usable: value 999 is now 995, unit none is now rows; rows counted twice; see the log") == (
        "gap.usable：「value 999 is now 995」，「unit 「none」 is now rows」；rows counted twice; see the log"
    )
    assert set(CHANGES) == {"value", "unit", "kind", "origin"}


def test_what_nobody_knows_stays_as_it_is(chinese: None) -> None:
    """A reason of another kind, and one that only looks alike, are shown in their own words."""
    for text in ("recomputed by hand", "gap: colour 1 is now 2; why", "gap: value 1 becomes 2; why"):
        assert told(text) == text
    with override("en"):
        assert told("superseded: a row was missing") == "superseded: a row was missing"


def test_real_refusals_are_read(chinese: None) -> None:
    with pytest.raises(Exception, match="item: got") as error:
        parse_item("link:1")
    assert told(str(error.value)).startswith("「item: got 'link:1'")
    said = "by: got Ann, who wrote excerpt rows, expected somebody who wrote none of what the claim rests on; "
    read = told(str(OwnWork(f"{said}ask a reviewer of another family")))
    assert read.startswith("「by: got Ann, who wrote 「excerpt rows」, expected")


def test_every_refusal_of_an_action_has_a_pattern(chinese: None) -> None:
    texts = set(literal_refusals(ACTIONS, REFUSING, ": got "))
    assert len(texts) > 60
    assert sorted(text for text in texts if told(text) == text) == []


def test_the_list_of_marks_reads_reasons_in_chinese(web: Web, client: Client, chinese: None) -> None:
    """Recorded in English, shown in the reader's language, with what the author wrote."""
    pilot = Source.objects.get(path="pilot.md")
    mark_changed("source", pilot.uid, "superseded: 漏了一行", by=web.by, at=AT)
    assert set(StaleMark.objects.values_list("reason", flat=True)) == {"superseded: 漏了一行"}
    text = client.get(reverse("evidence:stale"), headers={"accept-language": "zh-hans"}).content.decode()
    assert "「superseded: 漏了一行」" in text
