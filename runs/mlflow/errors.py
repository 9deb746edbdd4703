"""Errors as MLflow's clients read them: {"error_code", "message"} with a status that says whether to try again.

Clients repeat 408, 429, 500, 502, 503 and 504, so only what a repeat can cure is answered with one of these.
"""

from __future__ import annotations

import logging

import orjson
from django.db import OperationalError, connection
from django.http import Http404, HttpResponse

from runs.actions.tracking import ParameterChanged
from runs.errors import DomainError, NotAllowed
from workbench.blobs import BlobMissing, BlobTooLarge
from workbench.contracts.errors import ContractError

log = logging.getLogger(__name__)
JSON = "application/json"

INVALID = "INVALID_PARAMETER_VALUE"
MISSING = "RESOURCE_DOES_NOT_EXIST"
EXISTS = "RESOURCE_ALREADY_EXISTS"
STATUS = {
    INVALID: 400,
    "MALFORMED_REQUEST": 400,
    EXISTS: 400,
    "NOT_IMPLEMENTED": 400,  # never served: no fault of the server, and no repeat helps
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    MISSING: 404,
    "ENDPOINT_NOT_FOUND": 404,
    "METHOD_NOT_ALLOWED": 405,
    "RESOURCE_CONFLICT": 409,
    "REQUEST_TOO_LARGE": 413,
    "REQUEST_LIMIT_EXCEEDED": 429,
    "INTERNAL_ERROR": 500,
    "TEMPORARILY_UNAVAILABLE": 503,
}


class MlflowError(Exception):
    """A refusal: MLflow's code and a sentence that names field, value and expectation."""

    def __init__(self, code: str, message: str, headers: dict[str, str] | None = None):
        self.code, self.message, self.headers = code, message, headers or {}
        super().__init__(message)


def invalid(field: str, got: object, expected: str) -> MlflowError:
    """A value that cannot be taken."""
    shown = (got if isinstance(got, str) else repr(got))[:200]
    return MlflowError(INVALID, f"{field}: got {shown}, expected {expected}")


def missing(what: str, name: object) -> MlflowError:
    """What is absent, or hidden from the caller: both sound alike."""
    return MlflowError(MISSING, f"No {what} with id={str(name)[:200]} exists")


def answer(value: object, status: int = 200) -> HttpResponse:
    """A JSON answer."""
    return HttpResponse(orjson.dumps(value), status=status, content_type=JSON)


def refusal(code: str, message: str, headers: dict[str, str] | None = None) -> HttpResponse:
    """An error's answer."""
    clean = message.encode("utf-8", "backslashreplace").decode()[:2000]
    response = answer({"error_code": code, "message": clean}, STATUS[code])
    for name, value in (headers or {}).items():
        response.headers[name] = value
    return response


def _is_busy(error: OperationalError) -> bool:
    """Whether a repeat may help: SQLite reports a missing column under the same class as a lock."""
    return connection.vendor != "sqlite" or any(word in str(error) for word in ("locked", "busy"))


def of_exception(error: Exception) -> HttpResponse:
    """The answer to an error of a view."""
    match error:
        case MlflowError():
            return refusal(error.code, error.message, error.headers)
        case NotAllowed():
            return refusal("PERMISSION_DENIED", str(error))
        case Http404():
            return refusal(MISSING, str(error) or "No such object exists")
        case ParameterChanged():
            return refusal(INVALID, f"Changing param values is not allowed. {error}")
        case BlobTooLarge():
            return refusal("REQUEST_TOO_LARGE", str(error))
        case BlobMissing():
            return refusal(MISSING, str(error))
        case DomainError() | ContractError():
            return refusal(INVALID, str(error))
        case OperationalError() if _is_busy(error):
            log.warning("tracking request met a busy database: %s", error)
            message = "The database is busy; nothing was stored. Send the request again."
            return refusal("TEMPORARILY_UNAVAILABLE", message, {"Retry-After": "1"})
    log.exception("tracking request failed", exc_info=error)
    return refusal("INTERNAL_ERROR", "The server failed; nothing was stored by this request.")
