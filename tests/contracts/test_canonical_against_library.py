"""The direct writer of canonical bytes against the library of RFC 8785, on any value that has canonical bytes."""

from __future__ import annotations

from typing import Any

import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from workbench.contracts.canonical import MAX_SAFE_INTEGER, canonical_bytes

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
NUMBERS = st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER) | st.floats(allow_nan=False, allow_infinity=False)
LEAVES = st.none() | st.booleans() | NUMBERS | TEXT
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4))


@given(VALUES)
def test_equal_bytes_for_any_value(value: Any) -> None:
    assert canonical_bytes(value) == rfc8785.dumps(value)


@given(st.integers(-12, 25), st.integers(1, 10**17))
def test_equal_bytes_around_the_limits_of_number_forms(exponent: int, digits: int) -> None:
    """1e-7, 1e-6, 1e-4, 1e16, 1e21: where Python and ECMAScript change between plain and scientific form."""
    for value in (float(f"{digits}e{exponent - 17}"), 10.0**exponent, float(digits), -(10.0**exponent) - 1e-6):
        assert canonical_bytes(value) == rfc8785.dumps(value)


def test_keys_sort_by_utf_16_code_units() -> None:
    """U+1F600 is D83D DE00 in UTF-16 and so comes before U+FB33, unlike by code point."""
    value = {"\ufb33": 1, "\U0001f600": 2, "a": 3}
    assert canonical_bytes(value) == '{"a":3,"\U0001f600":2,"\ufb33":1}'.encode() == rfc8785.dumps(value)
