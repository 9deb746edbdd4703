"""Step 6, traces: what an update says that it did to each token, computed again from what lies below.

Written apart from the engine on purpose (spec "objective and update"): the credit indicators from the plan's rule and
``fatal_start``, advantages from the group's, old values from their blob, ratios, clip sides, and each step's loss and
sums. Log-probabilities are read, not computed: that takes the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evidence.report import StepLog
from workbench.contracts.records import StepRecord, TrajectoryCredit, UpdateRecord
from workbench.tracefile import CLIP_HIGH, CLIP_LOW, Trace

Frames = Mapping[tuple[int, str], Trace]  # by optimizer step and trajectory
RULES = ("vanilla", "fatal_suffix", "one_sided_clamp")
NEAR = 2e-5  # relative: float32 values and sums of them against float64


def check_trace_values(
    log: StepLog,
    record: UpdateRecord,
    frames: Frames,
    old: NDArray[Any] | None,
    decisions: Mapping[str, Sequence[int]],
    terms: Mapping[str, NDArray[Any]] | None = None,
) -> None:
    """Every frame and every step of one update.

    ``old``: the blob's values of all trained trajectories in order, None where it is absent. ``decisions``: decision
    of each policy token by trajectory, from its turns. ``terms``: what edits added to each token, as computed again
    from the trials; None where the rule adds nothing.
    """
    count, parts = len(record.credits), int(record.optimizer["minibatches"])
    start = 0
    before: dict[str, NDArray[Any] | None] = {}
    for credit in record.credits:
        before[credit.trajectory_uid] = None if old is None else old[start : start + credit.policy_tokens]
        start += credit.policy_tokens
    for step in record.steps:
        log.count()
        members = record.credits[step.minibatch * count // parts : (step.minibatch + 1) * count // parts]
        found: list[tuple[TrajectoryCredit, Trace]] = []
        for credit in members:
            frame = frames.get((step.step, credit.trajectory_uid))
            if frame is not None:
                found.append((credit, frame))
                term = None if terms is None else terms.get(credit.trajectory_uid)
                _frame(log, record, step, credit, frame, before[credit.trajectory_uid], decisions, term)
            elif credit.policy_tokens:
                name = f"{record.uid} ({step.step}, {credit.trajectory_uid})"
                log.problem("runs_traceframe", name, "frame_sha256", expected="a frame", got=None)
        _step(log, record, step, len(members), found)


def credit_of(kind: str, credit: TrajectoryCredit, decisions: NDArray[Any]) -> tuple[NDArray[Any], float]:
    """(which policy tokens the rule trains, the advantage that they get)."""
    kept = np.ones(len(decisions), bool)
    value = credit.advantage
    if kind != "vanilla" and credit.fatal_start is not None:
        kept = decisions < credit.fatal_start
        if kind == "one_sided_clamp" and kept.any():
            value = max(value, 0.0)
    return kept, value


def _frame(
    log: StepLog,
    record: UpdateRecord,
    step: StepRecord,
    credit: TrajectoryCredit,
    frame: Trace,
    old: NDArray[Any] | None,
    decisions: Mapping[str, Sequence[int]],
    term: NDArray[Any] | None,
) -> None:
    name = f"{record.uid} ({step.step}, {credit.trajectory_uid})"
    own = np.asarray(decisions.get(credit.trajectory_uid, ()), np.int64)
    was, now = np.asarray(frame.old_logprobs), np.asarray(frame.new_logprobs)
    ratios, sides = np.asarray(frame.ratios), np.asarray(frame.clipped)
    advantages = np.asarray(frame.advantages)
    if len(own) != len(was):
        log.problem("runs_traceframe", name, "length", expected=f"{len(own)} tokens", got=f"{len(was)} tokens")
        return
    checks: list[tuple[str, Any, Any]] = [("decisions", own, np.asarray(frame.decisions))]
    rule = record.objective["credit"]
    if rule in RULES or term is not None:
        kept, value = credit_of(rule if term is None else "vanilla", credit, own)
        applied = np.where(kept, value, 0.0) + (0.0 if term is None else term)
        checks.append(("is_credited", kept.astype(np.uint8), np.asarray(frame.is_credited)))
        checks.append(("advantages", applied.astype(np.float32), advantages))
        if int(kept.sum()) != credit.trained_tokens:
            log.problem("runs_trajectorycredit", f"{record.uid} {credit.trajectory_uid}", "trained_tokens",
                        expected=int(kept.sum()), got=credit.trained_tokens)  # fmt: skip
    if old is not None:
        checks.append(("old_logprobs", old, was))
    if step.epoch == 0 and step.minibatch == 0:
        checks.append(("new_logprobs", was, now))  # nothing was stepped yet: the ratio is exactly 1
    for column, expected, got in checks:
        if not np.array_equal(expected, got):
            at = int(np.flatnonzero(expected != got)[0])
            log.problem("runs_traceframe", name, column, expected=f"{expected[at]} at token {at}", got=got[at])
    rebuilt = np.exp(now.astype(float) - was)
    far = np.flatnonzero(~np.isclose(rebuilt, ratios, rtol=NEAR, atol=1e-30))
    if len(far):
        log.problem("runs_traceframe", name, "ratios", expected=f"{rebuilt[far[0]]} at token {far[0]}",
                    got=ratios[far[0]])  # fmt: skip
    low, high = 1.0 - record.objective["clip_low"], 1.0 + record.objective["clip_high"]
    wanted = np.where((rebuilt < low) & (advantages < 0), CLIP_LOW, 0)
    wanted = np.where((rebuilt > high) & (advantages > 0), CLIP_HIGH, wanted)
    at_bound = np.isclose(rebuilt, low, rtol=NEAR) | np.isclose(rebuilt, high, rtol=NEAR)
    off = np.flatnonzero((wanted != sides) & ~at_bound)
    if len(off):
        log.problem("runs_traceframe", name, "clipped", expected=f"{wanted[off[0]]} at token {off[0]}",
                    got=sides[off[0]])  # fmt: skip


def weights(objective: dict[str, Any], frames: Sequence[Trace], count: int) -> list[NDArray[Any]]:
    """Weight of every token in a step's loss; ``count``: its trajectories, those without a token included."""
    every = sum(int(np.sum(frame.is_credited)) for frame in frames)
    found = []
    for frame in frames:
        kept, turns = np.asarray(frame.is_credited, float), np.asarray(frame.decisions)
        own = float(kept.sum())
        divisor: Any = {
            "trajectory_balanced": count * own,
            "token_mean": every,
            "sequence_sum": count,
            "fixed_length": count * (objective["fixed_length"] or 0),
        }.get(objective["aggregation"])
        if objective["aggregation"] == "turn_balanced":
            sizes = {turn: float(kept[turns == turn].sum()) for turn in np.unique(turns)}
            used = sum(size > 0 for size in sizes.values())
            divisor = np.array([count * used * sizes[turn] for turn in turns])
        found.append(np.divide(kept, divisor, out=np.zeros(len(kept)), where=kept > 0))
    return found


def _step(
    log: StepLog,
    record: UpdateRecord,
    step: StepRecord,
    count: int,
    found: Sequence[tuple[TrajectoryCredit, Trace]],
) -> None:
    """The step's loss and sums from its frames."""
    frames = [frame for _, frame in found]
    low, high = 1.0 - record.objective["clip_low"], 1.0 + record.objective["clip_high"]
    loss = 0.0
    parts: list[tuple[NDArray[Any], ...]] = []
    for frame, weight in zip(frames, weights(record.objective, frames, count), strict=True):
        delta = np.asarray(frame.new_logprobs, float) - np.asarray(frame.old_logprobs, float)
        rho, advantage = np.exp(delta), np.asarray(frame.advantages, float)
        terms = np.minimum(rho * advantage, np.clip(rho, low, high) * advantage)
        loss -= float((terms * weight).sum())
        kept = np.asarray(frame.is_credited, bool)
        parts.append((delta[kept], rho[kept], np.asarray(frame.clipped)[kept], np.asarray(frame.entropies)[kept]))
    delta, rho, sides, entropies = (
        np.concatenate([part[i] for part in parts]) if parts else np.zeros(0) for i in range(4)
    )
    tokens = max(1, len(delta))
    expected = {
        "loss": loss,
        "trained_tokens": len(delta),
        "masked_tokens": sum(len(frame.is_credited) for frame in frames) - len(delta),
        "trajectories": count,
        "clip_low_share": float((sides == CLIP_LOW).sum()) / tokens,
        "clip_high_share": float((sides == CLIP_HIGH).sum()) / tokens,
        "ratio_max_deviation": float(np.abs(rho - 1).max()) if len(rho) else 0.0,
        "kl_k1": float(-delta.sum()) / tokens,
        "kl_k3": float((rho - 1 - delta).sum()) / tokens,
        "entropy": float(entropies.sum()) / tokens,
    }
    for column, value in expected.items():
        got = getattr(step, column)
        if not np.isclose(value, got, rtol=NEAR, atol=1e-6):
            log.problem("runs_updatestep", f"{record.uid} {step.step}", column, expected=value, got=got)
