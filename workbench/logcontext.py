"""What a log line belongs to: request, user, run, execution, job. No Django here.

Values are set around the work that they name and go with it into nested calls, never to another thread.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

FIELDS = ("request_id", "user", "study", "run", "execution", "job", "attempt")
_fields: ContextVar[dict[str, Any]] = ContextVar("log_fields", default={})  # noqa: B039  # never changed in place


@contextlib.contextmanager
def log_fields(**values: Any) -> Iterator[None]:
    """Add fields to every line logged inside. A callable is asked when a line is written; None is left out."""
    unknown = values.keys() - set(FIELDS)
    if unknown:
        raise ValueError(f"log_fields: got {sorted(unknown)}, expected some of {FIELDS}")
    token = _fields.set({**_fields.get(), **values})
    try:
        yield
    finally:
        _fields.reset(token)


def current_fields(other: dict[str, Any] | None = None) -> dict[str, Any]:
    """Fields that are known now, in a fixed order; ``other`` are those of a record that names its own.

    One that cannot be told is left out: logging never fails by it.
    """
    found: dict[str, Any] = {}
    given = {**(other or {}), **_fields.get()}
    for name in FIELDS:
        value = given.get(name)
        if callable(value):
            with contextlib.suppress(Exception):
                value = value()
        if value is not None and not callable(value):
            found[name] = value if isinstance(value, int) else str(value)
    return found


@contextlib.contextmanager
def job_fields(job: Any) -> Iterator[None]:
    """The fields of a claimed job."""
    run, execution = job.run, job.execution
    with log_fields(
        job=job.uid,
        attempt=job.attempt,
        run=None if run is None else run.uid,
        execution=None if execution is None else execution.uid,
    ):
        yield
