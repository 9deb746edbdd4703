"""Strict checking of tool arguments against the JSON Schema of a ``ToolSpec``.

A small, closed part of JSON Schema, so that a keyword is either enforced or refused, never ignored.
Stricter than the standard in two places: properties that the schema does not list are refused
unless ``additionalProperties`` allows them, 1.0 is not an integer, and ``pattern`` must match the
whole string.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from workbench.contracts.errors import EngineFault

_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
}
_ANNOTATIONS = {"description", "title", "default", "examples"}
_LIMITS: dict[str, tuple[str, Callable[[Any], Any], bool]] = {  # keyword -> type, measure, is a lower bound
    "minLength": ("string", len, True),
    "maxLength": ("string", len, False),
    "minItems": ("array", len, True),
    "maxItems": ("array", len, False),
    "minimum": ("number", lambda value: value, True),
    "maximum": ("number", lambda value: value, False),
}
_ENFORCED = {"type", "properties", "required", "additionalProperties", "items", "enum", "const", "pattern", *_LIMITS}


def check_schema(schema: Any, path: str) -> None:
    """Refuse a schema with a keyword that is not enforced here. Raises ``EngineFault`` naming the path."""
    if not isinstance(schema, dict):
        raise EngineFault(f"{path}: got {type(schema).__name__}, expected a JSON Schema object")
    unknown = sorted(set(schema) - _ENFORCED - _ANNOTATIONS)
    if unknown:
        known = sorted(_ENFORCED)
        raise EngineFault(f"{path}.{unknown[0]}: got a keyword that is not enforced, expected one of {known}")
    for name in _type_names(schema):
        if name not in _TYPES:
            raise EngineFault(f"{path}.type: got {name!r}, expected one of {sorted(_TYPES)}")
    try:
        _whole(schema.get("pattern", ""))
    except (re.error, AttributeError) as error:
        raise EngineFault(f"{path}.pattern: got {schema['pattern']!r}, expected a regular expression") from error
    for key, item in schema.get("properties", {}).items():
        check_schema(item, f"{path}.properties.{key}")
    for keyword in ("items", "additionalProperties"):
        if keyword in schema and not isinstance(schema[keyword], bool):
            check_schema(schema[keyword], f"{path}.{keyword}")


def _type_names(schema: dict[str, Any]) -> list[str]:
    names = schema.get("type", [])
    return [names] if isinstance(names, str) else list(names)


def _same(left: Any, right: Any) -> bool:
    """JSON equality: true is not 1."""
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def _whole(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern.removeprefix("^").removesuffix("$"))


def schema_error(value: Any, schema: dict[str, Any], path: str = "arguments") -> str | None:
    """The first way in which ``value`` breaks ``schema``, as text; None where it satisfies it."""
    names = _type_names(schema)
    if names and not any(_TYPES[name](value) for name in names):
        return f"{path}: got {type(value).__name__}, expected {' or '.join(names)}"
    if "enum" in schema and not any(_same(value, option) for option in schema["enum"]):
        return f"{path}: got {value!r}, expected one of {schema['enum']!r}"
    if "const" in schema and not _same(value, schema["const"]):
        return f"{path}: got {value!r}, expected {schema['const']!r}"
    for keyword, (kind, measure, is_lower) in _LIMITS.items():
        if keyword in schema and _TYPES[kind](value):
            size, bound = measure(value), schema[keyword]
            if size < bound if is_lower else size > bound:
                return f"{path}: got {size}, expected {keyword} {bound}"
    if isinstance(value, str) and "pattern" in schema and _whole(schema["pattern"]).fullmatch(value) is None:
        return f"{path}: got {value!r}, expected text that matches {schema['pattern']}"
    if isinstance(value, dict):
        return _object_error(value, schema, path)
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        for position, item in enumerate(value):
            if error := schema_error(item, schema["items"], f"{path}[{position}]"):
                return error
    return None


def _object_error(value: dict[str, Any], schema: dict[str, Any], path: str) -> str | None:
    for key in schema.get("required", []):
        if key not in value:
            return f"{path}.{key}: got nothing, expected a value"
    listed, other = schema.get("properties", {}), schema.get("additionalProperties", False)
    for key, item in value.items():
        rule = listed.get(key, other)
        if rule is False:
            return f"{path}.{key}: got an argument that the tool does not have, expected one of {sorted(listed)}"
        if isinstance(rule, dict) and (error := schema_error(item, rule, f"{path}.{key}")):
            return error
    return None
