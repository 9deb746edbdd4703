"""The update transaction: streaming equals batched, ratio 1, zero drift, refusals, skipped batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.engine.support import LORA
from workbench.capturefile import read_capture, write_group_file
from workbench.contracts.canonical import canonical_bytes, parse_canonical, sha256_hex
from workbench.contracts.capture import Capture
from workbench.contracts.errors import EngineFault
from workbench.contracts.jobs import CollectResult, UpdateGroup, UpdateResult, UpdateSpec
from workbench.contracts.records import GroupRecord, UpdateRecord
from workbench.contracts.wire import parse_record, record_bytes
from workbench.tracefile import read_frame
from worker.engine import steps, train
from worker.engine.checkpoint import read_tensors

OBJECTIVE = {
    "advantage": "grpo", "advantage_eps": 1e-6, "aggregation": "trajectory_balanced", "fixed_length": None,
    "clip_low": 0.2, "clip_high": 0.2, "credit": "vanilla", "zero_variance": "skip", "kl_beta": 0.0,
}  # fmt: skip
OPTIMIZER = {
    "name": "adamw", "learning_rate": 1e-2, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.0,
    "grad_clip": 1.0, "epochs": 2, "minibatches": 1, "micro_batch": 4, "length_buckets": True,
}  # fmt: skip
FULL = {"kind": "full"}


@pytest.fixture
def collected(make_world: Callable[..., Any]) -> tuple[Any, CollectResult]:
    world = make_world()
    return world, train.collect(world.collect_spec(groups=4), world.store, cache_dir=world.cache_dir)


def update_spec(world: Any, result: CollectResult, **changes: Any) -> UpdateSpec:
    spec = world.collect_spec(groups=4)
    groups = tuple(
        UpdateGroup(item.record_json, item.record_sha256, item.capture_blob_sha256, item.captures)
        for item in result.groups
    )
    objective, optimizer = changes.pop("objective", {}), changes.pop("optimizer", {})
    base = UpdateSpec(
        spec.run_uid, spec.plan_sha256, "update", 0, 0, spec.policy, None, OBJECTIVE | objective, OPTIMIZER | optimizer,
        spec.runtime, groups,
    )  # fmt: skip
    return replace(base, **changes)


def run(world: Any, spec: UpdateSpec) -> tuple[UpdateRecord, UpdateResult]:
    result = train.update(spec, world.store, cache_dir=world.cache_dir)
    assert sha256_hex(result.record_json.encode()) == result.record_sha256
    return parse_record(UpdateRecord, result.record_json.encode()), result


def changed_group(result: CollectResult, position: int, change: Callable[[dict[str, Any]], None]) -> UpdateGroup:
    """An update group whose record was altered and hashed again."""
    item = result.groups[position]
    value = parse_canonical(item.record_json.encode())
    change(value)
    data = canonical_bytes(value)
    return UpdateGroup(data.decode(), sha256_hex(data), item.capture_blob_sha256, item.captures)


def test_first_ratio_is_exactly_one_and_later_ones_move(collected: Any) -> None:
    world, result = collected
    record, _ = run(world, update_spec(world, result))
    assert record.steps[0].ratio_max_deviation == 0.0
    assert record.steps[0].kl_k1 == 0.0 and record.steps[0].kl_k3 == 0.0
    assert record.steps[1].ratio_max_deviation > 1e-4 and record.steps[1].kl_k3 > 0.0
    assert not record.clipping_inert and record.skipped is None
    assert record.adapter_after != record.adapter_before


@pytest.mark.parametrize("adaptation", [LORA, FULL], ids=["lora", "full"])
@pytest.mark.parametrize("aggregation", ["trajectory_balanced", "token_mean", "turn_balanced"])
def test_streaming_equals_batched(make_world: Callable[..., Any], adaptation: dict[str, Any], aggregation: str) -> None:
    """Micro-batches of 1 against one of 32: loss and gradient norm to 1e-6, without and with length buckets."""
    world = make_world(adaptation)
    result = train.collect(world.collect_spec(groups=4), world.store, cache_dir=world.cache_dir)
    found = []
    for micro_batch, buckets in ((32, True), (1, True), (3, False)):
        settings = {"micro_batch": micro_batch, "length_buckets": buckets, "epochs": 1}
        spec = update_spec(world, result, objective={"aggregation": aggregation}, optimizer=settings)
        found.append(run(world, spec)[0].steps[0])
    for other in found[1:]:
        assert abs(other.loss - found[0].loss) < 1e-6
        assert abs(other.grad_norm - found[0].grad_norm) < 1e-6 * max(1.0, found[0].grad_norm)
    assert found[0].grad_norm > 1e-2


def test_learning_rate_zero_shows_zero_drift(collected: Any) -> None:
    """Frozen weights: four steps, ratio 1 throughout, the adapter's bytes unchanged."""
    world, result = collected
    record, _ = run(world, update_spec(world, result, optimizer={"learning_rate": 0.0, "epochs": 4}))
    assert [step.ratio_max_deviation for step in record.steps] == [0.0] * 4
    assert [step.update_norm for step in record.steps] == [0.0] * 4
    assert record.adapter_after == record.adapter_before and record.optimizer_after is not None


def test_same_specification_gives_identical_bytes(make_world: Callable[..., Any]) -> None:
    """Two fresh worlds: capture files, records, adapter, optimizer state and trace agree to the byte."""
    seen = []
    for _ in range(2):
        world = make_world()
        result = train.collect(world.collect_spec(groups=4), world.store, cache_dir=world.cache_dir)
        _, first = run(world, update_spec(world, result))
        seen.append(
            (
                [g.record_sha256 for g in result.groups],
                [g.capture_blob_sha256 for g in result.groups],
                first.record_json,
            )
        )
    assert seen[0] == seen[1]


def test_policy_gradient_raises_the_credited_tokens(collected: Any) -> None:
    """Positive credit makes a trajectory likelier, negative credit less likely."""
    world, result = collected
    record, _ = run(world, update_spec(world, result, optimizer={"epochs": 2}))
    blob = world.store.get(record.trace_blob_sha256)
    traces = [read_frame(blob[ref.offset : ref.offset + ref.length], ref.frame_sha256) for ref in record.traces]
    change = sum(
        float((np.array(item.new_logprobs) - np.array(item.old_logprobs)) @ np.array(item.advantages))
        for item in traces
        if item.step == 1
    )
    assert change > 0
    assert len(traces) == 2 * len(record.credits)
    for step in record.steps:
        assert sum(item.loss or 0.0 for item in traces if item.step == step.step) == pytest.approx(step.loss, abs=1e-6)


def test_trajectory_gradient_norms_equal_separate_backward_passes(collected: Any) -> None:
    """Norms measured inside joint micro-batches against micro-batches of 1."""
    world, result = collected
    norms = []
    for micro_batch in (4, 1):
        record, _ = run(world, update_spec(world, result, optimizer={"micro_batch": micro_batch, "epochs": 1}))
        blob = world.store.get(record.trace_blob_sha256)
        frames = [read_frame(blob[ref.offset : ref.offset + ref.length], ref.frame_sha256) for ref in record.traces]
        norms.append({frame.trajectory_uid: frame.grad_norm for frame in frames})
    assert norms[0] == pytest.approx(norms[1], rel=1e-4)


def test_one_inner_step_says_that_clipping_is_inert(collected: Any) -> None:
    world, result = collected
    record, _ = run(world, update_spec(world, result, optimizer={"epochs": 1}))
    assert (
        record.clipping_inert
        and record.note == "one inner step per batch: the ratio is 1 throughout and clipping is inert"
    )
    assert record.steps[0].clip_low_share == record.steps[0].clip_high_share == 0.0


def test_minibatches_partition_the_trajectories(collected: Any) -> None:
    world, result = collected
    whole, _ = run(world, update_spec(world, result, optimizer={"epochs": 1}))
    parts, _ = run(world, update_spec(world, result, optimizer={"epochs": 1, "minibatches": 2}))
    assert len(parts.steps) == 2
    assert sum(step.trajectories for step in parts.steps) == whole.steps[0].trajectories
    assert sum(step.trained_tokens for step in parts.steps) == whole.steps[0].trained_tokens


def test_optimizer_state_continues(collected: Any) -> None:
    """A second batch that carries the first one's state has step count 2 and other weights than a fresh optimizer."""
    world, result = collected
    first, _ = run(world, update_spec(world, result, optimizer={"epochs": 1}))
    state = read_tensors(world.store.get(first.optimizer_after), "optimizer")
    assert {float(value) for name, value in state.items() if name.startswith("step.")} == {1.0}
    fresh, _ = run(world, update_spec(world, result, optimizer={"epochs": 1}))
    carried, _ = run(world, update_spec(world, result, optimizer={"epochs": 1}, optimizer_sha256=first.optimizer_after))
    state = read_tensors(world.store.get(carried.optimizer_after), "optimizer")
    assert {float(value) for name, value in state.items() if name.startswith("step.")} == {2.0}
    assert fresh.adapter_after == first.adapter_after != carried.adapter_after


def test_next_version_trains_on_its_own_groups_only(collected: Any) -> None:
    """Groups of version 0 are refused under the adapter of version 1."""
    world, result = collected
    first, _ = run(world, update_spec(world, result))
    after = world.policy_ref(first.adapter_after, 1)
    with pytest.raises(EngineFault, match=r"identities\.adapter: got"):
        run(world, update_spec(world, result, policy=after))
    spec = replace(world.collect_spec(groups=4), policy=after)
    second = train.collect(spec, world.store, cache_dir=world.cache_dir)
    record, _ = run(world, replace(update_spec(world, second, policy=after), optimizer_sha256=first.optimizer_after))
    assert record.adapter_before == first.adapter_after and record.policy_version == 1


def test_engine_drift_is_logged_and_small(collected: Any) -> None:
    world, result = collected
    record, answer = run(world, update_spec(world, result))
    assert all(item.engine_drift_max is not None and item.engine_drift_max <= 5e-5 for item in record.credits)
    value = next(item.value for item in answer.metrics if item.definition == "l1.engine_drift_max/1")
    assert value == max(item.engine_drift_max or 0.0 for item in record.credits)


def test_old_logprobs_are_stored_in_order(collected: Any) -> None:
    world, result = collected
    record, _ = run(world, update_spec(world, result))
    stored = np.frombuffer(world.store.get(record.old_logprobs_sha256), dtype="<f4")
    assert len(stored) == sum(item.policy_tokens for item in record.credits)
    blob = world.store.get(record.trace_blob_sha256)
    by_uid = {ref.trajectory_uid: ref for ref in record.traces if ref.step == 0}
    parts = []
    for item in record.credits:
        ref = by_uid[item.trajectory_uid]
        parts.append(read_frame(blob[ref.offset :][: ref.length], ref.frame_sha256).old_logprobs)
    assert np.array_equal(stored, np.concatenate([np.array(part, dtype="<f4") for part in parts]))


def test_fatal_suffix_trains_fewer_tokens(make_world: Callable[..., Any]) -> None:
    """A schedule of three failures from the second call on: kept prefix, cut suffix, another adapter."""
    world = make_world()
    sampling = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "max_new_tokens": 48}
    spec = world.collect_spec(groups=8, injected=(1, 2, 3), max_decisions=8, sampling=sampling)
    result = train.collect(spec, world.store, cache_dir=world.cache_dir)
    records = [parse_record(GroupRecord, item.record_json.encode()) for item in result.groups]
    fatal = [t.uid for g in records for t in g.trajectories if t.facts is not None and t.facts.fatal_start is not None]
    vanilla, _ = run(world, update_spec(world, result))
    suffix, _ = run(world, update_spec(world, result, objective={"credit": "fatal_suffix"}))
    cut = [item for item in suffix.credits if item.masked_tokens]
    assert cut and {item.trajectory_uid for item in cut} <= set(fatal)
    assert all(item.masked_tokens + item.trained_tokens == item.policy_tokens for item in suffix.credits)
    assert [item.advantage for item in suffix.credits] == [item.advantage for item in vanilla.credits]
    assert suffix.steps[0].trajectories == vanilla.steps[0].trajectories
    assert suffix.adapter_after != vanilla.adapter_after


def test_batch_without_signal_keeps_its_parent(make_world: Callable[..., Any]) -> None:
    """Groups of equal rewards: nothing is trained, nothing changes, and the reason is stored."""
    world = make_world()
    result = train.collect(world.collect_spec(groups=4, max_decisions=5), world.store, cache_dir=world.cache_dir)
    flat = []
    for position in range(4):
        record = parse_record(GroupRecord, result.groups[position].record_json.encode())
        equal = tuple(replace(item, reward=replace(item.reward, total=0.0)) for item in record.trajectories)
        data = record_bytes(
            replace(record, trajectories=equal, signal="zero_all_wrong", advantages_G=(0.0,) * 4, mean=0.0, sigma=0.0)
        )
        item = result.groups[position]
        flat.append(UpdateGroup(data.decode(), sha256_hex(data), item.capture_blob_sha256, item.captures))
    for rule, reason in (("skip", "no_signal"), ("train_if_credit", "no_credit")):
        spec = update_spec(world, result, groups=tuple(flat), objective={"zero_variance": rule})
        record, answer = run(world, spec)
        assert record.skipped == reason and record.adapter_after == record.adapter_before
        assert record.steps == () and record.trace_blob_sha256 is None and answer.adapter_blob_bytes == 0


def test_ineligible_groups_are_left_out(make_world: Callable[..., Any]) -> None:
    world = make_world(config={"crash_on": "a"})
    result = train.collect(world.collect_spec(groups=4), world.store, cache_dir=world.cache_dir)
    records = [parse_record(GroupRecord, item.record_json.encode()) for item in result.groups]
    bad = [record.uid for record in records if not record.eligible]
    assert bad and all(record.advantages_G is None for record in records if not record.eligible)
    record, _ = run(world, update_spec(world, result))
    assert not set(bad) & set(record.trained_group_uids) and set(bad) <= set(record.group_uids)
    only = tuple(
        UpdateGroup(item.record_json, item.record_sha256, item.capture_blob_sha256, item.captures)
        for item, parsed in zip(result.groups, records, strict=True)
        if not parsed.eligible
    )
    record, _ = run(world, update_spec(world, result, groups=only))
    assert record.skipped == "no_eligible_group"


def test_non_finite_step_commits_nothing(collected: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second step's loss becomes NaN: no adapter, no steps, and the next run is undisturbed."""
    world, result = collected
    expected, _ = run(world, update_spec(world, result))

    calls = iter(range(100))
    plain = steps.weighted_loss
    monkeypatch.setattr(steps, "weighted_loss", lambda o, w: plain(o, w) * (float("nan") if next(calls) >= 1 else 1.0))
    record, answer = run(world, update_spec(world, result, optimizer={"micro_batch": 32}))
    assert record.skipped == "non_finite" and record.steps == () and record.adapter_after == record.adapter_before
    assert record.note is not None and record.note.startswith("refused: loss nan at step 1")
    assert answer.adapter_blob_bytes == 0 and record.optimizer_after is None
    monkeypatch.setattr(steps, "weighted_loss", plain)
    again, _ = run(world, update_spec(world, result))
    assert again == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: v["identities"].update(adapter="0" * 64), "identities.adapter: got 0000"),
        (lambda v: v["identities"].update(tokenizer="0" * 64), "identities.tokenizer"),
        (lambda v: v["identities"].update(policy_version=3), "identities.policy_version: got 3, expected 0"),
        (lambda v: v["identities"].update(runtime="other"), "identities.runtime"),
        (lambda v: v["identities"].update(harness="other"), "identities.harness"),
        (lambda v: v["advantages_G"].reverse(), "advantages_G: got"),
        (lambda v: v["trajectories"][0]["turns"][0].update(generated_tokens=99), "generated_ids: got"),
        (lambda v: v["trajectories"][0]["turns"][0].update(policy_tokens=0), "is_policy_token: got"),
        (lambda v: v["trajectories"][0]["turns"][0].update(capture_sha256="0" * 64), "captures: got"),
        (lambda v: v["trajectories"][0].update(seed="9"), "seed: got"),
        (lambda v: v.update(run_uid="other"), "run_uid: got other"),
    ],
)
def test_any_mismatch_refuses_the_batch(collected: Any, change: Callable[[dict[str, Any]], None], message: str) -> None:
    world, result = collected
    records = [parse_record(GroupRecord, item.record_json.encode()) for item in result.groups]
    position = next(index for index, record in enumerate(records) if record.signal == "signal")
    group = changed_group(result, position, change)
    with pytest.raises(EngineFault, match=message):
        run(world, update_spec(world, result, groups=(group,)))


def test_altered_capture_bytes_refuse_the_batch(collected: Any) -> None:
    """One more masked token in a capture: another hash, so the record's capture is missing from the file."""
    world, result = collected
    records = [parse_record(GroupRecord, item.record_json.encode()) for item in result.groups]
    position = next(index for index, record in enumerate(records) if record.signal == "signal")
    item = result.groups[position]
    blob = world.store.get(item.capture_blob_sha256)
    altered: dict[str, list[bytes]] = {}
    for ref in item.captures:
        capture = Capture.from_bytes(read_capture(blob, ref))
        capture.is_policy_token[0] = 0
        altered.setdefault(ref.trajectory_uid, []).append(capture.to_bytes())
    data, refs = write_group_file(list(altered.items()))
    group = UpdateGroup(item.record_json, item.record_sha256, world.store.put(data), refs)
    with pytest.raises(EngineFault, match="captures: got"):
        run(world, update_spec(world, result, groups=(group,)))
    lying = tuple(replace(new, capture_sha256=old.capture_sha256) for new, old in zip(refs, item.captures, strict=True))
    with pytest.raises(EngineFault, match="capture_sha256: got none in the frame"):
        run(world, update_spec(world, result, groups=(replace(group, captures=lying),)))


def test_wrong_runtime_and_unknown_settings_are_refused(collected: Any) -> None:
    world, result = collected
    with pytest.raises(EngineFault, match="runtime: got"):
        run(world, update_spec(world, result, runtime="0" * 64))
    with pytest.raises(EngineFault, match=r"optimizer.name: got 'sgd'"):
        run(world, update_spec(world, result, optimizer={"name": "sgd"}))
    with pytest.raises(EngineFault, match=r"kl_beta: got 0.1"):
        run(world, update_spec(world, result, objective={"kl_beta": 0.1}))
    with pytest.raises(EngineFault, match="truncation biases the ratio"):
        sampling = {"temperature": 1.0, "top_p": 0.9, "top_k": 0, "max_new_tokens": 4}
        train.collect(world.collect_spec(sampling=sampling), world.store, cache_dir=world.cache_dir)
