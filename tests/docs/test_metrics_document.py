"""docs/metrics.md has one row for each definition, word for word."""

from __future__ import annotations

import re

from tests.docs.metrics_rows import BLOCK, DOCUMENT, rendered, row
from workbench.contracts.metrics import METRIC_DEFINITIONS


def test_every_definition_has_its_row_and_no_other_row_exists() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    ids = re.findall(r"^\| `(l\d\.[\w]+/\d+)` \|", text, re.MULTILINE)
    assert ids == sorted(ids, key=list(METRIC_DEFINITIONS).index) and set(ids) == set(METRIC_DEFINITIONS)
    for item in METRIC_DEFINITIONS.values():
        assert row(item) in text.splitlines(), f"{item.id}: write the tables anew: python -m tests.docs.metrics_rows"
    assert [found[2] for found in BLOCK.finditer(text)] == ["L1", "L2", "L3", "L4", "L5", "L6"]
    assert rendered(text) == text


def test_a_bar_inside_a_cell_does_not_end_it() -> None:
    """``largest |ratio - 1|`` has two bars of its own: nine cells all the same."""
    line = row(METRIC_DEFINITIONS["l1.ratio_max_deviation/1"])
    assert len(re.split(r"(?<!\\)\|", line)) == 11 and "\\|ratio - 1\\|" in line
