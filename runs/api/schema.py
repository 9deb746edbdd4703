"""OpenAPI 3.1 of the API, from the views' own declarations: parameters, bodies, answers and every problem."""

from __future__ import annotations

import functools
from typing import Any

from django.http import JsonResponse
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, inline_serializer
from rest_framework import serializers as s
from rest_framework.request import Request

from runs.api.base import MAX_LIMIT, ApiView, Filter, ListView, PostView
from runs.api.needs import needed
from runs.api.problems import CONTENT_TYPE, TITLES
from runs.api.serializers import ProblemSerializer

TYPES = {
    "text": OpenApiTypes.STR,
    "uuid": OpenApiTypes.UUID,
    "integer": OpenApiTypes.INT,
    "number": OpenApiTypes.DOUBLE,
    "boolean": OpenApiTypes.BOOL,
    "time": OpenApiTypes.DATETIME,
}


def _parameter(item: Filter) -> OpenApiParameter:
    return OpenApiParameter(item.name, TYPES[item.kind], "query", description=item.help, enum=item.choices or None)


def _header(name: str, text: str, *, required: bool = False) -> OpenApiParameter:
    return OpenApiParameter(name, OpenApiTypes.STR, "header", description=text, required=required)


class ApiSchema(AutoSchema):
    """One operation, read from the view's attributes."""

    def get_tags(self) -> list[str]:
        """The resource."""
        return [self.view.tag or "service"]

    def get_summary(self) -> str | None:
        """``<method>_summary``, else ``summary``."""
        found: str | None = getattr(self.view, f"{self.method.lower()}_summary", None) or self.view.summary
        return found

    def get_operation_id(self) -> str:
        """Method and address."""
        parts = [part.strip("{}") for part in self.path.split("/v1/")[-1].split("/") if part]
        return "_".join([self.method.lower(), *parts]).replace("-", "_").replace(".", "_")

    def get_operation(self, *args: Any, **kwargs: Any) -> Any:
        """The operation, with the capability that it needs in the study."""
        found = super().get_operation(*args, **kwargs)
        if found is not None:
            found["x-capability"] = needed(self.method, self.path)
        return found

    def get_override_parameters(self) -> list[Any]:
        """Filters, paging, sparse fields and headers."""
        view, found = self.view, [_parameter(item) for item in getattr(self.view, "parameters", ())]
        if self.method == "GET" and isinstance(view, ListView):
            found += [_parameter(item) for item in view.filters]
            found += [
                OpenApiParameter("cursor", str, description="next_cursor of the last page"),
                OpenApiParameter("limit", int, description=f"1 to {MAX_LIMIT}, 50 by default"),
                OpenApiParameter("order", str, enum=["newest", "oldest"]),
                OpenApiParameter("fields", str, description="comma-separated members; absent: all of them"),
            ]
        elif self.method == "GET" and getattr(view, "takes_fields", False):
            found.append(OpenApiParameter("fields", str, description="comma-separated members; absent: all of them"))
        if self.method == "GET" and getattr(view, "is_download", False):
            found += [_header("Range", "bytes=first-last, a single range"), _header("If-None-Match", "an ETag")]
        if self.method == "POST" and getattr(view, "takes_key", True):
            found.append(_header("Idempotency-Key", "the change is done once for each key; its answer is kept 7 days"))
        if self.method in ("PUT", "PATCH") and getattr(view, "takes_match", True):
            found.append(_header("If-Match", "the ETag that was read", required=True))
        match: str | None = getattr(view, "match", None)
        if self.method == "POST" and match is not None:
            found.append(_header("If-Match", match))
        if "{verb}" in self.path:
            found.append(OpenApiParameter("verb", str, "path", enum=["pause", "resume", "cancel"]))
        if "{sha256}" in self.path:
            found.append(OpenApiParameter("sha256", {"type": "string", "pattern": "^[0-9a-f]{64}$"}, "path"))
        return found

    def get_request_serializer(self) -> Any:
        """``put_body`` for PUT and PATCH, ``body`` for POST."""
        if self.method in ("PUT", "PATCH"):
            return getattr(self.view, "put_body", None)
        return self.view.body if self.method == "POST" else None

    def get_response_serializers(self) -> Any:
        """The answer, and a problem for everything that can go wrong."""
        view = self.view
        found: dict[Any, Any] = {}
        code = str(view.status_code) if self.method == "POST" else "200"
        if getattr(view, "is_download", False):
            for text in ("200", "206"):
                found[(text, getattr(view, "media_type", "application/octet-stream"))] = OpenApiTypes.BINARY
            found["304"] = OpenApiResponse(description="not changed")
        elif self.method == "GET" and isinstance(view, ListView):
            found[code] = _page_of(view.serializer)  # type: ignore[arg-type]
        else:
            chosen = getattr(view, f"{self.method.lower()}_serializer", None)
            found[code] = chosen or view.serializer or OpenApiTypes.OBJECT
            for status in getattr(view, "also", ()) if self.method == "POST" else ():
                found[str(status)] = found[code]
        for status in self._problems():
            found[(str(status), CONTENT_TYPE)] = OpenApiResponse(ProblemSerializer, description=TITLES[status])
        return found

    def _problems(self) -> list[int]:
        codes = {400, 401, 403, 404, 405, 406, 429, 500, 503}
        if self.method in ("POST", "PUT", "PATCH"):
            codes |= {409, 413, 415, 422}
        if self.method in ("PUT", "PATCH") and getattr(self.view, "takes_match", True):
            codes |= {412, 428}
        if getattr(self.view, "is_download", False):
            codes |= {410, 416}
        if self.view.tag == "plans":
            codes |= {409, 422}
        codes |= set(getattr(self.view, "problems", ()))
        return sorted(codes)


@functools.lru_cache(maxsize=64)
def _page_of(kind: Any) -> Any:
    return inline_serializer(
        f"{kind.__name__.removesuffix('Serializer')}Page",
        {"items": kind(many=True), "next_cursor": s.CharField(allow_null=True), "upto": s.IntegerField()},
    )


def _any_of(value: Any) -> Any:
    """The same with anyOf for oneOf: "anything, or null" would refuse null as matching twice."""
    if isinstance(value, dict):
        return {"anyOf" if key == "oneOf" else key: _any_of(item) for key, item in value.items()}
    return [_any_of(item) for item in value] if isinstance(value, list) else value


def _allow_sparse(found: dict[str, Any]) -> None:
    """Where ``?fields=`` chooses members, none of them is required."""
    parts: dict[str, Any] = found["components"]["schemas"]
    for item in found["paths"].values():
        for operation in item.values():
            if not any(p["name"] == "fields" for p in operation.get("parameters", [])):
                continue
            for answer in operation["responses"]["200"]["content"].values():
                name = answer["schema"]["$ref"].rsplit("/", 1)[-1]
                items = parts[name].get("properties", {}).get("items", {}).get("items", {}).get("$ref")
                parts[items.rsplit("/", 1)[-1] if items else name].pop("required", None)


@functools.lru_cache(maxsize=1)
def document() -> dict[str, Any]:
    """The whole schema; the same for every reader, since it names no object."""
    generator = SchemaGenerator(urlconf="runs.api.schema_urls")
    found: dict[str, Any] = _any_of(generator.get_schema(request=None, public=True))
    _allow_sparse(found)
    return found


class OpenApi(ApiView):
    """The schema."""

    tag, summary = "service", "OpenAPI 3.1 of this API"

    def get(self, request: Request, **kwargs: Any) -> JsonResponse:
        """JSON."""
        return JsonResponse(document(), json_dumps_params={"ensure_ascii": False})


__all__ = ["ApiSchema", "OpenApi", "PostView", "document"]
