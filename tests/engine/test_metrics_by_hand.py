"""One small shard and one small update: every value of L1 to L4 that they have, worked by hand.

Letters as in ``test_outcomes``: s success, f failure, F Finish, p parse error, u unmatched final action; every turn
has two policy tokens. Rewards and successes:

    g1  t1 sF    1.00  success    complete, with signal
        t2 fsF   0.50
    g2  t3 fffu  0.00             complete, all wrong
        t4 p     0.00
    g3  t5 broken by infrastructure, t6 F (premature) 0.25       incomplete
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.engine.test_outcomes import slot, turns
from workbench.contracts.capture import SEGMENT_ACTION, SEGMENT_THINK
from workbench.contracts.metrics import METRIC_DEFINITIONS
from workbench.contracts.records import (
    ALL_WRONG,
    BUDGET_EXHAUSTED,
    FINISH,
    INFRASTRUCTURE_INVALID,
    POLICY_ERROR,
    SIGNAL,
    MetricRecord,
    RewardRecord,
    SegmentEntropy,
    StepRecord,
    TrajectoryCredit,
    TrajectoryRecord,
    UpdateMeasures,
)
from worker.engine.loss import clip_sides
from worker.engine.metrics import collection_metrics
from worker.engine.outcomes import outcome_facts
from worker.engine.records import Rollout, TurnMeasure
from worker.engine.steps import _add, _Sums
from worker.engine.update_metrics import update_metrics

Value = tuple[float | None, int | None]
TESTS = Path(__file__).resolve().parents[1]


def trajectory(
    uid: str, pattern: str, terminal: str, reward: float, success: bool = False, premature: bool = False, **facts: int
) -> TrajectoryRecord:
    found = turns(pattern)
    return slot(
        0, reward, uid=uid, turns=tuple(found), terminal=terminal, success=success,
        reward=RewardRecord("r", "1", 1.0, (), reward),
        facts=replace(outcome_facts(found, terminal, premature), **facts),
    )  # fmt: skip


def group(uid: str, items: Sequence[TrajectoryRecord], eligible: bool, signal: str | None) -> Any:
    return SimpleNamespace(
        uid=uid, trajectories=tuple(items), eligible=eligible, signal=signal, split="train",
        identities=SimpleNamespace(policy_version=0),
    )  # fmt: skip


BROKEN = slot(0, None, uid="t5", status=INFRASTRUCTURE_INVALID, facts=None, terminal=None, success=None, turns=())
GROUPS = [
    group("g1", [trajectory("t1", "sF", FINISH, 1.0, True), trajectory("t2", "fsF", FINISH, 0.5)], True, SIGNAL),
    group(
        "g2",
        [
            trajectory("t3", "fffu", BUDGET_EXHAUSTED, 0.0, repeat_calls=2, productive_calls=1),
            trajectory("t4", "p", POLICY_ERROR, 0.0),
        ],
        True, ALL_WRONG,
    ),
    group("g3", [BROKEN, trajectory("t6", "F", FINISH, 0.25, premature=True)], False, None),
]  # fmt: skip
LABELS = {"t1": "ab", "t2": "aab", "t3": "aaaa", "t4": "a", "t6": "a"}  # states before each decision
FIRST = {"t1": (1, 2), "t2": (1, 3)}  # ids of the first turn that are think; all other turns are action


def rollouts() -> dict[str, Rollout]:
    found = {}
    for item in (item for one in GROUPS for item in one.trajectories):
        rollout = Rollout(item.uid, 0, "1", item.status)
        rollout.turns = list(item.turns)
        for place, label in enumerate(LABELS.get(item.uid, "")):
            thinks = place == 0 and item.uid in FIRST
            ids = FIRST[item.uid] if thinks else (7, 8)
            kinds = (SEGMENT_THINK if thinks else SEGMENT_ACTION,) * 2
            rollout.measures.append(TurnMeasure(place, ids, (0.2, 0.4), kinds, label))
        found[item.uid] = rollout
    return found


def table(records: Sequence[MetricRecord], subject: str | None = None) -> dict[tuple[str, ...], Value]:
    return {
        (item.definition.removesuffix("/1"), *item.labels.values()): (item.value, item.count)
        for item in records
        if item.subject_uid == subject
    }


EXPECTED: dict[tuple[str, ...], Value] = {
    ("l2.infrastructure_invalid_share",): (1 / 6, 6),
    ("l2.entropy_sampled", "all"): (0.3, 22),
    ("l2.segment_length", "think"): (4 / 11, 11),  # two turns of two tokens, of eleven
    ("l2.segment_length", "action"): (18 / 11, 11),
    ("l2.distinct_2", "think"): (1.0, 2),  # one pair in each of two turns
    ("l2.format_compliance",): (10 / 11, 11),
    ("l2.tool_calls_mean",): (6 / 5, 5),  # 1, 2, 3, 0, 0
    ("l2.tool_calls_variance",): (14 / 5 - 1.44, 5),
    ("l2.finish_rate",): (3 / 5, 5),
    ("l2.policy_error_rate",): (1 / 5, 5),
    ("l2.share_at_budget",): (1 / 5, 5),
    ("l2.repeat_call_rate",): (2 / 6, 6),
    ("l2.productive_call_rate",): (4 / 6, 6),
    ("l2.premature_finish_rate",): (1 / 3, 3),
    ("l2.failure_exposure",): (2 / 5, 5),
    ("l2.recovery_by_exposure",): (1 / 2, 2),  # t2 recovers, t3 does not
    ("l2.recovery_all",): (1 / 5, 5),
    ("l2.fatal_rate",): (1 / 5, 5),
    ("l2.continued_after_fatal",): (1.0, 1),
    ("l2.response_length",): (22 / 5, 5),  # 4, 6, 8, 2, 2
    ("l2.length_correctness_r",): ((4 - 4.5) / math.sqrt(27.2 / 5) * math.sqrt(0.2 * 0.8), 5),
    ("l2.correct_by_length", "1"): (0.0, 1),  # t4 | t6, t1 | t2, t3
    ("l2.correct_by_length", "2"): (0.5, 2),
    ("l2.correct_by_length", "3"): (0.0, 2),
    ("l2.state_outside_demonstrations",): (2 / 11, 11),  # b, of which no demonstration knows
    ("l3.reward_mean",): (1.75 / 5, 5),
    ("l3.reward_std",): (math.sqrt(1.3125 / 5 - 0.35**2), 5),
    ("l3.success_rate",): (1 / 5, 5),
    ("l3.group_sigma",): (0.125, 2),  # 0.25 and 0
    ("l3.group_sigma_quantile", "0.5"): (0.125, 2),
    ("l3.group_sigma_quantile", "1"): (0.25, 2),
    ("l3.zero_variance_share",): (1 / 2, 2),
    ("l3.zero_all_right_share",): (0.0, 2),
    ("l3.zero_all_wrong_share",): (1 / 2, 2),
    ("l3.groups_with_signal",): (1 / 3, 3),
    ("l3.pass_gap",): (0.25, 2),  # 1 - 1/2 and 0 - 0
    ("l3.pass_at_k", "2"): (0.5, 2),
    ("l3.pass_gap_k", "2"): (0.25, 2),
    ("l3.reward_concentration",): (1.0, 2),  # g1 earns all of 1.5
    ("l4.action_edit_distance",): (2 / 3, 2),  # sF to fsF: 1 of 3; fffu to p: 4 of 4
    ("l4.distinct_sequences",): (2.0, 2),
    ("l4.think_edit_distance",): (0.5, 1),  # 1 2 to 1 3; g2 does not think
    ("l4.step_group_size",): (2.0, 3),  # g1: a by 2, b by 2; g2: a by 2
    ("l4.state_concentration",): (0.75, 2),  # (2/4)^2 * 2 and 1
    ("l4.state_coverage",): (2.0, 2),
    ("l4.entropy_by_decision", "3"): (0.3, 2),  # t3 alone has a fourth decision
}


@pytest.mark.parametrize("key", EXPECTED, ids=":".join)
def test_shard(key: tuple[str, ...]) -> None:
    records = collection_metrics(GROUPS, rollouts(), "train", "train", 0, demonstrated=frozenset("a"))
    value, count = table(records)[key]
    assert value == pytest.approx(EXPECTED[key][0], abs=1e-12) and count == EXPECTED[key][1]


def test_values_of_one_group() -> None:
    records = collection_metrics(GROUPS, rollouts(), "train", "train", 0)
    found = table(records, "g1")
    assert found["l3.reward_mean",] == (0.75, 2) and found["l3.group_sigma",] == (0.25, 2)
    assert found["l4.action_edit_distance",] == (pytest.approx(1 / 3), 2)
    assert table(records, "g3") == {}  # an incomplete group has no spread, and one path no distance


# --- an update ------------------------------------------------------------------------------------

STEP = StepRecord(0, 0, 0, 0.25, 1.5, 0.01, 0.002, 0.1, 0.2, 0.5, 0.03, 0.04, 1.25, 20, 5, 3)


def credit(uid: str, group_uid: str, advantage: float, tokens: int, cut: int, drift: float) -> TrajectoryCredit:
    return TrajectoryCredit(uid, group_uid, advantage, tokens, tokens - cut, cut, False, None, drift, 2 * drift)


MEASURES = UpdateMeasures("parent", 30, 0.05, 0.06, (SegmentEntropy(0, "think", 0.7, 12),))


def an_update(**changes: Any) -> Any:
    credits = (
        credit("t1", "g1", 1.0, 10, 0, 0.1), credit("t2", "g1", -1.0, 10, 5, 0.3), credit("t3", "g2", 2.0, 5, 0, 0.0),
    )  # fmt: skip
    base = {
        "uid": "u", "policy_version": 0, "batch": 4, "steps": (STEP,), "skipped": None, "credits": credits,
        "trained_group_uids": ("g1", "g2"), "measures": MEASURES,
    }  # fmt: skip
    return SimpleNamespace(**{**base, **changes})


UPDATE: dict[tuple[str, ...], Value] = {
    ("l1.loss", "0"): (0.25, 3),
    ("l1.grad_norm", "0"): (1.5, 3),
    ("l1.update_norm", "0"): (0.01, 3),
    ("l1.relative_update_norm", "0"): (0.002, 3),
    ("l1.clip_low_share", "0"): (0.1, 20),
    ("l1.clip_high_share", "0"): (0.2, 20),
    ("l1.ratio_max_deviation", "0"): (0.5, 20),
    ("l1.kl_k1_old", "0"): (0.03, 20),
    ("l1.kl_k3_old", "0"): (0.04, 20),
    ("l2.entropy_trained", "0"): (1.25, 20),
    ("l2.entropy_trained", "0", "think"): (0.7, 12),
    ("l1.kl_k1_reference",): (0.05, 30),
    ("l1.kl_k3_reference",): (0.06, 30),
    ("l1.skipped_share",): (0.0, 1),
    ("l1.masked_token_share",): (5 / 25, 25),
    ("l1.engine_drift_mean",): ((0.1 * 10 + 0.3 * 10 + 0.0) / 25, 25),
    ("l1.engine_drift_max",): (0.6, 25),
    ("l3.groups_with_update",): (2 / 3, 3),
    ("l3.effective_batch",): (16 / 6, 3),  # |A| = 1, 1, 2
    ("l3.gradient_share", "some"): (3 / 4, 2),  # g1: norms 1 and 2 of 4
    ("l3.gradient_share", "none"): (1 / 4, 1),
    ("l3.gradient_share", "all"): (0.0, 0),
}


@pytest.mark.parametrize("key", UPDATE, ids=":".join)
def test_update(key: tuple[str, ...]) -> None:
    records = update_metrics(an_update(), GROUPS, {"t1": 1.0, "t2": 2.0, "t3": 1.0})
    value, count = table(records, "u")[key]
    assert value == pytest.approx(UPDATE[key][0], abs=1e-12) and count == UPDATE[key][1]


def test_a_skipped_update_has_no_step_and_says_so() -> None:
    found = table(update_metrics(an_update(skipped="no_signal", steps=(), credits=(), measures=None), GROUPS, {}), "u")
    assert found["l1.skipped_share",] == (1.0, 1)
    assert ("l1.loss", "0") not in found and found["l3.effective_batch",] == (None, 0)


def test_sums_of_a_step_by_hand() -> None:
    """Four tokens, the last one cut. Ratios 1.5, 0.5, 1; advantages +, -, +; clip 0.2.

    high: 1 of 3; low: 1 of 3. Sums: k1 -(ln 1.5 + ln 0.5); k3 0.5 - ln 1.5 - 0.5 - ln 0.5. Largest |ratio - 1|: 0.5.
    """
    ratios = torch.tensor([1.5, 0.5, 1.0, 9.0])
    old = torch.tensor([-1.0, -1.0, -1.0, -1.0])
    advantages = torch.tensor([1.0, -1.0, 1.0, 1.0])
    sums = _Sums()
    sides = clip_sides(ratios, advantages, 0.2, 0.2)
    kept = torch.tensor([True, True, True, False])
    _add(sums, 0.5, old + ratios.log(), old, ratios, torch.tensor([1.0, 2.0, 3.0, 100.0]), sides, kept)
    assert (sums.tokens, sums.low, sums.high, sums.entropy, sums.deviation) == (3, 1, 1, 6.0, 0.5)
    assert sums.k1 == pytest.approx(-(math.log(1.5) + math.log(0.5)), abs=1e-6)
    assert sums.k3 == pytest.approx(0.5 - math.log(1.5) - 0.5 - math.log(0.5), abs=1e-6)


def test_every_definition_of_l1_to_l5_occurs_in_a_test() -> None:
    """By its name, in a test that says what value is right."""
    folders = ("engine", "runs", "evidence")
    text = "".join(path.read_text() for folder in folders for path in (TESTS / folder).glob("test_*.py"))
    quoted = set(re.findall(r'"(?:l\d\.)?([a-z_0-9]+)(?:/1)?"', text))
    missing = [
        item.id
        for item in METRIC_DEFINITIONS.values()
        if item.layer != "L6" and item.name.partition(".")[2] not in quoted
    ]
    assert missing == []
