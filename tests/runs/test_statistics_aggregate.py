"""The aggregate: denominators, cells, gaps, comparisons and the paired task table, worked by hand."""

from __future__ import annotations

import math
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs.statistics.aggregate import aggregate_sha256, build_aggregate, task_table
from runs.statistics.items import INFRASTRUCTURE_INVALID, MISSING, VALID, ItemFacts
from workbench.contracts.canonical import canonical_bytes
from workbench.contracts.errors import RecordError
from workbench.contracts.records import OutcomeFacts

PLAN = "ab" * 32
ROOT = Path(__file__).resolve().parents[2]
FACTS = OutcomeFacts(
    finished=True,
    parser_valid=True,
    premature_finish=False,
    tool_depth=2,
    repeat_calls=0,
    productive_calls=2,
    failures_seen=0,
    exposed=False,
    recovered=None,
    fatal_start=None,
    fatal_confirmed=None,
    continued_after_fatal=None,
    unmatched_final_action=False,
)
FATAL = replace(
    FACTS,
    finished=False,
    premature_finish=None,
    failures_seen=3,
    exposed=True,
    recovered=False,
    fatal_start=1,
    fatal_confirmed=3,
    continued_after_fatal=True,
)


def item(task: str, repeat: int = 0, reward: float | None = 1.0, *, arm: str | None = None, **given: Any) -> ItemFacts:
    """A valid item that finished; success = reward of at least 1 unless given."""
    seed = given.pop("seed", None if arm is None else "1")
    values: dict[str, Any] = {
        "checkpoint_uid": f"{arm or 'parent'}-{seed}",
        "checkpoint_sha256": "cd" * 32,
        "arm": arm,
        "run_seed": seed,
        "condition": "standard",
        "split": "test",
        "task_key": task,
        "family": "one",
        "repeat": repeat,
        "status": VALID,
        "reward": reward,
        "success": None if reward is None else reward >= 1,
        "facts": FACTS,
        "terminal": "finish",
    }
    values.update(given)
    values.setdefault("task_uid", f"uid-{values['split']}-{task}")
    return ItemFacts(**values)


def lost(one: ItemFacts, status: str = INFRASTRUCTURE_INVALID) -> ItemFacts:
    return replace(one, status=status, reward=None, success=None, facts=None, terminal=None)


def build(items: Sequence[ItemFacts], **given: Any) -> dict[str, Any]:
    arguments: dict[str, Any] = {"plan_sha256": PLAN, "endpoints": [], "strict_pairs": [], "resamples": 200}
    return build_aggregate(items=items, **{**arguments, **given})


def only_cell(items: Sequence[ItemFacts]) -> dict[str, Any]:
    (cell,) = build(items)["cells"]
    return cell


def fraction(rate: dict[str, Any]) -> tuple[Any, Any, Any]:
    return rate["numerator"], rate["denominator"], rate["value"]


def pair_items(by_seed: dict[str, tuple[list[float], list[float]]]) -> list[ItemFacts]:
    """Rewards per task of the arms ``v`` and ``f``, one repeat."""
    return [
        item(f"t{task}", reward=value, arm=arm, seed=seed)
        for seed, sides in by_seed.items()
        for arm, rewards in zip("vf", sides, strict=True)
        for task, value in enumerate(rewards)
    ]


def comparison(aggregate: dict[str, Any], kind: str, metric: str) -> dict[str, Any]:
    (found,) = [row for row in aggregate["comparisons"][kind] if row["metric"] == metric]
    return found


def test_pass_at_k_is_formed_per_task_before_the_mean() -> None:
    """Half the tasks always right, half always wrong, 3 repeats: 50 % at every k."""
    cell = only_cell([item(f"t{t}", r, float(t % 2)) for t in range(4) for r in range(3)])
    block = cell["without_infrastructure"]
    assert block["k"] == [1, 2, 3]
    assert fraction(block["success"]) == (6, 12, 0.5)
    assert fraction(block["pass_at_k"]["3"]) == (2.0, 4, 0.5)
    assert fraction(block["pass_hat_k"]["3"]) == (2.0, 4, 0.5)


def test_raw_and_without_infrastructure() -> None:
    """4 requested, 1 broken, 2 of 3 valid right: raw 2/4, without infrastructure 2/3; the raw reward does not exist."""
    items = [item("a", 0), item("a", 1), item("b", 0, 0.25), lost(item("b", 1))]
    cell = only_cell(items)
    assert fraction(cell["raw"]["success"]) == (2, 4, 0.5)
    assert cell["raw"]["success"]["note"] == "1 infrastructure-invalid in the denominator, never in the numerator"
    assert fraction(cell["without_infrastructure"]["success"]) == (2, 3, 2 / 3)
    assert fraction(cell["items"]["infrastructure_invalid"]) == (1, 4, 0.25)
    assert cell["items"]["complete"] is True
    assert cell["raw"]["reward"]["value"] is None
    assert cell["raw"]["reward"]["note"].startswith("1 of 4 requested items have no reward")
    # per task 1 and 0.25 (one repeat left): 0.625; over episodes (1 + 1 + 0.25) / 3 = 0.75
    assert fraction(cell["means"]["reward"]["task_mean"]) == (1.25, 2, 0.625)
    assert fraction(cell["means"]["reward"]["micro_episodes"]) == (2.25, 3, 0.75)
    # pass@2 raw: task a 1, task b 0 (two requested repeats); without infrastructure only a has two
    assert fraction(cell["raw"]["pass_at_k"]["2"]) == (1.0, 2, 0.5)
    assert fraction(cell["without_infrastructure"]["pass_at_k"]["2"]) == (1.0, 1, 1.0)
    assert fraction(build(items[:2])["cells"][0]["raw"]["reward"]) == (2.0, 2, 1.0)


def test_missing_items_keep_the_requested_denominator() -> None:
    """The parent has 4 items, the arm 3: the arm still answers for 4, accounted 3/4."""
    parent = [item(t, r) for t in "ab" for r in (0, 1)]
    arm = [item(t, r, arm="v") for t, r in (("a", 0), ("a", 1), ("b", 0))]
    cells = {cell["arm"]: cell for cell in build(parent + arm)["cells"]}
    counts = cells["v"]["items"]
    assert (counts["requested"], counts["missing"], counts["complete"]) == (4, 1, False)
    assert fraction(counts["accounted"]) == (3, 4, 0.75)
    assert fraction(cells["v"]["raw"]["finish"]) == (3, 4, 0.75)
    assert cells["v"]["raw"]["finish"]["note"] == "1 missing in the denominator, not accounted for"
    assert fraction(cells["v"]["without_infrastructure"]["finish"]) == (3, 3, 1.0)
    assert cells[None]["items"]["complete"] is True
    explicit = build([*parent, *arm, lost(item("b", 1, arm="v"), MISSING)])
    assert canonical_bytes(explicit) == canonical_bytes(build(parent + arm))


def test_conditional_rates_name_their_condition_and_zero_exposure() -> None:
    """4 items: 3 finished, 1 of them premature; 1 Fatal that went on; exposed 2, recovered 1."""
    premature = replace(FACTS, premature_finish=True, repeat_calls=3, tool_depth=4)
    recovered = replace(FACTS, failures_seen=1, exposed=True, recovered=True, repeat_calls=1)
    items = [
        item("a"),
        item("b", facts=premature),
        item("c", facts=recovered),
        item("d", reward=0.0, facts=FATAL, terminal="budget_exhausted"),
    ]
    cell = only_cell(items)
    assert fraction(cell["conditional"]["premature_finish_of_finished"]) == (1, 3, 1 / 3)
    assert fraction(cell["conditional"]["continued_of_fatal"]) == (1, 1, 1.0)
    assert fraction(cell["conditional"]["recovery_of_exposed"]) == (1, 2, 0.5)
    rates = cell["without_infrastructure"]
    assert fraction(rates["recovery_all"]) == (1, 4, 0.25)
    assert fraction(rates["fatal"]) == (1, 4, 0.25)
    assert fraction(rates["budget_exhausted"]) == (1, 4, 0.25)
    assert fraction(rates["policy_failure"]) == (0, 4, 0.0)
    assert fraction(rates["repeat_any"]) == (2, 4, 0.5)
    assert (cell["repeat_calls_total"], cell["failures_seen_total"]) == (4, 4)
    assert fraction(cell["means"]["tool_depth"]["task_mean"]) == (10.0, 4, 2.5)
    calm = only_cell([item("a")])["conditional"]["recovery_of_exposed"]
    assert calm == {"numerator": 0, "denominator": 0, "value": None, "note": "no exposure"}


def test_policy_failure_counts_parser_and_illegal_actions() -> None:
    """A policy error with legal parse (illegal argument), one without, an illegal parse at the budget: 3 of 4."""
    items = [
        item("a"),
        item("b", reward=0.0, terminal="policy_error", facts=replace(FACTS, finished=False, premature_finish=None)),
        item("c", reward=0.0, terminal="policy_error", facts=replace(FATAL, parser_valid=False)),
        item("d", reward=0.0, terminal="budget_exhausted", facts=replace(FATAL, parser_valid=False)),
    ]
    assert fraction(only_cell(items)["without_infrastructure"]["policy_failure"]) == (3, 4, 0.75)


def test_macro_over_families_stands_beside_micro() -> None:
    """Family one: 3 tasks at 1; family two: 1 task at 0. Micro 3/4, macro (1 + 0) / 2."""
    items = [item(t) for t in "abc"] + [item("d", reward=0.0, family="two")]
    means = only_cell(items)["means"]["success"]
    assert fraction(means["micro_episodes"]) == (3.0, 4, 0.75)
    assert fraction(means["macro_families"]) == (1.0, 2, 0.5)


def test_different_verifiers_are_not_averaged() -> None:
    items = [item("a", verifier="x/1"), item("b", reward=0.0, family="two", verifier="y/1")]
    cell = only_cell(items)
    for rate in (cell["raw"]["success"], cell["means"]["reward"]["macro_families"], cell["raw"]["reward"]):
        assert rate["value"] is None
        assert rate["note"] == "judged by different verifiers: not averaged"
    assert cell["raw"]["pass_at_k"] == {}
    assert [row["success"]["value"] for row in cell["families"]] == [1.0, 0.0]
    assert fraction(cell["raw"]["finish"]) == (2, 2, 1.0)


def test_unmeasured_success_is_not_a_failure() -> None:
    cell = only_cell([item("a"), item("b", reward=None)])
    assert fraction(cell["without_infrastructure"]["success"]) == (1, 1, 1.0)
    assert fraction(cell["raw"]["success"]) == (1, 1, 1.0)
    assert cell["raw"]["success"]["note"] == "1 not measured, left out of the denominator"


def test_splits_stay_apart_and_their_union_is_named() -> None:
    items = [item("a"), item("a", reward=0.0, split="out_of_distribution")]
    aggregate = build(items)
    assert [cell["splits"] for cell in aggregate["cells"]] == [["out_of_distribution"], ["test"]]
    (over,) = aggregate["over_splits"]
    assert over["splits"] == ["out_of_distribution", "test"]
    assert (over["tasks"], fraction(over["raw"]["success"])) == (2, (1, 2, 0.5))
    assert build(items[:1])["over_splits"] == []


def test_gap_is_inside_minus_outside() -> None:
    """Test tasks 1, 1, 0, 1 (0.75), out-of-distribution 0, 1 (0.5): gap 0.25."""
    inside = [item(f"i{n}", reward=value) for n, value in enumerate((1.0, 1.0, 0.0, 1.0))]
    outside = [item(f"o{n}", reward=value, split="out_of_distribution") for n, value in enumerate((0.0, 1.0))]
    (gap,) = build(inside + outside)["gaps"]
    reward = gap["metrics"]["reward"]
    assert (reward["inside"]["value"], reward["outside"]["value"], reward["gap"]) == (0.75, 0.5, 0.25)
    assert reward["interval"]["low"] < 0.25 < reward["interval"]["high"]
    assert (gap["inside_split"], gap["complete"]) == ("test", True)
    assert build(inside)["gaps"] == []
    broken = build(inside + [lost(one) for one in outside])["gaps"][0]["metrics"]["reward"]
    assert (broken["gap"], broken["note"]) == (None, "no exposure")


rewards = st.lists(st.floats(0, 1), min_size=1, max_size=5)


@given(rewards, st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_order_of_items_does_not_change_the_bytes(values: list[float], shuffler: random.Random) -> None:
    items = [item(f"t{n}", r, value) for n, value in enumerate(values) for r in (0, 1)]
    items += [item(f"t{n}", 0, 1 - value, arm="v") for n, value in enumerate(values)]
    expected = canonical_bytes(build(items, resamples=20))
    shuffler.shuffle(items)
    assert canonical_bytes(build(items, resamples=20)) == expected


def test_same_bytes_in_another_process_and_the_plan_sets_the_seed() -> None:
    code = (
        "from tests.runs.test_statistics_aggregate import *\n"
        "print(aggregate_sha256(build([item(f't{n}', 0, n / 7) for n in range(8)])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60, cwd=ROOT
    )
    items = [item(f"t{n}", 0, n / 7) for n in range(8)]
    assert done.stdout.strip() == aggregate_sha256(build(items))
    other = build(items, plan_sha256="ef" * 32)
    assert other["bootstrap"]["seed"] != build(items)["bootstrap"]["seed"]


def walk(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        return [value, *(one for part in value.values() for one in walk(part))]
    return [one for part in value for one in walk(part)] if isinstance(value, list) else []


def test_every_rate_has_all_four_fields() -> None:
    items = [item("a"), item("b", facts=FATAL, terminal="budget_exhausted"), lost(item("c"))]
    items += [item(t, arm="v") for t in "abc"]
    rates = [one for one in walk(build(items)) if "denominator" in one]
    assert len(rates) > 100
    for rate in rates:
        assert set(rate) == {"numerator", "denominator", "value", "note"}
        if rate["denominator"] == 0:
            assert rate["value"] is None
            assert rate["note"].startswith("no exposure")


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([item("a"), item("a")], "got the item twice, expected it once"),
        ([item("a"), item("a", 1, task_uid="other")], r"task test a: got \('other', 'one'\)"),
        ([item("a"), item("a", 1, checkpoint_sha256="ee" * 32)], "checkpoint parent-None: got"),
        ([item("a"), item("a", checkpoint_uid="second")], r"parent: got \('second',\), expected \('parent-None',\)"),
        ([replace(lost(item("a")), reward=0.0)], "reward: got 0.0, expected None for status infrastructure_invalid"),
        ([item("a", facts=None)], "facts: got None, expected outcome facts"),
        ([item("a", status="lost")], r"status: got 'lost', expected valid \| infrastructure_invalid \| missing"),
        ([item("a", reward=math.nan, success=True)], "reward: got nan, expected a finite number or None"),
        ([item("a", terminal=None)], "terminal: got None"),
        ([item("a", arm="v", seed=None)], "run_seed: got None, expected a seed with an arm"),
    ],
)
def test_contradicting_items_are_refused(items: list[ItemFacts], message: str) -> None:
    with pytest.raises(RecordError, match=message):
        build(items)


def test_no_item_at_all_is_an_empty_aggregate() -> None:
    aggregate = build([])
    assert (aggregate["cells"], aggregate["comparisons"]) == ([], {"parent": [], "strict_pairs": []})


def test_a_pair_is_compared_at_the_seeds_that_both_arms_are_planned_for() -> None:
    """v has seeds 1 and 2, f only 1. With the plan: one seed, complete. A planned run without checkpoint is absent."""
    both = pair_items({"1": ([0.0], [1.0]), "2": ([0.5], [0.25])})
    items = [one for one in both if (one.arm, one.run_seed) != ("f", "2")]

    def absent(**given: Any) -> Any:
        aggregate = build(items, strict_pairs=[["v", "f"]], **given)
        found = comparison(aggregate, "strict_pairs", "reward")
        assert [one["run_seed"] for one in found["per_seed"]] == ["1"]
        return found["absent_seeds"]

    assert absent(planned={"v": ["1", "2"], "f": ["1"]}) == []
    assert absent(planned={"v": ["1", "2"], "f": ["1", "2"]}) == [{"run_seed": "2", "reason": "arm_not_evaluated"}]
    assert absent() == [{"run_seed": "2", "reason": "arm_not_evaluated"}]


def test_task_table_pairs_values_and_flips() -> None:
    """Task a: parent 1, 0 and arm 1, 1: difference 0.5, flips both and gained. Task b: second repeat broken."""
    items = [item("a", 0), item("a", 1, 0.0), item("b", 0), item("b", 1)]
    items += [item("a", 0, arm="v"), item("a", 1, arm="v"), item("b", 0, 0.0, arm="v"), lost(item("b", 1, arm="v"))]
    first, second = task_table(items, None, "v", condition="standard", split="test", metric="success")
    assert (first["a"]["value"], first["b"]["value"], first["difference"]) == (0.5, 1.0, 0.5)
    assert [one["flip"] for one in first["repeats"]] == ["both", "gained"]
    assert [one["flip"] for one in second["repeats"]] == ["lost", None]
    assert second["repeats"][1] == {"repeat": 1, "a": 1.0, "b": None, "flip": None}
    assert fraction(second["pairs"]) == (1, 2, 0.5)
    assert task_table(items, None, "v", condition="stress", split="test") == []
    with pytest.raises(ValueError, match="metric: got 'charm'"):
        task_table(items, None, "v", condition="standard", split="test", metric="charm")


def test_task_table_of_two_arms_lists_each_seed() -> None:
    items = pair_items({"1": ([0.0], [1.0]), "2": ([0.5], [0.25])})
    rows = task_table(items, "v", "f", condition="standard", split="test")
    assert [(row["run_seed"], row["difference"]) for row in rows] == [("1", 1.0), ("2", -0.25)]
    assert rows[0]["repeats"][0]["flip"] is None
    assert [r["run_seed"] for r in task_table(items, "v", "f", condition="standard", split="test", run_seed="2")] == [
        "2"
    ]


def test_package_needs_neither_django_nor_torch() -> None:
    code = "import sys, runs.statistics.aggregate; print(sorted({'django', 'torch', 'celery'} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60, cwd=ROOT
    )
    assert done.stdout.strip() == "[]"
