"""Requests with retries: backoff, Retry-After, one Idempotency-Key for all attempts of a change, resumed downloads."""

from __future__ import annotations

import hashlib
import random
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import httpx

from .errors import ConnectionFailed, IntegrityError, ProblemError, problem_of

RETRIED = frozenset({429, 502, 503, 504})
FIRST_DELAY, LONGEST_DELAY, LONGEST_ASKED = 0.25, 8.0, 120.0


@dataclass(frozen=True)
class Answer:
    """A successful answer: its JSON value and its headers."""

    value: Any
    headers: Mapping[str, str]


def asked_delay(headers: Mapping[str, str], now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> float | None:
    """Seconds that ``Retry-After`` asks for, given as seconds or as a date; None where it says nothing readable."""
    text = headers.get("Retry-After", "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        return max(0.0, (parsedate_to_datetime(text) - now()).total_seconds()) if text else None
    except (ValueError, TypeError):
        return None


@dataclass
class Transport:
    """Speaks HTTP for one server and one token. ``retries``: attempts after the first.

    A change is repeated under the Idempotency-Key of its first attempt, so that it happens once
    however often the connection breaks.
    """

    client: httpx.Client
    retries: int = 6
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = field(default=random.random)

    def get(self, path: str, parameters: Mapping[str, Any] | None = None, *, timeout: float | None = None) -> Answer:
        """Read JSON."""
        return self._json("GET", path, parameters=parameters, timeout=timeout)

    def post(self, path: str, body: Any = None, *, key: str | None = None, timeout: float | None = None) -> Answer:
        """Change something, once. ``key``: an Idempotency-Key of the caller's own."""
        extra = {"Idempotency-Key": key or new_key()}
        return self._json("POST", path, body={} if body is None else body, extra=extra, timeout=timeout)

    def put(self, path: str, body: Any, *, etag: str) -> Answer:
        """Replace a draft whose entity tag is ``etag``."""
        return self._json("PUT", path, body=body, extra={"If-Match": etag})

    def _json(
        self,
        method: str,
        path: str,
        *,
        parameters: Mapping[str, Any] | None = None,
        body: Any = None,
        extra: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Answer:
        given: dict[str, Any] = {"params": _query(parameters), "headers": dict(extra or {})}
        if body is not None:
            given["json"] = body
        if timeout is not None:
            given["timeout"] = timeout

        def once() -> Answer:
            response = self.client.request(method, path, **given)
            if response.status_code >= 400:
                raise self._problem(response)
            return Answer(response.json() if response.content else None, response.headers)

        return self.retried(once, f"{method} {path}")

    def retried(self, once: Callable[[], Any], what: str) -> Any:
        """``once`` until it succeeds, is refused for good, or has been tried often enough."""
        for attempt in range(self.retries + 1):
            try:
                return once()
            except ProblemError as error:
                is_busy = error.status == 409 and error.retry_after is not None  # the same key is under way
                if attempt == self.retries or not (error.status in RETRIED or is_busy):
                    raise
                self._pause(attempt, error.retry_after)
            except httpx.TransportError as error:
                if attempt == self.retries:
                    raise ConnectionFailed(
                        f"{what}: {type(error).__name__}: {error} ({attempt + 1} attempts)"
                    ) from error
                self._pause(attempt, None)
        raise AssertionError("not reached: the last attempt returns or raises")

    def _pause(self, attempt: int, asked: float | None) -> None:
        """Wait as long as asked (within bounds), else exponentially with jitter."""
        if asked is not None:
            self.sleep(min(asked, LONGEST_ASKED))
            return
        longest = min(LONGEST_DELAY, FIRST_DELAY * 2**attempt)
        self.sleep(longest / 2 + self.jitter() * longest / 2)

    def _problem(self, response: httpx.Response) -> ProblemError:
        response.read()
        try:
            body = response.json()
        except ValueError:
            body = response.text
        return problem_of(response.status_code, body, response.headers, asked_delay(response.headers))

    def bytes(self, path: str, sha256: str | None = None) -> bytes:
        """Bytes in memory, their hash checked against ``sha256`` (else against the server's own ETag)."""

        def once() -> tuple[bytes, str]:
            response = self.client.get(path)
            if response.status_code >= 400:
                raise self._problem(response)
            return response.content, response.headers.get("ETag", "").strip('"')

        data, told = self.retried(once, f"GET {path}")
        _check(hashlib.sha256(data).hexdigest(), sha256 or told, path)
        return bytes(data)

    def download(
        self, path: str, to: Path, sha256: str, progress: Callable[[int, int | None], None] | None = None
    ) -> Path:
        """Bytes into the file ``to``, resumed where an attempt broke off, kept only if their hash is ``sha256``.

        ``progress``: (bytes so far, bytes in all or None). A partial file lies beside ``to`` as ``.part``.
        """
        part = to.with_name(f"{to.name}.{sha256[:12]}.part")
        part.parent.mkdir(parents=True, exist_ok=True)
        self.retried(lambda: self._fetch(path, part, sha256, progress), f"GET {path}")
        try:
            _check(_file_sha256(part), sha256, path)
        except IntegrityError:
            part.unlink()
            raise
        part.replace(to)
        return to

    def _fetch(self, path: str, part: Path, sha256: str, progress: Callable[[int, int | None], None] | None) -> None:
        have = part.stat().st_size if part.exists() else 0
        headers = {"Accept-Encoding": "identity"}
        if have:
            headers |= {"Range": f"bytes={have}-", "If-Range": f'"{sha256}"'}
        with self.client.stream("GET", path, headers=headers) as response:
            if response.status_code == 416 and have:
                return  # everything was there already; the hash decides
            if response.status_code >= 400:
                raise self._problem(response)
            is_rest = response.status_code == 206
            length = response.headers.get("Content-Length")
            total = int(length) + (have if is_rest else 0) if length and length.isdigit() else None
            done = have if is_rest else 0
            with part.open("ab" if is_rest else "wb") as file:
                for chunk in response.iter_bytes():
                    file.write(chunk)
                    done += len(chunk)
                    if progress is not None:
                        progress(done, total)

    def pages(self, path: str, parameters: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Every item of a list, page by page. Rows made meanwhile do not shift the walk."""
        given = dict(parameters)
        while True:
            value = self.get(path, given).value
            yield from value["items"]
            if value["next_cursor"] is None:
                return
            given["cursor"] = value["next_cursor"]


def new_key() -> str:
    """A fresh Idempotency-Key."""
    return str(uuid.uuid4())


def _query(parameters: Mapping[str, Any] | None) -> dict[str, str]:
    """Parameters as text; those that are None are left out."""
    found = {}
    for name, value in (parameters or {}).items():
        if value is not None:
            is_flag = isinstance(value, bool)
            found[name.rstrip("_")] = ("true" if value else "false") if is_flag else str(getattr(value, "uid", value))
    return found


def _file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check(found: str, expected: str, path: str) -> None:
    if found != expected:
        raise IntegrityError(f"{path}: got bytes that hash to {found}, expected {expected or 'a hash from the server'}")
