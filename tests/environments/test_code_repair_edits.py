"""Edits of a tree: one line, a whole file, several at once; all or nothing; and no tree that cannot be laid down."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from worker.environments.code_repair.edits import MOST_CHARACTERS, EditRefused, edited, lines_of
from worker.sandbox.workspace import read_tree, workspace

FILES = {
    "a.py": "def a(x):  # x\n    return x + 1\n",
    "b/c.py": "def c(x):\n    y = 1\n    y = 1\n    return y\n",
}


@pytest.mark.parametrize(
    ("arguments", "path", "expected"),
    [
        ({"path": "a.py", "line": 2, "text": "return x"}, "a.py", "def a(x):  # x\n    return x\n"),
        ({"path": "a.py", "line": "return x + 1", "text": "return x"}, "a.py", "def a(x):  # x\n    return x\n"),
        ({"path": "a.py", "line": 2, "text": "  return x"}, "a.py", "def a(x):  # x\n  return x\n"),
        ({"path": "a.py", "line": 2, "text": "y = x\nreturn y"}, "a.py", "def a(x):  # x\n    y = x\n    return y\n"),
        ({"path": "a.py", "line": 1, "text": ""}, "a.py", "    return x + 1\n"),
        ({"path": "a.py", "text": "z = 1"}, "a.py", "z = 1"),
        ({"path": "a.py", "text": ""}, "a.py", ""),
        ({"path": "d/e/f.py", "text": "z = 1\n"}, "d/e/f.py", "z = 1\n"),
    ],
)
def test_one_edit_by_hand(arguments: dict[str, Any], path: str, expected: str) -> None:
    found = edited(FILES, arguments)
    assert found[path] == expected
    assert {name: text for name, text in found.items() if name != path} == {
        name: text for name, text in FILES.items() if name != path
    }


def test_several_edits_act_in_order_on_several_files() -> None:
    """The second edit of a.py counts lines as the first one left them."""
    found = edited(
        FILES,
        {
            "edits": [
                {"path": "a.py", "line": 1, "text": "import os\ndef a(x):"},
                {"path": "a.py", "line": 3, "text": "return 0"},
                {"path": "b/c.py", "text": "C = 1\n"},
                {"path": "n.py", "text": "N = 1\n"},
            ]
        },
    )
    assert found == {"a.py": "import os\ndef a(x):\n    return 0\n", "b/c.py": "C = 1\n", "n.py": "N = 1\n"}
    assert list(found) == sorted(found)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({}, "no path text"),
        ({"path": "a.py"}, "no text"),
        ({"path": "a.py", "line": 3, "text": ""}, "a.py has 2 lines"),
        ({"path": "a.py", "line": 0, "text": ""}, "a.py has 2 lines"),
        ({"path": "b/c.py", "line": "y = 1", "text": ""}, "b/c.py has 2 such lines"),
        ({"path": "a.py", "line": "return", "text": ""}, "a.py has 0 such lines"),
        ({"path": "x.py", "line": 1, "text": ""}, "no file x.py"),
        ({"path": "../x.py", "text": ""}, "no path inside"),
        ({"path": "/x.py", "text": ""}, "no path inside"),
        ({"path": "a/./x.py", "text": ""}, "no path inside"),
        ({"path": "x\ud800.py", "text": ""}, "UTF-8"),
        ({"path": "x.py", "text": "\ud800"}, "UTF-8"),
        ({"path": "a.py/x.py", "text": ""}, "a file cannot be a folder"),
        ({"path": "b", "text": ""}, "a file cannot be a folder"),
        ({"path": "x" * 101, "text": ""}, "a name over 100 bytes"),
        ({"path": "x.py", "text": "x" * (MOST_CHARACTERS + 1)}, "over 100000 characters"),
        ({"edits": [], "path": "a.py"}, "edits beside path"),
        ({"edits": [{"path": "n.py", "text": ""}, {"path": "a.py", "line": 9, "text": ""}]}, "a.py has 2 lines"),
    ],
)
def test_what_cannot_be_done_is_refused_whole(arguments: dict[str, Any], why: str) -> None:
    before = dict(FILES)
    with pytest.raises(EditRefused, match=why):
        edited(FILES, arguments)
    assert before == FILES


def test_lines_end_with_a_line_feed_alone() -> None:
    """A form feed or a carriage return inside a line stays where it is when another line is replaced."""
    assert lines_of("a\x0cb\r\nc") == ["a\x0cb\r", "c"] and lines_of("") == [] and lines_of("\n") == [""]
    found = edited({"a.py": "a\x0cb\r\nc\n"}, {"path": "a.py", "line": 2, "text": "d"})
    assert found["a.py"] == "a\x0cb\r\nd\n"


NAMES = st.sampled_from(["a.py", "a", "b", "..", ".", "", "b.py", "é" * 60, "con", "\x00", "x y"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
EDITS = st.fixed_dictionaries(
    {"path": PATHS, "text": st.text(max_size=8)},
    optional={"line": st.one_of(st.integers(0, 4), st.sampled_from(["return x + 1", "x"]))},
)


@settings(max_examples=200, deadline=None)
@given(st.lists(EDITS, min_size=1, max_size=4))
def test_a_tree_that_was_accepted_can_always_be_laid_down(edits: list[dict[str, Any]]) -> None:
    """No call of a policy leads to a tree that breaks a trial: then its failure would be the policy's doing."""
    try:
        found = edited(FILES, {"edits": edits})
    except EditRefused:
        return
    data = {path: text.encode() for path, text in found.items()}
    with workspace(data) as folder:
        assert read_tree(folder) == data
