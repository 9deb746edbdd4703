"""Builds the client's records out of JSON.

A member that this client does not know is ignored (a newer server may say more); one that is missing
or of another type is an error that names it.
"""

from __future__ import annotations

import functools
import types
import typing
from dataclasses import MISSING, fields
from datetime import datetime
from typing import Any, TypeVar

from workbench.contracts.canonical import decode_float

from .errors import WorkbenchError

T = TypeVar("T")


def build(kind: type[T], value: Any, path: str = "$", **handles: Any) -> T:
    """A record out of JSON. ``handles``: members that do not come from the answer (the transport, say)."""
    if not isinstance(value, dict):
        raise WorkbenchError(f"{path}: got {type(value).__name__}, expected an object ({kind.__name__})")
    found: dict[str, Any] = dict(handles)
    for name, hint, is_required in _members(typing.cast(Any, kind)):
        if name in value:
            found[name] = _read(hint, value[name], f"{path}.{name}")
        elif is_required and name not in handles:
            raise WorkbenchError(f"{path}.{name}: got nothing, expected a member of {kind.__name__}")
    return kind(**found)


@functools.cache
def _members(kind: Any) -> tuple[tuple[str, Any, bool], ...]:
    hints = typing.get_type_hints(kind)
    found = []
    for item in fields(kind):
        if not item.name.startswith("_"):
            found.append((item.name, hints[item.name], item.default is MISSING and item.default_factory is MISSING))
    return tuple(found)


def _read(hint: Any, value: Any, path: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return value
    if origin is types.UnionType:
        kinds = [item for item in arguments if item is not type(None)]
        return None if value is None and len(kinds) < len(arguments) else _read(kinds[0], value, path)
    if origin is list and isinstance(value, list):
        return [_read(arguments[0], item, f"{path}[{index}]") for index, item in enumerate(value)]
    if origin is dict and isinstance(value, dict):
        return {key: _read(arguments[1], item, f"{path}.{key}") for key, item in value.items()}
    if hint is float:
        number = None if isinstance(value, bool | str) else _number(value)
        if number is not None:
            return number
    elif hint is datetime and isinstance(value, str):
        try:
            return datetime.fromisoformat(value)
        except ValueError:
            pass
    elif isinstance(hint, type) and hasattr(hint, "__dataclass_fields__"):
        return build(hint, value, path)
    elif hint in (str, int, bool) and type(value) is hint:
        return value
    raise WorkbenchError(f"{path}: got {str(value)[:80]!r}, expected {getattr(hint, '__name__', hint)}")


def _number(value: Any) -> float | None:
    try:
        return decode_float(value)
    except ValueError:
        return None
