"""Retries, keys, problems, pages, downloads: against a server that does exactly what the test says."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from workbench.client import errors
from workbench.client.transport import Transport, asked_delay
from workbench.contracts.errors import Problem

Handler = Callable[[httpx.Request], httpx.Response]
DATA = bytes(range(256)) * 64
SHA = hashlib.sha256(DATA).hexdigest()


class Server:
    """Answers out of a list, one a request; the last one repeats. ``seen`` holds the requests."""

    def __init__(self, *answers: httpx.Response | Exception | Handler) -> None:
        self.answers, self.seen, self.slept = list(answers), list[httpx.Request](), list[float]()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.seen.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer(request) if callable(answer) else answer

    def transport(self, retries: int = 3) -> Transport:
        """Its client; waiting is noted and takes no time, jitter is always the largest."""
        client = httpx.Client(transport=httpx.MockTransport(self), base_url="http://server/api/v1/")
        return Transport(client, retries, self.slept.append, lambda: 1.0)


def problem(status: int, detail: str = "why", headers: dict[str, str] | None = None, **members: Any) -> httpx.Response:
    """A refusal as the server writes it."""
    value = {"type": "about:blank", "title": "Title", "status": status, "detail": detail, "errors": [], **members}
    return httpx.Response(status, json=value, headers={"Content-Type": "application/problem+json", **(headers or {})})


def ok(value: Any = None) -> httpx.Response:
    """A success."""
    return httpx.Response(200, json={} if value is None else value)


BROKEN = httpx.ReadError("connection reset")


@pytest.mark.parametrize("first", [problem(502), problem(503), problem(504), problem(429), BROKEN])
def test_what_may_pass_is_tried_again_under_one_key(first: httpx.Response | Exception) -> None:
    """Two failures, then success: three requests with one Idempotency-Key; waits 0.25 and 0.5 seconds."""
    server = Server(first, first, ok({"done": 1}))
    assert server.transport().post("plans/x/start").value == {"done": 1}
    keys = {request.headers["Idempotency-Key"] for request in server.seen}
    assert len(server.seen) == 3 and len(keys) == 1 and server.slept == [0.25, 0.5]


def test_two_changes_have_two_keys_and_a_caller_may_bring_one() -> None:
    server = Server(ok())
    transport = server.transport()
    for key in (None, None, "mine"):
        transport.post("x", key=key)
    keys = [request.headers["Idempotency-Key"] for request in server.seen]
    assert len(set(keys)) == 3 and keys[2] == "mine"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 412, 422, 428, 500])
def test_a_refusal_is_not_tried_again(status: int) -> None:
    server = Server(problem(status))
    with pytest.raises(errors.ProblemError) as raised:
        server.transport().post("x")
    assert raised.value.status == status and len(server.seen) == 1 and not server.slept


def test_a_key_in_progress_is_waited_for() -> None:
    server = Server(problem(409, headers={"Retry-After": "1"}), ok())
    server.transport().post("x")
    assert server.slept == [1.0]


def test_retry_after_is_obeyed_and_bounded() -> None:
    server = Server(problem(429, headers={"Retry-After": "7"}), problem(503, headers={"Retry-After": "9999"}), ok())
    server.transport().get("x")
    assert server.slept == [7.0, 120.0]


def test_a_retry_date_is_the_time_until_it() -> None:
    now = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
    assert asked_delay({"Retry-After": "Fri, 01 May 2026 12:00:30 GMT"}, lambda: now) == 30.0
    assert asked_delay({"Retry-After": "Fri, 01 May 2026 11:00:00 GMT"}, lambda: now) == 0.0
    assert asked_delay({"Retry-After": "soon"}) is None and asked_delay({}) is None


def test_giving_up_says_what_and_how_often() -> None:
    server = Server(BROKEN)
    with pytest.raises(errors.ConnectionFailed, match=r"GET x: ReadError: connection reset \(4 attempts\)"):
        server.transport().get("x")
    limited = Server(problem(429, headers={"Retry-After": "1"}))
    with pytest.raises(errors.RateLimited):
        limited.transport(retries=1).get("x")
    assert len(limited.seen) == 2


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, errors.Unauthorized), (403, errors.Forbidden), (404, errors.NotFound), (409, errors.Conflict),
        (410, errors.Gone), (412, errors.PreconditionFailed), (422, errors.Invalid), (400, errors.Invalid),
        (500, errors.ServerError),
    ],
)  # fmt: skip
def test_a_problem_keeps_its_members(status: int, kind: type[errors.ProblemError]) -> None:
    entries = [{"field": "seeds[0]", "got": "x", "expected": "a number"}]
    with pytest.raises(kind, match=f"{status} Title: seeds: got x") as raised:
        Server(problem(status, "seeds: got x", errors=entries)).transport().get("x")
    assert raised.value.errors == (Problem("seeds[0]", "x", "a number"),)


def test_an_answer_that_is_no_problem_is_an_error_all_the_same() -> None:
    with pytest.raises(errors.ServerError, match="<html>busy"):
        Server(httpx.Response(500, text="<html>busy")).transport().get("x")


def test_pages_end_with_the_last_cursor_and_keep_their_filters() -> None:
    pages = [
        ok({"items": [{"n": 1}, {"n": 2}], "next_cursor": "c1", "upto": 9}),
        ok({"items": [], "next_cursor": None}),
    ]
    server = Server(*pages)
    found = list(server.transport().pages("runs", {"study": "s", "eligible": True, "arm": None}))
    assert found == [{"n": 1}, {"n": 2}]
    assert [dict(request.url.params) for request in server.seen] == [
        {"study": "s", "eligible": "true"},
        {"study": "s", "eligible": "true", "cursor": "c1"},
    ]


def test_bytes_are_hashed_on_arrival() -> None:
    told = {"ETag": f'"{SHA}"'}
    assert Server(httpx.Response(200, content=DATA, headers=told)).transport().bytes("c") == DATA
    assert Server(httpx.Response(200, content=DATA)).transport().bytes("c", SHA) == DATA
    for data, headers, sha in ((DATA[:-1], told, None), (DATA[:-1], {}, SHA), (DATA, {}, None)):
        with pytest.raises(errors.IntegrityError, match="got bytes that hash to"):
            Server(httpx.Response(200, content=data, headers=headers)).transport().bytes("c", sha)


class Broken(httpx.SyncByteStream):
    """A body that breaks off."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __iter__(self) -> Iterator[bytes]:
        yield self.data
        raise httpx.ReadError("gone")


def rest(request: httpx.Request) -> httpx.Response:
    """The whole, or what a Range asks for."""
    text = request.headers.get("Range")
    if text is None:
        return httpx.Response(200, content=DATA)
    start = int(text.removeprefix("bytes=").rstrip("-"))
    assert request.headers["If-Range"] == f'"{SHA}"'
    if start >= len(DATA):
        return problem(416)
    return httpx.Response(206, content=DATA[start:])


def test_a_broken_download_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """1,000 bytes arrive, then the connection breaks: the second request asks for byte 1000 on."""
    server = Server(httpx.Response(200, stream=Broken(DATA[:1000]), headers={"Content-Length": str(len(DATA))}), rest)
    told: list[tuple[int, int | None]] = []
    to = tmp_path / "a" / "adapter"
    assert server.transport().download("x", to, SHA, lambda *at: told.append(at)) == to
    assert to.read_bytes() == DATA and server.seen[1].headers["Range"] == "bytes=1000-"
    assert told[0] == (1000, len(DATA)) and told[-1] == (len(DATA), len(DATA))
    assert [path.name for path in to.parent.iterdir()] == ["adapter"]


def test_a_partial_file_of_an_earlier_process_is_used(tmp_path: Path) -> None:
    for have in (DATA[:5000], DATA):
        part = tmp_path / f"adapter.{SHA[:12]}.part"
        part.write_bytes(have)
        server = Server(rest)
        assert server.transport().download("x", tmp_path / "adapter", SHA).read_bytes() == DATA
        assert server.seen[0].headers["Range"] == f"bytes={len(have)}-"


def test_other_bytes_are_never_kept(tmp_path: Path) -> None:
    server = Server(httpx.Response(200, content=DATA[::-1]))
    with pytest.raises(errors.IntegrityError, match="got bytes that hash to"):
        server.transport().download("x", tmp_path / "adapter", SHA)
    assert not list(tmp_path.iterdir())


def test_bytes_that_retention_removed_are_gone(tmp_path: Path) -> None:
    with pytest.raises(errors.Gone, match="recipe"):
        Server(problem(410, "recipe: replay batch 3")).transport().download("x", tmp_path / "adapter", SHA)
    assert not list(tmp_path.iterdir())
