"""One foreign rollout for reading: its texts, its tokens, its rewards, and what its grade allows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from runs.models import ImportedRollout
from workbench.contracts.canonical import decode_float

TOKENS_SHOWN = 3000
GRADES: dict[str, str | Promise] = {
    "A": _("Ids, policy indicator and sampler probabilities of every policy token, under one known policy version"),
    "B": _("Ids, policy indicator and sampler probabilities; which policy version sampled a token is not known"),
    "C": _("Text or numbers alone: no claim about training may rest on it"),
}


@dataclass(frozen=True)
class Turn:
    """One message or text. ``role`` as received; ``text`` is JSON where the message is no plain text."""

    role: str
    text: str


@dataclass(frozen=True)
class Token:
    """One id. ``mine`` None: the file does not say who wrote it. ``logprob`` None: none recorded."""

    place: int
    id: int
    mine: bool | None
    logprob: float | None
    advantage: float | None


@dataclass(frozen=True)
class RolloutView:
    """``tokens`` are the first ``TOKENS_SHOWN`` of ``total``; ``extra`` is what no column of ours holds."""

    turns: tuple[Turn, ...]
    tokens: tuple[Token, ...]
    total: int
    rewards: tuple[tuple[str, float | None], ...]
    versions: tuple[int | None, int | None]
    place: dict[str, Any]
    extra: tuple[tuple[str, Any], ...]


def _number(value: Any) -> float | None:
    return None if value is None else decode_float(value)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, indent=2)


def _turn(message: Any) -> Turn:
    if isinstance(message, dict) and isinstance(message.get("role"), str):
        rest = {key: value for key, value in message.items() if key not in ("role", "content") and value is not None}
        content = message.get("content")
        parts = [_text(content)] if content not in (None, "") else []
        return Turn(message["role"], "\n".join([*parts, *([_text(rest)] if rest else [])]))
    return Turn("", _text(message))


def _turns(body: dict[str, Any]) -> tuple[Turn, ...]:
    if body.get("messages"):
        return tuple(_turn(message) for message in body["messages"])
    found = (("prompt", body.get("prompt")), ("completion", body.get("completion")))
    return tuple(Turn(role, text) for role, text in found if text is not None)


def _column(body: dict[str, Any], name: str, size: int) -> Sequence[Any]:
    values = body.get(name)
    return values if values is not None else [None] * size


def view_of(body: dict[str, Any]) -> RolloutView:
    """The parts of a stored body. Arrays are parallel by the contract of ``RolloutItem``."""
    ids = body.get("token_ids") or []
    shown = ids[:TOKENS_SHOWN]
    columns = (_column(body, name, len(ids)) for name in ("is_policy_token", "logprobs", "advantages"))
    rows = zip(shown, *columns, strict=False)
    return RolloutView(
        _turns(body),
        tuple(Token(at, int(i), mine, _number(p), _number(a)) for at, (i, mine, p, a) in enumerate(rows)),
        len(ids),
        tuple((name, _number(value)) for name, value in sorted((body.get("rewards") or {}).items())),
        (body.get("version_start"), body.get("version_end")),
        body.get("place") or {},
        tuple(sorted((body.get("extra") or {}).items())),
    )


def siblings_of(row: ImportedRollout) -> list[ImportedRollout]:
    """Rollouts of the same step and group, in order; the row alone where it names no group."""
    if not row.group_key:
        return [row]
    rows = ImportedRollout.objects.filter(run=row.run_id, step=row.step, group_key=row.group_key)
    return list(rows.defer("body").order_by("pk")[:200])


def neighbours_of(row: ImportedRollout) -> tuple[ImportedRollout | None, ImportedRollout | None]:
    """The rollouts before and after a row in the order of its import."""
    rows = ImportedRollout.objects.filter(log_import=row.log_import_id).defer("body")
    before = rows.filter(Q(position__lt=row.position)).order_by("-position").first()
    return before, rows.filter(position__gt=row.position).order_by("position").first()
