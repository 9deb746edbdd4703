"""Every address x every kind of caller, against the table that is written by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import cache
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, get_resolver

from tests.people.conftest import ROLES, Place
from tests.people.rights import TABLE, Row

METHODS = ("get", "post", "put", "patch", "delete")


def addresses(patterns: Any = None, space: str = "") -> Iterator[tuple[str, Any]]:
    """Name and view of every address of the site."""
    for entry in get_resolver().url_patterns if patterns is None else patterns:
        if isinstance(entry, URLPattern):
            yield f"{space}{entry.name}", entry.callback
        else:
            yield from addresses(entry.url_patterns, space + (f"{entry.namespace}:" if entry.namespace else ""))


def _methods(view: Any) -> set[str]:
    """Methods that a class of views answers; for a function of which nothing is known: none."""
    owner = getattr(view, "cls", None) or getattr(view, "view_class", None)
    if owner is None:
        return set()
    served = {method for method in METHODS if hasattr(owner, method) and method in owner.http_method_names}
    if "post" in served and not hasattr(owner, "cls"):
        served -= {"put"}  # form views answer it as a POST; browsers never send it
    return {method.upper() for method in served}


def test_every_address_stands_in_the_table() -> None:
    listed = {row.name for row in TABLE}
    missing = sorted({name for name, _view in addresses()} - listed)
    assert not missing, "no row of tests/people/rights.py for these addresses: " + ", ".join(missing)


def test_every_row_of_the_table_has_an_address() -> None:
    unknown = sorted({row.name for row in TABLE} - {name for name, _view in addresses()})
    assert not unknown, "no address for these rows: " + ", ".join(unknown)


def test_every_method_of_an_address_stands_in_the_table() -> None:
    listed = {(row.name, row.method) for row in TABLE}
    missing = sorted(
        f"{method} {name}"
        for name, view in addresses()
        for method in _methods(view)
        if (name, method) not in listed and name in {row.name for row in TABLE} and name != "api:not_found"
    )
    assert not missing, "no row for these methods: " + ", ".join(missing)


def ask(row: Row, place: Place, *, cookie: str = "", secret: str = "") -> str:
    """The letter of one answer; whatever it changed is rolled back."""
    client = Client(raise_request_exception=False)
    if cookie:
        client.cookies["sessionid"] = cookie
    headers = dict(row.headers)
    if secret:
        headers["Authorization"] = f"Bearer {secret}"
    path = row.path.format(**place.parts)
    body: dict[str, Any] = {
        name: value.format(**place.parts) if isinstance(value, str) else value for name, value in row.body.items()
    }
    with transaction.atomic():
        if row.is_api or row.json:
            data = json.dumps(body) if row.method != "GET" else ""
            answer: Any = client.generic(row.method, path, data, content_type="application/json", headers=headers)
        else:
            answer = getattr(client, row.method.lower())(path, body or None, headers=headers)
        if answer.streaming:
            b"".join(answer.streaming_content)
        transaction.set_rollback(True)
    return letter(answer)


def letter(answer: Any) -> str:
    """l, f, n or o; any other letter names a fault of the server."""
    status = answer.status_code
    if status >= 500 and status != 503:  # 503: not ready, said to whoever asks
        return f"<{status}>"
    if status == 401 or (status == 302 and answer["Location"].startswith("/accounts/login/")):
        return "l"
    return {403: "f", 404: "n"}.get(status, "o")


@pytest.fixture(scope="module")
def cookies(place: Place, django_db_blocker: Any) -> dict[str, str]:
    """Session cookies by role."""
    found = {}
    with django_db_blocker.unblock():
        for role, person in place.people.items():
            client = Client()
            client.force_login(person)
            found[role] = client.cookies["sessionid"].value
    return found


def named(row: Row) -> str:
    return f"{row.method} {row.name} {row.path}"


PAGE_ROWS = pytest.mark.parametrize("row", [row for row in TABLE if not row.is_api], ids=named)
API_ROWS = pytest.mark.parametrize("row", [row for row in TABLE if row.is_api], ids=named)


def steps(expected: str) -> list[int]:
    """Places of the callers with whom the answer changes, from nobody up."""
    return [place for place, said in enumerate(expected) if place == 0 or said != expected[place - 1]]


def test_steps_by_hand() -> None:
    assert (steps("lnffffoo"), steps("oooooooo"), steps("lnfofffo")) == ([0, 1, 2, 6], [0], [0, 1, 2, 3, 4, 7])


@PAGE_ROWS
def test_a_page_answers_as_the_table_says_where_it_changes(
    row: Row, place: Place, cookies: dict[str, str], db: None
) -> None:
    cache.clear()
    asked = steps(row.expected)
    got = "".join(ask(row, place, cookie=cookies.get(ROLES[i], "")) for i in asked)
    assert got == "".join(row.expected[i] for i in asked), f"by session, {', '.join(ROLES[i] for i in asked)}"


@API_ROWS
def test_the_api_answers_as_the_table_says_where_it_changes(row: Row, place: Place, db: None) -> None:
    cache.clear()
    expected = row.token or row.expected
    asked = steps(expected)
    got = "".join(ask(row, place, secret=place.secrets.get(ROLES[i], "")) for i in asked)
    assert got == "".join(expected[i] for i in asked), f"by token, {', '.join(ROLES[i] for i in asked)}"


@pytest.mark.gate
@PAGE_ROWS
def test_each_caller_of_a_page_is_answered_as_the_table_says(
    row: Row, place: Place, cookies: dict[str, str], db: None
) -> None:
    cache.clear()
    got = "".join(ask(row, place, cookie=cookies.get(role, "")) for role in ROLES)
    assert got == row.expected, f"by session, {', '.join(ROLES)}"


@pytest.mark.gate
@API_ROWS
def test_each_caller_of_the_api_is_answered_as_the_table_says(row: Row, place: Place, db: None) -> None:
    cache.clear()
    got = "".join(ask(row, place, secret=place.secrets.get(role, "")) for role in ROLES)
    assert got == (row.token or row.expected), f"by token, {', '.join(ROLES)}"


@pytest.mark.gate
@API_ROWS
def test_the_api_answers_a_session_as_it_answers_a_token(
    row: Row, place: Place, cookies: dict[str, str], db: None
) -> None:
    cache.clear()
    got = "".join(ask(row, place, cookie=cookies.get(role, "")) for role in ROLES)
    assert got == row.expected, f"by session, {', '.join(ROLES)}"
