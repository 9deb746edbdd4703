"""The form of a notes document: what is left out is filled in, what is wrong is named by place."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evidence.notes import shapes
from evidence.notes.schema import NotesInvalid, blocks_of, faults_of, normalise
from evidence.notes.texts import leaves, sentences, texts_of

from .build import said, whole


def put(document: Any, path: str, value: Any) -> dict[str, Any]:
    """The document with one place changed; ``...`` takes the place out."""
    *steps, last = path.split(".")
    found = document
    for step in steps:
        found = found[int(step)] if isinstance(found, list) else found[step]
    key: Any = int(last) if isinstance(found, list) else last
    if value is ...:
        del found[key]
    else:
        found[key] = value
    return document


def test_a_whole_document_has_every_block_and_no_fault() -> None:
    document = normalise(whole())
    assert {block["type"] for _, block in blocks_of(document)} == set(shapes.BLOCK_TYPES)
    assert normalise(document) == document, "complete documents stay as they are"
    first = document["sections"][0]["blocks"][1]
    assert first["decision"] is False and first["steps"][0]["text"] == {"en": "goes on", "zh": "继续"}
    assert document["imported"] is None and document["sections"][3]["blocks"][0]["items"][1]["sources"] == []


@pytest.mark.parametrize(
    "path, value, fault",
    [
        ("schema", "workbench.notes/2", "schema: got 'workbench.notes/2', expected one of workbench.notes/1"),
        ("page_date", "2026-13-01", "page_date: got '2026-13-01', expected a day"),
        ("cutoff", 20261001, "cutoff: got 20261001, expected a day as YYYY-MM-DD or null"),
        ("title", "Credit", "title: got 'Credit', expected an object with the texts en and zh"),
        ("title", said(" ", ""), "title.en: got nothing, expected text in at least one language"),
        ("title", {"en": "a"}, "title: got {'en': 'a'}"),
        ("state", ..., "state: got nothing, expected an object"),
        ("colour", "red", "colour: got 'red', expected no such member"),
        ("cards.0.role", "best", "cards.0.role: got 'best', expected one of holds, blocked, next"),
        ("cards.2", ..., "cards: got 2 items, expected 3"),
        ("sections.0.id", "routes", "sections: got routes, idea"),
        ("sections.3", ..., "sections: got 11 items, expected 12"),
        ("sections.0.blocks.0.type", "prose", "sections.0.blocks.0.type: got 'prose', expected one of paragraph"),
        ("sections.0.blocks.0.sources", ["1"], "sections.0.blocks.0.sources.0: got '1', expected the label"),
        ("sections.0.blocks.1.steps.3", ..., "sections.0.blocks.1.steps: got 3 items, expected 4"),
        ("sections.0.blocks.1.decision", 1, "sections.0.blocks.1.decision: got 1, expected true or false"),
        ("sections.1.blocks.1.frames.0.id", "assign", "sections.1.blocks.1.frames: got assign, remove"),
        ("sections.2.blocks.0.rows.0.1", {"number": 7}, "rows.0.1: got {'number': 7}, expected an object with one of"),
        ("sections.2.blocks.0.rows.0.1", ..., "sections.2.blocks.0.rows.0: got 1 cells, expected 2"),
        ("sections.2.blocks.0.rows.0.1.state", "fine", "rows.0.1.state: got 'fine', expected one of done"),
        ("sections.3.blocks.0.items.0.figure", "", "items.0.figure: got '', expected the key of a figure"),
        ("sections.7.blocks.0.items.0.priority", "high", "priority: got 'high', expected a whole number from 1 to 9"),
        ("sections.7.blocks.0.items.0.priority", True, "priority: got True"),
        ("sections.4.blocks.0.items", "signal", "sections.4.blocks.0.items: got 'signal', expected a list"),
    ],
)  # fmt: skip
def test_a_fault_is_named_by_place_value_and_expectation(path: str, value: Any, fault: str) -> None:
    document = put(whole(), path, value)
    with pytest.raises(NotesInvalid) as refused:
        normalise(document)
    assert any(fault in str(found) for found in refused.value.faults), [str(f) for f in refused.value.faults]


def test_details_nest_no_deeper_than_a_reader_follows() -> None:
    document = whole()
    inner = {"type": "paragraph", "text": said("deep", "深")}
    for _ in range(shapes.DEEPEST):
        inner = {"type": "details", "summary": said("more", "更多"), "blocks": [inner]}
    document["sections"][0]["blocks"] = [inner]
    assert any("levels" in fault.expected for fault in faults_of(document))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_leaf_replaced_by_a_number_is_refused_there(data: st.DataObject) -> None:
    """No place of the document takes a number but a priority: a document cannot carry one past the bindings."""
    document = normalise(whole())
    places = [path for path, kind, _ in leaves(document) if kind != "rank"]
    path = data.draw(st.sampled_from(places))
    changed = put(copy.deepcopy(document), path, data.draw(st.sampled_from([92, 0.5, 0])))
    assert any(fault.path == path or fault.path.startswith(f"{path}.") for fault in faults_of(changed))


def test_texts_carry_their_place_and_language() -> None:
    found = list(texts_of(normalise(whole())))
    assert ("title.zh", "zh", "编辑的信用") in found
    assert ("sections.2.blocks.0.rows.0.0.text.en", "en", "Does it tell?") in found


@pytest.mark.parametrize(
    "text, parts",
    [
        ("A. B [[a.b]] c. D", ["A. ", "B [[a.b]] c. ", "D"]),
        ("Ends.[@R1] [@R2] Next", ["Ends.[@R1] [@R2] ", "Next"]),
        ("甲。[@R1]乙！丙", ["甲。[@R1]", "乙！", "丙"]),
        ("See {{name:v. A}} there", ["See {{name:v. A}} there"]),
        ("e.g. this", ["e.g. this"]),
        ("", []),
    ],
)
def test_sentences_are_cut_behind_their_citations(text: str, parts: list[str]) -> None:
    assert sentences(text) == parts


@given(st.text(alphabet="aA.。!？ [@R]{}name:", max_size=60))
def test_sentences_joined_are_the_text(text: str) -> None:
    assert "".join(sentences(text)) == text
