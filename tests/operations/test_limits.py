"""Bodies: refused by their stated length, refused once a chunked one is longer, and read whole within the limit."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory

from workbench.operations.limits import BodyLimit


class Counted(io.BytesIO):
    """A source that knows how much was taken."""

    taken = 0

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        self.taken += len(data)
        return data


def passed(request: HttpRequest) -> HttpResponse:
    """The middleware's answer; one that lets the request through echoes its body."""
    return BodyLimit(lambda inner: HttpResponse(inner.body))(request)  # type: ignore[return-value]


@pytest.fixture(autouse=True)
def small(settings: Any) -> None:
    settings.REQUEST_BODY_LIMIT = 1000


def with_length(length: str, path: str = "/x") -> tuple[HttpRequest, Counted]:
    source = Counted(b"x" * 5000)
    request = RequestFactory().generic("POST", path)
    request.META.update({"CONTENT_LENGTH": length, "wsgi.input": source})
    return request, source


@pytest.mark.parametrize("length", ["1001", "99999999999", "9" * 400])
def test_a_longer_body_is_refused_unread(length: str) -> None:
    request, source = with_length(length)
    answer = passed(request)
    assert answer.status_code == 413 and source.taken == 0 and b"expected at most 1000" in answer.content


@pytest.mark.parametrize("length", ["-1", "1e3", "abc", "\u0661"])
def test_a_length_that_is_no_number(length: str) -> None:
    assert passed(with_length(length)[0]).status_code == 400


def test_the_api_answers_with_a_problem() -> None:
    """In the form of every other refusal of the API: title, detail, and the fault with its value."""
    answer = passed(with_length("1001", "/api/v1/plans")[0])
    assert answer["Content-Type"] == "application/problem+json"
    assert json.loads(answer.content) == {
        "type": "about:blank",
        "title": "Content too large",
        "status": 413,
        "detail": "body: got 1001 bytes, expected at most 1000",
        "errors": [{"field": "body", "got": "1001 bytes", "expected": "at most 1000"}],
    }
    wrong = json.loads(passed(with_length("1e3", "/api/v1/plans")[0]).content)
    assert wrong["errors"] == [{"field": "Content-Length", "got": "1e3", "expected": "a whole number"}]


def chunked(data: bytes) -> tuple[HttpRequest, Counted]:
    source = Counted(data)
    request = RequestFactory().generic("POST", "/x", headers={"transfer-encoding": "chunked"})
    request.META.pop("CONTENT_LENGTH", None)
    request.META["wsgi.input"] = source
    return request, source


def test_a_chunked_body_is_read_up_to_the_limit() -> None:
    """1,000 bytes pass whole, 1,001 do not; of 5 MB no more than one byte above the limit is taken."""
    answer = passed(chunked(b"y" * 1000)[0])
    assert answer.status_code == 200 and answer.content == b"y" * 1000
    assert passed(chunked(b"y" * 1001)[0]).status_code == 413
    request, source = chunked(b"y" * 5_000_000)
    assert passed(request).status_code == 413 and source.taken == 1001
    assert passed(chunked(b"")[0]).content == b""


@pytest.mark.django_db
def test_it_stands_before_every_view() -> None:
    """A form, a page, an API address: the whole application refuses."""
    for path in ("/accounts/login/", "/api/v1/plans", "/no/such/page"):
        answer = Client(headers={"host": "localhost"}).post(path, b"z" * 1001, content_type="application/json")
        assert answer.status_code == 413
        assert answer["X-Request-ID"] and "Content-Security-Policy" in answer


@pytest.mark.django_db
def test_too_many_fields_are_refused(settings: Any) -> None:
    settings.REQUEST_BODY_LIMIT = 10**6
    body = "&".join(f"f{i}=1" for i in range(settings.DATA_UPLOAD_MAX_NUMBER_FIELDS + 1))
    form = "application/x-www-form-urlencoded"
    answer = Client(headers={"host": "localhost"}).post("/accounts/login/", body, content_type=form)
    assert answer.status_code == 400
