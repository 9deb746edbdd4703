"""Contracts of trials: U by hand, seeds, uids, snapshots there and back."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.contracts import layout
from workbench.contracts.canonical import canonical_bytes, parse_canonical, sha256_hex
from workbench.contracts.errors import RecordError
from workbench.contracts.seeds import derive_seed
from workbench.contracts.trials import (
    pack_snapshots,
    read_snapshots,
    selection_seed,
    tree_digest,
    trial_uid,
    utility_of_statuses,
)

P, F = "PASSED", "FAILED"


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"a": P, "b": P, "c": P}, Fraction(1)),
        ({"a": P, "b": F, "c": P}, Fraction(1, 2)),
        ({"a": P, "b": F, "c": F}, Fraction(-1, 2)),  # 1/2 - 1
        ({"a": F, "b": F, "c": F}, Fraction(-1)),
        ({"a": F, "b": F, "c": P}, Fraction(0)),
        ({"a": P, "b": P}, None),  # c was not observed: unknown, and no regression
    ],
)
def test_utility(status: dict[str, str], expected: Fraction | None) -> None:
    """U = passed of a, b over 2, minus 1 where c fails."""
    assert utility_of_statuses(status, ["a", "b"], ["c"]) == expected


def test_utility_needs_a_test_that_should_come_to_pass() -> None:
    with pytest.raises(RecordError, match="fail_to_pass: got none"):
        utility_of_statuses({"c": P}, [], ["c"])


def test_seeds_and_uids_follow_from_plan_run_and_trajectory() -> None:
    assert selection_seed("7", "1") == derive_seed("edit-block", "7", "1") != selection_seed("7", "2")
    parent = "00000000-0000-5000-8000-00000000000f"
    uids = {trial_uid(parent, kind, repeat) for kind in ("original", "intervention") for repeat in range(2)}
    assert len(uids) == 4


TREE = st.dictionaries(st.sampled_from(["a", "b", "c/d"]), st.binary(max_size=3), max_size=3)


@given(st.lists(TREE, min_size=1, max_size=5), st.lists(TREE, max_size=4))
def test_snapshots_there_and_back(first: list[dict[str, bytes]], second: list[dict[str, bytes]]) -> None:
    """Every tree of every trajectory comes back, and the content of every file that some decision touched."""
    runs = {"one": first, "two": [first[0], *second]}
    contents = {sha256_hex(data): data for trees in runs.values() for tree in trees for data in tree.values()}
    hashed = {uid: [{p: sha256_hex(d) for p, d in tree.items()} for tree in trees] for uid, trees in runs.items()}
    found = read_snapshots(pack_snapshots(hashed, contents))
    for uid, trees in hashed.items():
        assert found.trees(uid) == trees
        for old, new in itertools.pairwise(trees):
            touched = [p for p in {*old, *new} if old.get(p) != new.get(p)]
            named = [tree[p] for tree in (old, new) for p in touched if p in tree]
            assert all(found.contents[name] == contents[name] for name in named)


def test_a_tree_has_one_digest_whatever_the_order_of_its_paths() -> None:
    assert tree_digest({"a": "1", "b": "2"}) == tree_digest({"b": "2", "a": "1"}) != tree_digest({"a": "2", "b": "1"})


def test_broken_snapshots_are_refused() -> None:
    one = {"a": sha256_hex(b"1")}
    with pytest.raises(RecordError, match="other first trees"):
        pack_snapshots({"x": [one], "y": [{}]}, {})
    with pytest.raises(RecordError, match="no content of"):
        pack_snapshots({"x": [one, {}]}, {})
    good = pack_snapshots({"x": [one, {}]}, {one["a"]: b"1"})
    value = parse_canonical(good)
    with pytest.raises(RecordError, match="expected a trajectory whose trees are kept"):
        read_snapshots(good).trees("z")
    for broken in (
        b"[]",
        b"{",
        canonical_bytes({**value, "schema": "other"}),
        canonical_bytes({**value, "contents": {one["a"]: "MTI="}}),  # bytes of another hash
        canonical_bytes({**value, "contents": {one["a"]: "?"}}),
        canonical_bytes({"schema": value["schema"]}),
    ):
        with pytest.raises(RecordError, match="snapshots"):
            read_snapshots(broken)


def body(credit: str, section: dict[str, object] | None) -> dict[str, object]:
    arms = [{"key": "A", "config": {"objective": {"credit": credit}}}]
    return {"plan": {"trials": section}, "arms": arms}


SECTION = {"seed": "7", "replays": 2, "repeats": 1, "pilot": True, "every_arm": False}


@pytest.mark.parametrize(
    ("credit", "purpose", "expected"),
    [
        ("edit_localised", "train", {"mode": "execute", "replays": 0, "repeats": 0}),
        ("edit_broadcast", "train", {"mode": "execute", "replays": 0, "repeats": 0}),
        ("edit_terminal", "train", {"mode": "select", "replays": 0, "repeats": 0}),
        ("vanilla", "train", None),
        ("vanilla", "preflight", {"mode": "execute", "replays": 2, "repeats": 1}),
        ("edit_localised", "evaluate", None),
    ],
)
def test_what_a_plan_asks_for(credit: str, purpose: str, expected: dict[str, object] | None) -> None:
    arm = None if purpose == "preflight" else "A"
    assert layout.trial_settings(body(credit, SECTION), purpose, arm) == expected
    assert layout.trial_settings(body(credit, None), purpose, arm) is None


def test_without_a_pilot_no_preflight_group_is_tried_and_every_arm_means_every_arm() -> None:
    assert layout.trial_settings(body("vanilla", {**SECTION, "pilot": False}), "preflight", None) is None
    every = layout.trial_settings(body("vanilla", {**SECTION, "every_arm": True}), "train", "A")
    assert every == {"mode": "execute", "replays": 0, "repeats": 0}
    older = {"plan": {}, "arms": []}  # a body from before there were trials
    assert layout.trial_settings(older, "preflight", None) is None
