"""Errors of the API as problem+json (RFC 9457): what, where, which value, what was expected.

``errors`` lists every fault as {field, got, expected}; a refusal of the domain has one at most.
"""

from __future__ import annotations

import logging
import re
from typing import Any

from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.db import OperationalError
from django.http import Http404, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from rest_framework import exceptions
from rest_framework.response import Response

from runs import errors as domain
from workbench.contracts.errors import CanonicalError, ContractError, PlanInvalid

logger = logging.getLogger(__name__)
CONTENT_TYPE = "application/problem+json"
TITLES = {
    400: "Bad request",
    401: "Not authenticated",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    406: "Not acceptable",
    409: "Conflict",
    410: "Gone",
    412: "Precondition failed",
    413: "Content too large",
    415: "Unsupported media type",
    416: "Range not satisfiable",
    422: "Unprocessable content",
    428: "Precondition required",
    429: "Too many requests",
    500: "Internal error",
    503: "Service unavailable",
}
_FAULT = re.compile(r"^(?P<field>[^:]{1,200}): got (?P<got>.*), expected (?P<expected>.*)$", re.DOTALL)
RETRY = {"Retry-After": "2"}
MAX_SHOWN = 300  # characters of a value that an error repeats


class ApiProblem(Exception):
    """An error of the API itself, with its status and the faults that it names."""

    def __init__(
        self,
        status_code: int,
        detail: str,
        *,
        errors: list[dict[str, str]] | None = None,
        headers: dict[str, str] | None = None,
    ):
        self.status_code, self.detail, self.errors, self.headers = status_code, detail, errors or [], headers or {}
        super().__init__(detail)


def fault(field: str, got: Any, expected: str) -> dict[str, str]:
    """One entry of ``errors``."""
    shown = got if isinstance(got, str) else repr(got)
    clean = shown.encode("utf-8", "backslashreplace").decode()
    return {"field": field, "got": clean[:MAX_SHOWN], "expected": expected}


def invalid(field: str, got: Any, expected: str, status_code: int = 422) -> ApiProblem:
    """A problem about one field."""
    entry = fault(field, got, expected)
    return ApiProblem(status_code, f"{field}: got {entry['got']}, expected {expected}", errors=[entry])


def faults_of(text: str) -> list[dict[str, str]]:
    """The fault that a message of the form "field: got value, expected what" names; none for another message."""
    match = _FAULT.match(text)
    return [fault(match["field"], match["got"], match["expected"])] if match else []


def problem(code: int, detail: str, errors: list[dict[str, str]] | None = None) -> dict[str, Any]:
    """Body of a problem."""
    clean = detail.encode("utf-8", "backslashreplace").decode()
    return {
        "type": "about:blank",
        "title": TITLES.get(code, "Error"),
        "status": code,
        "detail": clean[:2000],
        "errors": errors or [],
    }


def _response(
    code: int, detail: str, errors: list[dict[str, str]] | None = None, headers: dict[str, str] | None = None
) -> Response:
    response = Response(problem(code, detail, errors), status=code, headers=headers)
    response.content_type = CONTENT_TYPE
    return response


def _of_validation(detail: Any, path: str = "") -> list[dict[str, str]]:
    """Faults of a serializer's nested errors."""
    if isinstance(detail, dict):
        found = []
        for name, item in detail.items():
            below = path if name == "non_field_errors" else f"{path}.{name}" if path else str(name)
            found += _of_validation(item, below)
        return found
    if isinstance(detail, list):
        if all(isinstance(item, str) for item in detail):
            return [fault(path or "$", "a value that was refused", str(item)) for item in detail]
        return [entry for i, item in enumerate(detail) for entry in _of_validation(item, f"{path}[{i}]")]
    return [fault(path or "$", "a value that was refused", str(detail))]


def refused(detail: Any, data: dict[str, Any]) -> ApiProblem:
    """A serializer's errors as one problem that names every member with its value."""
    found = _of_validation(detail)
    for entry in found:
        name = re.split(r"[.\[]", entry["field"], maxsplit=1)[0]
        entry["got"] = fault("", data[name], "")["got"] if name in data else "nothing"
    shown = "; ".join(f"{item['field']}: got {item['got'][:80]}, expected {item['expected']}" for item in found)
    return ApiProblem(422, shown, errors=found)


def _of_framework(error: exceptions.APIException) -> Response:
    headers: dict[str, str] = {}
    if getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = str(error.auth_header)
    if isinstance(error, exceptions.Throttled) and error.wait is not None:
        headers["Retry-After"] = str(max(1, int(error.wait + 0.999)))
    if isinstance(error, exceptions.ValidationError):
        found = _of_validation(error.detail)
        shown = "; ".join(f"{item['field']}: {item['expected']}" for item in found)
        return _response(422, shown, found, headers)
    return _response(error.status_code, str(error.detail), None, headers)


DOMAIN: tuple[tuple[type[Exception], int], ...] = (
    (domain.NotAllowed, 403),
    (domain.AlreadyFrozen, 409),
    (domain.StaleTransition, 409),
    (domain.StaleLease, 409),
    (domain.NothingToRun, 409),
    (domain.DomainError, 422),
)


def handle(error: Exception, context: dict[str, Any]) -> Response | None:
    """The framework's exception handler: every error of a view becomes a problem, an unknown one a logged 500."""
    if isinstance(error, ApiProblem):
        return _response(error.status_code, error.detail, error.errors, error.headers)
    if isinstance(error, PlanInvalid):
        found = [fault(item.field, item.got, item.expected) for item in error.problems]
        return _response(422, str(error), found)
    for kind, code in DOMAIN:
        if isinstance(error, kind):
            return _response(code, str(error), faults_of(str(error)))
    if isinstance(error, CanonicalError):
        return _response(400, str(error), faults_of(str(error)))
    if isinstance(error, ContractError):
        return _response(422, str(error), faults_of(str(error)))
    if isinstance(error, exceptions.APIException):
        return _of_framework(error)
    if isinstance(error, Http404):
        return _response(404, str(error) or "no such object")
    if isinstance(error, PermissionDenied):
        return _response(403, str(error) or "not allowed")
    if isinstance(error, SuspiciousOperation):
        return _response(400, str(error))
    if isinstance(error, OperationalError):  # a writer that waited too long, or a database that is away
        logger.warning("API request met a busy database: %s", error)
        return _response(503, "database: it is busy; nothing was changed; send the request again", None, RETRY)
    logger.exception("API request failed", exc_info=error)
    return _response(500, "The server failed; nothing was changed by this request unless a receipt says so.")


def answer(code: int, detail: str) -> JsonResponse:
    """A problem outside the framework's views, with the fault that ``detail`` names."""
    return JsonResponse(problem(code, detail, faults_of(detail)), status=code, content_type=CONTENT_TYPE)


@csrf_exempt  # it changes nothing, and a check of the form's token would answer with a page
def not_found(request: Any, *args: Any, **kwargs: Any) -> JsonResponse:
    """An address of the API that does not exist."""
    return answer(404, f"{request.path}: got no such address, expected one of /api/v1/openapi.json")
