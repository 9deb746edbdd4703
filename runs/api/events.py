"""Events since a cursor: receipts of the streams in scope, in order within each stream, none lost.

The cursor holds a position (stream, seq) for each stream, since a key that grows with insertion loses
events where transactions commit out of order. A stream is named by its subject's kind and key, which are
small numbers, so that a study of some thousand runs still fits into an address. With ``wait`` the request
stays open until there is an event.
"""

from __future__ import annotations

import base64
import binascii
import itertools
import threading
import time
import zlib
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Q
from rest_framework import serializers as s
from rest_framework.request import Request
from rest_framework.response import Response

from runs.access import Principal, get_visible
from runs.access import principal_of as cached
from runs.api.authentication import principal_of as authenticated
from runs.api.base import ApiView, Filter, check_parameters, limit_of, sparse
from runs.api.problems import invalid
from runs.api.serializers import ReceiptSerializer
from runs.models import Execution, Plan, Receipt, Run, StreamHead, Study, User
from runs.streams import STREAMS
from workbench.contracts.canonical import canonical_bytes, parse_json
from workbench.contracts.errors import CanonicalError

MAX_WAIT = 30
MAX_STREAMS = 3_000
LOOK_EVERY = 0.5  # seconds between two looks of a request that waits
WAITERS = threading.BoundedSemaphore(48)  # of the web process's threads; the rest stay free for pages
SCOPES: dict[str, tuple[type[Any], str]] = {
    "study": (Study, "slug"),
    "plan": (Plan, "uid"),
    "execution": (Execution, "uid"),
    "run": (Run, "uid"),
}


@dataclass(frozen=True)
class Stream:
    """A receipt stream by its subject."""

    kind: str
    key: int
    name: str


class EventsSerializer(s.Serializer[Any]):
    """Events and the cursor that follows them. ``more``: there are others already; ask again at once."""

    items = ReceiptSerializer(many=True)
    cursor = s.CharField()
    more = s.BooleanField()


def encode(streams: list[Stream], positions: dict[str, int]) -> str:
    """Cursor text: by kind, the steps from key to key and the position at each."""
    value: dict[str, list[list[int]]] = {}
    for kind in STREAMS:
        placed = sorted((item.key, positions[item.name]) for item in streams if item.kind == kind
                        and positions.get(item.name))  # fmt: skip
        if placed:
            keys = [key for key, _ in placed]
            steps = [key - before for key, before in zip(keys, [0, *keys], strict=False)]
            value[kind] = [steps, [seq for _, seq in placed]]
    return base64.urlsafe_b64encode(zlib.compress(canonical_bytes(value), 9)).decode().rstrip("=")


def decode(text: str, streams: list[Stream]) -> dict[str, int]:
    """Positions by name of those streams; a problem for what this API did not give out."""
    try:
        packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        reader = zlib.decompressobj()
        data = reader.decompress(packed, 1_000_000)
        if reader.unconsumed_tail or not reader.eof:
            raise ValueError("length")
        found: dict[tuple[str, int], int] = {}
        for kind, (steps, positions) in parse_json(data).items():
            if not all(type(n) is int and 0 <= n < 2**53 for n in (*steps, *positions)):
                raise ValueError("numbers")
            keys = itertools.accumulate(steps)
            found.update({(kind, key): seq for key, seq in zip(keys, positions, strict=True)})
        return {s.name: found[s.kind, s.key] for s in streams if (s.kind, s.key) in found}
    except (ValueError, TypeError, AttributeError, binascii.Error, zlib.error, CanonicalError) as error:
        raise invalid("cursor", text, "a cursor of an earlier answer", 400) from error


class Events(ApiView):
    """Events of a study, plan, execution or run."""

    tag, summary, serializer = "events", "Events since a cursor", EventsSerializer
    takes_fields = True
    parameters = (
        Filter("study", "", help="slug; one of study, plan, execution, run is needed"),
        Filter("plan", "", "uuid"),
        Filter("execution", "", "uuid"),
        Filter("run", "", "uuid"),
        Filter("cursor", "", help="of the last answer; absent: from the beginning"),
        Filter("from", "", choices=("beginning", "now"), help="where to begin without a cursor"),
        Filter("wait", "", "integer", help=f"seconds to wait for an event, at most {MAX_WAIT}"),
        Filter("limit", "", "integer"),
    )

    def get(self, request: Request, **kwargs: Any) -> Response:
        """At once where there are events, else after at most ``wait`` seconds."""
        check_parameters(request, ("fields", *(item.name for item in self.parameters)))
        limit, streams, wait = limit_of(request, 100), self._streams(request), self._wait(request)
        text = request.query_params.get("cursor")
        begin = request.query_params.get("from", "beginning")
        if begin not in ("beginning", "now"):
            raise invalid("from", begin, "beginning or now", 400)
        names = [item.name for item in streams]
        positions = dict(_heads(names)) if begin == "now" else {}
        if text is not None:
            positions = decode(text, streams)
        found, more = self._follow(names, positions, limit, wait)
        if wait:
            self._still_allowed(request)
        for receipt in found:
            positions[receipt.stream] = receipt.seq
        items, cursor = sparse(request, ReceiptSerializer, found), encode(streams, positions)
        return Response({"items": items, "cursor": cursor, "more": more})

    def _follow(
        self, streams: list[str], positions: dict[str, int], limit: int, wait: int
    ) -> tuple[list[Receipt], bool]:
        """What is there now, or what comes within ``wait`` seconds where a place to wait is free."""
        found, more = events_since(streams, positions, limit)
        if found or not wait or not WAITERS.acquire(blocking=False):
            return found, more
        try:
            end = time.monotonic() + wait
            while not found and time.monotonic() < end:
                time.sleep(min(LOOK_EVERY, max(0.0, end - time.monotonic())))
                found, more = events_since(streams, positions, limit)
            return found, more
        finally:
            WAITERS.release()

    def _still_allowed(self, request: Request) -> None:
        """Look up caller and rights again: either may have been taken away while the request waited."""
        fresh = Request(request._request, authenticators=self.get_authenticators())
        fresh._request.__dict__.pop("_kept_by_principal", None)
        principal = authenticated(fresh)
        if principal.user is not None and not User.objects.filter(pk=principal.user.pk, is_active=True).exists():
            principal = Principal(None)
        fresh._request.principal = principal
        self.principal = cached(fresh._request)
        self._streams(request)

    def _wait(self, request: Request) -> int:
        text = request.query_params.get("wait", "0")
        if not text.isascii() or not text.isdigit() or len(text) > 4 or int(text) > MAX_WAIT:
            raise invalid("wait", text, f"whole seconds from 0 to {MAX_WAIT}", 400)
        return int(text)

    def _streams(self, request: Request) -> list[Stream]:
        given = [name for name in SCOPES if name in request.query_params]
        if len(given) != 1:
            raise invalid("scope", ", ".join(given) or "none", "exactly one of study, plan, execution and run", 400)
        name = given[0]
        model, column = SCOPES[name]
        value: Any = request.query_params[name]
        if column == "uid":
            try:
                value = UUID(value)
            except ValueError as error:
                raise invalid(name, value, "a UUID", 400) from error
        elif "\x00" in value:
            raise invalid(name, value, "a slug", 400)
        subject = get_visible(
            self.principal, model._default_manager.all(), "pk" if model is Study else None, **{column: value}
        )
        streams = streams_of(subject)
        if len(streams) > MAX_STREAMS:
            raise invalid(name, value, f"at most {MAX_STREAMS} streams; follow its executions or runs one by one", 400)
        return streams


def streams_of(subject: Any) -> list[Stream]:
    """The streams that tell of a study, plan, execution or run."""
    if isinstance(subject, Run):
        return [Stream("run", subject.pk, f"run:{subject.uid}")]
    if isinstance(subject, Execution):
        own = Stream("execution", subject.pk, f"execution:{subject.uid}")
        return [own, *_named("run", Run.objects.filter(execution=subject))]
    if isinstance(subject, Plan):
        of = Q(plan_version__plan=subject)
        return [
            Stream("plan", subject.pk, f"plan:{subject.uid}"),
            *_named("execution", Execution.objects.filter(of)),
            *_named("run", Run.objects.filter(of)),
        ]
    return [
        name
        for kind, (model, path) in STREAMS.items()
        for name in _named(kind, model._default_manager.filter(**{path: subject.pk}))
    ]


def _named(kind: str, rows: Any) -> list[Stream]:
    return [Stream(kind, key, f"{kind}:{uid}") for key, uid in rows.values_list("pk", "uid")[: MAX_STREAMS + 1]]


def _heads(streams: list[str]) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    for start in range(0, len(streams), 500):  # a database takes so many parameters and no more
        part = StreamHead.objects.filter(stream__in=streams[start : start + 500], seq__gt=0)
        found += list(part.values_list("stream", "seq"))
    return found


def events_since(streams: list[str], positions: dict[str, int], limit: int) -> tuple[list[Receipt], bool]:
    """(receipts after the positions by stream and seq, at most ``limit``; whether there are more)."""
    ahead = [(name, seq) for name, seq in _heads(streams) if seq > positions.get(name, 0)]
    found: list[Receipt] = []
    for name, _ in sorted(ahead):
        after = Receipt.objects.filter(stream=name, seq__gt=positions.get(name, 0)).select_related("actor")
        found += list(after.order_by("seq")[: limit + 1 - len(found)])
        if len(found) > limit:
            return found[:limit], True
    return found, False
