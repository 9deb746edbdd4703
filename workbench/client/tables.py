"""Lists of the API as iterators, and as Arrow or pandas tables where those are installed."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Generic, TypeVar

from .errors import WorkbenchError
from .reading import build
from .transport import Transport

T = TypeVar("T")


class Rows(Generic[T]):
    """A list of the API. Iterating asks for page after page; a new iteration starts anew.

    ``limit`` (rows a page), ``order`` (newest or oldest) and every filter of the address are keywords
    of the method that made it.
    """

    def __init__(
        self, transport: Transport, path: str, kind: type[T], filters: Mapping[str, Any], *, handles: bool = False
    ):
        self._transport, self._path, self._kind, self._filters = transport, path, kind, dict(filters)
        self._handles: dict[str, Any] = {"_transport": transport} if handles else {}

    def __iter__(self) -> Iterator[T]:
        for item in self._transport.pages(self._path, self._filters):
            yield build(self._kind, item, self._path, **self._handles)

    def __repr__(self) -> str:
        return f"Rows({self._path}, {self._filters})"

    def first(self) -> T | None:
        """The first row, or None."""
        value = self._transport.get(self._path, {**self._filters, "limit": 1}).value["items"]
        return build(self._kind, value[0], self._path, **self._handles) if value else None

    def one(self) -> T:
        """The only row. Raises ``WorkbenchError`` where there is none, or another."""
        found = self._transport.get(self._path, {**self._filters, "limit": 2}).value["items"]
        if len(found) != 1:
            many = "none" if not found else "more than one"
            raise WorkbenchError(f"{self._path} {self._filters}: got {many}, expected one")
        return build(self._kind, found[0], self._path, **self._handles)

    def to_arrow(self) -> Any:
        """Every row as a ``pyarrow.Table``; nested members are JSON-like columns."""
        return to_arrow(list(self), self._kind)

    def to_pandas(self) -> Any:
        """Every row as a ``pandas.DataFrame``; what was not measured is missing, never 0."""
        return to_pandas(list(self), self._kind)


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value) if not item.name.startswith("_")}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def columns(rows: list[Any], kind: type[Any] | None = None) -> dict[str, list[Any]]:
    """Rows as columns by name. ``kind`` names the columns where there is no row."""
    shape = type(rows[0]) if rows else kind
    if shape is None:
        return {}
    names = [item.name for item in fields(shape) if not item.name.startswith("_")]
    return {name: [_plain(getattr(row, name)) for row in rows] for name in names}


def _installed(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise WorkbenchError(f"{name}: got no such package, expected it for tables (pip install {name})") from error


def to_arrow(rows: list[Any], kind: type[Any] | None = None) -> Any:
    """Records as a ``pyarrow.Table``. A column of objects with differing members holds JSON text."""
    pa = _installed("pyarrow")
    found = {}
    for name, values in columns(rows, kind).items():
        if any(isinstance(value, dict | list) for value in values):
            found[name] = pa.array([None if value is None else json.dumps(value, default=str) for value in values])
        else:
            found[name] = pa.array(values)
    return pa.table(found)


def to_pandas(rows: list[Any], kind: type[Any] | None = None) -> Any:
    """Records as a ``pandas.DataFrame``; booleans, integers and numbers with missing values keep their types."""
    return _installed("pandas").DataFrame(columns(rows, kind)).convert_dtypes()
