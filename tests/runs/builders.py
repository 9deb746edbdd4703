"""A small valid world, built through the real actions, for tests of rows, pages and jobs.

``build_world`` gives one study, a frozen plan with a strict pair, its execution, one run, one
training group of four trajectories with its capture file, and one update. Everything is
deterministic. Call it inside a database test; blobs go to ``store`` or ``settings.BLOB_ROOT``.

Slots of a training group under ``prefix_fatal_opportunity``:

    0  search, search(repeat), finish              reward 0.9
    1  search, 3 injected timeouts (Fatal), finish reward 0.5
    2  unparseable text                            reward 0.0 (gate 0)
    3  search, then an unmatched final call        reward 0.3
"""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from django.db.models import F

from runs.actions.actors import service_actor
from runs.actions.plans import ensure_study, freeze_plan, plan_body, save_draft
from runs.actions.record_group import record_group
from runs.actions.record_metrics import write_points
from runs.actions.record_update import record_update
from runs.actions.tasks import store_task_set, task_identity, task_uid
from runs.actions.transitions import move_execution, move_run
from runs.models import (
    Actor,
    Arm,
    Checkpoint,
    Execution,
    Group,
    PlanVersion,
    Run,
    RunHead,
    Study,
    TaskSet,
    Trajectory,
    UpdateBatch,
)
from runs.storage import blob_store, reference_blobs
from workbench.blobs import BlobStore
from workbench.capturefile import write_group_file
from workbench.contracts import layout
from workbench.contracts import records as r
from workbench.contracts.canonical import canonical_bytes, derive_uid, digest, sha256_hex
from workbench.contracts.capture import Capture, pack_array, unpack_array
from workbench.contracts.jobs import CollectedGroup, UpdateResult
from workbench.contracts.wire import record_bytes
from workbench.tracefile import Trace, write_frame

AT = datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
ENVIRONMENT, VERSION = "evidence_search", "1"
RUNTIME = "runtime-test"
SHA = {name: sha256_hex(name.encode()) for name in ("base_model", "tokenizer", "state", "code", "formatter")}


def task_set_bytes(count: int = 4) -> bytes:
    """Canonical tasks: half of them in split train, half in test."""
    tasks = []
    for i in range(count):
        split = "train" if i < (count + 1) // 2 else "test"
        tasks.append(
            {
                "key": f"task-{i}", "split": split, "family": f"family-{i % 2}", "prompt": f"Question {i}?",
                "initial_state": {"budget": 6}, "hidden": {"documents": [f"d{i}"]}, "tools": ["search", "finish"],
            }
        )  # fmt: skip
    return canonical_bytes(tasks)


def plan_document(name: str = "pair") -> dict[str, Any]:
    """A plan with a strict pair, one group a batch."""
    cycle = ["prefix_fatal_opportunity"]
    return {
        "schema": "workbench.plan/1", "study": "demo", "name": name,
        "title": {"en": "Pair", "zh": "配对"}, "question": {"en": "Does it matter?"},
        "policy": {"model": "embedded-evidence-search"},
        "environment": {"id": ENVIRONMENT, "config": {}},
        "reward": {"id": "evidence_search.reward", "version": "2.1"},
        "rollout": {"groups_per_batch": 1},
        "failure": {"train_cycle": cycle, "stress_cycle": cycle},
        "objective": {}, "optimizer": {"learning_rate": 0.001},
        "budget": {"batches": 2, "max_steps": 4}, "seeds": ["1", "2"],
        "arms": [
            {"key": "vanilla", "title": {"en": "Vanilla", "zh": "原版"}, "role": "pair"},
            {
                "key": "masked", "title": {"en": "Masked", "zh": "掩码"}, "role": "pair",
                "overrides": {"objective": {"credit": "fatal_suffix"}},
            },
        ],
        "strict_pairs": [{"arms": ["vanilla", "masked"], "treatment": ["objective.credit"]}],
        "evaluation": {"splits": [{"split": "test", "tasks": 2}], "repeats": 2},
        "claims": {"reach": {"en": "This sample."}, "cannot_show": {"en": "Anything else."}},
    }  # fmt: skip


@dataclass
class World:
    """What ``build_world`` made. ``groups`` and ``updates`` in order."""

    store: BlobStore
    actor: Actor
    study: Study
    version: PlanVersion
    body: dict[str, Any]
    task_set: TaskSet
    execution: Execution
    parent: Checkpoint
    run: Run
    groups: list[Group] = field(default_factory=list)
    updates: list[UpdateBatch] = field(default_factory=list)

    @property
    def group(self) -> Group:
        return self.groups[0]


def build_world(*, store: BlobStore | None = None, groups: int = 1, updates: int = 1, at: datetime = AT) -> World:
    """Build everything; ``updates`` <= ``groups``, update b trains on group b alone."""
    store = store or blob_store()
    actor = service_actor("worker")
    study = ensure_study("demo", title={"en": "Demo", "zh": "演示"}, summary={"en": "A study."}, by=actor, at=at)
    task_set = store_task_set(task_set_bytes(), environment=ENVIRONMENT, version=VERSION, store=store)
    parent_adapter = store.put(b"parent adapter")
    reference_blobs({parent_adapter: "adapter"}, store=store)
    document = canonical_bytes(plan_document()).decode()
    version = freeze_plan(
        save_draft(study, "pair", document, by=actor, at=at), bindings(task_set, parent_adapter), by=actor, at=at
    )
    body = plan_body(version)
    execution, parent, run = _start(version, body, parent_adapter, actor, at)
    world = World(store, actor, study, version, body, task_set, execution, parent, run)
    for ordinal in range(groups):
        add_group(world, ordinal=ordinal, at=at)
        if ordinal < updates:
            add_update(world, [world.groups[ordinal]], batch=ordinal, at=at)
    return world


def bindings(task_set: TaskSet, parent_adapter: str) -> dict[str, Any]:
    """What freezing binds beside the plan document."""
    splits: dict[str, list[dict[str, str]]] = {}
    for task in task_set.all_tasks():
        item = {"uid": str(task.uid), "sha256": task.task_sha256, "family": task.family}
        splits.setdefault(task.split, []).append(item)
    return {
        "policy": {
            "base_model_sha256": SHA["base_model"], "tokenizer_sha256": SHA["tokenizer"],
            "parent_adapter_sha256": parent_adapter, "parent_adapter_bytes": len(b"parent adapter"),
        },
        "runtime": RUNTIME,
        "task_set": {"sha256": task_set.sha256, "splits": splits},
    }  # fmt: skip


def _start(
    version: PlanVersion, body: dict[str, Any], adapter: str, actor: Actor, at: datetime
) -> tuple[Execution, Checkpoint, Run]:
    uid = str(version.uid)
    execution = Execution.objects.create(
        uid=layout.execution_uid(uid), plan_version=version, state="pending", phase="train", updated_at=at
    )
    parent = Checkpoint.objects.create(
        uid=layout.parent_checkpoint_uid(uid), sha256=adapter, policy_version=0, kind="parent",
        base_model_sha256=SHA["base_model"], tokenizer_sha256=SHA["tokenizer"],
        adaptation=body["plan"]["policy"]["adaptation"], blob_bytes=len(b"parent adapter"), created_at=at,
    )  # fmt: skip
    arm = Arm.objects.get(plan_version=version, key="vanilla")
    run = Run.objects.create(
        uid=layout.run_uid(uid, arm.key, "1"), execution=execution, plan_version=version, arm=arm, seed="1",
        name="vanilla-s1", parent_checkpoint=parent, created_at=at,
    )  # fmt: skip
    RunHead.objects.create(run=run, state="pending", phase="train", checkpoint=parent, runtime=RUNTIME, updated_at=at)
    move_execution(execution, "running", reason="started", actor=actor, at=at)
    move_run(run, "running", reason="started", actor=actor, at=at)
    return execution, parent, run


# --- one group ------------------------------------------------------------------------------------


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


NO_STATISTICS = {"signal": None, "mean": None, "sigma": None, "advantage_kind": None, "advantages_G": None}


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
        failure_profile=index.failure_profile, sampling={"temperature": 1.0}, identities=identities(world, checkpoint),
        trajectories=tuple(trajectories), **statistics,
    )  # fmt: skip
    return record, [(item.uid, captures) for item, (_, captures) in zip(trajectories, made, strict=True)]


def collect(world: World, record: r.GroupRecord, captures: list[tuple[str, list[bytes]]]) -> CollectedGroup:
    """Write the capture file to the store and pack the record as the engine does."""
    data, refs = write_group_file(captures)
    body = record_bytes(record)
    return CollectedGroup(body.decode(), sha256_hex(body), world.store.put(data), len(data), refs)


def latest_checkpoint(world: World) -> Checkpoint:
    """The run's newest policy."""
    return Checkpoint.objects.filter(run=world.run).order_by("-policy_version").first() or world.parent


def add_group(world: World, *, checkpoint: Checkpoint | None = None, at: datetime = AT, **options: Any) -> Group:
    """Record one more group (``options`` of ``group_of``) and its reward metric."""
    checkpoint = checkpoint or latest_checkpoint(world)
    record, captures = group_of(world, checkpoint=checkpoint, **options)
    group = record_group(
        plan_version=world.version, run=world.run, checkpoint=checkpoint, collected=collect(world, record, captures),
        at=at, store=world.store,
    )  # fmt: skip
    world.groups.append(group)
    if record.purpose == r.TRAIN:
        rows = list(group.trajectories.all())
        RunHead.objects.filter(run=world.run).update(
            trajectories=F("trajectories") + len(rows),
            generated_tokens=F("generated_tokens") + sum(row.generated_tokens for row in rows),
        )
    if record.mean is not None:
        point = r.MetricRecord(
            "l3.reward_mean/1", "train", "train", {"task": record.task_uid}, record.mean, len(record.trajectories),
            checkpoint.policy_version, None, 4 * (record.ordinal + 1), 33 * (record.ordinal + 1), record.uid,
        )  # fmt: skip
        write_points(world.run, [point], segment="", at=at, wall_seconds=1.5)
    return group


# --- one update -----------------------------------------------------------------------------------


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
    return r.UpdateRecord(
        uid=layout.update_uid(run_uid, batch), run_uid=run_uid, plan_sha256=world.version.sha256, batch=batch,
        policy_version=before.policy_version, adapter_before=before.sha256,
        adapter_after=before.sha256 if skipped else store.put(f"adapter {batch}".encode()),
        optimizer_before=optimizer, optimizer_after=optimizer if skipped else store.put(f"optimizer {batch}".encode()),
        group_uids=tuple(str(group.uid) for group in groups),
        trained_group_uids=() if skipped else tuple(str(group.uid) for group in groups),
        capture_digest=digest([] if skipped else captures),
        old_logprobs_sha256=None if skipped else store.put(pack_array([-0.5] * (3 * len(captures)), "f4")),
        objective={"advantage": "grpo"}, optimizer={"name": "adamw"},
        credits=() if skipped else tuple(
            r.TrajectoryCredit(str(row.uid), str(row.group.uid), row.advantage, row.policy_tokens, row.policy_tokens, 0,
                               False, row.fatal_start, 0.001, 0.002)
            for row in trajectories
        ),
        steps=() if skipped else (
            r.StepRecord(
                before.policy_version, 0, 0, 0.25, 1.5, 0.01, 0.001, 0.0, 0.1, 0.0, 0.0, math.inf, 2.5, 33, 0,
                len(trajectories),
            ),
        ),
        traces=() if skipped else refs,
        trace_blob_sha256=None if skipped else store.put(trace),
        clipping_inert=True, skipped=skipped, note=None,
    )  # fmt: skip


def update_result(record: r.UpdateRecord) -> UpdateResult:
    """The record as the engine hands it over."""
    body = record_bytes(record)
    return UpdateResult(
        body.decode(), sha256_hex(body), len(f"adapter {record.batch}"), len(f"optimizer {record.batch}"), (), {}
    )


def add_update(
    world: World, groups: list[Group], *, batch: int = 0, skipped: str | None = None, at: datetime = AT
) -> UpdateBatch:
    """Record one update over ``groups``."""
    result = update_result(update_of(world, groups, batch=batch, skipped=skipped))
    update = record_update(run=world.run, result=result, at=at, store=world.store)
    RunHead.objects.filter(run=world.run).update(
        policy_version=update.checkpoint_after.policy_version, checkpoint=update.checkpoint_after,
        optimizer_sha256=update.optimizer_after, batch=batch + 1, steps=F("steps") + update.steps.count(),
    )  # fmt: skip
    world.updates.append(update)
    return update


__all__ = [
    "AT", "World", "add_group", "add_update", "bindings", "build_world", "collect", "derive_uid", "group_of",
    "identities", "latest_checkpoint", "plan_document", "task_identity", "task_set_bytes", "task_uid", "update_of",
    "update_result",
]  # fmt: skip
