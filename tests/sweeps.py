"""Parameters of a sweep: a few run every day, the whole of it with ``make test-gate``."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def sweep(values: Iterable[Any], everyday: Collection[Any] | int) -> list[Any]:
    """``values`` as parameters; all but the everyday ones carry the mark ``gate``.

    ``everyday``: the values themselves, or how many from the front. Raises ``ValueError`` where none would be left for
    the everyday suite: a misspelt one would go unnoticed.
    """
    found = list(values)
    chosen = found[:everyday] if isinstance(everyday, int) else [value for value in found if value in everyday]
    if not chosen or not (isinstance(everyday, int) or len(chosen) == len(everyday)):
        raise ValueError(f"everyday: expected values of the sweep, got {everyday!r}")
    return [value if value in chosen else _at_the_gate(value) for value in found]


def _at_the_gate(value: Any) -> Any:
    return pytest.param(*value if isinstance(value, tuple) else (value,), marks=pytest.mark.gate)
