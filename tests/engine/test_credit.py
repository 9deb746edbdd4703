"""Which tokens are credited, by hand. A digit is the decision of a token."""

from __future__ import annotations

import pytest

from workbench.contracts.errors import EngineFault
from worker.engine.credit import token_credit

DECISIONS = (0, 0, 1, 2, 2, 3)


def test_vanilla_credits_every_policy_token() -> None:
    """0 0 1 2 2 3, Fatal at 1: vanilla ignores it."""
    credit = token_credit("vanilla", -1.5, DECISIONS, 1)
    assert credit.is_credited_T == (1,) * 6
    assert credit.advantages_T == (-1.5,) * 6
    assert credit.clamp_actionable  # it would act under one_sided_clamp


def test_fatal_suffix_keeps_decisions_before_fatal_start() -> None:
    """0 0 1 | 2 2 3 with fatal_start 2: three kept, three cut; the cut ones carry no advantage."""
    credit = token_credit("fatal_suffix", 0.5, DECISIONS, 2)
    assert credit.is_credited_T == (1, 1, 1, 0, 0, 0)
    assert credit.advantages_T == (0.5, 0.5, 0.5, 0.0, 0.0, 0.0)
    assert not credit.clamp_actionable  # positive advantage


def test_fatal_suffix_leaves_a_trajectory_without_fatal_alone() -> None:
    assert token_credit("fatal_suffix", 0.5, DECISIONS, None) == token_credit("vanilla", 0.5, DECISIONS, None)


def test_fatal_from_the_first_decision_leaves_no_token() -> None:
    """fatal_start 0: the kept prefix is empty, and the clamp has nothing to act on."""
    credit = token_credit("fatal_suffix", -1.0, DECISIONS, 0)
    assert credit.trained == 0 and credit.is_zero and not credit.clamp_actionable


def test_one_sided_clamp_lifts_a_negative_prefix_to_zero() -> None:
    """A = -1 on the kept prefix becomes 0, but the tokens stay in the denominator."""
    credit = token_credit("one_sided_clamp", -1.0, DECISIONS, 2)
    assert credit.is_credited_T == (1, 1, 1, 0, 0, 0)
    assert credit.advantages_T == (0.0,) * 6
    assert credit.clamp_actionable


def test_one_sided_clamp_leaves_positive_and_non_fatal_alone() -> None:
    assert token_credit("one_sided_clamp", 1.0, DECISIONS, 2).advantages_T == (1.0, 1.0, 1.0, 0.0, 0.0, 0.0)
    assert token_credit("one_sided_clamp", -1.0, DECISIONS, None).advantages_T == (-1.0,) * 6


def test_unknown_rule_is_refused() -> None:
    with pytest.raises(EngineFault, match="got 'mask', expected one of"):
        token_credit("mask", 1.0, DECISIONS, None)
