"""CSRF, headers, request ids, and that no secret reaches a log, a page or a record."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from runs.actions.tokens import issue_token
from runs.models import ApiToken, AuditEntry, Membership, Receipt, User
from tests.people.conftest import PASSWORD, Place
from workbench.logs import LineFormatter, redact

pytestmark = pytest.mark.django_db
SECRET = "wb_aB3dE6gH_" + "x" * 43


@pytest.mark.parametrize(
    "address",
    [
        "/accounts/login/",
        "/accounts/logout/",
        "/accounts/password/",
        "/account/tokens/",
        "/account/sessions/end/",
        "/users/new/",
        "/studies/new/",
        "/studies/fatal-mask-pair/people/add/",
        "/studies/fatal-mask-pair/visibility/",
        "/receipts/verify/",
        "/i18n/setlang/",
    ],
)
def test_a_form_from_elsewhere_is_refused(place: Place, address: str) -> None:
    """Without the token of the site a POST changes nothing, whoever's browser sends it."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(place.people["site"])
    before = (ApiToken.objects.count(), Membership.objects.count(), Receipt.objects.count())
    assert client.post(address, {"name": "x", "scopes": "read", "expiry": "30"}).status_code == 403
    assert (ApiToken.objects.count(), Membership.objects.count(), Receipt.objects.count()) == before


def test_a_refused_form_is_in_the_audit_log(place: Place) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(place.people["site"])
    client.post("/account/tokens/", {})
    entry = AuditEntry.objects.latest("pk")
    assert entry.route.startswith("runs:token_issue") and entry.status == 403


def test_the_api_takes_no_session_without_the_token_of_the_site(place: Place) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(place.people["admin"])
    answer = client.post("/api/v1/studies", {"slug": "x-y-z", "title_en": "T"}, content_type="application/json")
    assert answer.status_code == 403
    headers = {"Authorization": f"Bearer {place.secrets['admin']}"}
    body = {"slug": "x-y-z", "title_en": "T"}
    assert Client(enforce_csrf_checks=True).post(
        "/api/v1/studies", body, content_type="application/json", headers=headers
    ).status_code == 201  # fmt: skip


@pytest.mark.parametrize(
    "address", ["/", "/accounts/login/", "/no/such", "/api/v1/runs", "/api/v1/no/such", "/healthz"]
)
def test_every_answer_carries_the_headers(place: Place, client: Client, address: str) -> None:
    answer = client.get(address)
    policy = answer["Content-Security-Policy"]
    assert "unsafe" not in policy and "default-src 'self'" in policy and "frame-ancestors 'none'" in policy
    assert "object-src 'none'" in policy and "base-uri 'none'" in policy and "form-action 'self'" in policy
    expected = {
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
    assert {name: answer[name] for name in expected} == expected
    assert len(answer["X-Request-ID"]) == 32


@pytest.mark.parametrize(
    ("given", "kept"),
    [("run-2026.05_a1", True), ("short", False), ("x" * 65, False), ("a b c d e f g h", False), ("<script>", False)],
)
def test_a_plain_request_id_of_the_caller_is_kept(client: Client, given: str, kept: bool) -> None:
    answer = client.get("/healthz", headers={"X-Request-ID": given})
    assert (answer["X-Request-ID"] == given) is kept


def test_pages_with_a_secret_are_kept_by_no_cache(place: Place) -> None:
    client = Client()
    client.force_login(place.people["viewer"])
    answer = client.post("/account/tokens/", {"name": "n", "scopes": "read", "expiry": "30"})
    assert answer.status_code == 201 and "no-store" in answer["Cache-Control"]
    assert "no-store" in client.get("/account/")["Cache-Control"]


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        (f"Authorization: Bearer {SECRET}", "x" * 43),
        (f"GET /?q={SECRET} 200", "x" * 43),
        ("password=hunter2hunter2 next", "hunter2"),
        ("{'password1': 'hunter2hunter2', 'name': 'a'}", "hunter2"),
        ('{"oldpassword": "hunter2hunter2"}', "hunter2"),
        ("csrfmiddlewaretoken=abcdefghij", "abcdefghij"),
        ("Cookie: sessionid=abcdefghij; theme=dark", "abcdefghij"),
        ("cannot reach redis://user:hunter2@host:6379/0", "hunter2"),
        ("postgres://wb:hunter2@/wb?host=/run", "hunter2"),
        ("Authorization: Token abcdef0123456789", "abcdef0123456789"),
    ],
)
def test_log_lines_hold_no_secret(text: str, gone: str) -> None:
    line = LineFormatter().format(logging.LogRecord("x", logging.INFO, "f", 1, "%s", (text,), None))
    assert gone not in line and "***" in line
    assert redact(redact(text)) == redact(text)


@pytest.mark.parametrize(
    "text",
    ["token wb_aB3dE6gH was revoked", "run e3-s17 completed", "http://127.0.0.1:8000/runs/", "12:30:00 user mara", ""],
)
def test_other_log_lines_stay_as_they_are(text: str) -> None:
    assert redact(text) == text


def test_a_traceback_holds_no_secret() -> None:
    try:
        raise ValueError(f"cannot use {SECRET}")
    except ValueError as error:
        kind = (type(error), error, error.__traceback__)
    line = LineFormatter().format(logging.LogRecord("x", logging.ERROR, "f", 1, "failed", (), kind))
    assert "Traceback" in line and "x" * 43 not in line and "wb_aB3dE6gH_***" in line


def test_no_secret_is_stored_or_shown_again(place: Place, caplog: Any) -> None:
    """A token and a password through pages and API: in no row, no receipt, no line of the log."""
    caplog.set_level(logging.DEBUG)
    person, now = place.people["researcher"], timezone.now()
    secret = issue_token(person, name="n", scopes=["write"], expires_at=None, at=now)[1]
    client = Client()
    client.post("/accounts/login/", {"username": "researcher", "password": PASSWORD})
    client.post(
        f"/api/v1/runs/{place.parts['run']}/pause",
        content_type="application/json",
        headers={"Authorization": f"Bearer {secret}"},
    )
    client.get(f"/search/?q={secret}")
    told = [
        *(str(row) for row in AuditEntry.objects.values()),
        *(bytes(row).decode() for row in Receipt.objects.values_list("bytes", flat=True)),
        *(str(row) for row in ApiToken.objects.values()),
        *(str(row) for row in User.objects.values()),
        *(LineFormatter().format(record) for record in caplog.records),
        client.get("/account/").content.decode(),
    ]
    assert not [text[:200] for text in told if secret in text or secret[12:] in text or PASSWORD in text]
    entry = AuditEntry.objects.filter(channel="api").latest("pk")
    assert entry.token_prefix == secret[3:11] and entry.actor is not None and entry.actor.name == "researcher"
