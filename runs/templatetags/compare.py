"""Filters of the comparison pages."""

from __future__ import annotations

import re
from typing import Any

from django import template

from runs.presenters.compare.pairing import letter as pass_letter
from runs.presenters.states import state_view

register = template.Library()
_HASH = re.compile(r"^[0-9a-f]{64}$")


@register.filter
def is_hash(value: Any) -> bool:
    """Whether a value is a SHA-256 in hex, which is shown short."""
    return isinstance(value, str) and _HASH.fullmatch(value) is not None


@register.filter
def letter(value: int | None) -> str:
    """P passed, F failed, a dot for no outcome."""
    return pass_letter(value)


@register.filter
def at(values: Any, index: int) -> Any:
    """``{{ values|at:2 }}``: an item by place; None where there is none."""
    return values[index] if 0 <= index < len(values) else None


@register.filter
def pairup(left: Any, right: Any) -> tuple[Any, Any]:
    """``{% for side in left|pairup:right %}``."""
    return left, right


@register.filter
def job_word(value: str) -> Any:
    """The word of a job's state alone, for column heads."""
    return state_view("job", value).word


@register.filter
def times(value: float, other: float) -> float:
    """Product of two numbers."""
    return round(float(value) * float(other), 2)
