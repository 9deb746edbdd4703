"""The audit log: every request or command that asked for a change, also where it was refused.

``record`` writes one entry. Inside a request or a command, a ``Channel`` says how the asker came in, so
that an action's own entry (a token issued, a role given) carries the same request id as the request's.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from runs.actions.actors import person_actor
from runs.models import Actor, AuditEntry, Study, User
from workbench.logs import redact

PAGE, API, COMMAND = "page", "api", "command"
LIMITS = {
    name: int(AuditEntry._meta.get_field(name).max_length or 0)  # type: ignore[union-attr]
    for name in ("channel", "method", "route", "subject", "detail", "request_id", "address", "token_prefix")
}
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True)
class Channel:
    """How the asker came in: ``name`` is page, api or command."""

    name: str = COMMAND
    request_id: str = ""
    address: str = ""
    token_prefix: str = ""


_channel: ContextVar[Channel | None] = ContextVar("audit_channel", default=None)


@contextlib.contextmanager
def channel(value: Channel) -> Iterator[None]:
    """What ``record`` says about the way in, until the block ends."""
    before = _channel.set(value)
    try:
        yield
    finally:
        _channel.reset(before)


def current_channel() -> Channel:
    """The channel of this request; a command's where there is none."""
    return _channel.get() or Channel()


def clean(text: str, limit: int) -> str:
    """One line without control characters and secrets, at most ``limit`` characters."""
    line = _UNPRINTABLE.sub(" ", redact(text))
    return line if len(line) <= limit else line[: limit - 1] + "…"


def record(
    *,
    at: datetime,
    method: str,
    route: str,
    status: int,
    actor: Actor | None = None,
    subject: str = "",
    study: Study | None = None,
    detail: str = "",
    came: Channel | None = None,
) -> AuditEntry:
    """Write one entry. Texts are cut to their columns and redacted; a body never comes here.

    ``status``: of the answer (HTTP), or 0 done and 1 refused for a command or an action's own entry.
    """
    came = came or current_channel()
    texts: dict[str, Any] = {
        "channel": came.name,
        "method": method,
        "route": route,
        "subject": subject,
        "detail": detail,
        "request_id": came.request_id,
        "address": came.address,
        "token_prefix": came.token_prefix,
    }
    return AuditEntry.objects.create(
        at=at,
        actor=actor,
        study=study,
        status=status,
        **{name: clean(text, LIMITS[name]) for name, text in texts.items()},
    )


def record_change(
    what: str, *, by: Actor | User | None, at: datetime, subject: str, study: Study | None = None, detail: str = ""
) -> AuditEntry:
    """An action's own entry, beside the request's: what was changed. Call in the change's transaction."""
    actor = person_actor(by) if isinstance(by, User) else by
    return record(
        at=at, method="change", route=what, status=0, actor=actor, subject=subject, study=study, detail=detail
    )


def record_command(
    command: str,
    *,
    by: Actor | None,
    at: datetime,
    failed: bool = False,
    subject: str = "",
    study: Study | None = None,
    detail: str = "",
) -> AuditEntry:
    """One entry for a command of ``manage.py`` that changes something. ``detail``: why it was refused."""
    return record(
        at=at,
        method="command",
        route=f"manage.py {command}",
        status=1 if failed else 0,
        actor=by,
        subject=subject,
        study=study,
        detail=detail,
        came=Channel(COMMAND),
    )
