"""Strict pairs, cross checks and the frozen body."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.runs.scripted_plan import document
from workbench.contracts.canonical import canonical_bytes, digest
from workbench.contracts.errors import PlanInvalid
from workbench.contracts.spec import (
    check_pairs,
    compare_arms,
    complete_plan,
    edit_arms,
    flatten,
    freeze_body,
    resolve_arm,
)

# One other legal value for every field that an arm may override.
OTHER: dict[str, Any] = {
    "rollout.group_size": 3, "rollout.groups_per_batch": 2, "rollout.max_decisions": 7,
    "rollout.sampling.max_new_tokens": 65, "failure.train_cycle": ["prefix_fatal_opportunity"],
    "objective.advantage": "mean_centred", "objective.advantage_eps": 1e-5, "objective.aggregation": "token_mean",
    "objective.fixed_length": 9, "objective.clip_low": 0.1, "objective.clip_high": 0.28,
    "objective.edit_weight": 0.5, "objective.edit_cap": 2.0,
    "objective.zero_variance": "train_if_credit", "optimizer.learning_rate": 0.002, "optimizer.beta1": 0.8,
    "optimizer.beta2": 0.99, "optimizer.eps": 1e-7, "optimizer.weight_decay": 0.1, "optimizer.grad_clip": 2.0,
    "optimizer.epochs": 1, "optimizer.minibatches": 2, "optimizer.micro_batch": 8, "optimizer.length_buckets": False,
    "budget.batches": 3, "budget.max_steps": 5, "budget.max_attempts": 2,
}  # fmt: skip
FIXED = {
    "rollout.split", "rollout.sampling.temperature", "rollout.sampling.top_p", "rollout.sampling.top_k",
    "failure.stress_cycle", "objective.kl_beta", "optimizer.name", "objective.credit",
}  # fmt: skip
SPLITS = {s: [{"uid": f"{s}{i}", "sha256": "d" * 64, "family": "f"} for i in range(3)] for s in ("train", "test")}
BINDINGS = {"task_set": {"sha256": "e" * 64, "splits": SPLITS}}


def nested(changes: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path, value in changes.items():
        target = found
        *parents, last = path.split(".")
        for part in parents:
            target = target.setdefault(part, {})
        target[last] = copy.deepcopy(value)
    return found


def pair(changes: dict[str, Any], treatment: list[str], **sections: Any) -> dict[str, Any]:
    """A plan whose second arm differs by ``changes``."""
    arms = [
        {"key": "V", "role": "pair", "title": {"en": "V"}},
        {"key": "F", "role": "pair", "title": {"en": "F"}, "overrides": nested(changes)},
    ]
    pairs = [{"arms": ["V", "F"], "treatment": treatment}]
    return complete_plan(document(arms=arms, strict_pairs=pairs, **sections))


def test_the_table_of_other_values_covers_every_field_that_an_arm_may_override() -> None:
    plan = complete_plan(document())
    paths = {path for name in ("rollout", "failure", "objective", "optimizer", "budget")
             for path in flatten(plan[name], name)}  # fmt: skip
    assert paths == set(OTHER) | FIXED


def test_exactly_the_declared_treatment_passes() -> None:
    (check,) = check_pairs(pair({"objective.credit": "fatal_suffix"}, ["objective.credit"]))
    assert check.different == (("objective.credit", "vanilla", "fatal_suffix"),)
    assert check.undeclared == check.inert == ()
    names = {path for path, _ in check.equal}
    assert {"seeds", "reward.version", "policy.adaptation.seed", "optimizer.learning_rate"} <= names


@given(st.sets(st.sampled_from(sorted(OTHER)), min_size=1, max_size=4))
def test_any_other_difference_refuses_and_is_named(paths: set[str]) -> None:
    changes = {path: OTHER[path] for path in paths} | {"objective.credit": "fatal_suffix"}
    plan = pair(changes, ["objective.credit"], runtime={})
    with pytest.raises(PlanInvalid) as caught:
        check_pairs(plan)
    assert {item.field.split(": ")[1] for item in caught.value.problems} == paths
    for item in caught.value.problems:
        assert repr(OTHER[item.field.split(": ")[1]]) in item.got
    declared = pair(changes, ["objective.credit", *sorted(paths)], runtime={})
    assert {path for path, _, _ in check_pairs(declared)[0].different} == paths | {"objective.credit"}


@given(st.sampled_from(sorted(OTHER)))
def test_a_treatment_that_changes_nothing_is_refused(path: str) -> None:
    plan = pair({"objective.credit": "fatal_suffix"}, ["objective.credit", path])
    with pytest.raises(PlanInvalid, match=f"{path}: got the same value in both arms"):
        check_pairs(plan)


def test_a_whole_number_written_without_a_point_is_the_same_value() -> None:
    """0 and 0.0 have the same canonical bytes: the treatment is inert."""
    plan = pair({"optimizer.weight_decay": 0}, ["optimizer.weight_decay"])
    with pytest.raises(PlanInvalid, match="same value in both arms"):
        check_pairs(plan)
    arms = [resolve_arm(plan, arm) for arm in plan["arms"]]
    assert digest(arms[0]) == digest(arms[1])


def test_seeds_of_an_arm_count_as_a_difference() -> None:
    arms = [
        {"key": "V", "role": "pair", "title": {"en": "V"}},
        {"key": "F", "role": "pair", "title": {"en": "F"}, "seeds": ["2"],
         "overrides": {"objective": {"credit": "fatal_suffix"}}},
    ]  # fmt: skip
    plan = complete_plan(document(arms=arms))
    with pytest.raises(PlanInvalid, match=r"strict_pairs\[0\]: seeds: got \['1'\] and \['2'\]"):
        check_pairs(plan)


def test_an_arm_against_itself_is_refused() -> None:
    plan = complete_plan(document(strict_pairs=[{"arms": ["V", "V"], "treatment": ["objective.credit"]}]))
    with pytest.raises(PlanInvalid, match="same value"):
        check_pairs(plan)


def _arm(**changes: Any) -> list[dict[str, Any]]:
    plan = document()
    plan["arms"][1].update(changes)
    arms: list[dict[str, Any]] = plan["arms"]
    return arms


ENDPOINT = {"id": "e", "definition": "d", "metric": "reward", "direction": "none", "unit": "u", "split": "test",
            "condition": "stress", "compare": {"kind": "pair", "arms": ["V", "X"]}}  # fmt: skip
GATE = {"rule": "clamp_actionable_cases", "counted_over": "F", "minimum": 3}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"study": "a b"}, "study"),
        ({"name": "name\n"}, "name"),
        ({"name": ""}, "name"),
        ({"name": "x" * 65}, "name"),
        ({"arms": _arm(key="V")}, "arms"),
        ({"arms": _arm(key="../F")}, "arms[1].key"),
        ({"seeds": ["1", "1"]}, "seeds"),
        ({"arms": _arm(seeds=["1", "1"])}, "arms[1].seeds"),
        ({"arms": _arm(overrides={"policy": {"model": "x"}})}, "arms[1].overrides.policy"),
        ({"arms": _arm(overrides={"objective": "x"})}, "arms[1].overrides.objective"),
        ({"arms": _arm(overrides={"objective": {"credits": "x"}})}, "arms[1].overrides.objective.credits"),
        ({"arms": _arm(overrides={"optimizer": {"learning_rate": -1}})}, "arms[1].overrides.optimizer.learning_rate"),
        ({"arms": _arm(overrides={"rollout": {"group_size": None}})}, "arms[1].overrides.rollout.group_size"),
        ({"arms": _arm(overrides={"failure": {"stress_cycle": ["control"]}})},
         "arms[1].overrides.failure.stress_cycle"),
        ({"arms": _arm(role="gated")}, "arms[1].gate"),
        ({"arms": _arm(gate=GATE)}, "arms[1].gate"),
        ({"arms": _arm(role="gated", gate={**GATE, "counted_over": "F"})}, "arms[1].gate.counted_over"),
        ({"arms": _arm(role="gated", gate={**GATE, "counted_over": "Z"})}, "arms[1].gate.counted_over"),
        # K is counted over F: two gates that wait for each other would never be decided
        ({"arms": _arm(role="gated", gate={**GATE, "counted_over": "K"})}, "arms[1].gate.counted_over"),
        ({"strict_pairs": [{"arms": ["V", "X"], "treatment": ["objective.credit"]}]}, "strict_pairs[0].arms"),
        ({"endpoints": [ENDPOINT]}, "endpoints[0].compare.arms"),
        ({"failure": {"train_cycle": [], "stress_cycle": []}}, "failure.stress_cycle"),
        ({"rollout": {"group_size": 8, "groups_per_batch": 8}, "runtime": {}}, "arms[0]: rollout"),
        ({"rollout": {"group_size": 4}}, "arms[0]: rollout.group_size"),
        ({"rollout": {"group_size": 2, "groups_per_batch": 1, "sampling": {"top_p": 0.9}}},
         "arms[0]: rollout.sampling"),
        ({"rollout": {"group_size": 2, "groups_per_batch": 1, "sampling": {"temperature": 0.7}}},
         "arms[0]: rollout.sampling.temperature"),
        ({"objective": {"aggregation": "fixed_length"}}, "arms[0]: objective.fixed_length"),
        ({"evaluation": {"splits": [{"split": "test", "tasks": 1}], "repeats": 4}}, "evaluation.repeats"),
        ({"evaluation": {"splits": [{"split": "test", "tasks": 1}] * 2, "repeats": 1}}, "evaluation.splits"),
        ({"evaluation": {"splits": [{"split": "test", "tasks": 1}], "repeats": 1, "conditions": ["stress"] * 2}},
         "evaluation.conditions"),
        ({"environment": {"id": "x", "config": {"a": 2**60}}}, "$"),
        ({"title": {"en": "\ud800"}}, "$"),
        ({"arms": _arm(overrides={"objective": {"credit": "edit_localised"}})}, "trials"),
        ({"objective": {"credit": "edit_terminal"}}, "trials"),
        ({"trials": {}}, "trials.pilot"),
        ({"trials": {"every_arm": True, "replays": 1}}, "trials.pilot"),
        ({"trials": {"every_arm": True, "repeats": 1}}, "trials.pilot"),
        ({"trials": {"pilot": True}, "preflight": None}, "preflight"),
        ({"trials": {"pilot": True, "seed": "-1"}}, "trials.seed"),
    ],
)  # fmt: skip
def test_a_contradiction_inside_the_plan_is_named(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(PlanInvalid) as caught:
        complete_plan(document(**changes))
    assert field in [item.field for item in caught.value.problems]


def test_the_body_binds_everything_and_equal_input_gives_equal_bytes() -> None:
    body = freeze_body(document(), BINDINGS)
    assert canonical_bytes(body) == canonical_bytes(freeze_body(document(), copy.deepcopy(BINDINGS)))
    assert body["bindings"] == BINDINGS and [arm["key"] for arm in body["arms"]] == ["V", "F", "K"]
    assert body["arms"][1]["config"]["objective"]["credit"] == "fatal_suffix"
    assert all(arm["config_sha256"] == digest(arm["config"]) for arm in body["arms"])
    assert body["pairs"][0]["different"] == [["objective.credit", "vanilla", "fatal_suffix"]]
    assert body["failure_schedule"]["profiles"]["prefix_fatal_opportunity"] == [1, 2, 3]
    changed = freeze_body(document(seeds=["2"]), BINDINGS)
    assert canonical_bytes(changed) != canonical_bytes(body)


EDITS = {"arms": [
    {"key": "O", "role": "main", "title": {"en": "O"}},
    {"key": "B", "role": "pair", "title": {"en": "B"}, "overrides": {"objective": {"credit": "edit_broadcast"}}},
    {"key": "M", "role": "pair", "title": {"en": "M"}, "overrides": {"objective": {"credit": "edit_localised"}}},
    {"key": "E", "role": "main", "title": {"en": "E"}, "overrides": {"objective": {"credit": "edit_terminal"}}},
], "strict_pairs": [{"arms": ["B", "M"], "treatment": ["objective.credit"]}]}  # fmt: skip


def test_arms_with_credit_from_edits_are_told_from_the_plain_one() -> None:
    plan = complete_plan(document(**EDITS, trials={}))
    assert edit_arms(plan) == {"B": "B", "M": "M", "E": "E"}
    assert plan["trials"] == {"seed": "0", "replays": 0, "repeats": 0, "pilot": False, "every_arm": False}
    assert edit_arms(complete_plan(document())) == {}


def test_trials_need_an_environment_that_keeps_artefacts() -> None:
    """The engine says at the inspection which verifier tries them; none: the plan cannot be frozen."""
    plan = document(**EDITS, trials={"pilot": True, "replays": 1, "repeats": 1})
    for environment in ({}, {"environment": {"id": "x"}}, {"environment": {"verifier": None}}):
        with pytest.raises(PlanInvalid, match="trials: got a section, expected null: environment evidence_search"):
            freeze_body(plan, {**BINDINGS, **environment})
    body = freeze_body(plan, {**BINDINGS, "environment": {"verifier": "v/1"}})
    assert body["pairs"][0]["different"] == [["objective.credit", "edit_broadcast", "edit_localised"]]


def test_more_tasks_than_the_split_has_are_refused() -> None:
    evaluation = {"splits": [{"split": "test", "tasks": 4}], "repeats": 1}
    with pytest.raises(PlanInvalid, match=r"evaluation.splits\[0\].tasks: got 4, expected at most 3"):
        freeze_body(document(evaluation=evaluation), BINDINGS)


def test_an_arm_that_trains_on_an_empty_split_is_refused() -> None:
    arms = document()["arms"]
    arms[0]["overrides"] = {"rollout": {"split": "anchor"}}
    with pytest.raises(PlanInvalid, match=r"arms\[0\]: rollout.split"):
        freeze_body(document(arms=arms, strict_pairs=[]), BINDINGS)


def test_compare_shows_both_values_of_each_difference() -> None:
    plan = complete_plan(document())
    check = compare_arms(plan, "F", "K", ["objective.credit"])
    assert check.different == (("objective.credit", "fatal_suffix", "one_sided_clamp"),)
