"""Stage 7, update: one optimizer batch as a transaction.

1. Read the groups and check each against the loaded policy (adapter, version, runtime, identities).
2. Choose the groups to train on, by the plan's rule for zero-variance groups.
3. Load captures (stage 5), give credit (stage 4).
4. Old log-probabilities of the whole batch under the frozen adapter; divergence to the reference.
5. Epochs x minibatches of steps (stage 6), the first with ratio exactly 1.
6. Write old values, trace, optimizer state and adapter to the store; then answer.

Nothing is committed before step 6, and the record alone makes it count: a process killed anywhere
leaves at most unreferenced blobs, and the retry computes the same bytes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from workbench.contracts.canonical import digest, sha256_hex
from workbench.contracts.capture import pack_array
from workbench.contracts.errors import EngineFault
from workbench.contracts.jobs import UpdateGroup, UpdateResult, UpdateSpec
from workbench.contracts.plan_schema import EDIT_CREDITS
from workbench.contracts.records import (
    SIGNAL,
    EditCreditRecord,
    GroupRecord,
    TraceRef,
    TrajectoryCredit,
    UpdateMeasures,
    UpdateRecord,
)
from workbench.contracts.wire import record_bytes
from workbench.tracefile import Trace, write_frame

from .advantage import group_advantages
from .batch import TrajectoryTokens, check_group, load_trajectories, read_group, read_trials
from .checkpoint import checked, load_optimizer, optimizer_bytes
from .credit import TokenCredit, credit_with_edit, token_credit
from .faults import reach
from .policy import Policy
from .reference import Divergence, reference_divergence
from .steps import NonFinite, Progress, Steps, array_of, build_minibatches, old_logprobs, run_steps
from .update_metrics import segment_entropies, update_metrics

NO_ELIGIBLE, NO_SIGNAL, NO_CREDIT, NON_FINITE = "no_eligible_group", "no_signal", "no_credit", "non_finite"
INERT_NOTE = "one inner step per batch: the ratio is 1 throughout and clipping is inert"


@dataclass(frozen=True)
class _Batch:
    """What a batch trains on. ``credits`` is parallel to ``trajectories``.

    ``edit_only``: trained groups without variance. ``trials``: hash of the trials record of each group that was read.
    """

    groups: tuple[GroupRecord, ...]
    trained: tuple[str, ...]
    trajectories: tuple[TrajectoryTokens, ...]
    credits: tuple[TokenCredit, ...]
    skipped: str | None
    edit_only: tuple[str, ...] = ()
    trials: dict[str, str] = field(default_factory=dict)


def make_optimizer(policy: Policy, settings: dict[str, Any]) -> torch.optim.AdamW:
    """AdamW over the trainable parameters, in order of their names."""
    if settings["name"] != "adamw":
        raise EngineFault(f"optimizer.name: got {settings['name']!r}, expected adamw")
    return torch.optim.AdamW(
        list(policy.trainable.values()),
        lr=settings["learning_rate"],
        betas=(settings["beta1"], settings["beta2"]),
        eps=settings["eps"],
        weight_decay=settings["weight_decay"],
    )


def _check_advantages(record: GroupRecord, objective: dict[str, Any]) -> None:
    """The recorded advantages must be those of the recorded rewards under this objective."""
    rewards = [item.reward.total for item in record.trajectories if item.reward is not None]
    expected = group_advantages(rewards, objective["advantage"], objective["advantage_eps"]).advantages_G
    if record.advantages_G != expected:
        raise EngineFault(f"group {record.uid}.advantages_G: got {record.advantages_G}, expected {expected}")


def _read_groups(spec: UpdateSpec, policy: Policy) -> list[GroupRecord]:
    records = []
    expected = {
        "base_model": policy.base_model_sha256,
        "tokenizer": policy.tokenizer_sha256,
        "formatter": policy.formatter.identity(),
    }
    for group in spec.groups:
        record = read_group(group)
        if record.run_uid != spec.run_uid or record.plan_sha256 != spec.plan_sha256:
            raise EngineFault(f"group {record.uid}.run_uid: got {record.run_uid}, expected {spec.run_uid} and its plan")
        if record.eligible:
            check_group(
                record,
                adapter=policy.adapter_sha256,
                policy_version=spec.policy.policy_version,
                runtime=spec.runtime,
                expected=expected,
            )
            _check_advantages(record, spec.objective)
        records.append(record)
    if len({record.uid for record in records}) != len(records):
        raise EngineFault(f"groups: got {len(records)} groups with a repeated uid, expected each once")
    return records


def choose_groups(spec: UpdateSpec, records: Sequence[GroupRecord], store: Any, vocabulary: int) -> _Batch:
    """Groups to train on with their tokens and credit, or the reason why there are none."""
    groups = tuple(records)
    eligible = [pair for pair in zip(spec.groups, records, strict=True) if pair[1].eligible]
    if not eligible:
        return _Batch(groups, (), (), (), NO_ELIGIBLE)
    only_signal = spec.objective["zero_variance"] == "skip"
    candidates = [pair for pair in eligible if pair[1].signal == SIGNAL or not only_signal]
    if not candidates:
        return _Batch(groups, (), (), (), NO_SIGNAL)
    trained: list[str] = []
    trajectories: list[TrajectoryTokens] = []
    credits: list[TokenCredit] = []
    trials: dict[str, str] = {}
    for group, record in candidates:
        found, given = _credited(group, record, spec, store, vocabulary)
        if spec.objective["credit"] in EDIT_CREDITS and group.trials_sha256 is not None:
            trials[record.uid] = group.trials_sha256
        if record.signal != SIGNAL and all(credit.is_zero for credit in given):
            continue
        trained.append(record.uid)
        trajectories += found
        credits += given
    if all(credit.is_zero for credit in credits):
        return _Batch(groups, (), (), (), NO_CREDIT, trials=trials)
    signal = {record.uid for _, record in candidates if record.signal == SIGNAL}
    edit_only = tuple(uid for uid in trained if uid not in signal)
    return _Batch(groups, tuple(trained), tuple(trajectories), tuple(credits), None, edit_only, trials)


def _credited(
    group: UpdateGroup, record: GroupRecord, spec: UpdateSpec, store: Any, vocabulary: int
) -> tuple[list[TrajectoryTokens], list[TokenCredit]]:
    found = load_trajectories(group, record, store, vocabulary=vocabulary)
    kind = spec.objective["credit"]
    if kind not in EDIT_CREDITS:
        return found, [token_credit(kind, item.advantage, item.decisions_T, item.fatal_start) for item in found]
    tried = read_trials(group, record, executed=EDIT_CREDITS[kind] != "E")
    weight, cap = spec.objective["edit_weight"], spec.objective["edit_cap"]
    return found, [
        credit_with_edit(kind, item.advantage, item.decisions_T, item.fatal_start, intervention, weight=weight, cap=cap)
        for item, intervention in zip(found, tried.interventions, strict=True)
    ]


def _drift(trajectory: TrajectoryTokens, old_T: Tensor) -> tuple[float | None, float | None]:
    """Mean and largest |sampler - recomputed| log-probability; None where the sampler gave none."""
    if trajectory.sampler_logprobs_T is None or not trajectory.tokens:
        return None, None
    difference = (torch.tensor(trajectory.sampler_logprobs_T).double() - old_T.double()).abs()
    return float(difference.mean()), float(difference.max())


def _credit_records(batch: _Batch, old: dict[int, Tensor]) -> tuple[TrajectoryCredit, ...]:
    records = []
    for position, (trajectory, credit) in enumerate(zip(batch.trajectories, batch.credits, strict=True)):
        drift = _drift(trajectory, old[position]) if position in old else (None, None)
        records.append(
            TrajectoryCredit(
                trajectory.uid,
                trajectory.group_uid,
                trajectory.advantage,
                trajectory.tokens,
                credit.trained,
                trajectory.tokens - credit.trained,
                credit.clamp_actionable,
                trajectory.fatal_start,
                *drift,
                edit=_edit_record(credit),
            )
        )
    return tuple(records)


def _edit_record(credit: TokenCredit) -> EditCreditRecord | None:
    term = credit.edit
    if term is None:
        return None
    return EditCreditRecord(
        term.arm,
        term.status,
        term.selected,
        term.tokens,
        term.selected_tokens,
        term.difference,
        term.shrinkage,
        term.capped,
        term.signed_mass,
        term.l1_mass,
        term.squared_mass,
    )


def write_traces(traces: Sequence[Trace]) -> tuple[bytes, tuple[TraceRef, ...]]:
    """The batch's trace file and the place of every frame in it."""
    frames, refs, offset = [], [], 0
    for trace in traces:
        frame, sha256 = write_frame(trace)
        frames.append(frame)
        refs.append(TraceRef(trace.step, trace.trajectory_uid, sha256, offset, len(frame)))
        offset += len(frame)
    return b"".join(frames), tuple(refs)


def apply_update(spec: UpdateSpec, policy: Policy, store: Any, progress: Progress | None = None) -> UpdateResult:
    """Run one batch. Raises ``EngineFault`` for inputs that must not be trained on."""
    started, cpu = time.perf_counter(), time.process_time()
    if spec.objective.get("kl_beta", 0.0) != 0.0:
        raise EngineFault(f"objective.kl_beta: got {spec.objective['kl_beta']}, expected 0: no reference is resident")
    records = _read_groups(spec, policy)  # 1
    vocabulary = policy.causal_model().get_input_embeddings().weight.shape[0]
    batch = choose_groups(spec, records, store, vocabulary)  # 2 and 3
    loaded = time.perf_counter()
    old: dict[int, Tensor] = {}
    steps, skipped, note, old_seconds, reference_seconds = Steps(), batch.skipped, None, 0.0, 0.0
    optimizer = divergence = None
    if skipped is None:
        _guard(policy)
        minibatches = build_minibatches(batch.trajectories, batch.credits, spec.objective, spec.optimizer)
        optimizer = make_optimizer(policy, spec.optimizer)
        if spec.optimizer_sha256 is not None:
            load_optimizer(optimizer, policy.trainable, checked(store, spec.optimizer_sha256, "optimizer"))
        before = policy.adapter_sha256
        policy.disturb()
        try:
            old = old_logprobs(policy, minibatches, progress)  # 4
            old_seconds = time.perf_counter() - loaded
            divergence = _reference(spec, policy, store, batch, old)
            reference_seconds = time.perf_counter() - loaded - old_seconds
            steps = run_steps(
                policy,
                minibatches,
                batch.trajectories,
                batch.credits,
                old,
                spec.objective,
                spec.optimizer,
                optimizer,
                spec.first_step,
                progress,
            )  # 5
        except NonFinite as error:
            skipped, note, steps = NON_FINITE, f"refused: {error}", Steps()
        finally:
            for parameter in policy.trainable.values():
                parameter.grad = None
        policy.adapter_sha256 = before
    result = _commit(spec, policy, store, batch, old, steps, optimizer, skipped, note, divergence)  # 6
    timing = {
        "load_seconds": loaded - started,
        "old_logprob_seconds": old_seconds,
        "reference_seconds": reference_seconds,
        "seconds": time.perf_counter() - started,
        "cpu_seconds": time.process_time() - cpu,
        "steps": float(len(steps.records)),
    }
    return UpdateResult(*result, timing)


def _reference(
    spec: UpdateSpec, policy: Policy, store: Any, batch: _Batch, old: dict[int, Tensor]
) -> Divergence | None:
    if spec.reference_adapter_sha256 is None:
        return None
    return reference_divergence(
        policy, store, spec.reference_adapter_sha256, batch.trajectories, old, spec.batch, spec.optimizer
    )


def _guard(policy: Policy) -> None:
    if policy.ref.dtype == "nf4":
        from worker.engine import quantized

        quantized.assert_trainable_nf4(policy.resident.model)


def _commit(
    spec: UpdateSpec,
    policy: Policy,
    store: Any,
    batch: _Batch,
    old: dict[int, Tensor],
    steps: Steps,
    optimizer: torch.optim.Optimizer | None,
    skipped: str | None,
    note: str | None,
    divergence: Divergence | None,
) -> tuple[str, str, int, int, Any]:
    """Write blobs, build the record. Returns the first five fields of ``UpdateResult``."""
    before = policy.adapter_sha256
    after, optimizer_after = before, spec.optimizer_sha256
    adapter_size = optimizer_size = 0
    old_sha = trace_sha = None
    refs: tuple[TraceRef, ...] = ()
    inert = spec.optimizer["epochs"] * spec.optimizer["minibatches"] == 1
    if skipped is None and optimizer is not None:
        values = torch.cat([old[position] for position in range(len(batch.trajectories))])
        old_sha = store.put(pack_array(array_of(values, "f"), "f4"))
        trace_blob, refs = write_traces(steps.traces)
        trace_sha = store.put(trace_blob)
        state = optimizer_bytes(optimizer, policy.trainable)
        optimizer_after, optimizer_size = store.put(state), len(state)
        adapter = policy.adapter_blob()
        after, adapter_size = store.put(adapter), len(adapter)
        policy.resident.adapter_sha256 = policy.adapter_sha256 = after
        reach("adapter_written")
        note = INERT_NOTE if inert else None
    captures = [sha for item in batch.trajectories for sha in item.capture_sha256] if skipped is None else []
    record = UpdateRecord(
        uid=spec.update_uid,
        run_uid=spec.run_uid,
        plan_sha256=spec.plan_sha256,
        batch=spec.batch,
        policy_version=spec.policy.policy_version,
        adapter_before=before,
        adapter_after=after,
        optimizer_before=spec.optimizer_sha256,
        optimizer_after=optimizer_after,
        group_uids=tuple(group.uid for group in batch.groups),
        trained_group_uids=batch.trained if skipped is None else (),
        capture_digest=digest(captures),
        old_logprobs_sha256=old_sha,
        objective=spec.objective,
        optimizer=spec.optimizer,
        credits=_credit_records(batch, old),
        steps=tuple(steps.records),
        traces=refs,
        trace_blob_sha256=trace_sha,
        clipping_inert=inert,
        skipped=skipped,
        note=note,
        measures=_measures(spec, batch, steps, divergence) if skipped is None else None,
        edit_only_group_uids=batch.edit_only if skipped is None else (),
        trials=batch.trials,
    )
    data = record_bytes(record)
    metrics = update_metrics(record, batch.groups, steps.gradient_norms, steps.traces)
    return data.decode(), sha256_hex(data), adapter_size, optimizer_size, metrics


def _measures(spec: UpdateSpec, batch: _Batch, steps: Steps, found: Divergence | None) -> UpdateMeasures:
    return UpdateMeasures(
        reference_adapter=spec.reference_adapter_sha256,
        reference_tokens=0 if found is None else found.tokens,
        kl_k1_reference=None if found is None else found.k1,
        kl_k3_reference=None if found is None else found.k3,
        segment_entropies=segment_entropies(steps.traces, batch.trajectories),
    )
