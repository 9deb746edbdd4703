"""A POST with an Idempotency-Key is done once: its answer commits with its change and is given again to a repeat.

The record is entered before the work, so that a second request meets it: 409 while the first is under
way, 422 where the key came with another request. A record whose server died is taken over after a while.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from runs.access import Principal
from runs.api.problems import ApiProblem, fault, invalid
from runs.models import IdempotencyRecord
from workbench.contracts.canonical import parse_json, sha256_hex

HEADER = "Idempotency-Key"
ABANDONED = timedelta(seconds=60)
KEPT = timedelta(days=7)
KEPT_HEADERS = ("ETag", "Location")


def fingerprint(request: Request) -> str:
    """SHA-256 of method, address and parsed body."""
    body = JSONRenderer().render(request.data)
    return sha256_hex(f"{request.method} {request.get_full_path()}\n".encode() + body)


def key_of(request: Request) -> str | None:
    """The header's value; a problem where it is no plain token."""
    key = request.headers.get(HEADER)
    if key is None:
        return None
    if not 1 <= len(key) <= 200 or not key.isascii() or not key.isprintable():
        raise invalid(HEADER, key, "1 to 200 printable ASCII characters", 400)
    return key


def once(
    request: Request, principal: Principal, change: Callable[[], Response], prepare: Callable[[], None] = lambda: None
) -> Response:
    """The answer of ``change``, which runs in one transaction with the record of its answer.

    ``prepare`` runs before that transaction, and not at all where an earlier answer is given again.
    """
    key = key_of(request)
    if key is None:
        prepare()
        with transaction.atomic():
            return change()
    mark = fingerprint(request)
    record = _enter(principal, key, mark)
    if isinstance(record, Response):
        return record
    try:
        prepare()
        with transaction.atomic():
            response = change()
            _keep(record, response)
    except BaseException:
        # Nothing was changed: the key is free again, unless another request took it over meanwhile.
        IdempotencyRecord.objects.filter(pk=record.pk, status=None, created_at=record.created_at).delete()
        raise
    return response


def _enter(principal: Principal, key: str, mark: str) -> IdempotencyRecord | Response:
    """The record made for this request, or the answer that an earlier one left."""
    assert principal.user is not None
    now = timezone.now()
    IdempotencyRecord.objects.filter(user=principal.user, created_at__lt=now - KEPT).delete()
    try:
        with transaction.atomic():
            return IdempotencyRecord.objects.create(user=principal.user, key=key, fingerprint=mark, created_at=now)
    except IntegrityError:
        found = IdempotencyRecord.objects.filter(user=principal.user, key=key).first()
    if found is None:
        raise ApiProblem(
            409, f"{HEADER}: got {key}, which ended this instant; send it again", headers={"Retry-After": "1"}
        )
    if found.fingerprint != mark:
        raise ApiProblem(
            422,
            f"{HEADER}: got {key} with another request, expected the request that it came with first",
            errors=[fault(HEADER, key, "a new key for another request")],
        )
    if found.status is None:
        taken = IdempotencyRecord.objects.filter(pk=found.pk, status=None, created_at=found.created_at)
        if now - found.created_at > ABANDONED and taken.update(created_at=now):
            found.created_at = now
            return found
        raise ApiProblem(409, f"{HEADER}: got {key}, whose request is still in progress", headers={"Retry-After": "1"})
    data = parse_json(bytes(found.body)) if bytes(found.body) else None
    return Response(data, status=found.status, headers={**found.headers, "Idempotency-Replayed": "true"})


def _keep(record: IdempotencyRecord, response: Response) -> None:
    body = JSONRenderer().render(response.data) if response.data is not None else b""
    headers: dict[str, Any] = {name: response[name] for name in KEPT_HEADERS if name in response}
    kept = IdempotencyRecord.objects.filter(pk=record.pk, status=None, created_at=record.created_at)
    if kept.update(status=response.status_code, headers=headers, body=body) != 1:
        raise ApiProblem(
            409, f"{HEADER}: got {record.key}, which another request took over", headers={"Retry-After": "1"}
        )
