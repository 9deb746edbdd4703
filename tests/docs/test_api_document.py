"""docs/api.md has every address of the schema once: with what it needs, its parameters, and members that exist."""

from __future__ import annotations

import re

import pytest

from runs.api.needs import needed
from tests.docs.api_rows import BLOCK, DOCUMENT, addresses, filters, operations, rendered, schema, told

TEXT = DOCUMENT.read_text(encoding="utf-8")
OPERATIONS = operations(schema())


def test_cells_name_what_they_say() -> None:
    """A second path stands beside the first one's last part, unless it goes on from it."""
    assert addresses("`GET /x`, `/x/{uid}`") == [("GET", "/x"), ("GET", "/x/{uid}")]
    assert addresses("`PUT`, `PATCH /x`") == [("PUT", "/x"), ("PATCH", "/x")]
    assert addresses("`POST /x/{uid}/pause`, `/resume`") == [("POST", "/x/{uid}/pause"), ("POST", "/x/{uid}/resume")]
    assert addresses("`GET /x/difference?against=`") == [("GET", "/x/difference")]


def test_no_address_of_the_first_table_is_another_than_the_schemas() -> None:
    assert len(told(TEXT)) > 40 and set(told(TEXT)) - set(OPERATIONS) == set()


def test_the_second_table_is_the_rest_of_the_schema() -> None:
    assert len(BLOCK.findall(TEXT)) == 1
    assert rendered(TEXT) == TEXT, "write the table anew: python -m tests.docs.api_rows"


@pytest.mark.parametrize("method, path", sorted(told(TEXT)))
def test_what_an_address_needs_and_takes(method: str, path: str) -> None:
    """Every parameter of a read stands in its row or in its address, and none that it does not take as a filter."""
    row, takes = told(TEXT)[method, path], filters(OPERATIONS[method, path])
    expected = needed(method, f"/v1{path}")
    if row.needs:
        assert row.needs == expected.removeprefix("study."), f"{method} {path}"
    else:
        assert method == "GET" and expected in ("", "study.read")
    listed = re.search(r"filters? ((?:`\w+`(?: \([^)]*\))?(?:, )?)+)", row.answer)
    if listed:
        assert set(re.findall(r"`(\w+)`", listed[1])) == takes, f"{method} {path}"


def test_errors_of_the_table_are_those_of_the_schema() -> None:
    """Every status from 400 on that an operation may answer has its row."""
    table = TEXT.partition("| status | when |")[2].partition("\n\n")[0]
    listed = {int(code) for line in table.splitlines()[2:] for code in re.findall(r"\d{3}", line.split("|")[1])}
    answered = {int(code) for operation in OPERATIONS.values() for code in operation["responses"] if code >= "400"}
    assert len(listed) > 10 and answered - listed == set()
