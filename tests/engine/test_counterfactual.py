"""Edit blocks, eligibility, selection and the tree without a block, on trees worked by hand."""

from __future__ import annotations

import inspect

from hypothesis import given
from hypothesis import strategies as st

from worker.engine import counterfactual
from worker.engine.counterfactual import (
    FORMAT_ERROR,
    NO_ELIGIBLE_BLOCK,
    edit_blocks,
    eligible_blocks,
    plan_intervention,
    select_block,
    without_block,
)


def is_test(path: str) -> bool:
    return path.startswith("tests/")


# Decision 0 reads; 1 edits a; 2 edits b and makes c; 3 edits a again; 4 edits a test; 5 submits.
TREES = [
    {"a": "a0", "b": "b0", "tests/t": "t0"},
    {"a": "a0", "b": "b0", "tests/t": "t0"},
    {"a": "a1", "b": "b0", "tests/t": "t0"},
    {"a": "a1", "b": "b1", "c": "c1", "tests/t": "t0"},
    {"a": "a2", "b": "b1", "c": "c1", "tests/t": "t0"},
    {"a": "a2", "b": "b1", "c": "c1", "tests/t": "t1"},
    {"a": "a2", "b": "b1", "c": "c1", "tests/t": "t1"},
]


def test_blocks_are_the_changes_of_one_turn() -> None:
    assert [(block.decision, block.paths) for block in edit_blocks(TREES)] == [
        (1, ("a",)), (2, ("b", "c")), (3, ("a",)), (4, ("tests/t",)),
    ]  # fmt: skip


def test_only_last_touches_of_files_that_are_no_tests_may_be_removed() -> None:
    """Decision 1 was overwritten by 3; decision 4 touches a test alone."""
    assert [block.decision for block in eligible_blocks(TREES, is_test)] == [2, 3]


def test_a_partly_overwritten_block_is_not_eligible() -> None:
    """Decision 0 edits a and b, decision 1 edits b again: one path is enough."""
    trees = [{"a": "0", "b": "0"}, {"a": "1", "b": "1"}, {"a": "1", "b": "2"}]
    assert [block.decision for block in eligible_blocks(trees, is_test)] == [1]


def test_a_block_whose_content_before_is_lost_is_not_eligible() -> None:
    assert [item.decision for item in eligible_blocks(TREES, is_test, has_content=lambda sha: sha != "b0")] == [3]


def test_a_block_that_restores_what_the_final_tree_has_anyway_is_dropped() -> None:
    """a: 0 -> 1 -> 0. The second turn's removal gives a = 1: it changes the tree; a deletion of nothing does not."""
    trees = [{"a": "0"}, {"a": "1"}, {"a": "0"}]
    (block,) = eligible_blocks(trees, is_test)
    assert block.decision == 1 and without_block(trees[-1], block) == {"a": "1"}


def test_removal_restores_deletes_and_brings_back() -> None:
    """Without decision 2: b is as it was, c is gone. A deleted file comes back."""
    made = eligible_blocks(TREES, is_test)[0]
    assert without_block(TREES[-1], made) == {"a": "a2", "b": "b0", "tests/t": "t1"}
    trees = [{"a": "0", "b": "0"}, {"b": "0"}]
    (deleted,) = eligible_blocks(trees, is_test)
    assert without_block(trees[-1], deleted) == {"a": "0", "b": "0"}


def test_the_choice_follows_the_seed_and_reaches_every_block() -> None:
    blocks = eligible_blocks(TREES, is_test)
    assert select_block(blocks, "t", "17") == select_block(blocks[::-1], "t", "17")
    drawn = {select_block(blocks, f"t{number}", "17").decision for number in range(40)}  # type: ignore[union-attr]
    assert drawn == {2, 3} and select_block([], "t", "17") is None


def test_no_function_can_see_a_verdict() -> None:
    """Names of every parameter of the module: snapshots, seeds and paths."""
    named = set()
    for _, function in inspect.getmembers(counterfactual, inspect.isfunction):
        if function.__module__ == counterfactual.__name__:
            named |= set(inspect.signature(function).parameters)
    assert named == {
        "trees", "final", "block", "is_test_path", "has_content", "blocks", "own_seed", "seed",
        "has_format_error",
    }  # fmt: skip


def plan(trees: list[dict[str, str]], *, has_format_error: bool = False) -> counterfactual.Intervention:
    return plan_intervention(trees, own_seed="5", seed="17", has_format_error=has_format_error, is_test_path=is_test)


def test_reasons_why_there_is_no_intervention() -> None:
    assert plan(TREES, has_format_error=True).unavailable == FORMAT_ERROR
    assert plan(TREES[:2]).unavailable == NO_ELIGIBLE_BLOCK
    assert plan([TREES[4], TREES[5]]).unavailable == NO_ELIGIBLE_BLOCK  # a test alone


def test_shares_and_empty_patches() -> None:
    """One edit in all: without it the patch is empty. Of TREES four paths differ in the end; block 3 touches one,
    block 2 two of them."""
    alone = plan([{"a": "0"}, {"a": "1"}])
    assert alone.is_empty_patch and alone.touched_share == 1.0
    several = plan(TREES)
    assert several.block is not None and several.final_paths == 4 and not several.is_empty_patch
    assert several.touched_share == {2: 0.5, 3: 0.25}[several.block.decision]


def test_a_patch_is_empty_only_where_the_first_tree_is_back() -> None:
    """a: 0 -> 1 -> 2. The last edit touches every path of the patch, but without it a is 1 and not 0.

    With a third turn that makes c, taking a back leaves c; a turn that writes both at once leaves nothing.
    """
    again = plan([{"a": "0"}, {"a": "1"}, {"a": "2"}])
    assert again.tree == {"a": "1"} and again.touched_share == 1.0 and not again.is_empty_patch
    both = plan([{"a": "0"}, {"a": "1", "c": "1"}])
    assert both.tree == {"a": "0"} and both.touched_share == 1.0 and both.is_empty_patch
    damage = plan([{"a": "0"}, {"a": "1"}, {"a": "0"}])
    assert damage.tree == {"a": "1"} and not damage.is_empty_patch
    assert not plan(TREES[:2]).is_empty_patch and not plan(TREES, has_format_error=True).is_empty_patch


def test_a_block_that_repairs_earlier_damage_touches_nothing_of_the_final_patch() -> None:
    """Turn 0 breaks a, turn 1 restores it and nothing else: the patch is empty, the block is eligible all the same."""
    found = plan([{"a": "0"}, {"a": "1"}, {"a": "0"}])
    assert found.block is not None and found.final_paths == 0 and found.touched_share is None


PATHS, HASHES = st.sampled_from(["a", "b", "c", "tests/t"]), st.sampled_from(["0", "1", "2"])


@given(st.lists(st.dictionaries(PATHS, HASHES), min_size=1, max_size=6))
def test_removal_touches_the_blocks_paths_and_no_other(trees: list[dict[str, str]]) -> None:
    for block in eligible_blocks(trees, is_test):
        tree = without_block(trees[-1], block)
        before = trees[block.decision]
        for path in {*tree, *trees[-1], *before}:
            expected = before.get(path) if path in block.paths else trees[-1].get(path)
            assert tree.get(path) == expected
        assert tree != trees[-1]
