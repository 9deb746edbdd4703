"""The study of edit credit: each scale can be frozen, its pair is strict, its power worked, its claims bounded."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from runs.actions.plans import parse_plan_text
from workbench.contracts.canonical import canonical_bytes
from workbench.contracts.plan_schema import EDIT_CREDITS
from workbench.contracts.spec import arm_seeds, check_pairs, compare_arms, complete_plan, edit_arms, resolve_arm
from worker.environments.registry import get_environment
from worker.study import load_study

SLUG = "edit-credit-pilot"
SCALES = ("tiny", "small", "full")
CRITICAL = 2.7764451  # Student's t, 4 degrees of freedom, 0.975


@pytest.mark.parametrize("scale", SCALES)
def test_each_scale_is_a_complete_plan_that_the_draft_text_keeps(scale: str) -> None:
    card, plan = load_study(SLUG, scale)
    assert card["title"]["zh"] and card["summary"]["zh"]
    complete = complete_plan(parse_plan_text(json.dumps(plan, ensure_ascii=False, indent=1)))
    assert canonical_bytes(complete) == canonical_bytes(complete_plan(plan))
    assert complete["name"] == f"{SLUG}-{scale}" and complete["scale"] == scale
    assert complete["trials"] == {"seed": "20260930", "replays": 1, "repeats": 1, "pilot": True, "every_arm": False}


@pytest.mark.parametrize("scale", SCALES)
def test_the_pair_differs_in_where_the_credit_goes_only(scale: str) -> None:
    (check,) = check_pairs(complete_plan(load_study(SLUG, scale)[1]))
    assert check.arms == ("B", "M")
    assert check.different == (("objective.credit", "edit_broadcast", "edit_localised"),)


def test_arms_and_seeds_by_scale() -> None:
    """full: O, B, M with three seeds and E with one; small: one seed each; tiny: B and M alone."""
    expected = {"tiny": {"B": 1, "M": 1}, "small": dict.fromkeys("OBME", 1), "full": {"O": 3, "B": 3, "M": 3, "E": 1}}
    for scale, seeds in expected.items():
        plan = complete_plan(load_study(SLUG, scale)[1])
        assert {arm["key"]: len(arm_seeds(plan, arm)) for arm in plan["arms"]} == seeds
        assert edit_arms(plan) == {key: key for key in seeds if key != "O"}
    small = complete_plan(load_study(SLUG, "small")[1])
    assert (small["budget"]["batches"], complete_plan(load_study(SLUG, "tiny")[1])["budget"]["batches"]) == (10, 2)
    assert set(EDIT_CREDITS.values()) == {"B", "M", "E"}


def test_no_other_arm_differs_in_more_than_its_credit_either() -> None:
    plan = complete_plan(load_study(SLUG, "small")[1])
    for other in ("O", "B", "E"):
        assert compare_arms(plan, other, "M", ["objective.credit"]).undeclared == ()
    for arm in plan["arms"]:
        assert resolve_arm(plan, arm)["objective"]["zero_variance"] == "train_if_credit"


def test_nothing_is_injected_and_evaluation_is_held_out() -> None:
    plan = complete_plan(load_study(SLUG, "full")[1])
    assert plan["failure"] == {"train_cycle": [], "stress_cycle": []}
    assert plan["evaluation"]["conditions"] == ["standard"] and plan["rollout"]["split"] == "train"
    assert "train" not in {item["split"] for item in plan["evaluation"]["splits"]}
    for scale in SCALES:
        plan = complete_plan(load_study(SLUG, scale)[1])
        primary = plan["endpoints"][0]
        assert (primary["metric"], primary["compare"]) == ("success", {"kind": "pair", "arms": ["B", "M"]})
        assert {item["metric"] for item in plan["endpoints"]} == {"success", "reward"}
        assert all(item["direction"] == "none" for item in plan["endpoints"] if item["compare"]["kind"] == "pair")


def test_the_environment_keeps_artefacts_and_has_the_tasks() -> None:
    environment = get_environment("code_repair", {})
    assert isinstance(environment.verifier, str)  # type: ignore[attr-defined]
    have = [task.split for task in environment.tasks()]
    for scale in SCALES:
        plan = complete_plan(load_study(SLUG, scale)[1])
        assert all(have.count(item["split"]) >= item["tasks"] for item in plan["evaluation"]["splits"])


def _power(shift: float, degrees: int) -> float:
    """Power of a two-sided t-test at non-centrality ``shift``: the normal tail over the chi-square, by midpoints."""
    step = 0.001
    chi = np.arange(step / 2, 80, step)
    density = chi ** (degrees / 2 - 1) * np.exp(-chi / 2) / (2 ** (degrees / 2) * math.gamma(degrees / 2))
    bound = CRITICAL * np.sqrt(chi / degrees)
    upper = np.array([0.5 * math.erfc((b - shift) / math.sqrt(2)) for b in bound])
    lower = np.array([0.5 * math.erfc((b + shift) / math.sqrt(2)) for b in bound])
    return float((density * (upper + lower)).sum() * step)


def test_the_smallest_detectable_difference_is_worked_as_it_says() -> None:
    """Power 0.8 at 3.761 = d sqrt(n / 2), so d = 3.071 standard deviations, times the assumed 0.05: 0.154."""
    plan = complete_plan(load_study(SLUG, "full")[1])
    found = plan["smallest_detectable_difference"]
    seeds = found["seeds_per_arm"]
    assert seeds == len(plan["seeds"]) == 3 and found["endpoint"] == plan["endpoints"][0]["id"]
    shift = found["standardised"] * math.sqrt(seeds / 2)
    assert _power(shift, 2 * seeds - 2) == pytest.approx(found["power"], abs=1e-3)
    assert found["value"] == pytest.approx(found["standardised"] * found["sd_between_seeds"], abs=5e-4)
    assert found["standard_error"] == pytest.approx(found["sd_between_seeds"] * math.sqrt(2 / seeds), abs=5e-4)
    assert "assumption" in found["sd_is"]


def test_where_one_seed_shows_nothing_the_plan_says_so() -> None:
    assert complete_plan(load_study(SLUG, "tiny")[1])["smallest_detectable_difference"] is None
    found = complete_plan(load_study(SLUG, "small")[1])["smallest_detectable_difference"]
    assert (found["seeds_per_arm"], found["value"]) == (1, None) and "no difference" in found["worked"]


def test_the_claims_say_what_the_difference_is_not() -> None:
    claims = complete_plan(load_study(SLUG, "full")[1])["claims"]
    for text in ("no action value", "no Shapley share", "natural continuation", "relocation control", "test feedback"):
        assert text in claims["cannot_show"]["en"]
    for text in ("动作价值", "Shapley", "自然续写", "移位对照", "测试反馈"):
        assert text in claims["cannot_show"]["zh"]
    assert claims["reach"]["en"] and claims["reach"]["zh"]
