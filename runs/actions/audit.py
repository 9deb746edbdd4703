"""The audit log: every request or command that asked for a change, also where it was refused.

``record`` writes one entry. Inside a request or a command, a ``Channel`` says how the asker came in, so
that an action's own entry (a token issued, a role given) carries the same request id as the request's.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import HttpRequest

from runs.actions.actors import person_actor
from runs.models import (
    Actor,
    ApiToken,
    AuditEntry,
    Execution,
    Group,
    Job,
    Plan,
    PlanVersion,
    Run,
    Study,
    Trajectory,
    User,
)
from workbench.logs import redact

PAGE, API, COMMAND = "page", "api", "command"
LIMITS = {
    name: int(AuditEntry._meta.get_field(name).max_length or 0)
    for name in ("channel", "method", "route", "subject", "detail", "request_id", "address", "token_prefix")
}
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True)
class Channel:
    """How the asker came in: ``name`` is page, api or command. ``noted``: what was learnt on the way."""

    name: str = COMMAND
    request_id: str = ""
    address: str = ""
    noted: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def token_prefix(self) -> str:
        """Prefix of the token that the request carries; empty for none."""
        return str(self.noted.get("token_prefix", ""))


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


def note(**what: Any) -> None:
    """Tell the entry of the request that is under way: ``study``, ``subject``, ``detail`` or ``token_prefix``.

    Without a request under way nothing is kept: an action's own entry is told directly.
    """
    found = _channel.get()
    if found is not None:
        found.noted.update(what)


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


# Kinds of rows whose uid an address may hold, and the path from there to the study.
_BY_UID: tuple[tuple[Any, str], ...] = (
    (Run, "plan_version__plan__study"),
    (Plan, "study"),
    (PlanVersion, "plan__study"),
    (Execution, "plan_version__plan__study"),
    (Job, "study"),
    (Job, "execution__plan_version__plan__study"),
    (Group, "plan_version__plan__study"),
    (Trajectory, "group__plan_version__plan__study"),
)


def _study_in(parts: dict[str, Any]) -> Study | None:
    """The study that the parts of an address name, by its slug or by the uid of something in it."""
    slug = parts.get("study") or parts.get("slug")
    if isinstance(slug, str) and slug:
        return Study.objects.filter(slug=slug).first()
    uids = [value for value in parts.values() if isinstance(value, UUID)]
    for uid in uids[:2]:
        for model, path in _BY_UID:
            found = model.objects.filter(uid=uid).values_list(path, flat=True).first()
            if found is not None:
                return Study.objects.filter(pk=found).first()
    return None


def record_request(request: HttpRequest, *, status: int, came: Channel, at: datetime) -> AuditEntry:
    """One entry for a request that asked for a change: who, what address, about what, with what answer."""
    match = request.resolver_match
    parts = dict(match.kwargs) if match is not None else {}
    principal = getattr(request, "principal", None)
    user = principal.user if principal is not None else getattr(request, "user", None)
    token: ApiToken | None = getattr(principal, "token", None)
    if token is not None:
        came.noted["token_prefix"] = token.prefix
    noted = came.noted
    return record(
        at=at,
        method=request.method or "",
        route="" if match is None else f"{match.view_name} {match.route}",
        status=status,
        actor=person_actor(user) if isinstance(user, User) and user.pk else noted.get("actor"),
        subject=str(noted.get("subject") or " ".join(f"{name}={value}" for name, value in parts.items())),
        study=noted.get("study") or _study_in(parts),
        detail=str(noted.get("detail", "")),
        came=came,
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


@contextlib.contextmanager
def audited_command(
    command: str, *, by: Actor | None, at: datetime, subject: str = "", study: Study | str | None = None
) -> Iterator[dict[str, str]]:
    """Leave one entry for the command in the block: done, or ended by an error, with its words. The error goes on.

    ``study``: the study or its slug, which the block may bring into being. The block may put a ``detail`` into
    what it is given. Ctrl-C is an end like any other.
    """
    noted: dict[str, str] = {}
    failed = True
    try:
        yield noted
        failed = False
    except BaseException as error:
        noted["detail"] = str(error) or type(error).__name__
        raise
    finally:
        place = Study.objects.filter(slug=study).first() if isinstance(study, str) else study
        detail = noted.get("detail", "")
        record_command(command, by=by, at=at, failed=failed, subject=subject, study=place, detail=detail)
