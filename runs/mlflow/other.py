"""What MLflow 3 asks beyond tracking: searches find nothing, and what would be lost is refused in words."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from runs.mlflow.base import endpoint
from runs.mlflow.errors import MlflowError, answer, refusal

SPOKEN = "3.17.2"  # version of the protocol that the tests speak
METHODS = ("GET", "POST", "PATCH", "DELETE", "PUT")


def health(request: HttpRequest) -> HttpResponse:
    """Says that the server answers; clients ask this before they log."""
    return HttpResponse("OK", content_type="text/plain; charset=utf-8")


def spoken_version(request: HttpRequest) -> HttpResponse:
    """Version of MLflow's protocol that is spoken here."""
    return HttpResponse(SPOKEN, content_type="text/plain; charset=utf-8")


@endpoint("GET")
def server_info(request: HttpRequest, given: dict[str, Any]) -> HttpResponseBase:
    """What else the server can do: nothing that is optional."""
    return answer({"store_type": "SqlStore", "workspaces_enabled": False, "trace_archival_enabled": False})


def _empty(name: str) -> Any:
    @endpoint("GET", "POST")
    def found_nothing(request: HttpRequest, given: dict[str, Any], **parts: str) -> HttpResponseBase:
        """An empty page."""
        return answer({name: []})

    return found_nothing


no_traces = _empty("traces")
no_models = _empty("models")
no_datasets = _empty("dataset_summaries")


@endpoint(*METHODS, body=False)
def models(request: HttpRequest, given: dict[str, Any], **parts: str) -> HttpResponseBase:
    """Logged models are not kept as such."""
    text = "logged models: not kept here; log the files of a model as artifacts of its run"
    raise MlflowError("NOT_IMPLEMENTED", text)


@endpoint(*METHODS, body=False)
def traces(request: HttpRequest, given: dict[str, Any], **parts: str) -> HttpResponseBase:
    """Traces are not kept."""
    raise MlflowError("NOT_IMPLEMENTED", "traces: not kept here; log metrics, parameters, tags and artifacts")


@csrf_exempt
def unknown(request: HttpRequest, **parts: str) -> HttpResponseBase:
    """Any other address of MLflow's API."""
    text = f"{request.path[:200]}: got no such address; the tracking part of MLflow's API is spoken here"
    return refusal("ENDPOINT_NOT_FOUND", text)
