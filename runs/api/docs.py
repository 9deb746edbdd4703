"""The page of the API: every operation, from the schema itself; works offline."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from runs.api.schema import document
from runs.presenters.frame import Crumb
from runs.views.base import render_page

METHODS = ("get", "post", "put", "delete")


@dataclass(frozen=True)
class Operation:
    """One method of one address. ``parameters``: (name, place, type, description, needed)."""

    method: str
    path: str
    summary: str
    anchor: str
    parameters: list[tuple[str, str, str, str, bool]]
    body: list[tuple[str, str, bool]]
    answer: str
    statuses: list[str]
    curl: str


def _schema(reference: Any) -> dict[str, Any]:
    if isinstance(reference, dict) and "$ref" in reference:
        found: dict[str, Any] = document()["components"]["schemas"][reference["$ref"].rsplit("/", 1)[-1]]
        return found
    return reference or {}


def _type(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " | ".join(str(item) for item in schema["enum"])
    kind = schema.get("type", schema.get("$ref", "").rsplit("/", 1)[-1] or "any")
    kind = " | ".join(kind) if isinstance(kind, list) else str(kind)
    return f"{kind} ({schema['format']})" if schema.get("format") else kind


def _body(operation: dict[str, Any]) -> list[tuple[str, str, bool]]:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    schema = _schema(content.get("schema"))
    needed = schema.get("required", [])
    return [(name, _type(item), name in needed) for name, item in schema.get("properties", {}).items()]


def _curl(method: str, path: str, body: list[tuple[str, str, bool]]) -> str:
    shown = path.replace("{", "$").replace("}", "")
    parts = ["curl", "-H 'Authorization: Bearer $WORKBENCH_TOKEN'"]
    if method != "get":
        parts.append(f"-X {method.upper()}")
    if body:
        example = json.dumps({name: "\u2026" for name, _kind, needed in body if needed}, ensure_ascii=False)
        parts.append(f"-H 'Content-Type: application/json' -d '{example}'")
    return " ".join([*parts, f'"$WORKBENCH_URL{shown}"'])


def operations() -> list[tuple[str, list[Operation]]]:
    """Operations by tag, in the order of the addresses."""
    found: dict[str, list[Operation]] = {}
    for path, item in document()["paths"].items():
        for method in METHODS:
            if method not in item:
                continue
            operation = item[method]
            body = _body(operation)
            parameters = [
                (p["name"], p["in"], _type(p.get("schema", {})), p.get("description", ""), bool(p.get("required")))
                for p in operation.get("parameters", [])
            ]
            good = next((code for code in operation["responses"] if code.startswith("2")), "")
            answers = operation["responses"].get(good, {}).get("content", {})
            content: dict[str, Any] = next(iter(answers.values()), {})
            schema = content.get("schema", {})
            found.setdefault(operation["tags"][0], []).append(
                Operation(
                    method.upper(), path, operation.get("summary", ""), operation["operationId"], parameters, body,
                    _type(schema), sorted(operation["responses"]), _curl(method, path, body),
                )
            )  # fmt: skip
    return sorted(found.items())


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """The page."""
    return render_page(
        request,
        "api/docs.html",
        section="api_docs",
        title=_("API"),
        crumbs=[Crumb(_("API"))],
        tags=operations(),
        version=document()["info"]["version"],
        count=sum(len(rows) for _tag, rows in operations()),
    )
