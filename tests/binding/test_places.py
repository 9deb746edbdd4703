"""Excerpts in changed documents: found exactly where they were, moved, or orphan; never found elsewhere."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evidence.binding.places import Held, Place, place_of
from evidence.binding.selectors import SelectorError, quote_at
from evidence.models import Excerpt, Source, SourceVersion
from workbench.contracts.canonical import sha256_hex

DOCUMENTS = st.text(alphabet="ab1 \n零", min_size=1, max_size=50)


def look(before: str, start: int, stop: int, after: str, recorded: bool = True) -> Place | None:
    """Where the excerpt ``before[start:stop]`` stands in ``after``; None where no selector is unique in ``before``.

    ``recorded``: ``after`` is a newer version of the source; else the bytes changed under their hash.
    """
    try:
        quote = quote_at(before, start, stop)
    except SelectorError:
        return None
    source = Source(path="a.md", form="text")
    first = SourceVersion(pk=1, source=source, number=1, held=True, sha256=sha256_hex(before.encode()))
    newest = SourceVersion(pk=2, source=source, number=2, held=True, sha256=sha256_hex(after.encode()))
    source.current = newest if recorded else first
    selector = {"exact": quote.exact, "prefix": quote.prefix, "suffix": quote.suffix, "line": quote.line}
    excerpt = Excerpt(version=first, form="quote", selector=selector, kind="matched", text=quote.exact)
    kept: dict[int, Held | None] = {
        1: Held((before if recorded else after).encode(), recorded or before == after, "text"),
        2: Held(after.encode(), True, "text"),
    }
    return place_of(excerpt, kept)


@given(DOCUMENTS, DOCUMENTS, st.data())
def test_in_another_document(before: str, after: str, data: st.DataObject) -> None:
    """Found: the same text at the same place, once. Moved: the same text once elsewhere. Orphan: not once."""
    start = data.draw(st.integers(0, len(before) - 1))
    stop = data.draw(st.integers(start + 1, len(before)))
    place = look(before, start, stop, after)
    if place is None:
        return
    quote = quote_at(before, start, stop)
    whole = quote.prefix + quote.exact + quote.suffix
    places = [at + len(quote.prefix) for at in range(len(after)) if after.startswith(whole, at)]
    if len(places) != 1:
        assert place.state == "orphan"
        return
    assert after[places[0] : places[0] + stop - start] == before[start:stop]
    assert place.first_line == after.count("\n", 0, places[0]) + 1
    same = places[0] == start and before.count("\n", 0, start) == after.count("\n", 0, start)
    assert place.state == ("found" if same else "moved")


@given(DOCUMENTS, st.data())
def test_after_one_changed_character(before: str, data: st.DataObject) -> None:
    """A flipped character inside the quotation makes it orphan, unless it stands there again elsewhere."""
    start = data.draw(st.integers(0, len(before) - 1))
    stop = data.draw(st.integers(start + 1, len(before)))
    at = data.draw(st.integers(0, len(before) - 1))
    after = before[:at] + "#" + before[at + 1 :]
    place = look(before, start, stop, after)
    if place is not None and start <= at < stop:
        assert place.state in ("orphan", "moved")
        assert place.state == "orphan" or before[start:stop] in after
    unrecorded = look(before, start, stop, after, recorded=False)
    if unrecorded is not None:
        assert unrecorded.state in ("orphan", "moved")  # bytes that are not those of the hash show nothing


@given(DOCUMENTS, st.text(alphabet="xy", max_size=5), st.data())
def test_after_text_is_put_before(before: str, added: str, data: st.DataObject) -> None:
    """What stood once stands once, moved by what was added; nothing added: found."""
    start = data.draw(st.integers(0, len(before) - 1))
    stop = data.draw(st.integers(start + 1, len(before)))
    place = look(before, start, stop, added + before)
    if place is not None:
        assert place.state == ("moved" if added else "found")
