"""The table of metric definitions: every field said, no direction invented, hostile rows refused."""

from __future__ import annotations

import pytest

from workbench.contracts.metrics import HIGHER, LOWER, METRIC_DEFINITIONS, NONE, _table, definition

ROW = "l1.x | share | batch | token | what | what not | {direction} | {limits} | a paper"


def test_every_definition_says_everything() -> None:
    for identity, item in METRIC_DEFINITIONS.items():
        assert identity == f"{item.name}/1" and item.layer in ("L1", "L2", "L3", "L4", "L5", "L6")
        said = (item.unit, item.scope, item.varies_over, item.measures, item.cannot_tell, item.source)
        assert all(text.strip() for text in said), identity
        assert item.direction in (NONE, HIGHER, LOWER)
        assert item.range is None or item.range[0] < item.range[1]
        if item.unit == "share":
            assert item.range in ((0.0, 1.0), (-1.0, 1.0), (0.0, float("inf"))), identity
    assert definition("l1.loss/1").layer == "L1"
    with pytest.raises(KeyError):
        definition("l1.luck/1")


def test_no_direction_is_declared_where_both_ways_can_be_good() -> None:
    """Falling entropy is skill or collapse, a long answer is thorough or padded: no page may rank by them."""
    for name in ("l2.entropy_sampled", "l2.response_length", "l1.grad_norm", "l1.loss", "l4.action_edit_distance"):
        assert definition(f"{name}/1").direction == NONE
    assert definition("l3.success_rate/1").direction == HIGHER
    assert definition("l1.engine_drift_mean/1").direction == LOWER


def test_a_row_is_read_with_its_closed_range() -> None:
    """``0..inf`` holds infinity itself: a value that is not finite is stored as such."""
    found = _table(ROW.format(direction="lower", limits="0..inf"))["l1.x/1"]
    assert (found.layer, found.direction, found.range) == ("L1", LOWER, (0.0, float("inf")))
    assert _table(ROW.format(direction="none", limits="none"))["l1.x/1"].range is None


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (ROW.format(direction="better", limits="0..1"), "l1.x.direction: got 'better'"),
        (ROW.format(direction="none", limits="1..0"), "range: got 1..0"),
        ("\n".join([ROW.format(direction="none", limits="0..1")] * 2), "l1.x: got it twice"),
        ("l1.x | share", "not enough values"),
    ],
)
def test_a_faulty_row_is_refused(rows: str, said: str) -> None:
    with pytest.raises(ValueError, match=said.replace(".", r"\.")):
        _table(rows)
