"""Frozen dataclasses to and from plain JSON values, strictly: no unknown, missing or mistyped field.

A field that has a default may be absent: an older writer did not know it.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Callable
from typing import Any, TypeVar, Union

from .canonical import canonical_bytes, decode_float, encode_float, parse_canonical
from .errors import CanonicalError, RecordError

T = TypeVar("T")
Reader = Callable[[Any, str], Any]


@functools.cache
def _names(kind: Any) -> tuple[str, ...] | None:
    """Field names of a dataclass; None for any other type."""
    return tuple(item.name for item in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else None


def to_wire(value: Any) -> Any:
    """Plain JSON value of a record; floats pass through ``encode_float``."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return encode_float(value)
    if isinstance(value, dict):
        return {key: to_wire(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_wire(item) for item in value]
    names = _names(typing.cast(Any, type(value)))
    return value if names is None else {name: to_wire(getattr(value, name)) for name in names}


def record_bytes(record: Any) -> bytes:
    """Canonical bytes of a record."""
    return canonical_bytes(to_wire(record))


def _fail(path: str, value: Any, expected: str) -> typing.NoReturn:
    shown = repr(value)
    raise RecordError(f"{path}: got {shown[:80]}, expected {expected}")


def _plain(hint: type) -> Reader:
    def read(value: Any, path: str) -> Any:
        return value if type(value) is hint else _fail(path, value, hint.__name__)

    return read


def _number(value: Any, path: str) -> Any:
    try:
        decoded = decode_float(value)
    except CanonicalError:
        _fail(path, value, "a number")
    return _fail(path, value, "a number") if decoded is None else decoded


def _list_of(item: Reader) -> Reader:
    def read(value: Any, path: str) -> Any:
        if not isinstance(value, list | tuple):
            _fail(path, value, "a list")
        return tuple([item(part, f"{path}[{i}]") for i, part in enumerate(value)])

    return read


def _object_of(item: Reader | None) -> Reader:
    def read(value: Any, path: str) -> Any:
        if not isinstance(value, dict):
            _fail(path, value, "an object")
        return value if item is None else {k: item(v, f"{path}.{k}") for k, v in value.items()}

    return read


def _optional(inner: Reader, allows_none: bool, shown: str) -> Reader:
    def read(value: Any, path: str) -> Any:
        if value is None:
            return None if allows_none else _fail(path, value, shown)
        return inner(value, path)

    return read


@functools.cache
def _reader(hint: Any) -> Reader:
    """What reads a plain value of a type; made once a type."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return lambda value, path: value
    if origin in (Union, types.UnionType):
        choices = [item for item in arguments if item is not type(None)]
        inner = _reader(choices[0]) if len(choices) == 1 else _reader(Any)
        return _optional(inner, type(None) in arguments, str(hint))
    if dataclasses.is_dataclass(hint):
        return lambda value, path: from_wire(typing.cast(Any, hint), value, path)
    if origin is tuple:
        return _list_of(_reader(arguments[0]))
    if origin is dict or hint is dict:
        return _object_of(_reader(arguments[1]) if arguments else None)
    if hint is float:
        return _number
    if hint in (int, bool, str):
        return _plain(hint)
    return lambda value, path: _fail(path, value, str(hint))


@functools.cache
def _fields(kind: Any) -> dict[str, Reader]:
    hints = typing.get_type_hints(kind)
    return {item.name: _reader(hints[item.name]) for item in dataclasses.fields(kind)}


@functools.cache
def _required(kind: Any) -> frozenset[str]:
    """Names of the fields without a default."""
    without = dataclasses.MISSING
    items = dataclasses.fields(kind)
    return frozenset(item.name for item in items if item.default is without and item.default_factory is without)


def from_wire(kind: type[T], value: Any, path: str = "$") -> T:
    """Build ``kind`` from a plain JSON value. Raises ``RecordError`` naming field, value, expectation."""
    if not isinstance(value, dict):
        _fail(path, value, f"an object ({kind.__name__})")
    readers = _fields(typing.cast(Any, kind))
    if value.keys() != readers.keys() and not _required(typing.cast(Any, kind)) <= value.keys() <= readers.keys():
        unknown, missing = sorted(set(value) - set(readers)), [name for name in readers if name not in value]
        _fail(path, {"unknown": unknown, "missing": missing}, f"exactly the fields of {kind.__name__}")
    return kind(**{name: read(value[name], f"{path}.{name}") for name, read in readers.items() if name in value})


def parse_record(kind: type[T], data: bytes) -> T:
    """Build ``kind`` from canonical bytes."""
    return from_wire(kind, parse_canonical(data))
