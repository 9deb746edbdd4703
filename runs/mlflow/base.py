"""What stands around every tracking view: who asks, how often, the body, and errors in MLflow's form."""

from __future__ import annotations

import base64
import binascii
import functools
import json
import time
from collections.abc import Callable
from typing import Any

import orjson
from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.db import connection, transaction
from django.http import Http404, HttpRequest, HttpResponseBase
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt

from runs.access import LOG_WRITE, READ, Principal, capabilities, require, study_ids
from runs.access import principal_of as kept
from runs.actions.audit import note
from runs.actions.tokens import token_of
from runs.api.throttling import PERIOD, policy, take
from runs.errors import NotAllowed
from runs.mlflow.errors import MlflowError, invalid, missing, of_exception
from runs.mlflow.hot import no_run
from runs.models import Actor, Study, TrackedRun

CHALLENGE = {"WWW-Authenticate": 'Bearer realm="workbench"'}
TOKEN_NAME = "token"  # user name of Basic that stands for "the token says who"
ACTORS_MOST = 1000  # remembered by one process: an actor's row never changes once it is committed
_actors: dict[tuple[str, int, str], Actor] = {}
View = Callable[..., HttpResponseBase]  # (request, given, **parts of the address)
DEFAULT_ID = "0"  # experiment of clients that name none


def _secret(header: str) -> tuple[str, str]:
    """(user name, token) of an Authorization header; the name is empty for Bearer."""
    scheme, _, rest = header.partition(" ")
    if scheme.lower() == "bearer":
        return "", rest.strip()
    if scheme.lower() == "basic":
        try:
            name, _, secret = base64.b64decode(rest.strip(), validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError) as error:
            raise MlflowError(
                "UNAUTHENTICATED", "Authorization: got Basic without base64, expected it", CHALLENGE
            ) from error
        return name, secret
    raise MlflowError("UNAUTHENTICATED", f"Authorization: got {scheme[:20]!r}, expected Bearer or Basic", CHALLENGE)


def authenticate(request: HttpRequest) -> Principal:
    """The owner of the token in the request: Bearer (MLFLOW_TRACKING_TOKEN), or Basic with the token as password."""
    header = request.META.get("HTTP_AUTHORIZATION", "")
    if not header:
        text = "Authorization: got none, expected a token: set MLFLOW_TRACKING_TOKEN to one of yours with the scope log"
        raise MlflowError("UNAUTHENTICATED", text, CHALLENGE)
    name, secret = _secret(header)
    token = token_of(secret, timezone.now())
    if token is None or (name not in ("", TOKEN_NAME) and name != token.user.get_username()):
        text = "Authorization: got a token that is unknown, expired, revoked or not of this user, expected a live one"
        raise MlflowError("UNAUTHENTICATED", text, CHALLENGE)
    request.principal = Principal(token.user, token)  # type: ignore[attr-defined]
    return kept(request)


def _throttle(principal: Principal) -> None:
    limit = policy("log")
    assert principal.user is not None
    allowed, _, wait = take(f"api-rate:log:u{principal.user.pk}", limit, time.time())
    if not allowed:
        text = f"requests: got more than {limit} within {PERIOD:.0f} seconds, expected fewer"
        raise MlflowError("REQUEST_LIMIT_EXCEEDED", text, {"Retry-After": str(max(1, int(wait + 0.999)))})


def _body(request: HttpRequest) -> dict[str, Any]:
    try:
        data = request.body
    except RequestDataTooBig as error:
        text = f"body: got more than {settings.REQUEST_BODY_LIMIT} bytes, expected fewer"
        raise MlflowError("REQUEST_TOO_LARGE", text) from error
    if not data.strip():
        return {}
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        value = _lenient(data)
    if not isinstance(value, dict):
        raise MlflowError("MALFORMED_REQUEST", f"body: got {type(value).__name__}, expected a JSON object")
    return value


def _lenient(data: bytes) -> Any:
    """JSON with the words NaN and Infinity, which some writers send as they are."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise MlflowError("MALFORMED_REQUEST", f"body: {str(error)[:200]}, expected JSON") from error


def _query(request: HttpRequest) -> dict[str, Any]:
    """Parameters of the address; one that comes several times is a list."""
    return {
        name: values[0] if len(values) == 1 else values
        for name, values in request.GET.lists()
        if all("\x00" not in value for value in values)
    }


def endpoint(*methods: str, body: bool = True) -> Callable[[View], View]:
    """Make a view of ``view(request, given)``: the caller is known, bounded in rate, and errors are MLflow's.

    ``given``: the JSON body of a POST, PATCH or DELETE, or the parameters of a GET. Cookies count for
    nothing here, so there is no CSRF to check.
    """

    def decorate(view: View) -> View:
        @csrf_exempt
        @functools.wraps(view)
        def guarded(request: HttpRequest, **parts: str) -> HttpResponseBase:
            try:
                principal = authenticate(request)
                if request.method not in methods:
                    text = f"method: got {request.method}, expected {' or '.join(methods)}"
                    raise MlflowError("METHOD_NOT_ALLOWED", text, {"Allow": ", ".join(methods)})
                _throttle(principal)
                given = _body(request) if body and request.method not in ("GET", "HEAD") else _query(request)
                return view(request, given, **parts)
            except Exception as error:
                return of_exception(error)

        return guarded

    return decorate


# --- what views ask -------------------------------------------------------------------------------


def principal_of(request: HttpRequest) -> Principal:
    """Who asks."""
    return kept(request)


def actor_of(request: HttpRequest) -> Actor:
    """The actor of a change."""
    principal = kept(request)
    assert principal.user is not None
    key = (str(connection.settings_dict["NAME"]), principal.user.pk, principal.user.get_username())
    found = _actors.get(key)
    if found is None:
        found = principal.actor()
        if len(_actors) >= ACTORS_MOST:
            _actors.clear()
        transaction.on_commit(lambda: _actors.update({key: found}))
    return found


def text_of(given: dict[str, Any], name: str, *other: str, needed: bool = True) -> str:
    """A text member under its name or an older one; "" where it is not needed and absent."""
    for item in (name, *other):
        value = given.get(item)
        if value is not None and value != "":
            if not isinstance(value, str):
                raise invalid(name, value, "text")
            return value
    if needed:
        raise MlflowError("INVALID_PARAMETER_VALUE", f"Missing value for required parameter '{name}'.")
    return ""


def run_of(request: HttpRequest, given: dict[str, Any], *, write: bool = False, name: str = "run_id") -> TrackedRun:
    """The run that a request names, where the caller sees it; ``write``: and may log into it."""
    external = text_of(given, name, "run_uuid")
    rows = TrackedRun.objects.select_related("run", "study")
    if write:
        rows = rows.select_for_update(of=("self",))
    head = rows.filter(external_id=external).first() if len(external) <= 64 and "\x00" not in external else None
    if head is None:
        raise no_run(external)
    principal = kept(request)
    if write:
        note(study=head.study, subject=f"run {external}")
    try:
        require(principal, LOG_WRITE if write else READ, head.study)
    except Http404 as error:
        raise no_run(external) from error
    return head


def study_by_id(request: HttpRequest, text: str) -> Study:
    """The study of an experiment id, where the caller sees it. Raises ``MlflowError``."""
    if text.isascii() and text.isdigit() and len(text) < 18:
        study = Study.objects.filter(pk=int(text)).first()
        if study is not None and READ in capabilities(kept(request), study):
            return study
    raise missing("Experiment", text)


def may_log(request: HttpRequest, study: Study) -> None:
    """Raise where the caller may not log into the study."""
    try:
        require(kept(request), LOG_WRITE, study)
    except Http404 as error:
        raise missing("Experiment", study.pk) from error
    except NotAllowed:
        note(study=study)
        raise
    note(study=study)


def visible_ids(request: HttpRequest) -> list[int]:
    """Keys of the studies that the caller sees."""
    return study_ids(kept(request))
