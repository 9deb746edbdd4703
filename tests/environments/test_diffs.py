"""Unified diffs: against the standard library's own, by hand, and refused where they do not fit."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.environments.code_repair.diffs import DiffRefused, apply_diff

TEXT = st.lists(st.sampled_from(["a", "b", "", "  c", "--- d", "+++ e", "@@ f"]), max_size=12).map(
    lambda lines: "".join(f"{line}\n" for line in lines)
)


@given(TEXT, TEXT)
def test_a_diff_of_two_texts_leads_from_one_to_the_other(old: str, new: str) -> None:
    lines = list(difflib.unified_diff(old.splitlines(True), new.splitlines(True), "a/f.py", "b/f.py"))
    if lines:
        assert apply_diff({"f.py": old}, "".join(lines)) == {"f.py": new}


def test_new_and_removed_files_and_no_newline_at_the_end() -> None:
    diff = (
        "diff --git a/n.py b/n.py\nnew file mode 100644\n--- /dev/null\n+++ b/n.py\n@@ -0,0 +1,2 @@\n+x\n+y\n"
        "--- a/o.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n"
        "--- a/p.py\t2026-01-01\n+++ b/p.py\n@@ -1 +1 @@\n-old\n+new\n\\ No newline at end of file\n"
    )
    assert apply_diff({"o.py": "gone\n", "p.py": "old\n"}, diff) == {"n.py": "x\ny\n", "o.py": None, "p.py": "new"}


@pytest.mark.parametrize(
    ("diff", "message"),
    [
        ("", "got no file"),
        ("--- a/f.py\nxx\n", "got --- without"),
        ("--- a/f.py\n+++ b/g.py\n@@ -1 +1 @@\n-a\n+b\n", "got a renaming"),
        ("--- /dev/null\n+++ b/f.py\n@@ -0,0 +1 @@\n+b\n", "got a new file"),
        ("--- a/h.py\n+++ b/h.py\n@@ -1 +1 @@\n-a\n+b\n", "got a changed file"),
        ("--- a/f.py\n+++ b/f.py\n@@ -1 +1 @@\n-x\n+b\n", "line 1: got 'a', expected 'x'"),
        ("--- a/f.py\n+++ b/f.py\n@@ -2 +2 @@\n-x\n+b\n", "got 'the end'"),
        ("--- a/f.py\n+++ b/f.py\n@@ -1,2 +1 @@\n-a\n", "ends early"),
        ("--- a/f.py\n+++ b/f.py\n@@ -1 +1 @@\n?a\n", "expected a line of a hunk"),
        ("--- a/f.py\n+++ /dev/null\n@@ -0,0 +1 @@\n+b\n", "leaves text"),
    ],
)
def test_what_does_not_fit_is_named(diff: str, message: str) -> None:
    with pytest.raises(DiffRefused, match=message):
        apply_diff({"f.py": "a\n"}, diff)
