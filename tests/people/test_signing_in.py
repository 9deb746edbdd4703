"""Signing in: right and wrong, throttled, no hint whether a name exists, where one goes afterwards, sessions."""

from __future__ import annotations

import statistics
import time
from typing import Any

import pytest
from django.conf import global_settings, settings
from django.contrib.sessions.models import Session
from django.test import Client, override_settings

from runs.models import AuditEntry, User

PASSWORD = "correct horse battery"
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def whole_hashes(request: pytest.FixtureRequest, settings: Any) -> None:
    """Dozens of attempts; only the test of time needs what an attempt costs."""
    if "costs_the_time" in request.node.name:
        settings.PASSWORD_HASHERS = global_settings.PASSWORD_HASHERS


@pytest.fixture
def mara() -> User:
    return User.objects.create_user("mara", password=PASSWORD)


def _sign_in(client: Client, name: str = "mara", password: str = PASSWORD, **more: Any) -> Any:
    return client.post("/accounts/login/", {"username": name, "password": password, **more})


def test_name_and_password_sign_in_under_either_field(client: Client, mara: User) -> None:
    """Browsers send ``username``; the account library's own field ``login`` is taken too, and so is another case."""
    assert _sign_in(client).status_code == 302
    assert client.get("/account/").status_code == 200
    other = Client()
    assert other.post("/accounts/login/", {"login": "MARA", "password": PASSWORD}).status_code == 302
    assert other.get("/account/").status_code == 200


def test_a_session_begins_anew_with_each_sign_in(client: Client, mara: User) -> None:
    """The key changes, so that a key planted before opens nothing."""
    client.get("/accounts/login/")
    client.cookies["sessionid"] = "planted0planted0planted0planted0"
    _sign_in(client)
    assert client.cookies["sessionid"].value != "planted0planted0planted0planted0"
    cookie = client.cookies["sessionid"]
    assert cookie["httponly"] and cookie["samesite"] == "Lax" and not cookie["secure"]


def test_wrong_name_and_wrong_password_read_the_same(client: Client, mara: User) -> None:
    """One sentence for both; the typed name comes back, the password never."""
    wrong, unknown = (
        _sign_in(client, password="nope nope nope"),
        _sign_in(client, name="noor", password="nope nope nope"),
    )
    assert wrong.status_code == unknown.status_code == 422
    pages = [answer.content.decode() for answer in (wrong, unknown)]
    assert all("do not match an account" in page and "nope" not in page for page in pages)
    strip = [page.split("<form", 1)[1].replace("noor", "mara").split("csrfmiddlewaretoken")[0] for page in pages]
    assert strip[0] == strip[1]


def test_an_unknown_name_costs_the_time_of_a_known_one(client: Client, mara: User) -> None:
    """A password is hashed either way; within a factor of three, for the clock of a busy machine is rough."""

    def seconds(name: str) -> float:
        found = []
        for n in range(3):
            started = time.perf_counter()
            _sign_in(Client(), name=name, password=f"wrong {n}")
            found.append(time.perf_counter() - started)
        return statistics.median(found)

    known, unknown = seconds("mara"), seconds("nobody-here")
    assert 1 / 3 < known / unknown < 3


def test_five_failures_close_a_name_and_say_when_to_come_back(client: Client, mara: User) -> None:
    """The sixth attempt is not tried, right password or not; another name from another address still is."""
    for n in range(5):
        assert _sign_in(client, password=f"wrong {n}").status_code == 422
    answer = _sign_in(client)
    assert answer.status_code == 429 and answer["Retry-After"] == str(settings.LOGIN_FAILURES_WAIT) == "300"
    assert "Too many attempts" in answer.content.decode()
    assert client.get("/account/").status_code == 302
    User.objects.create_user("noor", password=PASSWORD)
    assert (
        Client(REMOTE_ADDR="192.0.2.7").post("/accounts/login/", {"username": "noor", "password": PASSWORD}).status_code
        == 302
    )


def test_an_unknown_name_is_closed_alike(client: Client, mara: User) -> None:
    """Otherwise 429 would tell which names exist."""
    for n in range(5):
        _sign_in(client, name="nobody-here", password=f"wrong {n}")
    assert _sign_in(client, name="nobody-here").status_code == 429


def test_an_address_that_tries_many_names_is_closed(client: Client, mara: User) -> None:
    """Twenty failures a minute from one address, whatever the names."""
    for n in range(20):
        assert _sign_in(client, name=f"name-{n}", password="wrong").status_code == 422
    assert _sign_in(client).status_code == 429
    assert (
        Client(REMOTE_ADDR="192.0.2.7").post("/accounts/login/", {"username": "mara", "password": PASSWORD}).status_code
        == 302
    )


def test_a_forged_forwarding_header_does_not_open_it_again(client: Client, mara: User) -> None:
    """Without configured proxies X-Forwarded-For is what the caller made up."""
    for n in range(20):
        client.post(
            "/accounts/login/", {"username": f"n{n}", "password": "x"}, headers={"X-Forwarded-For": f"192.0.2.{n}"}
        )
    answer = client.post(
        "/accounts/login/", {"username": "mara", "password": PASSWORD}, headers={"X-Forwarded-For": "192.0.2.99"}
    )
    assert answer.status_code == 429


def test_success_does_not_use_up_attempts(client: Client, mara: User) -> None:
    for _ in range(8):
        assert _sign_in(Client()).status_code == 302


@pytest.mark.parametrize(
    "target",
    [
        "//evil.example/",
        "https://evil.example/",
        "http:evil.example",
        "/\\evil.example/",
        "javascript:alert(1)",
        "https://testserver.evil.example/",
        "\thttps://evil.example",
    ],
)
def test_afterwards_one_stays_on_this_site(client: Client, mara: User, target: str) -> None:
    answer = _sign_in(client, next=target)
    assert answer.status_code == 302 and answer["Location"] == "/"
    out = client.post("/accounts/logout/", {"next": target})
    assert out.status_code == 302 and out["Location"] == "/"


def test_afterwards_one_comes_where_one_wanted_to_go(client: Client, mara: User) -> None:
    page = client.get("/accounts/login/?next=/jobs/").content.decode()
    assert '<input type="hidden" name="next" value="/jobs/">' in page
    assert _sign_in(client, next="/jobs/")["Location"] == "/jobs/"
    assert client.get("/accounts/login/?next=/jobs/")["Location"] == "/jobs/"


def test_a_deactivated_account_is_told_to_its_owner_alone(client: Client, mara: User) -> None:
    """Who has the password learns it; who has not reads the same as for any wrong password."""
    User.objects.filter(pk=mara.pk).update(is_active=False)
    assert "do not match" in _sign_in(client, password="wrong").content.decode()
    assert _sign_in(client)["Location"] == "/accounts/inactive/"
    assert client.get("/account/").status_code == 302


def test_deactivation_ends_a_session_at_once(client: Client, mara: User) -> None:
    client.force_login(mara)
    assert client.get("/account/").status_code == 200
    User.objects.filter(pk=mara.pk).update(is_active=False)
    assert client.get("/account/").status_code == 302


def test_signing_up_is_closed_unless_the_site_opens_it(client: Client) -> None:
    form = {"username": "noor", "password1": "a long enough phrase", "password2": "a long enough phrase"}
    assert "made by a site admin" in client.get("/accounts/signup/").content.decode()
    client.post("/accounts/signup/", form)
    assert not User.objects.filter(username="noor").exists()
    with override_settings(WORKBENCH_SIGNUP=True):
        assert "Make an account." in client.get("/accounts/signup/").content.decode()
        assert client.post("/accounts/signup/", {**form, "password1": "short", "password2": "short"}).status_code == 200
        assert client.post("/accounts/signup/", form).status_code == 302
    made = User.objects.get(username="noor")
    assert not made.is_superuser and not made.memberships.exists()


def test_a_new_password_ends_every_other_session(client: Client, mara: User) -> None:
    other = Client()
    other.force_login(mara)
    client.force_login(mara)
    new = "another long phrase"
    wrong = client.post("/accounts/password/", {"oldpassword": "no", "password1": new, "password2": new})
    assert wrong.status_code == 200 and other.get("/account/").status_code == 200
    weak = client.post(
        "/accounts/password/", {"oldpassword": PASSWORD, "password1": "password123", "password2": "password123"}
    )
    assert weak.status_code == 200
    done = client.post("/accounts/password/", {"oldpassword": PASSWORD, "password1": new, "password2": new})
    assert done.status_code == 302 and done["Location"] == "/account/"
    assert client.get("/account/").status_code == 200 and other.get("/account/").status_code == 302


def test_sessions_are_listed_and_ended_elsewhere(client: Client, mara: User) -> None:
    """Mine alone, without their keys; another person's stays."""
    noor, other, hers = User.objects.create_user("noor", password=PASSWORD), Client(), Client()
    hers.force_login(noor)
    other.post("/accounts/login/", {"username": "mara", "password": PASSWORD}, headers={"User-Agent": "OtherBrowser/1"})
    _sign_in(client)
    page = client.get("/account/").content.decode()
    assert "OtherBrowser/1" in page and page.count("this browser") == 1
    assert not any(key in page for key in Session.objects.values_list("session_key", flat=True))
    client.post("/account/sessions/end/")
    assert other.get("/account/").status_code == 302
    assert client.get("/account/").status_code == hers.get("/account/").status_code == 200


def test_signing_out_needs_a_post(client: Client, mara: User) -> None:
    client.force_login(mara)
    assert client.get("/accounts/logout/").status_code == 200 and client.get("/account/").status_code == 200
    client.post("/accounts/logout/")
    assert client.get("/account/").status_code == 302
    assert AuditEntry.objects.filter(route__startswith="logout ", actor__name="mara").count() == 1


def test_failures_stand_in_the_audit_log_without_what_was_typed(client: Client, mara: User) -> None:
    _sign_in(client, name="maybe-a-password", password="surely a password")
    entry = AuditEntry.objects.latest("pk")
    assert (entry.method, entry.status, entry.actor, entry.channel) == ("POST", 422, None, "page")
    assert "password" not in f"{entry.subject} {entry.detail}".lower().replace("accounts/password", "")
