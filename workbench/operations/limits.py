"""Bounds of a request's body, checked before anything reads it."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from runs.api import problems

CHUNK = 64 * 1024
TRACKING = ("/api/2.0/", "/api/3.0/")  # MLflow's clients read errors in a form of their own
UPLOADS = re.compile(r"/sources/new/|/api/v1/studies/[-\w]{1,100}/sources")  # a file as multipart/form-data
PARTS = 64 * 1024  # bytes of an upload's other parts
FILES = "/api/2.0/mlflow-artifacts/artifacts/"  # read by their view piece by piece, within a limit of their own


def refusal(request: HttpRequest, status: int, detail: str) -> HttpResponse:
    """A short answer: a problem as the API has it below /api/, MLflow's error in its part, plain text elsewhere."""
    if request.path_info.startswith(TRACKING):
        from runs.mlflow import errors  # late: it needs the models

        return errors.refusal("REQUEST_TOO_LARGE" if status == 413 else errors.INVALID, detail)
    if request.path_info.startswith("/api/"):
        return problems.answer(status, detail)
    return HttpResponse(
        f"{problems.TITLES[status]}: {detail}\n", status=status, content_type="text/plain; charset=utf-8"
    )


def limit_of(request: HttpRequest) -> int:
    """Most bytes of a body: more for an uploaded source, whose file is spooled to disk."""
    is_upload = request.method == "POST" and UPLOADS.fullmatch(request.path_info) is not None
    if is_upload and request.META.get("CONTENT_TYPE", "").startswith("multipart/form-data"):
        return max(int(settings.REQUEST_BODY_LIMIT), int(settings.SOURCE_LIMIT) + PARTS)
    return int(settings.REQUEST_BODY_LIMIT)


class BodyLimit:
    """413 for a body above ``settings.REQUEST_BODY_LIMIT``: by its stated length, or once a chunked one is longer.

    A chunked body within the limit is read here and given a length, which the framework needs.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        is_file = request.method == "PUT" and request.path_info.startswith(FILES)
        limit = settings.ARTIFACT_LIMIT if is_file else limit_of(request)
        stated = str(request.META.get("CONTENT_LENGTH") or "")
        if stated and not (stated.isascii() and stated.isdigit()):
            return refusal(request, 400, f"Content-Length: got {stated[:24]}, expected a whole number")
        if stated and (len(stated) > 18 or int(stated) > limit):
            return refusal(request, 413, f"body: got {stated[:24]} bytes, expected at most {limit}")
        if not is_file and not stated and "chunked" in request.META.get("HTTP_TRANSFER_ENCODING", "").lower():
            body = _read_chunked(request, limit)
            if body is None:
                return refusal(request, 413, f"body: got more than {limit} bytes, expected at most {limit}")
            _give(request, body)
        return self.get_response(request)


def _read_chunked(request: Any, limit: int) -> bytes | None:
    """The whole body; None as soon as it is longer than ``limit``."""
    source, parts, size = request.META["wsgi.input"], [], 0
    while data := source.read(min(CHUNK, limit + 1 - size)):
        parts.append(data)
        size += len(data)
        if size > limit:
            return None
    return b"".join(parts)


def _give(request: Any, body: bytes) -> None:
    request.META["CONTENT_LENGTH"] = str(len(body))
    request._stream = io.BytesIO(body)  # in place of the empty one that a request without a length has
