"""Canonical bytes: RFC 8785 cases, what has no canonical form, and strict reading."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.contracts.canonical import (
    canonical_bytes,
    decode_float,
    derive_uid,
    digest,
    encode_float,
    parse_canonical,
    parse_json,
    sha256_hex,
)
from workbench.contracts.errors import CanonicalError

SAFE = 2**53 - 1
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
NUMBERS = st.integers(-SAFE, SAFE) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"b": 1, "a": [True, None]}, b'{"a":[true,null],"b":1}'),
        (1.0, b"1"),  # ECMAScript writes no point for a whole number
        (-0.0, b"0"),
        (333333333.33333329, b"333333333.3333333"),
        (1e30, b"1e+30"),
        (4.5, b"4.5"),
        (2e-3, b"0.002"),
        (1e-27, b"1e-27"),
        (1e20, b"100000000000000000000"),  # below 1e21: all digits
        (1e21, b"1e+21"),
        ('\u20ac$\u000f\nA\'B"\\\\"/', '"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"'.encode()),
        # keys order by UTF-16 units: the emoji (d83d ...) stands before U+FB33
        ({"\ufb33": 1, "\U0001f600": 2, "\u20ac": 3, "1": 4}, '{"1":4,"€":3,"😀":2,"\ufb33":1}'.encode()),
        (SAFE, b"9007199254740991"),
        ((1, 2), b"[1,2]"),
    ],
)
def test_bytes_follow_rfc_8785(value: Any, expected: bytes) -> None:
    assert canonical_bytes(value) == expected


@pytest.mark.parametrize(
    ("value", "where", "expected"),
    [
        ({"a": 2**53}, "$.a", "decimal string"),
        ([-(2**53)], "$[0]", "decimal string"),
        ({"a": [math.nan]}, "$.a[0]", "finite"),
        (math.inf, "$", "finite"),
        ({1: 2}, "$", "string key"),
        ({"a": b"x"}, "$.a", "bytes"),
        ({"a": {1}}, "$.a", "set"),
        ("\ud800", "$", "UTF-8"),
        ({"\udfff": 1}, "$", "UTF-8"),
    ],
)
def test_what_has_no_canonical_form_is_refused_by_path(value: Any, where: str, expected: str) -> None:
    with pytest.raises(CanonicalError) as caught:
        canonical_bytes(value)
    assert str(caught.value).startswith(where) and expected in str(caught.value)


def test_a_value_nested_too_deeply_is_refused() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(CanonicalError, match="nested too deeply"):
        canonical_bytes(value)
    with pytest.raises(CanonicalError):
        parse_json("[" * 100_000 + "]" * 100_000)


@given(VALUES)
def test_what_is_written_reads_back_with_equal_bytes(value: Any) -> None:
    """Also floats from 2**53 to 1e21, which are written without a point."""
    data = canonical_bytes(value)
    assert canonical_bytes(parse_canonical(data)) == data


@given(st.floats(min_value=2.0**53, max_value=1e22))
def test_a_large_float_reads_back_as_the_same_float(value: float) -> None:
    found = parse_canonical(canonical_bytes(value))
    assert isinstance(found, float) and found == value


@pytest.mark.parametrize(
    "data",
    [
        b'{"a":1,"a":2}', b'{"a":{"b":1,"b":1}}', b"NaN", b"-Infinity", b"1e400", b"9007199254740993", b"1" * 5000,
        b"\xff", b"{", b"", b'{"a":1}x', b"\xef\xbb\xbf1",
    ],
)  # fmt: skip
def test_strict_reading_refuses(data: bytes) -> None:
    with pytest.raises(CanonicalError):
        parse_json(data)


@pytest.mark.parametrize("data", [b'{"b":1,"a":2}', b'{"a": 1}', b"1.0", b"-0", b'"\\u0041"', b"1e0", b"[1]\n"])
def test_json_in_another_form_is_not_canonical(data: bytes) -> None:
    parse_json(data)
    with pytest.raises(CanonicalError, match="canonical form"):
        parse_canonical(data)


@given(st.none() | st.floats())
def test_encoded_floats_come_back(value: float | None) -> None:
    found = decode_float(parse_canonical(canonical_bytes(encode_float(value))))
    assert found == value or (value is not None and math.isnan(value) and found is not None and math.isnan(found))


@pytest.mark.parametrize(
    "value", ["1", True, {"nonfinite": "NaN"}, {"nonfinite": "nan", "x": 1}, {}, [1.0], {"nonfinite": ["nan"]}]
)
def test_another_value_is_no_float(value: Any) -> None:
    with pytest.raises(CanonicalError):
        decode_float(value)


def test_digest_and_uid_are_fixed_for_all_time() -> None:
    """SHA-256 of ``{}`` is a known constant; a uid depends on parent and key alone."""
    assert digest({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert sha256_hex(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    parent = derive_uid(None, "study:a")
    assert derive_uid(parent, "plan:b") == derive_uid(str(parent), "plan:b") != derive_uid(None, "plan:b")
