"""Signed heads: what is signed, what a kept copy finds, and the command."""

from __future__ import annotations

import json
import stat
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from evidence.actions.signing import anchor_now, check_copy, check_signed, exported, sign_anchor, sign_missing
from evidence.checks.evidence_notes import check_signed_heads
from evidence.models import SignedHead
from evidence.outward.keys import SignatureError, fingerprint, head_bytes, read_head, signing_key
from evidence.report import StepLog, VerifyReport
from runs.actions.actors import service_actor
from runs.actions.receipts import anchor_heads, append_receipt
from runs.errors import DomainError
from runs.models import Anchor, Receipt, StreamHead
from workbench.db import drop_triggers, install_triggers
from workbench.paths import Home

AT = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
pytestmark = pytest.mark.django_db


def write(stream: str, count: int) -> None:
    """Append ``count`` receipts."""
    actor = service_actor("test")
    with transaction.atomic():
        for number in range(count):
            append_receipt(stream, "test.wrote", None, {"number": number}, actor=actor, at=AT)


def copy_of(head: SignedHead) -> Any:
    """The exported file, as read back."""
    return json.loads(json.dumps(exported(head)))


def kinds(value: Any, **options: str) -> list[tuple[str, str]]:
    """(kind, subject) of what a kept copy finds."""
    return [(item.kind, item.subject) for item in check_copy(value, **options)]


def test_the_key_is_made_once_with_mode_600(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    first = fingerprint(signing_key(home).public_key())
    assert stat.S_IMODE(home.signing_key.stat().st_mode) == 0o600
    assert fingerprint(signing_key(home).public_key()) == first
    assert fingerprint(signing_key(Home(tmp_path / "other")).public_key()) != first


def test_a_key_file_that_holds_another_thing_is_refused(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.signing_key.write_text("no key")
    with pytest.raises(ValueError):
        signing_key(home)


def test_a_head_names_every_stream_with_its_count_and_their_sum() -> None:
    """Three receipts in one stream and two in another: five in all."""
    write("alpha", 3)
    write("beta", 2)
    signed = anchor_now(at=AT)
    found = read_head(bytes(signed.bytes), bytes(signed.signature))
    last = Receipt.objects.get(stream="alpha", seq=3).sha256
    assert [item[:2] for item in found.heads] == [["alpha", 3], ["beta", 2]]
    assert found.heads[0][2] == last and found.receipts == 5
    assert found.fingerprint == fingerprint(signing_key(settings.HOME).public_key()) == signed.fingerprint
    assert check_signed(signed) == ""


def test_the_same_state_is_anchored_once() -> None:
    write("alpha", 1)
    first = anchor_now(at=AT)
    assert anchor_now(at=AT) == first and Anchor.objects.count() == 1
    write("alpha", 1)
    assert anchor_now(at=AT).anchor.seq == 2


def test_an_anchor_is_signed_when_it_commits(django_capture_on_commit_callbacks: Any) -> None:
    write("alpha", 1)
    with django_capture_on_commit_callbacks(execute=True):
        anchor = anchor_heads()
        assert not SignedHead.objects.exists()
    assert SignedHead.objects.get().anchor == anchor


def test_a_signature_that_is_missing_is_made_later() -> None:
    write("alpha", 1)
    anchor = anchor_heads()
    assert sign_missing(at=AT) == 1 and sign_missing(at=AT) == 0
    assert sign_anchor(anchor, at=AT) == SignedHead.objects.get()


def test_a_signature_that_was_taken_from_an_older_anchor_is_found() -> None:
    """Anchors are signed in their order: the newest alone may still wait for its signature."""
    for _number in range(3):
        write("alpha", 1)
        anchor_heads()
    assert sign_missing(at=AT) == 3
    report = VerifyReport({})
    check_signed_heads(StepLog(report, 17))
    assert report.problems == []
    drop_triggers(connection)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM evidence_signedhead WHERE anchor_id IN (SELECT id FROM runs_anchor WHERE seq > 1)")
    install_triggers(connection)
    check_signed_heads(StepLog(report, 17))
    assert report.problems == []  # a process that died before it signed leaves the same
    sign_anchor(Anchor.objects.get(seq=3), at=AT)
    check_signed_heads(StepLog(report, 17))
    assert [(item.row, item.expected) for item in report.problems] == [("anchor 2", "a signature")]


def test_a_kept_copy_agrees_while_streams_only_grow() -> None:
    write("alpha", 2)
    kept = copy_of(anchor_now(at=AT))
    write("alpha", 2)
    assert kinds(kept) == []


def forget_tail(stream: str, keep: int) -> None:
    """Remove the receipts after ``keep`` and set the head back, as somebody with the database file can."""
    drop_triggers(connection)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM runs_receipt WHERE stream = %s AND seq > %s", [stream, keep])
    install_triggers(connection)
    last = Receipt.objects.get(stream=stream, seq=keep)
    StreamHead.objects.filter(stream=stream).update(seq=keep, sha256=last.sha256)


def test_a_truncated_tail_is_found() -> None:
    write("alpha", 3)
    kept = copy_of(anchor_now(at=AT))
    forget_tail("alpha", 2)
    assert kinds(kept) == [("truncated", "alpha")]


def test_a_tail_that_was_written_anew_is_found() -> None:
    write("alpha", 3)
    kept = copy_of(anchor_now(at=AT))
    forget_tail("alpha", 2)
    actor = service_actor("test")
    append_receipt("alpha", "test.wrote", None, {"number": "another"}, actor=actor, at=AT)
    assert kinds(kept) == [("forged", "alpha#3")]


def test_a_head_that_was_changed_no_longer_carries_its_signature() -> None:
    write("alpha", 3)
    kept = copy_of(anchor_now(at=AT))
    kept["heads"][0]["signed"] = kept["heads"][0]["signed"].replace('["alpha",3', '["alpha",2')
    assert [kind for kind, _ in kinds(kept)] == ["signature"]


def test_a_head_signed_by_another_key_is_named() -> None:
    write("alpha", 1)
    signed = anchor_now(at=AT)
    other = Ed25519PrivateKey.generate()
    found = read_head(bytes(signed.bytes), bytes(signed.signature))
    data = head_bytes(found.anchor_seq, found.anchor_sha256, found.heads, other.public_key())
    kept = copy_of(signed)
    kept["heads"][0].update(signed=data.decode(), signature=other.sign(data).hex())
    assert kinds(kept) == [("key", "anchor 1")]
    assert kinds(kept, key=fingerprint(other.public_key())) == []


def test_a_sum_that_does_not_add_up_is_refused() -> None:
    """Two receipts said, one counted."""
    key = Ed25519PrivateKey.generate()
    data = head_bytes(1, "0" * 64, [["alpha", 1, "0" * 64]], key.public_key()).replace(b'"receipts":1', b'"receipts":2')
    with pytest.raises(SignatureError, match="receipts: got 2, expected 1"):
        read_head(data, key.sign(data))


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"schema": "other"},
        {"schema": "workbench.heads/1", "heads": []},
        {"schema": "workbench.heads/1", "heads": [{"signed": 1}]},
    ],
)
def test_a_file_that_is_no_export_is_refused(value: Any) -> None:
    with pytest.raises(DomainError, match="expected"):
        check_copy(value)


def run(*arguments: str) -> dict[str, Any]:
    """The command's JSON."""
    out = StringIO()
    call_command("heads", *arguments, "--json", stdout=out)
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def test_command_exports_and_checks(tmp_path: Path) -> None:
    write("alpha", 2)
    file = tmp_path / "heads.json"
    made = run("export", str(file))
    assert made["anchor"] == 1 and made["receipts"] == Receipt.objects.count()
    assert run("check", str(file)) == {"ok": True, "problems": []}
    assert run("key")["fingerprint"] == made["fingerprint"]
    assert "PRIVATE" not in file.read_text()


def test_command_exits_with_one_where_a_tail_is_gone(tmp_path: Path) -> None:
    write("alpha", 2)
    run("export", str(tmp_path / "heads.json"))
    forget_tail("alpha", 1)
    with pytest.raises(SystemExit) as ended:
        run("check", str(tmp_path / "heads.json"))
    assert ended.value.code == 1


def test_command_never_overwrites_and_refuses_what_is_no_export(tmp_path: Path) -> None:
    file = tmp_path / "heads.json"
    file.write_text("{}")
    with pytest.raises(CommandError):
        run("export", str(file))
    with pytest.raises(CommandError, match="expected"):
        run("check", str(file))
