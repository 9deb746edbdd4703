"""A day's draft: every number from its receipt, nothing told twice, nothing left out."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import pytest
from django.db import transaction

from evidence.actions.journal import draft_day, draft_due, newest_draft
from evidence.actions.reviews import answer, review
from evidence.journal.lines import check_line, receipts_of, streams_of, value_at
from evidence.journal.phrases import GROUPS, phrase_of
from evidence.models import JournalDay
from runs.actions.actors import person_actor, service_actor
from runs.actions.plans import ensure_study
from runs.actions.receipts import append_receipt
from runs.errors import DomainError
from runs.models import Receipt
from tests.evidence_outward.conftest import World
from tests.evidence_outward.world import AT
from workbench.contracts.canonical import parse_canonical

DAY = AT.date()
pytestmark = pytest.mark.django_db


def acting(world: World) -> dict[str, Any]:
    return dict(world.made["acting"])


def ran_on(world: World) -> date:
    """The day on which the execution ran."""
    return Receipt.objects.get(kind="execution.closed").at.date()


def late(world: World) -> datetime:
    """An instant after everything that the world holds."""
    return max(AT, Receipt.objects.order_by("-at").values_list("at", flat=True)[0]) + timedelta(hours=1)


def draft(world: World, day: date) -> JournalDay:
    return draft_day(world.study, day, by=service_actor("journal"), at=late(world))


def test_a_day_tells_what_ran_finished_and_was_decided(world: World) -> None:
    """The numbers of the closing are those of its receipt; shards and updates are counted over the day."""
    found = draft(world, ran_on(world))
    by_kind = {line["told"]: line for line in found.lines}
    closing = parse_canonical(bytes(Receipt.objects.get(kind="execution.closed").bytes))["body"]["counts"]
    values = by_kind["execution.closed"]["values"]
    assert values == {f"/counts/{name}": str(closing[name]) for name in ("items", "jobs", "captures")}
    updates = Receipt.objects.filter(kind="update.applied").count()
    counted = sum(int(line["values"]["#"]) for line in found.lines if line["told"] == "update.applied")
    assert counted == updates > 0
    kinds = [line["kind"] for line in found.lines]
    assert kinds == sorted(kinds, key=GROUPS.index) and {"ran", "finished"} <= set(kinds)


def test_every_value_is_what_its_receipt_says(world: World) -> None:
    for day in {ran_on(world), DAY}:
        assert [check_line(line) for line in draft(world, day).lines] == [""] * len(draft(world, day).lines)


def test_an_endpoint_is_told_with_the_arms_that_were_compared(world: World) -> None:
    """One receipt for each comparison: without the arms, two of one endpoint would read alike."""
    stream = Receipt.objects.get(kind="execution.closed").stream
    told = {"pair": (["B", "M"], "arm M minus B"), "parent": (["M"], "arm M minus its parent")}
    for compare, (arms, _words) in told.items():
        body = {"id": "gain", "compare": compare, "arms": arms, "state": "measured", "difference": 0, "low": None}
        with transaction.atomic():
            append_receipt(stream, "endpoint.measured", None, body, actor=service_actor("test"), at=AT)
    lines = [line for line in draft(world, DAY).lines if line["told"] == "endpoint.measured"]
    for line, (_arms, words) in zip(lines, told.values(), strict=True):
        text = line["text_en"]
        for place, value in line["values"].items():
            text = text.replace(f"[[{place}]]", value or "—")
        assert text == f"Endpoint gain, {words}, is measured: difference 0, interval — to —."


@pytest.mark.parametrize(
    ("place", "expected"), [("/a/first", "x"), ("/a/last", "2"), ("/b/first", None), ("/a/other", None), ("/a", None)]
)
def test_the_ends_of_a_list_have_places(place: str, expected: str | None) -> None:
    assert value_at({"a": ["x", 2], "b": []}, place) == expected


def test_a_changed_figure_is_told_by_its_title(world: World) -> None:
    for day in {ran_on(world), DAY}:
        for line in draft(world, day).lines:
            if line["told"] == "evidence.figure_version" and "/number" in line["values"]:
                assert line["values"]["/title_en"]
                return
    body = {"number": 2, "value": None, "title_en": "", "title_zh": "差", "reason": "r"}
    phrase = phrase_of("evidence.figure_version", body)
    assert phrase is not None and "[[/title_zh]]" in phrase.en and "[[/title_en]]" not in phrase.zh


def test_a_changed_value_is_named(world: World) -> None:
    line = next(line for line in draft(world, ran_on(world)).lines if line["told"] == "execution.closed")
    line["values"]["/counts/items"] = "999"
    assert "999" in check_line(line)
    line["receipt"] = "0" * 64
    assert "expected it" in check_line(line)


def test_every_receipt_of_the_day_is_told_once(world: World) -> None:
    """Counted lines cover their receipts; the others have a line each."""
    found = draft(world, DAY)
    pending = [line for line in found.lines if line["kind"] == "pending"]
    counted = sum(int(line["values"]["#"]) for line in found.lines if "#" in line["values"])
    single = sum(1 for line in found.lines if "#" not in line["values"]) - len(pending)
    told = [item for item in receipts_of(world.study, DAY) if phrase_of(item.kind, item.body) is not None]
    assert counted + single == len(told)


def test_lines_hold_no_digit_outside_their_values(world: World) -> None:
    for day in {ran_on(world), DAY}:
        for line in draft(world, day).lines:
            for text in (line["text_en"], line["text_zh"]):
                assert not any(character.isdigit() for character in text)


def test_again_it_is_the_same_draft_and_later_receipts_make_the_next(world: World) -> None:
    first = draft(world, DAY)
    assert draft(world, DAY) == first and first.number == 1
    with transaction.atomic():
        append_receipt(f"study:{world.study.uid}", "test.more", None, {}, actor=service_actor("test"), at=AT)
    second = draft(world, DAY)
    assert second.number == 2 and JournalDay.objects.filter(day=DAY).count() == 2
    assert newest_draft(world.study, DAY) == second


def test_a_dispute_is_pending_until_it_is_answered(world: World) -> None:
    claim, reader = world.made["claim"], person_actor(world.made["reader"])
    row = review(claim, verdict="dispute", reason="Too wide.", looked_at=["section"], by=reader, at=AT)
    opened = draft(world, DAY).lines
    assert {line["kind"] for line in opened if line["told"] == "evidence.review"} >= {"opened", "pending"}
    answer(row, "Narrowed.", **acting(world))
    after = draft(world, DAY).lines
    assert "pending" not in {line["kind"] for line in after if line["told"] == "evidence.review"}
    assert any(line["told"] == "evidence.answer" for line in after)


def test_a_day_to_come_and_an_empty_day_are_refused(world: World) -> None:
    with pytest.raises(DomainError, match="up to today"):
        draft_day(world.study, DAY + timedelta(days=1), by=service_actor("journal"), at=AT)
    with pytest.raises(DomainError, match="no receipt"):
        draft_day(world.study, date(1999, 1, 1), by=service_actor("journal"), at=AT)
    assert not JournalDay.objects.exists()


def test_another_study_is_not_told(world: World) -> None:
    other = ensure_study("other", title={"en": "O"}, summary={"en": ""}, by=service_actor("test"), at=AT)
    with transaction.atomic():
        append_receipt(f"study:{other.uid}", "test.other", None, {}, actor=service_actor("test"), at=AT)
    assert f"study:{other.uid}" not in streams_of(world.study)
    assert all(line["told"] != "test.other" for line in draft(world, DAY).lines)


def test_yesterday_is_drafted_once_by_the_scheduler(world: World) -> None:
    """A receipt on the day before; nothing more the second time; a receipt that comes late is told then."""
    at = AT + timedelta(days=1)
    assert draft_due(at=at) == 1 and draft_due(at=at) == 0
    with transaction.atomic():
        append_receipt(f"study:{world.study.uid}", "test.more", None, {}, actor=service_actor("test"), at=AT)
    assert draft_due(at=at) == 1
    assert JournalDay.objects.filter(day=DAY).count() == 2
    assert draft_due(at=at + timedelta(days=1)) == 0, "the journal does not tell of itself"
