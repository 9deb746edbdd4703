"""A deterministic engine for tests of jobs: answers are pure functions of the specification and a script.

It stands for the runner process (``python -m worker.runner --service tests.runs.engine_double``) and, as
``Engine``, for its client inside one process. Nothing is learnt: an adapter is a line of text.
"""

from __future__ import annotations

import math
import os
import signal
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.blobs import BlobStore
from workbench.capturefile import write_group_file
from workbench.contracts import records as r
from workbench.contracts.canonical import digest, sha256_hex
from workbench.contracts.capture import Capture
from workbench.contracts.jobs import CollectedGroup, CollectResult, CollectSpec, GroupSpec, UpdateResult, UpdateSpec
from workbench.contracts.probe import ProbeSpec
from workbench.contracts.rewards import reward_total
from workbench.contracts.trials import TrialsSpec
from workbench.contracts.wire import from_wire, parse_record, record_bytes, to_wire

RUNTIME = "runtime-test"
STATE = sha256_hex(b"state")
TASK_SHA: dict[str, tuple[str, str]] = {}  # uid -> (task_sha256, family), read from the task set blob


@dataclass
class Script:
    """What the engine does; the default gives every group signal and every update success."""

    reward: Callable[[CollectSpec, GroupSpec, int], float] = lambda spec, group, slot: (0.9, 0.1)[slot % 2]
    invalid: Callable[[CollectSpec, GroupSpec, int], bool] = lambda spec, group, slot: False
    actionable: Callable[[UpdateSpec], int] = lambda spec: 0
    non_finite: Callable[[UpdateSpec], bool] = lambda spec: False
    adapter: Callable[[UpdateSpec], str] = lambda spec: f"adapter {spec.update_uid}"
    components: Callable[[CollectSpec, GroupSpec, int], tuple[r.RewardComponent, ...] | None] = lambda *_: None
    trials: dict[str, Any] = field(default_factory=dict)  # of the fake artefacts: see ``trials_double``
    before: Callable[[str, dict[str, Any]], None] = lambda op, spec: None
    runtime: str = RUNTIME
    calls: list[str] = field(default_factory=list)


def _ids(values: list[int]) -> array[int]:
    return array("i", values)


def _capture(spec: CollectSpec, uid: str, slot: int, seed: str) -> bytes:
    return Capture(
        trajectory_uid=uid, decision=0, branch="main", parent_decision=None, policy_version=spec.policy.policy_version,
        seed=seed, sampling=spec.sampling, identities={"adapter": str(spec.policy.adapter_sha256)}, state_sha256=STATE,
        prompt_ids=_ids([1, 2, 3]), generated_ids=_ids([int(seed) % 1000, slot, 2]),
        is_policy_token=array("B", [1, 1, 1]), segments=array("B", [3, 3, 3]), sampler_logprobs=array("f", [-0.5] * 3),
    ).to_bytes()  # fmt: skip


def _trajectory(
    spec: CollectSpec, group: GroupSpec, slot: Any, script: Script
) -> tuple[r.TrajectoryRecord, list[bytes]]:
    invalid, data = script.invalid(spec, group, slot.slot), _capture(spec, slot.trajectory_uid, slot.slot, slot.seed)
    given = script.components(spec, group, slot.slot)
    total = script.reward(spec, group, slot.slot) if given is None else reward_total(1.0, given)
    turn = r.TurnRecord(
        decision=0, parent_decision=None, branch="main", capture_sha256=sha256_hex(data), prompt_tokens=3,
        generated_tokens=3, policy_tokens=3, action_kind=r.FINISH, parse_error=None, think_text=None,
        action_text="finish", tool_call=None, finish={"answer": "a", "citations": []}, observation=None,
        policy_version=spec.policy.policy_version, state_before_sha256=STATE, state_after_sha256=STATE,
    )  # fmt: skip
    parts = given or (r.RewardComponent("evidence", 1.0, total, total, "measured", {}),)
    facts = r.OutcomeFacts(True, True, False, 0, 0, 0, 0, False, None, None, None, None, False)
    record = r.TrajectoryRecord(
        uid=slot.trajectory_uid, slot=slot.slot, seed=slot.seed, task_uid=group.task_uid,
        failure_profile=group.failure_profile, status=r.INFRASTRUCTURE_INVALID if invalid else r.VALID,
        invalid_reason="EnvironmentFault: gone" if invalid else None, terminal=None if invalid else r.FINISH,
        turns=(turn,), injections=tuple(r.InjectionRecord(o, r.UNREACHED, None) for o in group.injected_ordinals),
        facts=None if invalid else facts,
        reward=None if invalid else r.RewardRecord("evidence_search.reward", "2.1", 1.0, parts, total),
        success=None if invalid else total >= 0.5, success_definition="evidence_search.success/1", invariants=(),
        initial_state_sha256=STATE, final_state_sha256=None if invalid else STATE,
    )  # fmt: skip
    return record, [data]


def _statistics(spec: CollectSpec, trajectories: list[r.TrajectoryRecord]) -> dict[str, Any]:
    none = dict.fromkeys(("ineligible_reason", "signal", "mean", "sigma", "advantage_kind", "advantages_G"))
    if any(item.reward is None for item in trajectories):
        return {**none, "eligible": False, "ineligible_reason": "a slot has no outcome"}
    if spec.advantage is None:
        return {**none, "eligible": True}
    totals = [item.reward.total for item in trajectories if item.reward]
    mean = sum(totals) / len(totals)
    sigma = math.sqrt(sum((x - mean) ** 2 for x in totals) / len(totals))
    flat = sigma**2 <= 1e-12
    return {
        "eligible": True, "ineligible_reason": None, "signal": r.ALL_EQUAL if flat else r.SIGNAL, "mean": mean,
        "sigma": sigma, "advantage_kind": "grpo",
        "advantages_G": tuple(0.0 if flat else (x - mean) / (sigma + 1e-6) for x in totals),
    }  # fmt: skip


def _group(spec: CollectSpec, group: GroupSpec, script: Script, store: BlobStore) -> CollectedGroup:
    made = [_trajectory(spec, group, slot, script) for slot in group.slots]
    task_sha, family = _task(store, spec.environment.task_set_sha256, group.task_uid)
    record = r.GroupRecord(
        uid=group.group_uid, run_uid=spec.run_uid, plan_sha256=spec.plan_sha256, purpose=spec.purpose,
        condition=spec.condition, split=spec.split, ordinal=group.ordinal, task_uid=group.task_uid,
        task_sha256=task_sha, family=family, failure_profile=group.failure_profile, sampling=spec.sampling,
        identities=r.Identities(
            base_model=spec.policy.base_model_sha256, adapter=str(spec.policy.adapter_sha256),
            tokenizer=spec.policy.tokenizer_sha256, formatter="formatter", environment=spec.environment.code_sha256,
            harness="harness", runtime=spec.runtime, reward=sha256_hex(b"reward"),  # what ``Lab.bindings`` binds
            task_set=spec.environment.task_set_sha256,
            policy_version=spec.policy.policy_version,
        ),
        trajectories=tuple(record for record, _ in made), **_statistics(spec, [record for record, _ in made]),
    )  # fmt: skip
    data, refs = write_group_file([(record.uid, captures) for record, captures in made])
    body = record_bytes(record)
    return CollectedGroup(body.decode(), sha256_hex(body), store.put(data), len(data), refs)


def _task(store: BlobStore, task_set: str, uid: str) -> tuple[str, str]:
    if uid not in TASK_SHA:
        from workbench.contracts.canonical import derive_uid, parse_canonical

        for item in parse_canonical(store.get(task_set)):
            sha = digest({name: item[name] for name in ("prompt", "initial_state", "hidden", "tools")})
            TASK_SHA[str(derive_uid(None, f"task:evidence_search/1:{sha}"))] = (sha, item["family"])
    return TASK_SHA[uid]


def collect(spec: CollectSpec, script: Script, store: BlobStore) -> CollectResult:
    """Collect every group. The one metric is equal in every shard of a policy."""
    phase = spec.condition if spec.purpose == r.EVALUATE else spec.purpose
    metric = r.MetricRecord(
        "l2.infrastructure_invalid_share/1", phase, spec.split, {}, 0.0, 4, spec.policy.policy_version, None,
        None, None, None,
    )  # fmt: skip
    return CollectResult(
        tuple(_group(spec, group, script, store) for group in spec.groups), (metric,), {"seconds": 1.0}
    )


def update(spec: UpdateSpec, script: Script, store: BlobStore) -> UpdateResult:
    """One optimizer step over the groups with signal; a skipped batch where there is none."""
    groups = [parse_record(r.GroupRecord, item.record_json.encode()) for item in spec.groups]
    trained = [group for group in groups if group.signal == r.SIGNAL]
    skipped = None if trained else ("no_signal" if any(g.eligible for g in groups) else "no_eligible_group")
    if script.non_finite(spec):
        skipped = "non_finite"
    before = str(spec.policy.adapter_sha256)
    done = skipped is None
    adapter = script.adapter(spec).encode()
    optimizer = f"optimizer {spec.update_uid}".encode()
    rows = [(group, item) for group in trained for item in group.trajectories] if done else []
    actionable = script.actionable(spec)
    captures = [turn.capture_sha256 for _, item in rows for turn in item.turns]
    record = r.UpdateRecord(
        uid=spec.update_uid, run_uid=spec.run_uid, plan_sha256=spec.plan_sha256, batch=spec.batch,
        policy_version=spec.policy.policy_version, adapter_before=before,
        adapter_after=store.put(adapter) if done else before, optimizer_before=spec.optimizer_sha256,
        optimizer_after=store.put(optimizer) if done else spec.optimizer_sha256,
        group_uids=tuple(group.uid for group in groups),
        trained_group_uids=tuple(group.uid for group in trained) if done else (), capture_digest=digest(captures),
        old_logprobs_sha256=store.put(b"".join(c.encode() for c in captures)) if done else None,
        objective=spec.objective, optimizer=spec.optimizer,
        credits=tuple(
            r.TrajectoryCredit(item.uid, group.uid, -1.0, 3, 3, 0, position < actionable, None, None, None)
            for position, (group, item) in enumerate(rows)
        ),
        steps=(
            r.StepRecord(spec.first_step, 0, 0, 0.25, 1e20, 0.01, 0.001, 0.0, 0.1, 0.0, 0.0, 0.0, 2.5, 9, 0, len(rows)),
        ) if done else (),
        traces=(), trace_blob_sha256=None, clipping_inert=True, skipped=skipped, note=None,
    )  # fmt: skip
    body = record_bytes(record)
    return UpdateResult(body.decode(), sha256_hex(body), len(adapter), len(optimizer), (), {"seconds": 1.0})


@dataclass
class Engine:
    """Stands for ``RunnerClient`` inside one process."""

    store: BlobStore
    script: Script = field(default_factory=Script)

    def call(self, op: str, spec: dict[str, Any], **_: Any) -> dict[str, Any]:
        """The answer to one request, through the same plain values as over the pipe."""
        self.script.before(op, spec)
        self.script.calls.append(op)
        return answer(op, spec, self.script, self.store)


def answer(op: str, spec: dict[str, Any], script: Script, store: BlobStore) -> dict[str, Any]:
    """Dispatch by operation."""
    if op == "runtime":
        return {"runtime": script.runtime, "harness": sha256_hex(b"harness")}
    if op == "collect":
        return dict(to_wire(collect(from_wire(CollectSpec, spec), script, store)))
    if op == "update":
        return dict(to_wire(update(from_wire(UpdateSpec, spec), script, store)))
    if op == "probe":
        from tests.runs.probe_double import probe  # the real arithmetic, which loads torch

        return dict(to_wire(probe(from_wire(ProbeSpec, spec))))
    if op == "trials":
        from tests.runs.trials_double import trials  # the real engine function on fake artefacts, which loads torch

        return dict(to_wire(trials(from_wire(TrialsSpec, spec), script, store)))
    raise KeyError(f"op: got {op!r}, expected runtime, collect, update, probe or trials")


def handle(op: str, spec: dict[str, Any], *, store: BlobStore, cache_dir: Path, progress: Any) -> dict[str, Any]:
    """Entry point of the runner process. A file ``die.<op>`` in ``cache_dir`` kills it once, in that operation."""
    order = cache_dir / f"die.{op}"
    if order.exists():
        order.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    progress({"op": op})
    return answer(op, spec, Script(), store)
