"""The page of the API: every operation with parameters, examples and a request to copy, from the schema; offline."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from runs.api.schema import document
from runs.presenters.frame import Crumb
from runs.views.base import render_page

METHODS = ("get", "post", "put", "patch", "delete")
DEEPEST = 3  # levels of an example; below stands an empty value
SAMPLES = {"uuid": "24d3831b-f7a3-5b74-a985-47154eca6e3e", "date-time": "2026-11-30T06:00:00Z"}


@dataclass(frozen=True)
class Operation:
    """One method of one address. ``parameters``: (name, place, type, description, needed)."""

    method: str
    path: str
    summary: str
    anchor: str
    needs: str
    parameters: list[tuple[str, str, str, str, bool]]
    body: str
    answer: str
    answer_kind: str
    statuses: list[tuple[str, str]]
    curl: str


def resolved(schema: Any) -> dict[str, Any]:
    """A schema with its reference followed; of alternatives the first."""
    if not isinstance(schema, dict):
        return {}
    if "$ref" in schema:
        found: dict[str, Any] = document()["components"]["schemas"][schema["$ref"].rsplit("/", 1)[-1]]
        return found
    for key in ("anyOf", "allOf"):
        if key in schema:
            return resolved(schema[key][0])
    return schema


def type_of(schema: dict[str, Any]) -> str:
    """A type in words."""
    if "enum" in schema:
        return " | ".join(str(item) for item in schema["enum"] if item)
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(type_of(item) for item in schema["anyOf"]))
    kind = schema.get("type", schema.get("$ref", "").rsplit("/", 1)[-1] or "any")
    kind = " | ".join(kind) if isinstance(kind, list) else str(kind)
    return f"{kind} ({schema['format']})" if schema.get("format") else kind


def example(schema: Any, depth: int = 0) -> Any:
    """A value of the schema's shape."""
    found = resolved(schema)
    kind = found.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if "enum" in found:
        return found["enum"][0]
    if kind == "object":
        members = found.get("properties", {})
        return {} if depth >= DEEPEST else {name: example(item, depth + 1) for name, item in members.items()}
    if kind == "array":
        return [] if depth >= DEEPEST else [example(found.get("items"), depth + 1)]
    simple: dict[str, Any] = {
        "integer": 1,
        "number": 0.5,
        "boolean": True,
        "string": SAMPLES.get(found.get("format", ""), "…"),
    }
    return simple.get(str(kind), {} if not found else None)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _curl(method: str, path: str, operation: dict[str, Any], body: Any) -> str:
    names = {item["name"] for item in operation.get("parameters", []) if item["in"] == "header"}
    lines = ['curl -H "Authorization: Bearer $WORKBENCH_TOKEN"']
    if method != "get":
        lines.append(f"-X {method.upper()}")
    if "Idempotency-Key" in names:
        lines.append('-H "Idempotency-Key: $(uuidgen)"')
    if "If-Match" in names:
        lines.append("-H 'If-Match: \"draft-1\"'")
    if body is not None:
        lines.append(f"-H 'Content-Type: application/json' -d '{json.dumps(body, ensure_ascii=False)}'")
    filled = path.replace("{", "$").replace("}", "").removeprefix("/api/v1")
    return " \\\n  ".join([*lines, f'"$WORKBENCH_URL/api/v1{filled}"'])


def _needed_only(schema: dict[str, Any]) -> Any:
    needed = schema.get("required", [])
    return {name: example(item) for name, item in schema.get("properties", {}).items() if name in needed}


def _operation(method: str, path: str, item: dict[str, Any]) -> Operation:
    sent = item.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    good = next(code for code in item["responses"] if code.startswith("2"))
    contents: dict[str, Any] = item["responses"][good].get("content", {})
    kind = next(iter(contents), "")
    answer: dict[str, Any] = contents.get(kind, {})
    binary = resolved(answer.get("schema")).get("format") == "binary"
    return Operation(
        method=method.upper(),
        path=path,
        summary=gettext(item.get("summary", "")),
        anchor=item["operationId"],
        needs=gettext(item["x-capability"]) if item["x-capability"] else "",
        parameters=[
            (p["name"], p["in"], type_of(p.get("schema", {})), p.get("description", ""), bool(p.get("required")))
            for p in item.get("parameters", [])
        ],
        body=_json(example(sent)) if sent else "",
        answer="" if binary else _json(example(answer.get("schema"))),
        answer_kind=kind,
        statuses=[(code, gettext(found.get("description", ""))) for code, found in sorted(item["responses"].items())],
        curl=_curl(method, path, item, _needed_only(resolved(sent)) if sent else None),
    )


@functools.lru_cache(maxsize=4)
def operations(language: str) -> list[tuple[str, list[Operation]]]:
    """Operations by tag, in the order of the addresses; ``language`` is the active one."""
    found: dict[str, list[Operation]] = {}
    for path, item in document()["paths"].items():
        for method in METHODS:
            if method in item:
                found.setdefault(item[method]["tags"][0], []).append(_operation(method, path, item[method]))
    return sorted(found.items())


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """The page."""
    tags = operations(request.LANGUAGE_CODE)
    return render_page(
        request,
        "api/docs.html",
        section="api",
        title=_("API"),
        crumbs=[Crumb(_("API"))],
        tags=[(tag, gettext(tag), rows) for tag, rows in tags],
        version=document()["info"]["version"],
        count=sum(len(rows) for _tag, rows in tags),
    )
