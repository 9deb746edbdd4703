"""A small valid study, recorded through the product's own actions: what attacks are tried on.

``build_world`` gives one study, a frozen plan with a strict pair, its execution, one run, one
training group of four trajectories with its capture file, and one update. Everything is
deterministic; nothing is trained or sampled. Blobs go to ``store`` or ``settings.BLOB_ROOT``.

The trajectories are described in ``records``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from django.db.models import F

from evidence.attacks.records import ENVIRONMENT, RUNTIME, SHA, VERSION, group_of, identities, update_of
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
    UpdateBatch,
)
from runs.storage import blob_store, reference_blobs
from workbench.blobs import BlobStore
from workbench.capturefile import write_group_file
from workbench.contracts import layout
from workbench.contracts import records as r
from workbench.contracts.canonical import canonical_bytes, sha256_hex
from workbench.contracts.jobs import CollectedGroup, UpdateResult
from workbench.contracts.wire import record_bytes

AT = datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


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
    study = ensure_study(
        "demo", title={"en": "Demo", "zh": "演示"}, summary={"en": "A study."}, by=actor, at=at, visibility="public"
    )
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
    "AT", "World", "add_group", "add_update", "bindings", "build_world", "collect", "group_of", "identities",
    "latest_checkpoint", "plan_document", "task_identity", "task_set_bytes", "task_uid", "update_of", "update_result",
]  # fmt: skip
