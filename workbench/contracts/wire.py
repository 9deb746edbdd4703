"""Frozen dataclasses to and from plain JSON values, strictly: no unknown, missing or mistyped field."""

from __future__ import annotations

import dataclasses
import types
import typing
from typing import Any, TypeVar, Union

from .canonical import canonical_bytes, decode_float, encode_float, parse_canonical
from .errors import CanonicalError, RecordError

T = TypeVar("T")


def to_wire(value: Any) -> Any:
    """Plain JSON value of a record; floats pass through ``encode_float``."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: to_wire(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {key: to_wire(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_wire(item) for item in value]
    if isinstance(value, float):
        return encode_float(value)
    return value


def record_bytes(record: Any) -> bytes:
    """Canonical bytes of a record."""
    return canonical_bytes(to_wire(record))


def _fail(path: str, value: Any, expected: str) -> typing.NoReturn:
    shown = repr(value)
    raise RecordError(f"{path}: got {shown[:80]}, expected {expected}")


def _convert(hint: Any, value: Any, path: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return value
    if origin in (Union, types.UnionType):
        if value is None:
            return None if type(None) in arguments else _fail(path, value, str(hint))
        choices = [item for item in arguments if item is not type(None)]
        return _convert(choices[0], value, path) if len(choices) == 1 else value
    if dataclasses.is_dataclass(hint):
        return from_wire(typing.cast(Any, hint), value, path)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            _fail(path, value, "a list")
        return tuple(_convert(arguments[0], item, f"{path}[{i}]") for i, item in enumerate(value))
    if origin is dict or hint is dict:
        if not isinstance(value, dict):
            _fail(path, value, "an object")
        return {k: _convert(arguments[1], v, f"{path}.{k}") for k, v in value.items()} if arguments else value
    if hint is float:
        try:
            decoded = decode_float(value)
        except CanonicalError:
            _fail(path, value, "a number")
        return _fail(path, value, "a number") if decoded is None else decoded
    if hint in (int, bool, str):
        if type(value) is not hint:
            _fail(path, value, hint.__name__)
        return value
    return _fail(path, value, str(hint))


def from_wire(kind: type[T], value: Any, path: str = "$") -> T:
    """Build ``kind`` from a plain JSON value. Raises ``RecordError`` naming field, value, expectation."""
    if not isinstance(value, dict):
        _fail(path, value, f"an object ({kind.__name__})")
    hints = typing.get_type_hints(kind)
    names = [item.name for item in dataclasses.fields(typing.cast(Any, kind))]
    unknown, missing = sorted(set(value) - set(names)), [name for name in names if name not in value]
    if unknown or missing:
        _fail(path, {"unknown": unknown, "missing": missing}, f"exactly the fields of {kind.__name__}")
    return kind(**{name: _convert(hints[name], value[name], f"{path}.{name}") for name in names})


def parse_record(kind: type[T], data: bytes) -> T:
    """Build ``kind`` from canonical bytes."""
    return from_wire(kind, parse_canonical(data))
