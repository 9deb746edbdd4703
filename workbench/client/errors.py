"""Errors of the client. What the server refuses is a ``ProblemError`` with the problem's own members."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.contracts.errors import Problem


class WorkbenchError(Exception):
    """Base of everything that the client raises."""


class ConnectionFailed(WorkbenchError):
    """The server could not be reached, or broke off, at every attempt."""


class IntegrityError(WorkbenchError):
    """Bytes whose hash is not the one that was asked for; nothing of them is kept."""


class WaitTimeout(WorkbenchError):
    """What was waited for has not ended within the given time; it goes on."""


class ProblemError(WorkbenchError):
    """A refusal (RFC 9457). ``errors`` lists every fault as (field, got, expected).

    ``retry_after``: seconds that the server asks to wait, or None.
    """

    def __init__(
        self,
        status: int,
        title: str,
        detail: str,
        errors: tuple[Problem, ...] = (),
        retry_after: float | None = None,
        headers: Mapping[str, str] | None = None,
    ):
        self.status, self.title, self.detail, self.errors = status, title, detail, errors
        self.retry_after, self.headers = retry_after, dict(headers or {})
        super().__init__(f"{status} {title}: {detail}")


class Invalid(ProblemError):
    """400, 413, 415, 416, 422, 428: the request or one of its values is wrong."""


class Unauthorized(ProblemError):
    """401: no token, or none that is alive."""


class Forbidden(ProblemError):
    """403: you see it, but may not do this to it."""


class NotFound(ProblemError):
    """404: no such thing that you can see."""


class Conflict(ProblemError):
    """409: its state does not allow it (frozen already, not inspected yet, ended)."""


class Gone(ProblemError):
    """410: retention removed the bytes; ``detail`` holds the recipe that makes them again."""


class PreconditionFailed(ProblemError):
    """412: another writer saved first."""


class RateLimited(ProblemError):
    """429 at every attempt."""


class ServerError(ProblemError):
    """5xx at every attempt."""


_KINDS: dict[int, type[ProblemError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    412: PreconditionFailed,
    429: RateLimited,
}


def problem_of(status: int, body: Any, headers: Mapping[str, str], retry_after: float | None) -> ProblemError:
    """The exception of an answer with a status of 400 or more; ``body``: its JSON, or anything else."""
    kind = _KINDS.get(status, ServerError if status >= 500 else Invalid)
    value = body if isinstance(body, dict) else {}
    entries = value.get("errors")
    errors = tuple(
        Problem(str(item.get("field")), str(item.get("got")), str(item.get("expected")))
        for item in (entries if isinstance(entries, list) else [])
        if isinstance(item, dict)
    )
    title = str(value.get("title") or "Error")
    detail = str(value.get("detail") or (str(body)[:300] if body else "no explanation"))
    return kind(status, title, detail, errors, retry_after, headers)
