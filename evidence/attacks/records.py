"""Records of groups and updates written out by rule, with captures and traces, for the small study of ``studies``.

Slots of a training group under ``prefix_fatal_opportunity``:

    0  search, search(repeat), finish              reward 0.9
    1  search, 3 injected timeouts (Fatal), finish reward 0.5
    2  unparseable text                            reward 0.0 (gate 0)
    3  search, then an unmatched final call        reward 0.3
"""

from __future__ import annotations

import math
from array import array
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from runs.models import Checkpoint, Group, Trajectory
from workbench.contracts import layout
from workbench.contracts import records as r
from workbench.contracts.canonical import digest, sha256_hex
from workbench.contracts.capture import Capture, pack_array, unpack_array
from workbench.tracefile import Trace, write_frame

if TYPE_CHECKING:
    from evidence.attacks.studies import World

ENVIRONMENT, VERSION = "evidence_search", "1"
RUNTIME = "runtime-test"
SHA = {name: sha256_hex(name.encode()) for name in ("base_model", "tokenizer", "state", "code", "formatter")}


def _capture(uid: str, seed: str, decision: int, history: list[int], generated: list[int], version: int) -> Capture:
    count = len(generated)
    return Capture(
        trajectory_uid=uid, decision=decision, branch="main", parent_decision=decision - 1 if decision else None,
        policy_version=version, seed=seed, sampling={"temperature": 1, "top_p": 1, "top_k": 0, "max_new_tokens": 64},
        identities={"base_model": SHA["base_model"], "tokenizer": SHA["tokenizer"]}, state_sha256=SHA["state"],
        prompt_ids=unpack_array(pack_array(history, "i4"), "i4"),
        generated_ids=unpack_array(pack_array(generated, "i4"), "i4"),
        is_policy_token=unpack_array(bytes([1] * count), "u1"), segments=unpack_array(bytes([2] * count), "u1"),
        sampler_logprobs=unpack_array(pack_array([-0.5] * count, "f4"), "f4"),
    )  # fmt: skip


def _call(ordinal: int, *, executed: bool = True, injected: bool = False, repeat: bool = False) -> r.ToolCallRecord:
    return r.ToolCallRecord(
        ordinal=ordinal, tool="search", arguments={"query": "one" if ordinal < 2 else f"q{ordinal}"}, executed=executed,
        backend_called=executed and not injected, is_repeat=repeat,
        is_productive=(not injected and not repeat) if executed else None,
    )  # fmt: skip


def _observation(injected: bool) -> r.ObservationRecord:
    if injected:
        return r.ObservationRecord("timeout", True, True, "The source did not answer.", {})
    return r.ObservationRecord("ok", None, False, "d0: a document\x00", {"documents": ["d0"]})


def _script(slot: int) -> list[tuple[str, r.ToolCallRecord | None, r.ObservationRecord | None]]:
    """(action kind, call, Observation) of each decision of a slot."""
    ok, late = _observation(False), _observation(True)
    if slot % 4 == 0:
        return [("tool", _call(0), ok), ("tool", _call(1, repeat=True), ok), ("finish", None, None)]
    if slot % 4 == 1:
        failed = [("tool", _call(i, injected=True), late) for i in (1, 2, 3)]
        return [("tool", _call(0), ok), *failed, ("finish", None, None)]
    if slot % 4 == 2:
        return [("unparseable", None, None)]
    return [("tool", _call(0), ok), ("tool", _call(1, executed=False), None)]


def _turns(uid: str, seed: str, slot: int, version: int) -> tuple[tuple[r.TurnRecord, ...], list[bytes]]:
    history, turns, captures = [1, 2, 3, 10 + slot], [], []
    for decision, (kind, call, observation) in enumerate(_script(slot)):
        generated = [20 + decision, 30 + slot, 2]
        data = _capture(uid, seed, decision, history, generated, version).to_bytes()
        captures.append(data)
        turns.append(
            r.TurnRecord(
                decision=decision, parent_decision=decision - 1 if decision else None, branch="main",
                capture_sha256=sha256_hex(data), prompt_tokens=len(history), generated_tokens=3, policy_tokens=3,
                action_kind=kind, parse_error="no action" if kind == "unparseable" else None,
                think_text="I look.", action_text=f"{kind} {decision}", tool_call=call,
                finish={"answer": "a", "citations": ["d0"]} if kind == "finish" else None, observation=observation,
                policy_version=version, state_before_sha256=SHA["state"], state_after_sha256=SHA["state"],
            )
        )  # fmt: skip
        history = [*history, *generated, 40 + decision, 3]
    return tuple(turns), captures


TOTALS = (0.9, 0.5, 0.0, 0.3)


def _reward(slot: int) -> r.RewardRecord:
    """Evidence, process and efficiency such that 0.45 e + 0.45 p + 0.10 f is the slot's total (gate 0 in slot 2)."""
    total = TOTALS[slot % 4]
    gate = 0.0 if slot % 4 == 2 else 1.0
    parts = [("evidence", 0.45, total), ("process", 0.45, total), ("efficiency", 0.10, total)]
    if slot % 4 == 2:
        parts = [(name, weight, 0.5) for name, weight, _ in parts]
    components = [r.RewardComponent(name, w, v, w * v, "measured", {}) for name, w, v in parts]
    components.append(r.RewardComponent("safety", 0.0, None, None, "not_measured", {"reason": "no validated judge"}))
    points = sum(part.points for part in components if part.points is not None)
    return r.RewardRecord("evidence_search.reward", "2.1", gate, tuple(components), gate * min(max(points, 0.0), 1.0))


def _facts(slot: int) -> r.OutcomeFacts:
    finished, fatal = slot % 4 in (0, 1), slot % 4 == 1
    return r.OutcomeFacts(
        finished=finished, parser_valid=slot % 4 != 2, premature_finish=False if finished else None,
        tool_depth=(2, 4, 0, 1)[slot % 4], repeat_calls=1 if slot % 4 == 0 else 0,
        productive_calls=(1, 1, 0, 1)[slot % 4], failures_seen=3 if fatal else 0, exposed=fatal,
        recovered=False if fatal else None, fatal_start=1 if fatal else None, fatal_confirmed=3 if fatal else None,
        continued_after_fatal=True if fatal else None, unmatched_final_action=slot % 4 == 3,
    )  # fmt: skip


def _trajectory(
    world: World, uid: str, slot: int, seed: str, task: str, profile: str, version: int
) -> tuple[r.TrajectoryRecord, list[bytes]]:
    turns, captures = _turns(uid, seed, slot, version)
    reached = 3 if slot % 4 == 1 else 0
    record = r.TrajectoryRecord(
        uid=uid, slot=slot, seed=seed, task_uid=task, failure_profile=profile, status=r.VALID, invalid_reason=None,
        terminal=("finish", "finish", "policy_error", "budget_exhausted")[slot % 4], turns=turns,
        injections=tuple(
            r.InjectionRecord(i, r.REALIZED if reached else r.UNREACHED, i if reached else None) for i in (1, 2, 3)
        ),
        facts=_facts(slot), reward=_reward(slot), success=slot % 4 == 0, success_definition="evidence_search.success/1",
        invariants=(r.InvariantVerdict("replay_ids", True, len(turns), None, None, ""),),
        initial_state_sha256=SHA["state"], final_state_sha256=SHA["state"],
    )  # fmt: skip
    return record, captures


def identities(world: World, checkpoint: Checkpoint) -> r.Identities:
    """Identities that agree with the world's checkpoint."""
    return r.Identities(
        base_model=SHA["base_model"], adapter=checkpoint.sha256, tokenizer=SHA["tokenizer"], formatter=SHA["formatter"],
        environment=f"{ENVIRONMENT}/{VERSION}", harness=SHA["code"], runtime=RUNTIME,
        reward="evidence_search.reward/2.1", task_set=world.task_set.sha256, policy_version=checkpoint.policy_version,
    )  # fmt: skip


def _statistics(rewards: list[float]) -> dict[str, Any]:
    """Population mean and sigma, ``grpo`` advantages (eps 1e-6)."""
    mean = sum(rewards) / len(rewards)
    sigma = math.sqrt(sum((x - mean) ** 2 for x in rewards) / len(rewards))
    flat = sigma**2 <= 1e-12
    return {
        "eligible": True, "ineligible_reason": None, "signal": "zero_equal" if flat else "signal",
        "mean": mean, "sigma": sigma, "advantage_kind": "grpo",
        "advantages_G": tuple(0.0 if flat else (x - mean) / (sigma + 1e-6) for x in rewards),
    }  # fmt: skip


NO_STATISTICS: dict[str, Any] = {
    "signal": None,
    "mean": None,
    "sigma": None,
    "advantage_kind": None,
    "advantages_G": None,
}


def group_of(
    world: World, *, checkpoint: Checkpoint, purpose: str = r.TRAIN, ordinal: int = 0, condition: str = "train",
    split: str = "train", broken: bool = False,
) -> tuple[r.GroupRecord, list[tuple[str, list[bytes]]]]:  # fmt: skip
    """A group's record and the captures of each trajectory. ``broken``: slot 3 is infrastructure-invalid."""
    plan_sha, run_uid = world.version.sha256, str(world.run.uid)
    if purpose == r.EVALUATE:
        index = next(
            i for shard in layout.evaluation_shards(world.body, plan_sha, str(checkpoint.uid), condition, split)
            for i in shard if i.ordinal == ordinal
        )  # fmt: skip
    else:
        index = layout.training_groups(world.body, plan_sha, run_uid, "vanilla", "1", ordinal)[0]
    task = next(item for item in world.task_set.all_tasks() if str(item.uid) == index.task_uid)
    made = [
        _trajectory(
            world, s.trajectory_uid, s.slot, s.seed, index.task_uid, index.failure_profile, checkpoint.policy_version
        )
        for s in index.slots
    ]
    trajectories = [record for record, _ in made]
    statistics: dict[str, Any]
    if broken:
        trajectories[3] = replace(
            trajectories[3], status=r.INFRASTRUCTURE_INVALID, invalid_reason="EnvironmentFault: gone", terminal=None,
            facts=None, reward=None, success=None, final_state_sha256=None,
        )  # fmt: skip
        statistics = {**NO_STATISTICS, "eligible": False, "ineligible_reason": "slot 3: EnvironmentFault: gone"}
    elif purpose == r.EVALUATE:
        statistics = {**NO_STATISTICS, "eligible": True, "ineligible_reason": None}
    else:
        statistics = _statistics([item.reward.total for item in trajectories if item.reward])
    record = r.GroupRecord(
        uid=index.group_uid, run_uid=run_uid, plan_sha256=plan_sha, purpose=purpose, condition=condition, split=split,
        ordinal=ordinal, task_uid=index.task_uid, task_sha256=task.task_sha256, family=task.family,
        failure_profile=index.failure_profile, sampling=_sampling(world, purpose),
        identities=identities(world, checkpoint), trajectories=tuple(trajectories), **statistics,
    )  # fmt: skip
    return record, [(item.uid, captures) for item, (_, captures) in zip(trajectories, made, strict=True)]


def _sampling(world: World, purpose: str) -> dict[str, Any]:
    """What the plan gives a group of this purpose."""
    plan = world.body["plan"]
    own = {"temperature": plan["evaluation"]["temperature"]} if purpose == r.EVALUATE else {}
    return {**plan["rollout"]["sampling"], **own}


def _traces(trajectories: list[Trajectory], step: int) -> tuple[bytes, tuple[r.TraceRef, ...]]:
    """A trace file with one frame a trajectory, all ratios 1."""
    data, refs = b"", []
    for row in trajectories:
        decisions = [turn.decision for turn in row.turns.order_by("decision") for _ in range(turn.policy_tokens)]
        count = len(decisions)
        floats = {name: array("f", [value] * count) for name, value in (
            ("old_logprobs", -0.5), ("new_logprobs", -0.5), ("ratios", 1.0), ("entropies", 2.5),
            ("advantages", row.advantage or 0.0),
        )}  # fmt: skip
        trace = Trace(
            str(row.uid), step, 0.25, 1.5, decisions=array("i", decisions), clipped=array("B", bytes(count)),
            is_credited=array("B", [1] * count), **floats,
        )  # fmt: skip
        frame, sha256 = write_frame(trace)
        refs.append(r.TraceRef(step, str(row.uid), sha256, len(data), len(frame)))
        data += frame
    return data, tuple(refs)


def update_of(world: World, groups: list[Group], *, batch: int = 0, skipped: str | None = None) -> r.UpdateRecord:
    """A batch over ``groups`` with one step; its blobs are written to the store."""
    before = groups[0].checkpoint
    trajectories = [row for group in groups for row in group.trajectories.order_by("slot")]
    run_uid, store = str(world.run.uid), world.store
    trace, refs = _traces(trajectories, before.policy_version)
    captures = [turn.capture_sha256 for row in trajectories for turn in row.turns.order_by("decision")]
    optimizer = world.updates[-1].optimizer_after if world.updates else None
    config = layout.arm_of(world.body, "vanilla")["config"]
    loss = -sum(row.advantage or 0.0 for row in trajectories) / len(trajectories)  # every ratio is 1
    return r.UpdateRecord(
        uid=layout.update_uid(run_uid, batch), run_uid=run_uid, plan_sha256=world.version.sha256, batch=batch,
        policy_version=before.policy_version, adapter_before=before.sha256,
        adapter_after=before.sha256 if skipped else store.put(f"adapter {batch}".encode()),
        optimizer_before=optimizer, optimizer_after=optimizer if skipped else store.put(f"optimizer {batch}".encode()),
        group_uids=tuple(str(group.uid) for group in groups),
        trained_group_uids=() if skipped else tuple(str(group.uid) for group in groups),
        capture_digest=digest([] if skipped else captures),
        old_logprobs_sha256=None if skipped else store.put(pack_array([-0.5] * (3 * len(captures)), "f4")),
        objective=config["objective"], optimizer=config["optimizer"],
        credits=() if skipped else tuple(
            r.TrajectoryCredit(str(row.uid), str(row.group.uid), row.advantage or 0.0, row.policy_tokens,
                               row.policy_tokens, 0, False, row.fatal_start, 0.001, 0.002)
            for row in trajectories
        ),
        steps=() if skipped else (
            r.StepRecord(
                before.policy_version, 0, 0, loss, 1.5, 0.01, math.inf, 0.0, 0.0, 0.0, 0.0, 0.0, 2.5, 33, 0,
                len(trajectories),
            ),
        ),
        traces=() if skipped else refs,
        trace_blob_sha256=None if skipped else store.put(trace),
        clipping_inert=True, skipped=skipped, note=None,
    )  # fmt: skip
