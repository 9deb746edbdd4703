"""L1 and L2 of an update by hand, against NumPy, and against what the update's own trace says."""

from __future__ import annotations

import math
from array import array
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from tests.engine.support import ALPHABET
from tests.engine.test_update import collected, run, update_spec
from workbench.capturefile import read_capture
from workbench.contracts.capture import SEGMENT_NAMES, Capture
from workbench.contracts.records import MetricRecord, UpdateRecord
from workbench.tracefile import Trace, read_frame
from worker.engine import train
from worker.engine.batch import TrajectoryTokens
from worker.engine.reference import MEASURED, chosen_members, kl_estimates
from worker.engine.update_metrics import effective_sample_size, exponential, segment_entropies

__all__ = ["collected"]


def values(metrics: tuple[MetricRecord, ...], name: str, **labels: str) -> list[MetricRecord]:
    return [item for item in metrics if item.definition == f"{name}/1" and item.labels.items() >= labels.items()]


def frames(world: Any, record: UpdateRecord) -> list[Trace]:
    blob = world.store.get(record.trace_blob_sha256)
    return [read_frame(blob[ref.offset :][: ref.length], ref.frame_sha256) for ref in record.traces]


def test_kl_estimates_by_hand() -> None:
    """d = log pi - log ref = ln 2 and -ln 2. k1: mean 0. k3: (1/2 - 1 + 0.6931 + 2 - 1 - 0.6931) / 2 = 0.25."""
    found = kl_estimates(torch.tensor([-1.0, -2.0]), torch.tensor([-1.0 - math.log(2), -2.0 + math.log(2)]))
    assert found.tokens == 2
    assert found.k1 == pytest.approx(0.0, abs=1e-7) and found.k3 == pytest.approx(0.25, abs=1e-6)
    assert kl_estimates(torch.zeros(0), torch.zeros(0)).k3 is None


def test_kl_estimates_approach_the_exact_divergence() -> None:
    """200,000 samples of a known distribution against the closed sum, to 3 standard errors; k3 is never negative."""
    rng = np.random.default_rng(1)
    pi, ref = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    exact = float((pi * np.log(pi / ref)).sum())
    drawn = rng.choice(3, size=200_000, p=pi)
    found = kl_estimates(torch.tensor(np.log(pi[drawn])), torch.tensor(np.log(ref[drawn])))
    error = float(np.log(pi / ref)[drawn].std() / math.sqrt(len(drawn)))
    assert found.k1 is not None and found.k3 is not None
    assert abs(found.k1 - exact) < 3 * error and abs(found.k3 - exact) < 3 * error and found.k3 >= 0


def test_effective_sample_size_by_hand_and_against_numpy() -> None:
    """Weights 1, 1, 2: (1 + 1 + 2)^2 / (1 + 1 + 4) = 16 / 6. Equal weights count fully, a huge one alone."""
    assert effective_sample_size([0.0, 0.0, math.log(2)]) == pytest.approx(16 / 6)
    assert effective_sample_size([3.0] * 7) == pytest.approx(7.0)
    assert effective_sample_size([5000.0, 0.0]) == pytest.approx(1.0)  # e**5000 overflows alone
    assert effective_sample_size([]) is None
    logs = np.random.default_rng(2).normal(size=64)
    weights = np.exp(logs)
    expected = weights.sum() ** 2 / (weights**2).sum()
    assert effective_sample_size(list(logs)) == pytest.approx(float(expected), rel=1e-12)


def test_sequence_ratio_of_small_equal_ratios() -> None:
    """1.002 over 2,000 tokens is 54.4, 0.998 is 0.018; beyond the largest number the ratio is infinite."""
    assert exponential(2000 * math.log(1.002)) == pytest.approx(54.38, abs=0.01)
    assert exponential(2000 * math.log(0.998)) == pytest.approx(0.0182, abs=1e-4)
    assert exponential(1000.0) == math.inf


def test_entropy_by_segment_by_hand() -> None:
    """Entropies 1, 2, 3 of think, think, action: think (1 + 2) / 2; the cut action token counts nowhere."""
    trajectory = TrajectoryTokens("t", "g", 1.0, None, (), (0, 0, 0), None, (), (1, 1, 2))
    zeros = array("f", [0.0] * 3)
    trace = Trace(
        "t", 4, 0.0, 0.0, array("i", [0] * 3), zeros, zeros, zeros, array("B", [0] * 3), array("f", [1, 2, 3]),
        array("B", [1, 1, 0]), zeros,
    )  # fmt: skip
    (found,) = segment_entropies([trace], [trajectory])
    assert (found.step, found.segment, found.entropy, found.tokens) == (4, "think", 1.5, 2)
    both = segment_entropies([trace, replace(trace, is_credited=array("B", [1, 1, 1]))], [trajectory])
    assert [(item.segment, item.entropy, item.tokens) for item in both] == [("think", 1.5, 4), ("action", 3.0, 1)]


def test_entropy_by_segment_agrees_with_trace_and_captures(collected: Any) -> None:
    """Rebuilt from the stored frames and captures; weighted by tokens it is the step's own mean."""
    world, result = collected
    record, answer = run(world, update_spec(world, result))
    segments: dict[str, list[int]] = {}
    for group in result.groups:
        blob = world.store.get(group.capture_blob_sha256)
        for ref in group.captures:
            capture = Capture.from_bytes(read_capture(blob, ref))
            segments.setdefault(ref.trajectory_uid, []).extend(capture.segments)
    sums: dict[tuple[int, str], list[float]] = {}
    for trace in frames(world, record):
        for kind, entropy in zip(segments[trace.trajectory_uid], trace.entropies, strict=True):
            sums.setdefault((trace.step, SEGMENT_NAMES[kind]), []).append(entropy)
    assert record.measures is not None
    found = {(item.step, item.segment): item for item in record.measures.segment_entropies}
    assert found.keys() == sums.keys() and len({segment for _, segment in found}) > 1
    for key, parts in sums.items():
        assert (found[key].tokens, found[key].entropy) == (len(parts), pytest.approx(sum(parts) / len(parts)))
    for step in record.steps:
        own = [item for item in found.values() if item.step == step.step]
        assert sum(item.entropy * item.tokens for item in own) / step.trained_tokens == pytest.approx(step.entropy)
    labelled = values(answer.metrics, "l2.entropy_trained", segment="action")
    assert [item.labels["epoch"] for item in labelled] == ["0", "1"]


def test_two_trajectories_a_batch_in_turn() -> None:
    """Groups a, b, c of two slots. Batch 0: slot 0 of a, b; batch 1: slot 1 of a, c; batch 2: slot 0 of b, c."""
    items = [TrajectoryTokens(f"{g}{s}", g, 1.0, None, (), (0,), None, ()) for g in "abc" for s in (0, 1)]
    taken = [[items[member].uid for member in chosen_members(items, batch)] for batch in range(3)]
    assert taken == [["a0", "b0"], ["a1", "c1"], ["b0", "c0"]]
    assert chosen_members([], 3) == [] and len(chosen_members(items[:2], 0)) == 1 < MEASURED


def test_divergence_to_the_parent(collected: Any) -> None:
    """Exactly 0 at version 0; at version 1 the stored values are those of two teacher-forced passes.

    Measuring changes nothing: the new adapter is the one of an update without a reference.
    """
    world, result = collected
    parent = world.described.parent_adapter_sha256
    first, answer = run(world, update_spec(world, result, reference_adapter_sha256=parent))
    assert first.measures is not None and first.measures.reference_adapter == parent
    assert (first.measures.kl_k1_reference, first.measures.kl_k3_reference) == (0.0, 0.0)
    assert values(answer.metrics, "l1.kl_k3_reference")[0].count == first.measures.reference_tokens > 0
    assert run(world, update_spec(world, result))[0].adapter_after == first.adapter_after

    after = world.policy_ref(first.adapter_after, 1)
    again = train.collect(replace(world.collect_spec(groups=4), policy=after), world.store, cache_dir=world.cache_dir)
    plain = update_spec(world, again, policy=after, batch=1)
    alone, silent = run(world, plain)
    second, _ = run(world, replace(plain, reference_adapter_sha256=parent))
    assert alone.measures is not None and alone.measures.kl_k3_reference is None
    assert not values(silent.metrics, "l1.kl_k3_reference")
    assert second.adapter_after == alone.adapter_after
    measures = second.measures
    assert measures is not None and measures.kl_k3_reference is not None and measures.kl_k3_reference > 1e-8

    credits = [item.trajectory_uid for item in second.credits]
    by_group: dict[str, list[str]] = {}
    for item in second.credits:
        by_group.setdefault(item.group_uid, []).append(item.trajectory_uid)
    slots = [uids[1 % len(uids)] for uids in by_group.values()]
    chosen = sorted({(2 + number) % len(slots) for number in range(2)})
    policy = world.policy_ref(parent)
    model = train.load_policy(policy, world.store, cache_dir=world.cache_dir).causal_model()
    deltas: list[float] = []
    for uid in (slots[place] for place in chosen):
        trace = next(item for item in frames(world, second) if item.trajectory_uid == uid)
        group = next(g for g in again.groups if any(ref.trajectory_uid == uid for ref in g.captures))
        blob, reference = world.store.get(group.capture_blob_sha256), []
        for ref in (ref for ref in group.captures if ref.trajectory_uid == uid):
            capture = Capture.from_bytes(read_capture(blob, ref))
            ids = torch.tensor([[*capture.prompt_ids, *capture.generated_ids]])
            with torch.no_grad():
                logs = model(input_ids=ids).logits[0].log_softmax(-1)
            start = len(capture.prompt_ids)
            reference += [float(logs[start + i - 1, token]) for i, token in enumerate(capture.generated_ids)]
        deltas += [own - other for own, other in zip(trace.old_logprobs, reference, strict=True)]
    assert uid in credits and len(deltas) == measures.reference_tokens
    assert measures.kl_k1_reference == pytest.approx(float(np.mean(deltas)), abs=2e-6)
    assert measures.kl_k3_reference == pytest.approx(
        float(np.mean([math.exp(-d) - 1 + d for d in deltas])), rel=1e-2, abs=1e-7
    )
    assert len(ALPHABET) < 64  # the model of this world is small: the passes above are exact to float32


def test_lag_of_every_trajectory_agrees_with_its_last_frame(collected: Any) -> None:
    """NumPy over the stored frames: ratio to 1e-9 relative, k3 and shares exactly as defined; age 0 on policy."""
    world, result = collected
    record, answer = run(world, update_spec(world, result, optimizer={"epochs": 3, "learning_rate": 5e-2}))
    last = {trace.trajectory_uid: trace for trace in frames(world, record)}
    found = {
        name: {item.subject_uid: item for item in values(answer.metrics, f"l1.{name}")}
        for name in ("trajectory_age", "sequence_ratio", "trajectory_kl_k3", "trajectory_clip_share")
    }
    logs = []
    for uid, trace in last.items():
        delta = np.array(trace.new_logprobs, dtype=np.float64) - np.array(trace.old_logprobs, dtype=np.float64)
        logs.append(delta.sum())
        assert found["trajectory_age"][uid].value == 0.0
        assert found["sequence_ratio"][uid].value == pytest.approx(float(np.exp(delta.sum())), rel=1e-9)
        assert found["trajectory_kl_k3"][uid].value == pytest.approx(
            float((np.exp(delta) - 1 - delta).mean()), rel=1e-6
        )
        assert found["trajectory_clip_share"][uid].value == pytest.approx(float((np.array(trace.clipped) > 0).mean()))
    assert any(item.value for item in found["trajectory_clip_share"].values())
    weights = np.exp(np.array(logs) - max(logs))
    (whole,) = values(answer.metrics, "l1.effective_sample_size", over="trajectory")
    assert whole.value == pytest.approx(float(weights.sum() ** 2 / (weights**2).sum()), rel=1e-9)
    assert whole.count == len(last) and 1.0 <= (whole.value or 0.0) < len(last)
