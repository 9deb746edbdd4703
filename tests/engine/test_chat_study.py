"""A chat-formatted model through the real engine: describe, collect, old log-probabilities, one update.

Float32 and NF4 + LoRA, on the CPU, with a scripted environment; the NF4 case collects in eval() first
and trains after, the order of the AVX512_BF16 trap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests.engine.chat_world import ChatEnvironment, write_chat_model
from tests.engine.support import MemoryStore
from workbench.capturefile import read_trajectory
from workbench.contracts.canonical import derive_uid, parse_canonical
from workbench.contracts.capture import SEGMENT_ACTION, SEGMENT_ANSWER, SEGMENT_THINK, Capture
from workbench.contracts.errors import EngineFault
from workbench.contracts.jobs import (
    CollectResult,
    CollectSpec,
    DescribeResult,
    DescribeSpec,
    EnvironmentRef,
    GroupSpec,
    PolicyRef,
    SlotSpec,
    UpdateGroup,
    UpdateSpec,
)
from workbench.contracts.records import GroupRecord, UpdateRecord
from workbench.contracts.wire import parse_record
from worker.engine import policy as policy_module
from worker.engine import quantized, train
from worker.engine.chat import ChatFormatter

# peft asks transformers by a name that transformers 5 announces to rename
pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")

RUN, PLAN = str(derive_uid(None, "chat-run")), "0" * 64
LORA = {"kind": "lora", "rank": 4, "alpha": 8, "targets": list(quantized.LORA_TARGETS), "seed": "7"}
OBJECTIVE = {
    "advantage": "grpo",
    "advantage_eps": 1e-6,
    "aggregation": "trajectory_balanced",
    "fixed_length": None,
    "clip_low": 0.2,
    "clip_high": 0.2,
    "credit": "vanilla",
    "zero_variance": "skip",
    "kl_beta": 0.0,
}
OPTIMIZER = {
    "name": "adamw",
    "learning_rate": 1e-3,
    "beta1": 0.9,
    "beta2": 0.999,
    "eps": 1e-8,
    "weight_decay": 0.0,
    "grad_clip": 1.0,
    "epochs": 2,
    "minibatches": 1,
    "micro_batch": 2,
    "length_buckets": True,
}
KINDS = [("qwen3", "float32"), ("qwen2", "float32"), ("qwen3", "nf4"), ("qwen3_vl", "nf4")]
EVERYDAY = ("qwen3", "nf4")  # the trap's order; the others with `make test-gate`


@dataclass
class Study:
    """What one collection and one update left behind."""

    store: MemoryStore
    described: DescribeResult
    collected: CollectResult
    groups: list[GroupRecord]
    update: UpdateRecord
    policy: policy_module.Policy


def _policy(described: DescribeResult, folder: Any, dtype: str) -> PolicyRef:
    return PolicyRef(
        str(folder),
        described.base_model_sha256,
        described.tokenizer_sha256,
        described.parent_adapter_sha256,
        0,
        dtype,
        LORA,
        "chat",
    )


def _collect_spec(described: DescribeResult, policy: PolicyRef, tasks: list[str]) -> CollectSpec:
    groups = []
    for ordinal in range(2):
        uid = str(derive_uid(RUN, f"group:{ordinal}"))
        slots = tuple(SlotSpec(str(derive_uid(uid, f"slot:{i}")), i, str(100 * ordinal + i + 1)) for i in range(4))
        groups.append(GroupSpec(uid, ordinal, tasks[ordinal], "control", (), slots))
    return CollectSpec(
        run_uid=RUN,
        plan_sha256=PLAN,
        purpose="train",
        condition="train",
        split="train",
        policy=policy,
        environment=EnvironmentRef(
            ChatEnvironment.id,
            described.environment_version,
            described.environment_code_sha256,
            {},
            described.task_set_sha256,
        ),
        reward={"id": "tiny", "version": "1"},
        sampling={"temperature": 1.0, "top_p": 1.0, "top_k": 0, "max_new_tokens": 16},
        max_decisions=3,
        advantage={"kind": "grpo", "eps": 1e-6},
        runtime=described.runtime,
        groups=tuple(groups),
    )


def run_study(folder: Any, cache: Any, dtype: str) -> Study:
    """describe -> collect -> update, each through the engine's own entry points."""
    policy_module.clear_residents()
    store = MemoryStore()
    described = train.describe(
        DescribeSpec(str(folder), dtype, LORA, "chat", ChatEnvironment.id, {}), store, cache_dir=cache
    )
    tasks = [task["uid"] for task in parse_canonical(store.get(described.task_set_sha256))]
    policy = _policy(described, folder, dtype)
    collected = train.collect(_collect_spec(described, policy, tasks), store, cache_dir=cache)
    groups = tuple(
        UpdateGroup(g.record_json, g.record_sha256, g.capture_blob_sha256, g.captures) for g in collected.groups
    )
    spec = UpdateSpec(
        run_uid=RUN,
        plan_sha256=PLAN,
        update_uid=str(derive_uid(RUN, "update:0")),
        batch=0,
        first_step=0,
        policy=policy,
        optimizer_sha256=None,
        objective=OBJECTIVE,
        optimizer=OPTIMIZER,
        runtime=described.runtime,
        groups=groups,
    )
    updated = train.update(spec, store, cache_dir=cache)
    return Study(
        store=store,
        described=described,
        collected=collected,
        groups=[parse_record(GroupRecord, g.record_json.encode()) for g in collected.groups],
        update=parse_record(UpdateRecord, updated.record_json.encode()),
        policy=policy_module.load_policy(policy, store, cache_dir=cache),
    )


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(kind, id="-".join(kind), marks=() if kind == EVERYDAY else pytest.mark.gate) for kind in KINDS
    ],
)
def study(request, tmp_path_factory):
    kind, dtype = request.param
    folder = write_chat_model(tmp_path_factory.mktemp(f"chat-{kind}"), kind=kind)
    return run_study(folder, tmp_path_factory.mktemp("cache"), dtype)


def _captures(study: Study) -> dict[str, list[Capture]]:
    found = {}
    for group, record in zip(study.collected.groups, study.groups, strict=True):
        for item in record.trajectories:
            refs = [ref for ref in group.captures if ref.trajectory_uid == item.uid]
            blob = study.store.get(group.capture_blob_sha256)
            found[item.uid] = [Capture.from_bytes(data) for data in read_trajectory(blob, refs)]
    return found


def test_rollouts_act_through_the_chat_grammar(study):
    """Eight valid trajectories, with executed calls and finishes among them, every invariant holding."""
    items = [item for group in study.groups for item in group.trajectories]
    assert [item.status for item in items] == ["valid"] * 8
    kinds = {turn.action_kind for item in items for turn in item.turns}
    assert {"tool", "finish"} <= kinds
    assert any(turn.observation is not None for item in items for turn in item.turns)
    assert all(verdict.holds for item in items for verdict in item.invariants)
    assert all(group.identities.formatter == study.policy.formatter.identity() for group in study.groups)


def test_captured_prompts_carry_every_earlier_token(study):
    """Prompt of decision k+1 = prompt of k + its generated ids + ids of its Observation."""
    formatter = study.policy.formatter
    assert isinstance(formatter, ChatFormatter)
    continued = 0
    for group in study.groups:
        for item in group.trajectories:
            captures = _captures(study)[item.uid]
            for turn, before, after in zip(item.turns, captures, captures[1:], strict=False):
                carried = [*before.prompt_ids, *before.generated_ids, *formatter.observe(turn.observation.text)]
                assert list(after.prompt_ids) == carried
                continued += 1
    assert continued >= 3


def test_segments_name_think_action_and_answer(study):
    segments = {segment for captures in _captures(study).values() for c in captures for segment in c.segments}
    assert {SEGMENT_THINK, SEGMENT_ACTION, SEGMENT_ANSWER} <= segments


def test_the_update_trains_from_ratio_one(study):
    """Two epochs: at the first step every ratio is exactly 1; afterwards they move; the adapter is a new one."""
    assert study.update.skipped is None
    first, second = study.update.steps
    assert first.ratio_max_deviation == 0.0
    assert second.ratio_max_deviation > 0.0
    assert first.grad_norm > 0.0
    assert study.update.adapter_after != study.update.adapter_before == study.described.parent_adapter_sha256


def test_sampler_and_teacher_forcing_agree(study):
    """Largest |sampler - recomputed| log-probability: float32 within 1e-4; NF4 with bfloat16 products within 0.5."""
    worst = max(credit.engine_drift_max for credit in study.update.credits if credit.engine_drift_max is not None)
    assert worst < (0.5 if study.policy.ref.dtype == "nf4" else 1e-4)


def test_nf4_stays_trainable_after_collecting_and_training(study):
    model = study.policy.resident.model
    if study.policy.ref.dtype == "nf4":
        assert quantized.assert_trainable_nf4(model) >= 14
    else:
        with pytest.raises(EngineFault, match="got no Linear4bit"):
            quantized.assert_trainable_nf4(model)


@pytest.mark.gate
def test_the_same_nf4_study_gives_the_same_tokens_and_adapter(tmp_path):
    """Two fresh loads of one model: equal generated ids, old log-probabilities, adapter and optimizer bytes."""
    folder = write_chat_model(tmp_path / "model")
    one, two = (run_study(folder, tmp_path / name, "nf4") for name in ("one", "two"))
    ids = [[[list(c.generated_ids) for c in row] for row in _captures(study).values()] for study in (one, two)]
    assert ids[0] == ids[1]
    for name in ("old_logprobs_sha256", "adapter_after", "optimizer_after"):
        assert getattr(one.update, name) == getattr(two.update, name) is not None


def test_an_update_refuses_a_model_that_was_repacked(tmp_path, monkeypatch, capsys):
    """The guard left out at loading: collecting repacks the weights, and the update refuses before backward."""
    monkeypatch.setattr(quantized, "guard_nf4", lambda model: 1)
    folder = write_chat_model(tmp_path / "model")
    try:
        if quantized.repacking_cpu():
            with pytest.raises(EngineFault, match=r"packing_format_for_cpu: got True, expected False"):
                run_study(folder, tmp_path / "cache", "nf4")
        else:
            with capsys.disabled():
                print("\nthe NF4 trap can't be reproduced: this CPU has no AVX512_BF16, so nothing is repacked")
            assert run_study(folder, tmp_path / "cache", "nf4").update.skipped is None
    finally:
        policy_module.clear_residents()  # no other test may meet the unguarded model
