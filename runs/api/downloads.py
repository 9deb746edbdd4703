"""Bytes with their hash: streamed, with a single Range, an ETag that is the hash, and digests (RFC 9530)."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import BinaryIO

from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import parse_etags
from rest_framework.request import Request

from runs.api.problems import ApiProblem
from runs.models import Tombstone
from runs.storage import blob_store

CHUNK = 256 * 1024
_RANGE = re.compile(r"^bytes=(\d{0,18})-(\d{0,18})$")


def _held(request: Request, sha256: str) -> bool:
    """Whether the caller has these bytes: ``If-None-Match`` with a list, weak tags or ``*`` (RFC 9110, 13.1.2)."""
    tags = parse_etags(request.headers.get("If-None-Match", ""))
    return "*" in tags or f'"{sha256}"' in {tag.removeprefix("W/") for tag in tags}


def _range(request: Request, size: int, etag: str) -> tuple[int, int] | None:
    """(first, last) byte of a satisfiable single range; None for the whole. Raises 416."""
    text = request.headers.get("Range")
    condition = request.headers.get("If-Range")
    if text is None or (condition is not None and condition != etag):
        return None
    match = _RANGE.match(text.strip())
    if match is None or (not match[1] and not match[2]):
        return None  # several ranges or another unit: the whole is a right answer
    if not match[1]:
        first, last = max(0, size - int(match[2])), size - 1
        wrong = int(match[2]) == 0
    else:
        first, last = int(match[1]), min(int(match[2]) if match[2] else size - 1, size - 1)
        wrong = first >= size or (bool(match[2]) and int(match[2]) < first)
    if wrong or size == 0:
        raise ApiProblem(
            416,
            f"Range: got {text}, expected a range within {size} bytes",
            headers={"Content-Range": f"bytes */{size}"},
        )
    return first, last


def _read(file: BinaryIO, first: int, count: int) -> Iterator[bytes]:
    with file:
        file.seek(first)
        while count > 0 and (data := file.read(min(CHUNK, count))):
            count -= len(data)
            yield data


def _headers(response: HttpResponseBase, sha256: str, filename: str) -> HttpResponseBase:
    response["ETag"] = f'"{sha256}"'
    response["Accept-Ranges"] = "bytes"
    response["X-Data-SHA256"] = sha256
    digest = f"sha-256=:{base64.b64encode(bytes.fromhex(sha256)).decode()}:"
    response["Repr-Digest"] = digest
    if response.status_code == 200:
        response["Content-Digest"] = digest  # of a part only the whole's digest is known
    response["Content-Disposition"] = f'attachment; filename="{filename}"'
    response["X-Content-Type-Options"] = "nosniff"
    response["Cache-Control"] = "private, max-age=31536000, immutable"
    return response


def send_bytes(request: Request, data: bytes, sha256: str, filename: str, content_type: str) -> HttpResponseBase:
    """Bytes in memory."""
    if _held(request, sha256):
        return _headers(HttpResponse(status=304), sha256, filename)
    part = _range(request, len(data), f'"{sha256}"')
    if part is None:
        return _headers(HttpResponse(data, content_type=content_type), sha256, filename)
    response = HttpResponse(data[part[0] : part[1] + 1], status=206, content_type=content_type)
    response["Content-Range"] = f"bytes {part[0]}-{part[1]}/{len(data)}"
    return _headers(response, sha256, filename)


def send_blob(request: Request, sha256: str, filename: str, content_type: str) -> HttpResponseBase:
    """A blob of the store: 410 with its recipe where retention removed it, 404 where the store lost it."""
    tombstone = Tombstone.objects.filter(sha256=sha256).first()
    store = blob_store()
    if tombstone is not None and not store.exists(sha256):
        raise ApiProblem(
            410, f"blob {sha256}: retention removed its bytes: {tombstone.reason}; recipe: {tombstone.recipe}"
        )
    if not store.exists(sha256):
        raise ApiProblem(404, f"blob {sha256}: the store holds no such bytes; run manage.py verify")
    if _held(request, sha256):
        return _headers(HttpResponse(status=304), sha256, filename)
    size = store.size(sha256)
    part = _range(request, size, f'"{sha256}"')
    first, last = part if part is not None else (0, size - 1)
    file = store.path(sha256).open("rb")
    response = StreamingHttpResponse(
        _read(file, first, last - first + 1), status=206 if part is not None else 200, content_type=content_type
    )
    response["Content-Length"] = str(last - first + 1)
    if part is not None:
        response["Content-Range"] = f"bytes {first}-{last}/{size}"
    return _headers(response, sha256, filename)
