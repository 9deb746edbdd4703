"""Verdict words come from the plan's rules alone; a refusal stands beside each word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from runs.statistics.aggregate import build_aggregate
from runs.statistics.contrasts import PASS_METRICS
from runs.statistics.items import METRICS, MISSING, VALID, ItemFacts
from runs.statistics.verdicts import SENTENCES, check_endpoint
from workbench.contracts.errors import PlanInvalid
from workbench.contracts.plan_schema import ENDPOINT_METRICS
from workbench.contracts.records import OutcomeFacts

FACTS = OutcomeFacts(True, True, False, 2, 0, 2, 0, False, None, None, None, None, False)


def item(arm: str | None, seed: str | None, task: int, reward: float, **given: Any) -> ItemFacts:
    values: dict[str, Any] = {
        "repeat": 0,
        "status": VALID,
        "success": reward >= 1,
        "facts": FACTS,
        "terminal": "finish",
    }
    return ItemFacts(
        checkpoint_uid=f"{arm}-{seed}",
        checkpoint_sha256="cd" * 32,
        arm=arm,
        run_seed=seed,
        condition="stress",
        split="test",
        task_key=f"t{task:02d}",
        task_uid=f"uid{task}",
        family="one",
        reward=reward,
        **{**values, **given},
    )


def endpoint(**given: Any) -> dict[str, Any]:
    return {
        "id": "primary",
        "definition": "reward/1",
        "direction": "increase",
        "unit": "reward",
        "margin": None,
        "equivalence": None,
        "interval": 0.95,
        "split": "test",
        "condition": "stress",
        "compare": {"kind": "pair", "arms": ["v", "f"]},
        "metric": "reward",
        **given,
    }


def pair(differences_by_seed: Sequence[Sequence[float]]) -> list[ItemFacts]:
    """Arm ``v`` at 0.5 on every task, ``f`` at 0.5 + the difference."""
    return [
        item(arm, str(seed), task, 0.5 + (value if arm == "f" else 0.0))
        for seed, differences in enumerate(differences_by_seed)
        for task, value in enumerate(differences)
        for arm in ("v", "f")
    ]


def result(items: Sequence[ItemFacts], **given: Any) -> dict[str, Any]:
    aggregate = build_aggregate(
        plan_sha256="ab" * 32, endpoints=[endpoint(**given)], strict_pairs=[], items=items, resamples=1000
    )
    (one,) = aggregate["endpoints"][0]["results"]
    assert sorted([*one["may_say"], *one["may_not_say"]]) == sorted({*SENTENCES, *one["may_say"]})
    assert not set(one["may_say"]) & set(one["may_not_say"])
    return one


UP = [0.2, 0.3] * 5  # interval well above 0
NOISE = [0.01, -0.01] * 5  # interval around 0, inside +-0.05


def test_improvement_needs_the_registered_direction() -> None:
    up = result(pair([UP]))
    assert (up["state"], up["verdict"], up["opposite_direction"]) == ("measured", "improvement", False)
    assert "holds_over_training_seeds" in up["may_not_say"]  # one seed
    undirected = result(pair([UP]), direction="none")
    assert (undirected["verdict"], undirected["holds"]) == ("observed_on_this_frozen_sample", [])
    assert "improvement" in undirected["may_not_say"]
    against = result(pair([UP]), direction="decrease")
    assert (against["verdict"], against["opposite_direction"]) == ("observed_on_this_frozen_sample", True)
    assert "no_regression_observed" in against["may_not_say"]


def test_decrease_is_an_improvement_where_registered() -> None:
    assert result(pair([[-value for value in UP]]), direction="decrease")["verdict"] == "improvement"


def test_interval_that_holds_zero_is_only_observed() -> None:
    one = result(pair([NOISE]))
    assert (one["verdict"], one["holds"]) == ("observed_on_this_frozen_sample", [])
    assert {"no_effect", "equivalence", "non_inferiority"} <= set(one["may_not_say"])


def test_seeds_that_agree_carry_an_improvement_and_seeds_that_do_not_are_not_distinguished() -> None:
    """Seed means 0.25, 0.26: sd 0.007, distinguished. Seed means 0.25, -0.05: mean 0.1 < 2 x sd 0.21."""
    steady = result(pair([UP, [value + 0.01 for value in UP]]))
    assert steady["verdict"] == "improvement"
    assert "holds_over_training_seeds" in steady["may_say"]
    shaky = result(pair([UP, [value - 0.3 for value in UP]]))
    assert shaky["contrast"]["over_seeds"]["interval"]["low"] > 0
    assert (shaky["verdict"], shaky["holds"]) == ("not_distinguished", [])
    assert "equivalence" in shaky["may_not_say"]


def test_equivalence_needs_a_registered_region_around_the_whole_interval() -> None:
    assert result(pair([NOISE]), equivalence=[-0.05, 0.05])["verdict"] == "equivalence"
    assert result(pair([NOISE]), equivalence=[-0.002, 0.002])["holds"] == []
    assert "equivalence" in result(pair([NOISE]))["may_not_say"]


def test_opposite_seeds_are_no_equivalence() -> None:
    """Seeds at about +0.3 and -0.3 average to 0 with a narrow interval; neither seed lies within 0.05."""
    up = [0.3 + value for value in NOISE]
    down = [-0.3 + value / 2 for value in NOISE]
    one = result(pair([up, down]), equivalence=[-0.05, 0.05])
    interval = one["contrast"]["over_seeds"]["interval"]
    assert -0.05 < interval["low"] <= interval["high"] < 0.05
    assert (one["verdict"], one["holds"]) == ("not_distinguished", [])


def test_non_inferiority_needs_a_registered_margin() -> None:
    """Differences of about -0.02 with margin 0.05 hold; with margin 0.01 they do not."""
    slightly_worse = [-0.02 + value for value in NOISE]
    assert result(pair([slightly_worse]), margin=0.05)["verdict"] == "non_inferiority"
    assert result(pair([slightly_worse]), margin=0.01)["holds"] == []
    assert "non_inferiority" in result(pair([slightly_worse]))["may_not_say"]
    worse_is_up = [0.02 + value for value in NOISE]
    assert result(pair([worse_is_up]), margin=0.05, direction="decrease")["verdict"] == "non_inferiority"


def test_non_inferiority_needs_the_interval_and_every_seed_above_the_margin() -> None:
    """Mean 0 with a lower bound near -0.25 fails margin 0.05; so do seeds at +0.3 and -0.3 with a narrow interval."""
    wide = result(pair([[0.4, -0.4] * 5]), margin=0.05)
    assert wide["contrast"]["over_seeds"]["interval"]["low"] < -0.05
    assert wide["holds"] == []
    opposite = result(pair([[0.3 + v for v in NOISE], [-0.3 + v / 2 for v in NOISE]]), margin=0.05)
    assert opposite["contrast"]["over_seeds"]["interval"]["low"] > -0.05
    assert opposite["holds"] == []


def test_no_variation_over_tasks_is_no_evidence_of_equivalence() -> None:
    one = result(pair([[0.0] * 10]), equivalence=[-0.05, 0.05], margin=0.05)
    assert one["holds"] == []
    assert one["contrast"]["over_seeds"]["interval"]["note"].startswith("every task has the same value")


def test_constant_gain_needs_six_tasks() -> None:
    """Two-sided sign test at 0.05: 2 x 0.5^6 = 0.03 agrees, 2 x 0.5^5 = 0.06 does not."""
    assert result(pair([[0.25] * 6]))["verdict"] == "improvement"
    assert result(pair([[0.25] * 5]))["verdict"] == "observed_on_this_frozen_sample"


def test_one_task_has_no_verdict() -> None:
    one = result(pair([[0.3]]))
    assert (one["verdict"], one["opposite_direction"]) == ("observed_on_this_frozen_sample", None)


def test_absent_data_are_pending_never_zero() -> None:
    arm = result([one for one in pair([UP]) if one.arm == "v"])
    assert (arm["state"], arm["verdict"], arm["contrast"]) == ("pending", "pending", None)
    assert arm["reason"] == "arm_not_evaluated:f"
    assert result(pair([UP]), condition="standard")["reason"] == "arm_not_evaluated"
    assert result(pair([UP]), compare={"kind": "parent", "arms": ["f"]})["reason"] == "parent_not_evaluated"
    unmeasured = [item(arm, "1", 0, 0.5, success=None) for arm in ("v", "f")]
    assert result(unmeasured, metric="success")["reason"] == "no_paired_task"
    verifiers = [item("v", "1", 0, 0.5, verifier="x/1"), item("f", "1", 0, 0.5, verifier="x/2")]
    assert result(verifiers)["reason"] == "mixed_verifiers"


def test_no_word_before_every_item_is_in() -> None:
    items = pair([UP])
    items[0] = item("v", "0", 0, 0.5, status=MISSING, success=None, facts=None, terminal=None)
    items[0] = ItemFacts(**{**vars(items[0]), "reward": None})
    one = result(items)
    assert (one["state"], one["reason"], one["verdict"]) == ("partial", "items_missing", "pending")
    assert one["contrast"]["over_seeds"]["task_difference"]["denominator"] == 9
    halved = result([*pair([UP]), *(item("v", "1", task, 0.5) for task in range(10))])
    assert (halved["state"], halved["reason"]) == ("partial", "seeds_incomplete")


def test_parent_endpoint_has_one_result_per_arm() -> None:
    items = [item(None, None, task, 0.5) for task in range(10)] + pair([UP])
    aggregate = build_aggregate(
        plan_sha256="ab" * 32,
        endpoints=[endpoint(compare={"kind": "parent", "arms": ["v", "f"]})],
        strict_pairs=[],
        items=items,
    )
    results = aggregate["endpoints"][0]["results"]
    assert [(one["arms"], one["verdict"]) for one in results] == [
        (["v"], "observed_on_this_frozen_sample"),
        (["f"], "improvement"),
    ]


def test_pass_at_k_endpoint_by_hand() -> None:
    """One task, 4 repeats: v 1 of 4, f 2 of 4; pass@2 = 1 - C(3,2)/6 = 1/2 and 1 - C(2,2)/6 = 5/6."""
    items = [
        item(arm, "1", 0, 1.0 if repeat < right else 0.0, repeat=repeat)
        for arm, right in (("v", 1), ("f", 2))
        for repeat in range(4)
    ]
    (one,) = result(items, metric="pass_at_k", k=2)["contrast"]["per_seed"]
    assert (one["k"], one["baseline_mean"]["value"], one["treatment_mean"]["value"]) == (2, 0.5, 5 / 6)
    assert result(items, metric="pass_hat_k")["contrast"]["per_seed"][0]["k"] == 4


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"direction": "up"}, "direction"),
        ({"metric": "charm"}, "metric"),
        ({"margin": -0.1}, "margin"),
        ({"margin": 0.1, "direction": "none"}, "direction"),
        ({"equivalence": [0.1, -0.1]}, "equivalence"),
        ({"interval": 95}, "interval"),
        ({"k": 0}, "k"),
        ({"split": ""}, "split"),
        ({"compare": {"kind": "pair", "arms": ["v"]}}, "compare.arms"),
        ({"compare": {"kind": "pair", "arms": ["v", "v"]}}, "compare.arms"),
        ({"compare": {"kind": "other", "arms": ["v"]}}, "compare.kind"),
        ({"compare": None}, "compare.kind"),
    ],
)
def test_faulty_endpoints_are_named_and_refused(given: dict[str, Any], field: str) -> None:
    assert f"endpoints.primary.{field}" in [problem.field for problem in check_endpoint(endpoint(**given))]
    with pytest.raises(PlanInvalid, match=rf"endpoints\.primary\.{field}"):
        build_aggregate(plan_sha256="ab" * 32, endpoints=[endpoint(**given)], strict_pairs=[], items=[])


def test_plan_schema_and_statistics_name_the_same_metrics() -> None:
    assert sorted(ENDPOINT_METRICS) == sorted([*METRICS, *PASS_METRICS])


def test_sound_endpoint_has_no_problem_unless_its_arm_is_unknown() -> None:
    assert check_endpoint(endpoint()) == []
    (problem,) = check_endpoint(endpoint(), frozenset({"v"}))
    assert problem.expected == "arms of the plan: ['v']"
    with pytest.raises(ValueError, match="strict_pairs: got"):
        build_aggregate(plan_sha256="ab" * 32, endpoints=[], strict_pairs=[["v"]], items=[])
