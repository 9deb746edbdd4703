"""``manage.py export-study``."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction

from evidence.models import SignedHead
from evidence.outward.check import verify_bundle
from runs.actions.actors import service_actor
from runs.actions.receipts import append_receipt
from runs.models import AuditEntry
from tests.evidence_outward.conftest import World
from tests.evidence_outward.world import AT

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> dict[str, Any]:
    out = io.StringIO()
    call_command("export-study", *arguments, "--json", stdout=out)
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def test_a_bundle_is_covered_to_its_last_receipt(world: World, tmp_path: Path) -> None:
    with transaction.atomic():
        append_receipt(f"study:{world.study.uid}", "test.more", None, {}, actor=service_actor("test"), at=AT)
    before = SignedHead.objects.count()
    found = run("scripted", "--bundle", str(tmp_path / "bundle"))
    assert SignedHead.objects.count() == before + 1 and found["sha256"]
    assert verify_bundle(tmp_path / "bundle", key=found["fingerprint"]).ok
    assert AuditEntry.objects.filter(route__contains="export-study").count() == 1


def test_a_crate_and_a_site(world: World, tmp_path: Path) -> None:
    assert run("scripted", "--ro-crate", str(tmp_path / "crate"))["files"] > 10
    assert run("scripted", "--site", str(tmp_path / "site"))["pages"] >= 11


def test_what_cannot_be_done_is_said(world: World, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="slug"):
        run("nothing", "--bundle", str(tmp_path / "a"))
    with pytest.raises(CommandError, match="captures"):
        run("scripted", "--site", str(tmp_path / "a"), "--with-captures")
    with pytest.raises(CommandError):
        run("scripted")
    (tmp_path / "there").write_text("mine")
    with pytest.raises(CommandError):
        run("scripted", "--bundle", str(tmp_path / "there"))
    assert (tmp_path / "there").read_text() == "mine"
