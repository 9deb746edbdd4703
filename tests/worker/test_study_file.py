"""The bundled study: every scale can be frozen, its pair is strict, and its text survives the draft."""

from __future__ import annotations

import json

import pytest
from django.db import transaction

from runs.actions.inspection import bindings_of, store_answer
from runs.actions.plans import parse_plan_text
from runs.actions.tasks import store_task_set, task_identity
from runs.errors import DomainError
from runs.storage import blob_store
from tests.runs.builders import task_set_bytes
from workbench.contracts.canonical import canonical_bytes, parse_canonical, sha256_hex
from workbench.contracts.jobs import DescribeResult
from workbench.contracts.spec import arm_seeds, check_pairs, complete_plan, resolve_arm
from worker.study import STUDIES, bundled, load_study

SCALES = ("tiny", "small", "full")


def test_the_bundled_studies() -> None:
    assert "fatal-mask-pair" in bundled()
    for slug in bundled():
        text = (STUDIES / f"{slug}.yaml").read_text(encoding="utf-8")
        assert set(parse_plan_text(text)) == {"study", "plan", "scales"}  # strict: no key twice, no alias


@pytest.mark.parametrize("scale", SCALES)
def test_each_scale_is_a_complete_plan_that_the_draft_text_keeps(scale: str) -> None:
    """The draft is stored as JSON text; numbers such as 1e-06 must come back as numbers."""
    card, plan = load_study("fatal-mask-pair", scale)
    assert {"title", "summary"} <= set(card)
    text = json.dumps(plan, ensure_ascii=False, indent=1)
    complete = complete_plan(parse_plan_text(text))
    assert canonical_bytes(complete) == canonical_bytes(complete_plan(plan))
    assert complete["objective"]["advantage_eps"] == 1e-06 and complete["scale"] == scale
    assert complete["name"] == f"fatal-mask-pair-{scale}"


@pytest.mark.parametrize("scale", SCALES)
def test_the_pair_differs_in_the_credit_rule_only(scale: str) -> None:
    plan = complete_plan(load_study("fatal-mask-pair", scale)[1])
    (check,) = check_pairs(plan)
    assert check.different == (("objective.credit", "vanilla", "fatal_suffix"),)
    arms = {arm["key"]: resolve_arm(plan, arm) for arm in plan["arms"]}
    assert arms["C"]["failure"]["train_cycle"] == [] and arms["V"]["failure"]["train_cycle"]
    gate = next(arm["gate"] for arm in plan["arms"] if arm["key"] == "K")
    assert gate == {"rule": "clamp_actionable_cases", "counted_over": "F", "minimum": 3}


def test_full_is_large_enough_for_what_it_claims() -> None:
    """At least 3 seeds, 40 optimizer steps a run, 27 held-out tasks a split; forgetting is watched on 12 anchors."""
    plan = complete_plan(load_study("fatal-mask-pair", "full")[1])
    optimizer, budget = plan["optimizer"], plan["budget"]
    assert all(len(arm_seeds(plan, arm)) >= 3 for arm in plan["arms"])
    assert min(budget["batches"] * optimizer["epochs"] * optimizer["minibatches"], budget["max_steps"]) >= 40
    tasks = {item["split"]: item["tasks"] for item in plan["evaluation"]["splits"]}
    assert tasks.pop("anchor") >= 12
    assert set(tasks) == {"test", "out_of_distribution"} and min(tasks.values()) >= 27


@pytest.mark.parametrize(("slug", "scale"), [("none", "tiny"), ("fatal-mask-pair", "huge"), ("../x", "tiny")])
def test_what_does_not_exist_is_named_with_what_does(slug: str, scale: str) -> None:
    with pytest.raises(DomainError, match=r"expected one of .*(fatal-mask-pair|tiny)"):
        load_study(slug, scale)


@pytest.mark.django_db
def test_bindings_find_tasks_that_an_earlier_set_brought(settings: object, tmp_path: object) -> None:
    """A larger task set of the same environment version shares tasks with the first one."""
    settings.BLOB_ROOT = tmp_path / "blobs"  # type: ignore[attr-defined,operator]
    store = blob_store()
    store_task_set(task_set_bytes(4), environment="evidence_search", version="1", store=store)
    both = [*parse_canonical(task_set_bytes(4)), {
        "key": "task-9", "split": "test", "family": "family-1", "prompt": "Question 9?", "initial_state": {},
        "hidden": {}, "tools": ["search"],
    }]  # fmt: skip
    data = canonical_bytes(both)
    shas = {name: store.put(name.encode()) for name in ("adapter", "vocabulary")}
    found = DescribeResult(
        base_model_sha256="a", tokenizer_sha256="b", parent_adapter_sha256=shas["adapter"], parent_adapter_bytes=7,
        vocabulary_sha256=shas["vocabulary"], parameters=1, trainable_parameters=1, runtime="r", runtime_facts={},
        formatter="f", environment="evidence_search", environment_version="1", success_definition="s",
        environment_code_sha256="e", reward_code_sha256="w", harness_code_sha256="h", task_set_sha256=store.put(data),
        warm_start={"recipe_sha256": "c"},
    )  # fmt: skip
    with transaction.atomic():
        store_answer(found)
    bound = bindings_of(found, complete_plan(load_study("fatal-mask-pair", "tiny")[1]))
    splits = bound["task_set"]["splits"]
    assert [len(splits[name]) for name in ("train", "test")] == [2, 3]
    assert [item["sha256"] for name in ("train", "test") for item in splits[name]] == [task_identity(t) for t in both]
    assert len({item["uid"] for name in splits for item in splits[name]}) == 5
    assert bound["task_set"]["sha256"] == sha256_hex(data) and bound["warm_start"] == {"recipe_sha256": "c"}
