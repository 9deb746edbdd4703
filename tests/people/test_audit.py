"""What the audit log keeps of requests and commands: who, what, about which study, with which answer."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.test import Client

from runs.actions import audit
from runs.actions.actors import service_actor
from runs.models import AuditEntry
from tests.people.conftest import Place
from workbench.db import AppendOnlyViolation

AT = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
pytestmark = pytest.mark.django_db


def _last() -> AuditEntry:
    return AuditEntry.objects.latest("pk")


def _signed_in(place: Place, role: str) -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(place.people[role])
    return client


@pytest.mark.parametrize(("role", "status"), [("researcher", 302), ("viewer", 403), ("stranger", 404)])
def test_done_refused_and_hidden_requests_are_kept_alike(place: Place, role: str, status: int) -> None:
    """The study of what was asked for is named also where the asker does not see it."""
    client = _signed_in(place, role)
    answer = client.post(f"/runs/{place.parts['run']}/pause/", headers={"X-Request-ID": "my-request-1"})
    entry = _last()
    assert answer.status_code == status == entry.status
    assert (entry.channel, entry.method, entry.request_id) == ("page", "POST", "my-request-1")
    assert entry.route == "runs:run_control runs/<uuid:uid>/<str:verb>/"
    assert entry.subject == f"uid={place.parts['run']} verb=pause"
    assert entry.study == place.world.study and entry.actor is not None and entry.actor.name == role
    assert entry.address == "127.0.0.1" and entry.token_prefix == ""


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("runs/{run}/pause", {}),
        ("executions/{execution}/pause", {}),
        ("plans/{draft_uid}/validate", {}),
        ("studies/{study}/plans", {"name": "x", "text": "a: 1"}),
    ],
)
def test_api_requests_name_token_and_study(place: Place, path: str, body: dict[str, Any]) -> None:
    secret = place.secrets["researcher"]
    Client().post(
        f"/api/v1/{path.format(**place.parts)}",
        json.dumps(body),
        content_type="application/json",
        headers={"Authorization": f"Bearer {secret}"},
    )
    entry = AuditEntry.objects.filter(method="POST").latest("pk")
    assert (entry.channel, entry.token_prefix, entry.study) == ("api", secret[3:11], place.world.study)
    assert entry.actor is not None and entry.actor.name == "researcher"


def test_nobodys_request_is_kept_too(place: Place, client: Client) -> None:
    client.post(f"/api/v1/runs/{place.parts['run']}/pause", content_type="application/json")
    assert (_last().actor, _last().status, _last().channel) == (None, 401, "api")


def test_what_reaches_no_view_or_asks_no_change_is_not_kept(place: Place, client: Client) -> None:
    before = AuditEntry.objects.count()
    client.post("/no/such/page/")
    client.get("/runs/")
    client.head("/runs/")
    client.options("/runs/")
    client.post("/i18n/setlang/", {"language": "en"})
    _signed_in(place, "researcher").post("/studies/fatal-mask-pair/plans/draft/edit/", {"yaml": "a: 1", "side": "yaml"})
    notes = "/studies/fatal-mask-pair/notes/"
    _signed_in(place, "researcher").post(f"{notes}edit/", {"do": "check"})
    _signed_in(place, "researcher").post(f"{notes}check/", {"text": "Forty.", "language": "en"})
    asked = {"text": "Forty.", "kind": "description", "language": "en", "study": "fatal-mask-pair"}
    _signed_in(place, "researcher").post("/claims/check.json", json.dumps(asked), content_type="application/json")
    assert AuditEntry.objects.count() == before
    _signed_in(place, "researcher").post(f"{notes}edit/", {"do": "save"})
    assert AuditEntry.objects.count() == before + 1
    _signed_in(place, "researcher").post("/studies/fatal-mask-pair/plans/draft/edit/", {"yaml": "a: 1", "do": "save"})
    assert AuditEntry.objects.count() == before + 2


def test_a_failure_of_the_server_is_kept(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr("runs.views.people.members.set_visibility", broken)
    answer = _signed_in(place, "admin").post("/studies/fatal-mask-pair/visibility/", {"visibility": "public"})
    assert answer.status_code == 500 == _last().status


def test_an_entry_that_cannot_be_written_hides_no_answer(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    """The change stands, so the caller must learn its answer; the log says what is missing."""

    def full(*args: Any, **kwargs: Any) -> None:
        raise DatabaseError("disk full")

    monkeypatch.setattr("runs.actions.audit.record_request", full)
    answer = _signed_in(place, "researcher").post(f"/runs/{place.parts['run']}/pause/")
    assert answer.status_code == 302 and "was not recorded" in caplog.text


def test_texts_are_cut_cleaned_and_redacted() -> None:
    secret = "wb_aB3dE6gH_" + "x" * 43
    entry = audit.record(at=AT, method="P\x00OST", route="r" * 500, status=200, subject=f"a\nb\x00\ud800 {secret}",
                         detail="password=hunter2 " + "d" * 900)  # fmt: skip
    assert entry.method == "P OST" and len(entry.route) == 200 and entry.route.endswith("…")
    assert entry.subject == "a b   wb_aB3dE6gH_***"
    assert entry.detail.startswith("password=*** ddd") and len(entry.detail) == 500


def test_commands_are_kept_with_their_outcome(place: Place) -> None:
    by = service_actor("command line")
    done = audit.record_command("study pause", by=by, at=AT, study=place.world.study, subject="small")
    refused = audit.record_command("study resume", by=by, at=AT, failed=True, detail="no execution")
    assert (done.channel, done.route, done.status, done.study) == (
        "command",
        "manage.py study pause",
        0,
        place.world.study,
    )
    assert (refused.status, refused.detail, refused.actor) == (1, "no execution", by)


def test_a_refused_command_is_kept_and_its_error_goes_on() -> None:
    with audit.audited_command("study pause", by=None, at=AT, subject="small"):
        pass
    with pytest.raises(ValueError, match="nothing"), audit.audited_command("study resume", by=None, at=AT):
        raise ValueError("nothing to resume, password=hunter2")
    done, refused = AuditEntry.objects.order_by("-pk")[:2][::-1]
    assert (done.route, done.status, done.subject) == ("manage.py study pause", 0, "small")
    assert (refused.status, refused.detail) == (1, "nothing to resume, password=***")


def test_a_command_inside_a_request_keeps_the_requests_id_only_where_it_is_its_own() -> None:
    with audit.channel(audit.Channel(audit.PAGE, "request-12345", "192.0.2.1")):
        inner = audit.record_change("thing.done", by=None, at=AT, subject="x")
    outer = audit.record_change("thing.done", by=None, at=AT, subject="x")
    assert (inner.channel, inner.request_id, inner.address) == ("page", "request-12345", "192.0.2.1")
    assert (outer.channel, outer.request_id, outer.address) == ("command", "", "")


def test_lines_are_only_added() -> None:
    """Neither through rows nor through the database's own language."""
    entry = audit.record(at=AT, method="POST", route="r", status=200)
    with pytest.raises(AppendOnlyViolation):
        entry.delete()
    entry.status = 500
    with pytest.raises(AppendOnlyViolation):
        entry.save()
    for statement in ("UPDATE runs_auditentry SET status = 1", "DELETE FROM runs_auditentry"):
        with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement)
