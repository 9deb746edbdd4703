"""Runs that a trainer elsewhere has logged, as the server has them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self
from urllib.parse import urlencode

from .reading import build
from .tables import Rows, _installed
from .transport import Transport


@dataclass(frozen=True)
class Newest:
    """Newest point of a series; ``segment`` is the attempt."""

    name: str
    segment: str
    step: int
    time_ms: int
    value: float


@dataclass(frozen=True)
class History:
    """Every point of a name in order of time."""

    name: str
    points: int
    data_sha256: str
    step: list[int]
    time_ms: list[int]
    value: list[float]


@dataclass(frozen=True)
class LoggedRun:
    """A run from elsewhere. ``linked_plan`` None: exploratory. ``parameters`` and ``tags`` None: not asked for."""

    uid: str
    id: str
    name: str
    study: str
    origin: str
    framework: str
    status: str
    deleted: bool
    partial: bool
    segment: int
    linked_plan: str | None
    started_at: datetime
    ended_at: datetime | None
    updated_at: datetime
    _transport: Transport = field(repr=False, compare=False)
    parameters: dict[str, str] | None = None
    tags: dict[str, str] | None = None

    def refresh(self) -> Self:
        """The run as it is now, with parameters and tags."""
        value = self._transport.get(f"logged-runs/{self.uid}").value
        return build(type(self), value, _transport=self._transport)

    def metrics(self, **filters: Any) -> Rows[Newest]:
        """Its series with their newest points (``name``)."""
        return Rows(self._transport, f"logged-runs/{self.uid}/metrics", Newest, filters)

    def history(self, name: str, *, start: int | None = None, stop: int | None = None) -> History:
        """Points of a name whose step lies within ``start`` and ``stop``; at most 100,000, more as ``arrow``."""
        given = {"name": name, "start": start, "stop": stop}
        return build(History, self._transport.get(f"logged-runs/{self.uid}/history", given).value)

    def arrow(self, name: str | None = None) -> Any:
        """Every point of a name, or of all of them, as a ``pyarrow.Table``; value is null where it is not finite."""
        query = "" if name is None else "?" + urlencode({"name": name})
        data = self._transport.bytes(f"logged-runs/{self.uid}/history.arrow{query}")
        return _installed("pyarrow").ipc.open_stream(data).read_all()

    def link(self, plan_version: str, reason: str) -> Self:
        """Say that the run belongs to a frozen plan version of its study."""
        body = {"plan_version": plan_version, "reason": reason}
        value = self._transport.post(f"logged-runs/{self.uid}/link", body).value
        return build(type(self), value, _transport=self._transport)
