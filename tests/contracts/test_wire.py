"""Records over the wire: exact fields and types, and the refusal of anything else."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.contracts.errors import CanonicalError, RecordError
from workbench.contracts.records import CaptureRef, GroupRecord, MetricRecord, UpdateRecord
from workbench.contracts.wire import from_wire, parse_record, record_bytes, to_wire


@dataclass(frozen=True)
class Inner:
    count: int
    share: float


@dataclass(frozen=True)
class Outer:
    name: str
    flag: bool
    maybe: float | None
    parts: tuple[Inner, ...]
    labels: dict[str, str]
    free: dict[str, Any]


WHOLE = Outer("n", True, None, (Inner(1, 0.5),), {"a": "b"}, {"x": [1, None]})


def test_a_record_comes_back_equal() -> None:
    assert parse_record(Outer, record_bytes(WHOLE)) == WHOLE


@given(
    st.builds(
        Outer, st.text(st.characters(exclude_categories=["Cs"])), st.booleans(), st.none() | st.floats(allow_nan=False),
        st.lists(st.builds(Inner, st.integers(-(2**53) + 1, 2**53 - 1), st.floats(allow_nan=False))).map(tuple),
        st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz")), st.just({}),
    )
)  # fmt: skip
def test_any_record_comes_back_equal(record: Outer) -> None:
    """Infinities are named, whole floats stay floats, large floats keep their value."""
    assert parse_record(Outer, record_bytes(record)) == record


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"name": 1}, r"\$\.name: got 1, expected str"),
        ({"flag": 1}, r"\$\.flag: got 1, expected bool"),
        ({"flag": None}, r"\$\.flag"),
        ({"maybe": "1"}, r"\$\.maybe: got '1', expected a number"),
        ({"maybe": True}, r"\$\.maybe"),
        ({"maybe": {"nonfinite": "x"}}, r"\$\.maybe"),
        ({"parts": {}}, r"\$\.parts: got .*, expected a list"),
        ({"parts": [1]}, r"\$\.parts\[0\]: got 1, expected an object"),
        ({"parts": [{"count": 1.0, "share": 1}]}, r"\$\.parts\[0\]\.count: got 1\.0, expected int"),
        ({"parts": [{"count": True, "share": 1}]}, r"\$\.parts\[0\]\.count"),
        ({"parts": [{"count": 1, "share": None}]}, r"\$\.parts\[0\]\.share"),
        ({"parts": [{"count": 1}]}, r"'missing': \['share'\]"),
        ({"parts": [{"count": 1, "share": 1, "z": 0}]}, r"'unknown': \['z'\]"),
        ({"labels": []}, r"\$\.labels: got \[\], expected an object"),
        ({"labels": {"a": 1}}, r"\$\.labels\.a: got 1, expected str"),
        ({"free": None}, r"\$\.free"),
        ({"more": 1}, r"'unknown': \['more'\]"),
    ],
)
def test_a_wrong_field_is_named_with_value_and_expectation(change: dict[str, Any], where: str) -> None:
    with pytest.raises(RecordError, match=where):
        from_wire(Outer, {**to_wire(WHOLE), **change})


@pytest.mark.parametrize("name", [item.name for item in fields(Outer)])
def test_a_missing_field_is_named(name: str) -> None:
    value = {key: item for key, item in to_wire(WHOLE).items() if key != name}
    with pytest.raises(RecordError, match=rf"'missing': \['{name}'\]"):
        from_wire(Outer, value)


@pytest.mark.parametrize("value", [None, [], "x", 1])
def test_only_an_object_is_a_record(value: Any) -> None:
    with pytest.raises(RecordError, match="expected an object"):
        from_wire(CaptureRef, value)


def test_bytes_that_are_not_canonical_are_refused() -> None:
    with pytest.raises(CanonicalError):
        parse_record(Outer, record_bytes(WHOLE) + b"\n")


@pytest.mark.parametrize("kind", [GroupRecord, UpdateRecord, MetricRecord])
def test_every_crossing_record_names_its_missing_fields(kind: type[Any]) -> None:
    with pytest.raises(RecordError, match=fields(kind)[0].name):
        from_wire(kind, {})
