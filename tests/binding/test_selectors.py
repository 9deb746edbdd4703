"""Selectors: exactly one place, or refused with what was found instead."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.binding.places import find
from evidence.binding.selectors import (
    SelectorError,
    TextQuote,
    at_cell,
    at_pointer,
    decode,
    find_quote,
    is_number,
    quote_at,
)

TEXT = "Rewards rose to 0.62.\nIn stress 0.62 held; 结果 0.62。\nNothing else."


def test_a_quotation_is_found_by_its_context() -> None:
    """0.62 stands three times; with "stress " before it once, in line 2."""
    span = find_quote(TEXT, TextQuote("0.62", "stress ", " held"))
    assert TEXT[span.start : span.stop] == "0.62" and (span.first_line, span.last_line) == (2, 2)
    assert find_quote(TEXT, TextQuote("held; 结果", line=9)).first_line == 2  # a wrong hint decides nothing


@pytest.mark.parametrize(
    ("quote", "words"),
    [
        (TextQuote("0.62"), "3 places .lines 1, 2, 2."),
        (TextQuote("0.95"), "no place"),
        (TextQuote("0.62", "beyond "), "3 places of the text alone"),
        (TextQuote(""), "expected the quoted text"),
    ],
)
def test_none_or_several_places_are_refused_and_told_apart(quote: TextQuote, words: str) -> None:
    with pytest.raises(SelectorError, match=words):
        find_quote(TEXT, quote)


@given(st.text(alphabet="ab\n ", min_size=1, max_size=60), st.data())
def test_a_stored_selector_finds_its_own_span_or_is_refused(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    stop = data.draw(st.integers(start + 1, len(text)))
    try:
        quote = quote_at(text, start, stop)
    except SelectorError:
        return
    span = find_quote(text, quote)
    assert (span.start, span.stop) == (start, stop) and text[start:stop] == quote.exact
    assert span.first_line == text[:start].count("\n") + 1


@given(st.text(alphabet="ab ", max_size=40), st.text(alphabet="ab ", min_size=1, max_size=3))
def test_overlapping_places_all_count(text: str, exact: str) -> None:
    places = [i for i in range(len(text)) if text.startswith(exact, i)]
    try:
        assert find_quote(text, TextQuote(exact)).start == places[0] and len(places) == 1
    except SelectorError:
        assert len(places) != 1


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(SelectorError, match="byte at 1"):
        decode(b"a\xff")


JSON = b'{"a/b": [{"n": 0.10}, {"n": 27}], "": {"~": "x"}, "t": true}'


def test_pointers_follow_the_standard_and_keep_numbers_as_written() -> None:
    assert at_pointer(JSON, "/a~1b/0/n") == "0.10" and is_number(at_pointer(JSON, "/a~1b/1/n"))
    assert (
        at_pointer(JSON, "//~0") == "x"
        and at_pointer(JSON, "/t") is True
        and set(at_pointer(JSON, "")) == {"a/b", "", "t"}
    )
    assert not is_number(at_pointer(JSON, "//~0"))


@pytest.mark.parametrize("pointer", ["a", "/c", "/a~1b/2", "/a~1b/01", "/a~1b/-", "/a~1b/0/n/x", "/a~1b/\u0661"])
def test_pointers_that_lead_nowhere_are_refused(pointer: str) -> None:
    with pytest.raises(SelectorError, match="pointer: got"):
        at_pointer(JSON, pointer)


@pytest.mark.parametrize("data", [b"", b"{", b'{"a": 1, "a": 2}', b"\xff", b"[" * 100_000])
def test_what_is_no_json_is_refused(data: bytes) -> None:
    with pytest.raises(SelectorError, match="source: got"):
        at_pointer(data, "")


CSV = b'task,reward,n\n"a, b",0.5,4\nc,0.62,8\nd,,8\n'


def test_a_cell_is_found_by_its_row_and_column() -> None:
    assert at_cell(CSV, "reward", "task", "a, b") == "0.5" and at_cell(CSV, "reward", "task", "d") == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(("x", "task", "c"), "0 times"), (("reward", "n", "8"), "2 rows"), (("reward", "task", "z"), "0 rows")],
)
def test_a_cell_that_is_not_one_is_refused(arguments: tuple[str, str, str], words: str) -> None:
    with pytest.raises(SelectorError, match=words):
        at_cell(CSV, *arguments)
    with pytest.raises(SelectorError, match="2 times"):
        at_cell(b"a,a\n1,2\n", "a", "a", "1")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'task,n\na,1\nb,"2\n', "line 3 "),
        (b"task,n\na," + b"1" * 131_073 + b"\n", "line 2 .*field larger"),
        (b'task,n\n"a"b,1\n', "line 2 "),
        (b"task,n\na,\xff1\n", "byte at 9"),
    ],
)
def test_a_corrupt_table_is_refused_with_its_line(data: bytes, words: str) -> None:
    """An open quotation mark, a field that is too long, text after a closing mark, a byte that is no UTF-8."""
    with pytest.raises(SelectorError, match=f"source: got .*{words}"):
        at_cell(data, "n", "task", "a")


def test_a_byte_order_mark_is_no_part_of_a_document_or_table() -> None:
    """As editors on some systems write it; a second one is no JSON."""
    assert at_pointer(b"\xef\xbb\xbf" + JSON, "/a~1b/1/n") == "27"
    assert at_cell(b"\xef\xbb\xbf" + CSV, "reward", "task", "c") == "0.62"
    with pytest.raises(SelectorError, match="no JSON"):
        at_pointer(b"\xef\xbb\xbf" * 2 + JSON, "")


def test_a_place_in_a_list_of_thousands_of_digits_is_refused() -> None:
    with pytest.raises(SelectorError, match="leads to nothing"):
        at_pointer(b"[1]", "/" + "9" * 4_500)


@pytest.mark.parametrize("data", [b'{"a": "x\\u0000y"}', b'{"a": "\\ud800"}'])
def test_a_value_that_no_record_can_hold_is_refused(data: bytes) -> None:
    """U+0000 and half a character; a whole one is kept."""
    with pytest.raises(SelectorError, match="can be recorded"):
        find("pointer", {"pointer": "/a"}, data)
    assert find("pointer", {"pointer": "/a"}, b'{"a": "\\ud83d\\ude00"}') == ("\U0001f600", None)
    table = {"column": "n", "key_column": "task", "key": "a"}
    with pytest.raises(SelectorError, match="can be recorded"):
        find("cell", table, b"task,n\na,1\x002\n")
    assert find("cell", table, b"task,n\na,12\n") == ("12", None)
