"""Foreign values as ours: numbers, steps, keys, arrays, and the one rule of grades."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

KEY = 300  # characters of a group or sample key
NAME = 500  # characters of a metric's name
_INT64 = 1 << 63


class Misread(ValueError):
    """A field whose value is not what the format says: ``what``, ``got``, ``expected``."""

    def __init__(self, what: str, got: object, expected: str):
        self.what, self.got, self.expected = what, got, expected
        super().__init__(f"{what}: got {got!r:.200}, expected {expected}")


def number(value: Any, what: str) -> float | None:
    """A float, nan and infinities included; None stays None. Raises ``Misread``."""
    if value is None:
        return None
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:
            pass
    raise Misread(what, value, "a number")


def integer(value: Any, what: str) -> int | None:
    """A 64-bit integer; a float without fraction counts. Raises ``Misread``."""
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and -_INT64 <= value < _INT64:
        return value
    raise Misread(what, value, "a 64-bit integer")


def step_of(value: Any, what: str = "step") -> int | None:
    """A step: an integer from 0; None stays None. Raises ``Misread``."""
    found = integer(value, what)
    if found is not None and found < 0:
        raise Misread(what, value, "an integer from 0")
    return found


def key(value: Any, what: str, limit: int = KEY) -> str:
    """A key as text, "" for None. Raises ``Misread`` for a long one, or one with control characters."""
    if value is None:
        return ""
    if isinstance(value, bool | float | dict | list):
        value = json.dumps(value, ensure_ascii=False)
    text = value if isinstance(value, str) else str(value)
    if len(text) > limit or any(ord(letter) < 32 for letter in text):
        raise Misread(what, text[:100], f"at most {limit} characters without control characters")
    return text


def metric_name(value: Any) -> str:
    """A metric's name. Raises ``Misread`` for none."""
    if not isinstance(value, str) or not value:
        raise Misread("name", value, f"a text of 1 to {NAME} characters")
    return key(value, "name", NAME)


def text(value: Any) -> str | None:
    """Text as it stands; other values as JSON; None stays None."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def integers(value: Any, what: str) -> list[int] | None:
    """A list of integers from 0 (token ids). Raises ``Misread``."""
    if value is None:
        return None
    if not isinstance(value, list) or any(type(item) is not int or not 0 <= item < 1 << 31 for item in value):
        raise Misread(what, value, "a list of token ids")
    return value


def indicator(value: Any, what: str) -> list[bool] | None:
    """A list of 0 and 1 or booleans. Raises ``Misread``."""
    if value is None:
        return None
    if not isinstance(value, list) or any(item not in (0, 1) for item in value):
        raise Misread(what, value, "a list of 0 and 1")
    return [bool(item) for item in value]


def numbers(value: Any, what: str) -> list[float | None] | None:
    """A list of numbers; None inside stays None. Raises ``Misread``."""
    if value is None:
        return None
    if not isinstance(value, list):
        raise Misread(what, value, "a list of numbers")
    return [number(item, f"{what}[{position}]") for position, item in enumerate(value)]


def aligned(token_ids: Sequence[Any] | None, arrays: Mapping[str, Sequence[Any] | None]) -> None:
    """Raises ``Misread`` for an array whose length is not that of ``token_ids``, or that has none beside it."""
    for name, array in arrays.items():
        if array is None:
            continue
        expected = "token_ids beside it" if token_ids is None else f"{len(token_ids)}, as token_ids"
        if token_ids is None or len(array) != len(token_ids):
            raise Misread(f"length of {name}", len(array), expected)


def grade(
    token_ids: Sequence[int] | None,
    is_policy_token: Sequence[bool] | None,
    logprobs: Sequence[float | None] | None,
    version_start: int | None,
    version_end: int | None,
) -> str:
    """A: ids, indicator and a log-probability at every policy token, under one known version. B: no version. C: text.

    Only A and B may feed claims about training. A version that changed inside the rollout is B: which
    token belongs to which policy is unknown.
    """
    if not token_ids or is_policy_token is None or logprobs is None or not any(is_policy_token):
        return "C"
    if any(mine and value is None for mine, value in zip(is_policy_token, logprobs, strict=True)):
        return "C"
    return "A" if version_start is not None and version_start == version_end else "B"


def rewards_of(value: Any, what: str) -> dict[str, float | None]:
    """Numbers of an object by name; other entries are left to the caller's extra. Raises ``Misread`` for no object."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Misread(what, value, "an object of numbers")
    return {key(name, what): number(item, name) for name, item in value.items() if is_number(item)}


def is_number(value: Any) -> bool:
    """Whether a JSON value is a number (a boolean is none)."""
    return isinstance(value, int | float) and not isinstance(value, bool)
