"""``manage.py controls run``: an environment that has no controls is refused in one line, with a status of its own."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from runs.models import AuditEntry, ControlSet
from worker.management.commands import controls as command

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables are there already."""
    monkeypatch.setattr(command, "initialise", lambda home: None)


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("nosuch", (), "environment: got 'nosuch', expected one of [code_repair, evidence_search]"),
        ("nosuch.module:Class", (), "expected an importable class"),
        ("evidence_search", (), "environment evidence_search: got no artefacts"),
        ("code_repair", ("--config", '{"zzz": 1}'), "its configuration was refused"),
        ("code_repair", ("--split", "zzz"), "splits: got ['zzz']"),
    ],
)
def test_what_has_no_controls_is_refused_in_one_line(name: str, given: tuple[Any, ...], words: str) -> None:
    with pytest.raises(CommandError) as refused:
        call_command("controls", "run", name, *given, stdout=StringIO(), stderr=StringIO())
    assert words in str(refused.value) and "\n" not in str(refused.value)
    assert refused.value.returncode != 0 and ControlSet.objects.count() == 0
    entry = AuditEntry.objects.get(route="manage.py controls run")
    assert entry.subject == name and entry.status != 0
