"""Files of runs: list, upload, download. ``artifact_uri`` leads to ``<experiment>/<run>/artifacts/<path>``."""

from __future__ import annotations

import mimetypes
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.http import FileResponse, HttpRequest, HttpResponseBase
from django.utils import timezone

from runs.actions.tracked_files import artifact_of, checked_path, entries, put_artifact
from runs.mlflow import wire
from runs.mlflow.base import endpoint, run_of, text_of
from runs.mlflow.errors import MISSING, MlflowError, answer, invalid
from runs.models import TrackedRun
from runs.storage import blob_store

LIST_MOST = 10_000
READ = 1024 * 1024


def _place(request: HttpRequest, path: str, *, write: bool = False) -> tuple[TrackedRun, str]:
    """(run, path below its artifacts) of an address. Raises ``MlflowError``."""
    parts = path.split("/")
    if len(parts) < 3 or parts[2] != "artifacts":
        raise invalid("path", path, "<experiment>/<run>/artifacts/<path>")
    head = run_of(request, {"run_id": parts[1]}, write=False)
    if parts[0] != str(head.study_id):
        raise MlflowError(MISSING, f"Run with id={parts[1][:64]} not found in experiment {parts[0][:32]}")
    return head, "/".join(parts[3:])


def _chunks(request: HttpRequest) -> Iterator[bytes]:
    """The body piece by piece, also one that comes without a length."""
    is_chunked = not request.META.get("CONTENT_LENGTH") and "chunked" in request.META.get("HTTP_TRANSFER_ENCODING", "")
    source = request.META["wsgi.input"] if is_chunked else request
    while data := source.read(READ):
        yield data


@endpoint("PUT", "GET", "HEAD", "DELETE", body=False)
def one(request: HttpRequest, given: dict[str, Any], path: str = "") -> HttpResponseBase:
    """One file: PUT stores it, GET gives its bytes; a file is never removed from here."""
    if request.method == "DELETE":
        raise MlflowError("NOT_IMPLEMENTED", "artifacts: got DELETE; what a run logged stays, expected PUT or GET")
    head, name = _place(request, path)
    if request.method == "PUT":
        return _put(request, head, name)
    checked_path(name)
    found = artifact_of(head.run, name)
    if found is None:
        raise MlflowError(MISSING, f"No file {name[:200]} in run {head.external_id}")
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    response = FileResponse(blob_store().path(found.sha256).open("rb"), content_type="application/octet-stream")
    response.headers["Content-Length"] = str(found.bytes)
    response.headers["X-Content-Type"] = kind
    response.headers["ETag"] = f'"{found.sha256}"'
    response.headers["Content-Disposition"] = f"attachment; filename*=UTF-8''{quote(name.rpartition('/')[2])}"
    return response


def _put(request: HttpRequest, head: TrackedRun, name: str) -> HttpResponseBase:
    from runs.access import LOG_WRITE, require
    from runs.actions.audit import note
    from runs.mlflow.base import principal_of

    note(study=head.study, subject=f"run {head.external_id} file {name[:100]}")
    require(principal_of(request), LOG_WRITE, head.study)
    checked_path(name)
    put_artifact(head.run, name, _chunks(request), limit=settings.ARTIFACT_LIMIT, at=timezone.now())
    return answer({})


def _files(head: TrackedRun, folder: str) -> list[dict[str, Any]]:
    if folder:
        checked_path(folder)
    found = entries(head.run, folder)
    if len(found) > LIST_MOST:
        raise invalid("path", folder, f"a folder with at most {LIST_MOST} entries")
    return [
        {"path": item.path, "is_dir": True} if item.is_folder else
        {"path": item.path, "is_dir": False, "file_size": item.bytes}
        for item in found
    ]  # fmt: skip


@endpoint("GET")
def of_run(request: HttpRequest, given: dict[str, Any]) -> HttpResponseBase:
    """Files and folders of a run below a path, by their paths in the run."""
    head = run_of(request, given)
    folder = text_of(given, "path", needed=False).strip("/")
    return answer({"root_uri": wire.artifact_root(head), "files": _files(head, folder)})


@endpoint("GET")
def below(request: HttpRequest, given: dict[str, Any]) -> HttpResponseBase:
    """The same for ``mlflow-artifacts``: names are relative to the folder that is asked for."""
    path = text_of(given, "path", needed=False).strip("/")
    head, folder = _place(request, path)
    files = _files(head, folder.strip("/"))
    return answer({"files": [{**item, "path": item["path"].rpartition("/")[2]} for item in files]})


@endpoint("POST", "GET", body=False)
def unsupported(request: HttpRequest, given: dict[str, Any], path: str = "") -> HttpResponseBase:
    """Uploads in parts and presigned addresses are not served: a file comes in one request, which is streamed."""
    raise MlflowError("NOT_IMPLEMENTED", "artifacts: got a request for parts or presigned addresses, expected one PUT")
