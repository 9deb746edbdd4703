"""Strict JSON bodies: no duplicate key, no NaN, no number that changes, no lone surrogate, bounded depth and size."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import RequestDataTooBig
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.parsers import BaseParser

from runs.api.problems import ApiProblem, invalid
from workbench.contracts.canonical import parse_json
from workbench.contracts.errors import CanonicalError

MAX_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 32
MAX_ITEMS = 5_000


def check_shape(value: Any, path: str = "$", depth: int = 0) -> None:
    """Raise a problem for what no request needs: deep nesting, long lists, text that UTF-8 cannot carry."""
    if depth > MAX_DEPTH:
        raise invalid(path, "deeper nesting", f"at most {MAX_DEPTH} levels", 400)
    if isinstance(value, str):
        _check_text(value, path)
    elif isinstance(value, dict | list):
        if len(value) > MAX_ITEMS:
            raise invalid(path, f"{len(value)} items", f"at most {MAX_ITEMS}", 413)
        if isinstance(value, dict):
            for key, item in value.items():
                _check_text(key, f"{path} (a key)")
                check_shape(item, f"{path}.{key}"[:200], depth + 1)
        else:
            for position, item in enumerate(value):
                check_shape(item, f"{path}[{position}]", depth + 1)


def _check_text(text: str, path: str) -> None:
    if "\x00" in text:
        raise invalid(path, text, "text without the character U+0000", 400)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise invalid(path, text, "text that UTF-8 can carry (no lone surrogate)", 400) from error


class StrictJSONParser(BaseParser):
    """``application/json`` through the contracts' own reader. An empty body is an empty object."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        """The body's value, an object. Raises ``ApiProblem``."""
        try:
            data = stream.read(MAX_BYTES + 1)
        except RequestDataTooBig as error:
            raise invalid("body", "more than the server takes", f"at most {MAX_BYTES} bytes", 413) from error
        if len(data) > MAX_BYTES:
            raise invalid("body", f"more than {MAX_BYTES} bytes", f"at most {MAX_BYTES} bytes", 413)
        if not data.strip():
            return {}
        try:
            value = parse_json(data)
        except CanonicalError as error:
            raise ApiProblem(400, str(error), errors=[_named(error)]) from error
        if not isinstance(value, dict):
            raise invalid("$", type(value).__name__, "a JSON object", 400)
        check_shape(value)
        return value


def _named(error: CanonicalError) -> dict[str, str]:
    from runs.api.problems import fault, faults_of

    found = faults_of(str(error))
    return found[0] if found else fault("$", str(error), "strict JSON (UTF-8, no duplicate key, finite numbers)")


def unsupported(media_type: str) -> UnsupportedMediaType:
    """For a body that is no JSON."""
    return UnsupportedMediaType(media_type)
