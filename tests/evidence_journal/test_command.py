"""``manage.py journal``."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from evidence.models import JournalDay
from tests.evidence_outward.conftest import World
from tests.evidence_outward.world import AT

DAY = str(AT.date())
pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command("journal", *arguments, stdout=out)
    return out.getvalue()


def test_draft_show_and_check(world: World) -> None:
    made: dict[str, Any] = json.loads(run("draft", "scripted", "--day", DAY, "--json"))
    assert made["draft"] == 1 and made["lines"] > 3
    assert json.loads(run("draft", "scripted", "--day", DAY, "--json")) == made
    assert "Sources added: " in run("show", "scripted", "--day", DAY)
    assert "新增来源" in run("show", "scripted", "--day", DAY, "--language", "zh")
    assert json.loads(run("show", "scripted", "--day", DAY, "--json"))["lines"] == JournalDay.objects.get().lines
    assert json.loads(run("check", "scripted", "--json"))["ok"]


def test_a_draft_that_differs_from_its_receipts_ends_with_one(world: World) -> None:
    run("draft", "scripted", "--day", DAY)
    row = JournalDay.objects.get()
    lines = [{**row.lines[0], "values": {**row.lines[0]["values"], "/number": "7"}}]
    JournalDay(
        uid="00000000-0000-4000-8000-000000000009", study=row.study, actor=row.actor, at=AT, day=row.day, number=2,
        lines=lines, upto={},
    ).save()  # fmt: skip
    with pytest.raises(SystemExit) as ended:
        run("check", "scripted")
    assert ended.value.code == 1


def test_what_cannot_be_done_is_said(world: World) -> None:
    with pytest.raises(CommandError, match="slug"):
        run("draft", "nothing")
    with pytest.raises(CommandError, match="no receipt"):
        run("draft", "scripted", "--day", "1999-01-01")
    with pytest.raises(CommandError, match="no draft"):
        run("show", "scripted", "--day", "1999-01-01")
    with pytest.raises(CommandError, match="2026-11-30"):
        run("draft", "scripted", "--day", "tomorrow")
