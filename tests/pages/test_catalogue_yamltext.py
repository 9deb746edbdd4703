"""Changing one field of a plan's text: everything else stays, and the text says exactly the document."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs.actions.plans import parse_plan_text
from runs.presenters.catalogue.yamltext import dotted_of, dump_plan, lines_of, path_of, remove_item, rewrite, tree

TEXT = """\
# a comment
a: 1  # one
b:
  c: x
  # inner
  d: [1, 2]  # list
  e: {f: 1, g: two}
arms:
  - key: A   # first
    title: {en: Hi}
  - key: B
    title:
      en: >-
        long
        text
# tail
z: null
"""
COMMENTS = ("# a comment", "# one", "# inner", "# list", "# first", "# tail")


def _changed(**members: Any) -> dict[str, Any]:
    return {**parse_plan_text(TEXT), **members}


@pytest.mark.parametrize(
    ("document", "line"),
    [
        (_changed(a=2), "a: 2  # one"),
        (_changed(z={"y": 1}), "z: {y: 1}"),
        (_changed(z="1e-06"), "z: '1e-06'"),  # text, where the plan's reader would see a number
        (_changed(new=[1]), "new: [1]"),
        (_changed(b={"c": "y: z", "d": [1, 2], "e": {"f": 1, "g": "two"}}), "  c: 'y: z'"),
        (_changed(b={"c": "x", "d": [1, 2], "e": {"f": 1}}), "  e: {f: 1}"),
        (_changed(b={"c": "x", "d": [1, 2], "e": {"f": 1, "g": "two"}, "h": {"i": 3}}), "    i: 3"),
        (_changed(arms=[{"key": "A", "title": {"en": "Hi", "zh": "嗨"}},
                        {"key": "B", "title": {"en": "s"}}]), "      en: s"),
    ],
)  # fmt: skip
def test_one_field_is_changed_in_its_place(document: dict[str, Any], line: str) -> None:
    text, kept = rewrite(TEXT, document)
    assert kept and parse_plan_text(text) == document
    assert line in text.splitlines()
    assert all(comment in text for comment in COMMENTS)


def test_an_item_is_added_and_removed_by_itself() -> None:
    document = parse_plan_text(TEXT)
    longer = copy.deepcopy(document)
    longer["arms"].append({"key": "C", "title": {"en": "x"}})
    text, kept = rewrite(TEXT, longer)
    assert kept and parse_plan_text(text) == longer and "  - key: C" in text.splitlines()
    shorter = remove_item(text, ("arms", 0))
    assert parse_plan_text(shorter)["arms"] == longer["arms"][1:]
    assert "# inner" in shorter and "# tail" in shorter and "# first" not in shorter


def test_a_json_text_stays_json() -> None:
    document = parse_plan_text(TEXT)
    text, kept = rewrite(json.dumps(document, indent=1), {**document, "new": {"k": "v"}})
    assert kept and json.loads(text) == {**document, "new": {"k": "v"}}


def test_what_cannot_be_changed_in_place_is_written_anew_and_said() -> None:
    """The last key of a block cannot go without changing what the block is."""
    text, kept = rewrite("# c\na:\n  b: 1\n", {"a": {}})
    assert not kept and parse_plan_text(text) == {"a": {}}


def test_lines_of_the_deepest_part_that_stands() -> None:
    root = tree(TEXT)
    assert lines_of(root, path_of("b.e.f")) == 7
    assert lines_of(root, path_of("arms[1].title.en")) == 13
    assert lines_of(root, path_of("arms[1].gate.rule")) == 11  # the arm: it has no gate
    assert lines_of(root, path_of("nothing")) == 1
    assert tree("a: [") is None


def test_paths_there_and_back() -> None:
    for dotted in ("a", "a.b", "arms[0].gate.rule", "evaluation.splits[12].tasks"):
        assert dotted_of(path_of(dotted)) == dotted


_scalars = st.one_of(
    st.integers(-(10**9), 10**9), st.booleans(), st.none(),
    st.sampled_from(["", "x", "yes", "1", "1e-06", "a: b", "# c", "中"]),
)  # fmt: skip
_values = st.recursive(
    _scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abcd"), inner, max_size=3)),
    max_leaves=8,
)
_documents = st.dictionaries(st.sampled_from("pqrs"), _values, min_size=1, max_size=4)


@settings(max_examples=120, deadline=None)
@given(_documents, _documents)
def test_any_document_becomes_any_other(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Whatever the shapes: the new text says exactly the new document."""
    text, _kept = rewrite(dump_plan(before), after)
    assert parse_plan_text(text) == after
