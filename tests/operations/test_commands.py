"""Every command of ``manage.py`` that changes something leaves a line in the audit log, refused or not."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command, get_commands
from django.db.backends.base.base import BaseDatabaseWrapper

from runs.errors import DomainError
from runs.models import AuditEntry, Execution, User
from tests.operations.archives import sqlite_only
from tests.runs import databases
from tests.runs.scripted import Lab
from workbench.paths import Home
from worker.management.commands import plan as plan_command
from worker.management.commands import study as study_command
from worker.study import load_study

# Written by hand: what a new command does must be decided here.
CHANGES = {
    "controls",
    "study",
    "plan",
    "retention",
    "restore",
    "token",
    "up",
    "import",
    "import-bundle",
    "journal",
    "notes",
    "prml",
}
READS = {"verify", "doctor", "backup", "bench", "environment", "attack", "export-study", "heads", "verify-bundle"}
OURS = ("workbench", "worker", "runs", "evidence")
Line = tuple[str, int, str]


def lines() -> list[Line]:
    """(command, status, detail) of every command so far."""
    rows = AuditEntry.objects.filter(channel="command", method="command").order_by("pk")
    return [(row.route.removeprefix("manage.py "), row.status, row.detail) for row in rows]


def said(*arguments: str) -> str:
    """What a command prints on standard output."""
    out = io.StringIO()
    call_command(*arguments, stdout=out, stderr=io.StringIO())
    return out.getvalue()


@pytest.fixture
def started(database: BaseDatabaseWrapper, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Execution:
    """A running execution that ``study`` and its slug mean."""
    execution = lab.start()
    plan = execution.plan_version.plan
    named = {"name": plan.slug, "study": plan.study.slug}
    monkeypatch.setattr(study_command, "load_study", lambda slug, scale: ({}, named))
    return execution


def test_each_command_is_known_to_change_something_or_not() -> None:
    ours = {name for name, app in get_commands().items() if isinstance(app, str) and app.split(".")[0] in OURS}
    assert ours == CHANGES | READS and not CHANGES & READS


@sqlite_only
def test_controls_of_a_study(started: Execution, tmp_path: Path) -> None:
    """Done, refused with the reason, and a template, which changes nothing."""
    for action in ("pause", "resume", "cancel"):
        said("study", action, "fatal-mask-pair")
    with pytest.raises(CommandError):
        said("study", "resume", "fatal-mask-pair")
    with pytest.raises(CommandError, match="expected a readable JSON file"):
        said("study", "recover", "fatal-mask-pair", "--plan", str(tmp_path / "none.json"))
    done = [("study pause", 0, ""), ("study resume", 0, ""), ("study cancel", 0, "")]
    found = lines()
    assert found[:3] == done and [(name, status) for name, status, _ in found[3:]] == [
        ("study resume", 1),
        ("study recover", 1),
    ]
    assert "expected" in found[3][2] and "none.json" in found[4][2]
    entry = AuditEntry.objects.filter(route="manage.py study pause").get()
    plan = started.plan_version.plan
    assert entry.study == plan.study and entry.subject == plan.slug and entry.actor is not None
    said("study", "list", "--json")
    assert lines() == found


@sqlite_only
@pytest.mark.parametrize("fault", [DomainError("worker: got none"), KeyboardInterrupt()])
def test_a_run_that_does_not_start(
    started: Execution, monkeypatch: pytest.MonkeyPatch, fault: BaseException, tmp_path: Path
) -> None:
    """Ctrl-C is an end like any other."""

    def ends(*_: Any, **__: Any) -> None:
        raise fault

    file = tmp_path / "plan.json"
    file.write_text(json.dumps(load_study("fatal-mask-pair", "tiny")[1]))
    for module, name in ((study_command, "start_study"), (plan_command, "freeze_document")):
        monkeypatch.setattr(module, name, ends)
        monkeypatch.setattr(module, "workers", contextlib.nullcontext)
    for arguments in (("study", "run", "fatal-mask-pair"), ("plan", "run", str(file))):
        with pytest.raises((CommandError, KeyboardInterrupt)):
            said(*arguments)
    why = str(fault) or "KeyboardInterrupt"
    assert lines() == [("study run", 1, why), ("plan run", 1, why)]
    said("plan", "check", str(file))
    with pytest.raises(CommandError, match="got no execution"):
        said("plan", "recover", str(file), "--template")
    assert len(lines()) == 2


@sqlite_only
def test_a_run_that_starts(started: Execution, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line stands when the study has started, however long it then takes."""
    monkeypatch.setattr(study_command, "start_study", lambda *_, **__: started)
    monkeypatch.setattr(study_command, "workers", contextlib.nullcontext)
    seen: list[Line] = []
    monkeypatch.setattr(study_command, "watch", lambda *_: seen.extend(lines()))
    with pytest.raises(SystemExit):  # it is still running
        said("study", "run", "fatal-mask-pair", "--json")
    assert seen == lines() == [("study run", 0, "")]


@sqlite_only
def test_recovery_of_a_plan_retention_and_tokens(started: Execution, tmp_path: Path) -> None:
    """A dry run of retention leaves no line; a token's line names neither secret nor hash."""
    document = {**load_study("fatal-mask-pair", "tiny")[1], "name": started.plan_version.plan.slug}
    (tmp_path / "plan.json").write_text(json.dumps(document))
    (tmp_path / "recovery.json").write_text("{}")
    with pytest.raises(CommandError):
        said("plan", "recover", str(tmp_path / "plan.json"), "--plan", str(tmp_path / "recovery.json"))
    said("retention", "--dry-run")
    said("retention", "--json")
    User.objects.create(username="mara")
    secret = said("token", "--user", "mara", "--name", "script").strip()
    with pytest.raises(CommandError, match="got 'nobody'"):
        said("token", "--user", "nobody", "--name", "script")
    assert [(name, status) for name, status, _ in lines()] == [
        ("plan recover", 1), ("retention", 0), ("token", 0), ("token", 1),
    ]  # fmt: skip
    assert dict((name, detail) for name, _, detail in lines()[:2])["retention"] == "0 blobs removed"
    entry = AuditEntry.objects.filter(route="manage.py token", status=0).get()
    assert entry.subject == "of mara" and secret not in f"{entry.subject}{entry.detail}"


@sqlite_only
def test_a_restore_stands_in_the_log_that_it_brought(archive: Path, tmp_path: Path, settings: Any) -> None:
    """With what the verification said of it; a scripted engine's numbers do not verify."""
    home = Home(tmp_path / "other")
    home.root.mkdir()
    settings.HOME, settings.BLOB_ROOT = home, home.blobs
    with databases.as_default(databases.sqlite_settings(home.database)):
        with pytest.raises(SystemExit):
            said("restore", str(archive), "--no-replay", "--json")
        ((name, status, detail),) = lines()
    assert (name, status) == ("restore", 0) and detail.startswith("NOT verified: ")
