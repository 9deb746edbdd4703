"""Base of the API's views: principal, strict bodies, once-only POSTs, sparse fields, keyset lists."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db.models import Model, QuerySet
from django.utils.dateparse import parse_datetime
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

from runs.access import Principal
from runs.access import principal_of as cached
from runs.api import idempotency
from runs.api.authentication import principal_of
from runs.api.problems import ApiProblem, invalid, refused
from runs.models import Actor, PlanVersion

LIMIT, MAX_LIMIT = 50, 500
LAST_KEY = 2**62 - 1  # beyond every primary key
BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


@dataclass(frozen=True)
class Filter:
    """A query parameter of a list: its lookup, its type, and the values that it may have (empty: any)."""

    name: str
    lookup: str
    kind: str = "text"  # text, uuid, integer, number, boolean, time
    choices: tuple[str, ...] = ()
    help: str = ""

    def value(self, text: str) -> Any:
        """The parameter as a value. Raises a problem that names it."""
        if "\x00" in text or len(text) > 300:
            raise invalid(self.name, text, "at most 300 characters without U+0000", 400)
        if self.choices and text not in self.choices:
            raise invalid(self.name, text, f"one of {', '.join(self.choices)}", 400)
        try:
            return _READERS[self.kind](text)
        except (ValueError, KeyError, OverflowError) as error:
            raise invalid(self.name, text, _EXPECTED[self.kind], 400) from error


@dataclass(frozen=True)
class OfPlan(Filter):
    """Rows of the versions of a plan or study, ``by`` its path: the keys come first, so that an index serves."""

    by: str = "plan__uid"

    def value(self, text: str) -> Any:
        """Keys of the versions."""
        found = super().value(text)
        return list(PlanVersion.objects.filter(**{self.by: found}).values_list("pk", flat=True))


def _integer(text: str) -> int:
    value = int(text) if text.lstrip("-").isascii() and text.lstrip("-").isdigit() else None
    if value is None or abs(value) > 2**53 - 1:
        raise ValueError(text)
    return value


def _number(text: str) -> float:
    value = float(text)
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError(text)
    return value


def _time(text: str) -> datetime:
    value = parse_datetime(text)
    if value is None or value.tzinfo is None:
        raise ValueError(text)
    return value.astimezone(UTC)  # OverflowError where that leaves the calendar


_READERS: dict[str, Callable[[str], Any]] = {
    "text": str,
    "uuid": UUID,
    "integer": _integer,
    "number": _number,
    "boolean": BOOLEANS.__getitem__,
    "time": _time,
}
_EXPECTED = {
    "text": "text",
    "uuid": "a UUID",
    "integer": "a whole number within 2**53 - 1",
    "number": "a finite number",
    "boolean": "true or false",
    "time": "an ISO 8601 time with zone",
}


class ApiView(APIView):
    """Every view of the API. Subclasses read ``self.principal`` and call ``runs.access``."""

    tag = ""
    summary = ""
    serializer: type[Serializer[Any]] | None = None
    body: type[Serializer[Any]] | None = None
    status_code = 200
    principal: Principal

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Authenticate, throttle, and keep the principal."""
        super().initial(request, *args, **kwargs)
        request._request.principal = principal_of(request)
        self.principal = cached(request._request)  # keeps what one request looks up

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Say with every answer what is left of the rate limit."""
        answer = super().finalize_response(request, response, *args, **kwargs)
        for name, value in getattr(request, "rate_limit", {}).items():
            answer.headers[name] = value
        answer.headers.setdefault("Cache-Control", "private, no-cache")
        return answer

    def actor(self) -> Actor:
        """The actor of a change; nobody is refused with 401."""
        if self.principal.user is None:
            raise ApiProblem(
                401,
                "Authorization: got none, expected a token or a session; there is no anonymous change",
                headers={"WWW-Authenticate": 'Bearer realm="workbench"'},
            )
        return self.principal.actor()

    def read_body(self, request: Request) -> dict[str, Any]:
        """The body through ``self.body``; an unknown member is refused by name."""
        data = request.data if isinstance(request.data, dict) else {}
        if self.body is None:
            known: dict[str, Any] = {}
        else:
            known = self.body().fields
        for name in data:
            if name not in known:
                raise invalid(name, data[name], f"one of {', '.join(known) or 'no members'}")
        if self.body is None:
            return {}
        serializer = self.body(data=data)
        if not serializer.is_valid():
            raise refused(serializer.errors, data)
        found: dict[str, Any] = serializer.validated_data
        return found


class PostView(ApiView):
    """A view whose POST does one change, once for each Idempotency-Key."""

    def post(self, request: Request, **kwargs: Any) -> Response:
        """Do ``change`` in one transaction with the stored answer; a repeat needs the right as well."""
        self.actor()
        self.allow(**kwargs)
        return idempotency.once(
            request,
            self.principal,
            lambda: self.change(request, **kwargs),
            prepare=lambda: self.prepare(request, **kwargs),
        )

    def allow(self, **kwargs: Any) -> None:
        """Raise ``Http404`` or ``NotAllowed`` where the caller may not do this now."""
        raise NotImplementedError

    def prepare(self, request: Request, **kwargs: Any) -> None:
        """What takes long and changes nothing: before the transaction, which on SQLite holds the only write lock."""

    def change(self, request: Request, **kwargs: Any) -> Response:
        """The change itself, after ``allow`` and ``prepare``."""
        raise NotImplementedError


class DetailView(ApiView):
    """One object: subclasses give ``find``."""

    takes_fields = True

    def find(self, request: Request, **kwargs: Any) -> Any:
        """The visible object, or ``Http404``."""
        raise NotImplementedError

    def get(self, request: Request, **kwargs: Any) -> Response:
        """The object."""
        check_parameters(request, ("fields",))
        found = self.find(request, **kwargs)
        assert self.serializer is not None
        return Response(sparse(request, self.serializer, [found])[0])


class ListView(ApiView):
    """A list in order of creation, newest first unless ``order=oldest``; keyset cursors, a pinned upper bound."""

    filters: tuple[Filter, ...] = ()
    extra: tuple[str, ...] = ()  # parameters that ``rows`` reads itself
    is_list = True

    def rows(self, request: Request, **kwargs: Any) -> QuerySet[Any]:
        """Visible rows before filters."""
        raise NotImplementedError

    def get(self, request: Request, **kwargs: Any) -> Response:
        """One page: {"items", "next_cursor" (null: no more), "upto" (rows made later are not in this walk)}."""
        check_parameters(
            request, ("cursor", "limit", "order", "fields", *self.extra, *(item.name for item in self.filters))
        )
        rows = self.rows(request, **kwargs)
        for item in self.filters:
            if item.name in request.query_params:
                rows = rows.filter(**{item.lookup: item.value(request.query_params[item.name])})
        found, cursor, upto = page(request, rows)
        assert self.serializer is not None
        return Response({"items": sparse(request, self.serializer, found), "next_cursor": cursor, "upto": upto})


def check_parameters(request: Request, known: Iterable[str]) -> None:
    """Refuse a query parameter that does not exist: a misspelt filter would silently list everything."""
    names = tuple(known)
    for name in request.query_params:
        if name not in names:
            raise invalid(name, request.query_params[name], f"a parameter out of {', '.join(names)}", 400)


def limit_of(request: Request, default: int = LIMIT, most: int = MAX_LIMIT) -> int:
    """``?limit=`` within bounds."""
    text = request.query_params.get("limit", str(default))
    if not text.isascii() or not text.isdigit() or len(text) > 9 or not 1 <= int(text) <= most:
        raise invalid("limit", text, f"a whole number from 1 to {most}", 400)
    return int(text)


def encode_cursor(order: str, last: int, upto: int) -> str:
    """Opaque text of a position."""
    return base64.urlsafe_b64encode(f"{order}:{last}:{upto}".encode()).decode().rstrip("=")


def decode_cursor(text: str) -> tuple[str, int, int]:
    """(order, last key, upper bound). Raises a problem for what this API did not give out."""
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True).decode("ascii")
        order, last, upto = raw.split(":")
        if order not in ("newest", "oldest") or not 0 <= int(last) < 2**62 or not 0 <= int(upto) < 2**62:
            raise ValueError(raw)
        return order, int(last), int(upto)
    except (ValueError, binascii.Error, UnicodeError) as error:
        raise invalid("cursor", text, "a next_cursor of an earlier answer", 400) from error


def page(request: Request, rows: QuerySet[Any]) -> tuple[list[Any], str | None, int]:
    """(rows of the page, cursor of the next or None, upper bound) by primary key, which grows with creation.

    The bound is the newest row of ``rows`` itself, 0 without any: a key of a hidden row would tell how many there are.
    """
    limit, text = limit_of(request), request.query_params.get("cursor")
    order = request.query_params.get("order", "newest")
    if order not in ("newest", "oldest"):
        raise invalid("order", order, "newest or oldest", 400)
    last: int | None = None
    upto = LAST_KEY
    if text is not None:
        order, last, upto = decode_cursor(text)
    rows = rows.filter(pk__lte=upto)  # also where nothing bounds it: SQLite then walks the key and sorts no joined rows
    if text is None and order == "oldest":
        upto = rows.order_by("-pk").values_list("pk", flat=True).first() or 0
        rows = rows.filter(pk__lte=upto)
    if last is not None:
        rows = rows.filter(pk__lt=last) if order == "newest" else rows.filter(pk__gt=last)
    found = list(rows.order_by("-pk" if order == "newest" else "pk")[: limit + 1])
    if text is None and order == "newest":
        upto = found[0].pk if found else 0
    more = len(found) > limit
    found = found[:limit]
    return found, encode_cursor(order, found[-1].pk, upto) if more else None, upto


def sparse(request: Request, serializer: type[Serializer[Any]], rows: list[Model] | list[Any]) -> list[dict[str, Any]]:
    """Rows as plain values; with ``?fields=a,b`` only those members, and only those are computed."""
    of_page = getattr(serializer, "context_of", None)
    instance = serializer(context={"request": request, **(of_page(rows) if of_page else {})})
    wanted = request.query_params.get("fields")
    if wanted is not None:
        names = [name for name in wanted.split(",") if name]
        for name in names:
            if name not in instance.fields:
                raise invalid("fields", name, f"names out of {', '.join(instance.fields)}", 400)
        for name in list(instance.fields):
            if name not in names:
                instance.fields.pop(name)
    return [dict(instance.to_representation(row)) for row in rows]
