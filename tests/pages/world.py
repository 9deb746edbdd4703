"""A small valid world for page tests: one frozen plan, its runs, groups with captures, updates with traces.

Rows are written as the recorder writes them; captures and traces are real bytes in a blob store.
Every number follows from ``seed``; none is a result of anything.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from runs import models as m
from runs.actions.actors import person_actor, service_actor
from runs.actions.plans import ensure_study, freeze_plan, plan_body, save_draft
from runs.actions.receipts import append_receipt
from runs.actions.tasks import store_task_set
from runs.storage import blob_store
from tests.pages.episodes import SYSTEM, TASKS
from tests.pages.rows import add_group, add_update
from tests.pages.state import World, fake_sha
from workbench.contracts import layout
from workbench.contracts.canonical import canonical_bytes, derive_uid

SEEDS = ["17", "7", "42"]


def plan_document(batches: int, seeds: list[str]) -> dict[str, Any]:
    """The plan of the world."""
    cycle = ["control", "prefix_fatal_opportunity", "immediate_fatal_opportunity", "isolated_recoverable_failure"]
    return {
        "schema": "workbench.plan/1",
        "study": "fatal-mask-pair",
        "name": "small",
        "scale": "small",
        "title": {"en": "Fatal suffix mask, strict pair", "zh": "致命后缀掩码，严格配对"},
        "question": {
            "en": "Does cutting credit after a Fatal change recovery under injected failures?",
            "zh": "在注入失败下，截断致命之后的信用是否改变恢复率？",
        },
        "policy": {"model": "embedded-evidence-search"},
        "environment": {"id": "evidence_search"},
        "reward": {"id": "evidence_search", "version": "2.1"},
        "rollout": {"groups_per_batch": 4, "group_size": 4},
        "failure": {"train_cycle": [], "stress_cycle": cycle[1:]},
        "optimizer": {"learning_rate": 0.003},
        "budget": {"batches": batches, "max_steps": 2 * batches},
        "seeds": seeds,
        "arms": [
            {
                "key": "context",
                "title": {"en": "Vanilla, no failures", "zh": "原版，无失败"},
                "role": "context",
                "seeds": [seeds[0]],
            },
            {
                "key": "e2f",
                "title": {"en": "Vanilla mask", "zh": "原版掩码"},
                "role": "pair",
                "overrides": {"failure": {"train_cycle": cycle}},
            },
            {
                "key": "e3",
                "title": {"en": "Fatal suffix mask", "zh": "致命后缀掩码"},
                "role": "pair",
                "overrides": {"failure": {"train_cycle": cycle}, "objective": {"credit": "fatal_suffix"}},
            },
            {
                "key": "e4",
                "title": {"en": "One-sided clamp", "zh": "单侧截断"},
                "role": "gated",
                "seeds": [seeds[0]],
                "overrides": {"failure": {"train_cycle": cycle}, "objective": {"credit": "one_sided_clamp"}},
                "gate": {"rule": "clamp_actionable_cases", "counted_over": "e3", "minimum": 3},
            },
        ],
        "strict_pairs": [{"arms": ["e2f", "e3"], "treatment": ["objective.credit"]}],
        "preflight": {"groups": 4},
        "evaluation": {"splits": [{"split": "test", "tasks": 9}], "repeats": 2},
        "endpoints": [
            {
                "id": "recovery",
                "definition": "evidence_search.recovery/1",
                "metric": "recovery_all",
                "direction": "increase",
                "unit": "share",
                "margin": 0.1,
                "split": "test",
                "condition": "stress",
                "compare": {"kind": "pair", "arms": ["e2f", "e3"]},
            }
        ],
        "claims": {
            "reach": {
                "en": "failure-conditioned resilience under the frozen, injected protocol",
                "zh": "冻结的注入协议下、以失败为条件的韧性",
            },
            "cannot_show": {
                "en": "general ability, production robustness, learned stopping",
                "zh": "一般能力、生产环境稳健性、学会停止",
            },
        },
    }


def build(batches: int = 2, seeds: list[str] | None = None, user: Any = None, evaluated: bool = True) -> World:
    """Build the world. ``batches`` of four groups have been done by the run e3-s17, which still runs."""
    world = World()
    seeds = seeds or SEEDS
    with transaction.atomic():
        actor = person_actor(user) if user else service_actor("scheduler")
        _freeze(world, actor, batches + 2, seeds)
        _start(world, actor)
        first = seeds[0]
        for arm in ("context", "e2f", "e3"):
            _train(world, world.runs[f"{arm}-s{first}"], batches, actor)
        _finish(world, actor, first, evaluated)
        _jobs(world, first)
    return world


def _freeze(world: World, actor: Any, batches: int, seeds: list[str]) -> None:
    tasks = [
        {
            "key": f"{key}-{split[:2]}{i}",
            "split": split,
            "family": key.split("-")[0],
            "prompt": prompt,
            "initial_state": {"n": i},
            "hidden": {"doc": "label/L-14/r2"},
            "tools": ["search", "open"],
        }
        for split, count in (("train", 2), ("test", 2))
        for i in range(count)
        for key, prompt in TASKS
    ]
    tasks = [{**task, "initial_state": {"n": n}} for n, task in enumerate(tasks)]
    task_set = store_task_set(canonical_bytes(tasks), environment="evidence_search", version="2")
    rows = list(task_set.all_tasks())
    splits = {
        s: [{"uid": str(t.uid), "sha256": t.task_sha256, "family": t.family} for t in rows if t.split == s]
        for s in ("train", "test")
    }
    world.words.encode(SYSTEM)
    bindings = {
        "policy": {
            "base_model_sha256": fake_sha("base"),
            "tokenizer_sha256": fake_sha("tokenizer"),
            "parent_adapter_sha256": fake_sha("E1R"),
            "parent_adapter_bytes": 4096,
            "parameters": 550_000,
            "trainable_parameters": 36_000,
        },
        "environment": {"id": "evidence_search", "version": "2", "code_sha256": fake_sha("environment")},
        "reward": {"code_sha256": fake_sha("reward")},
        "harness": fake_sha("harness"),
        "formatter": "compact",
        "runtime": "cpu-torch-2.13-t1",
        "task_set": {"sha256": task_set.sha256, "splits": splits},
    }
    world.study = ensure_study(
        "fatal-mask-pair",
        title={"en": "Fatal mask pair", "zh": "致命掩码配对"},
        summary={"en": "One policy mask, everything else equal.", "zh": "只差一个策略掩码，其余全部相等。"},
        by=actor,
        at=world.tick(),
        visibility="public",
    )
    world.plan = save_draft(
        world.study, "small", json.dumps(plan_document(batches, seeds), ensure_ascii=False), by=actor, at=world.tick()
    )
    world.version = freeze_plan(world.plan, bindings, by=actor, at=world.tick())
    world.plan.refresh_from_db()


def _start(world: World, actor: Any) -> None:
    version, body = world.version, plan_body(world.version)
    world.execution = m.Execution.objects.create(
        uid=layout.execution_uid(str(version.uid)),
        plan_version=version,
        state="running",
        phase="train",
        updated_at=world.tick(),
    )
    m.ExecutionTransition.objects.create(
        execution=world.execution,
        from_state="pending",
        to_state="running",
        reason="started",
        actor=actor,
        at=world.clock,
    )
    policy = body["bindings"]["policy"]
    parent = m.Checkpoint.objects.create(
        uid=layout.parent_checkpoint_uid(str(version.uid)),
        sha256=policy["parent_adapter_sha256"],
        policy_version=0,
        kind="parent",
        base_model_sha256=policy["base_model_sha256"],
        tokenizer_sha256=policy["tokenizer_sha256"],
        adaptation={"kind": "lora", "rank": 8},
        blob_bytes=4096,
        created_at=world.clock,
    )
    for arm in version.arms.order_by("position"):
        for seed in arm.seeds:
            run = m.Run.objects.create(
                uid=layout.run_uid(str(version.uid), arm.key, seed),
                execution=world.execution,
                plan_version=version,
                arm=arm,
                seed=seed,
                name=f"{arm.key}-s{seed}",
                parent_checkpoint=parent,
                created_at=world.tick(),
            )
            m.RunHead.objects.create(
                run=run,
                state="pending",
                phase="train",
                checkpoint=parent,
                runtime="cpu-torch-2.13-t1",
                updated_at=world.clock,
            )
            world.runs[run.name] = run


def _move(run: Any, state: str, reason: str, actor: Any, at: datetime, **values: Any) -> None:
    before = run.head.state
    m.RunHead.objects.filter(run=run).update(state=state, reason=reason, updated_at=at, **values)
    m.RunTransition.objects.create(run=run, from_state=before, to_state=state, reason=reason, actor=actor, at=at)
    run.refresh_from_db()


def _train(world: World, run: Any, batches: int, actor: Any) -> None:
    _move(run, "running", "started", actor, world.tick())
    checkpoint, body = run.parent_checkpoint, plan_body(world.version)
    config, tokens, slots = layout.arm_of(body, run.arm.key)["config"], 0, 0
    for batch in range(batches):
        groups = []
        for spec in layout.training_groups(body, world.version.sha256, str(run.uid), run.arm.key, run.seed, batch):
            group, episodes = add_group(
                world, run, checkpoint, spec, "train", "train", "train", skill=min(0.9, 0.3 + 0.05 * batch)
            )
            groups.append((group, episodes))
            slots += 4
            tokens += sum(t.generated_tokens for t in group.trajectories.all())
        checkpoint = add_update(world, run, checkpoint, batch, groups, config["objective"]["credit"])
        update = m.UpdateBatch.objects.get(run=run, batch=batch)
        told = {"batch": batch, "adapter_after": checkpoint.sha256, "update": str(update.uid)}
        append_receipt(
            f"run:{run.uid}",
            "update.applied",
            str(run.uid),
            {**told, "record_sha256": update.record_sha256},
            actor=actor,
            at=world.tick(),
        )
    m.RunHead.objects.filter(run=run).update(
        policy_version=checkpoint.policy_version,
        checkpoint=checkpoint,
        batch=batches,
        steps=2 * batches,
        trajectories=slots,
        generated_tokens=tokens,
        updated_at=world.clock,
    )


def evaluate(world: World, run: Any, checkpoint: Any, skill: float) -> None:
    body = plan_body(world.version)
    for condition, split in layout.evaluation_grid(body):
        for shard in layout.evaluation_shards(body, world.version.sha256, str(checkpoint.uid), condition, split):
            for spec in shard:
                group, _ = add_group(
                    world, run, checkpoint, spec, "evaluate", condition, split, skill=skill, broken=False
                )
                m.EvaluationItem.objects.bulk_create(
                    [
                        m.EvaluationItem(
                            uid=derive_uid(row.uid, "item"),
                            plan_version=world.version,
                            checkpoint=checkpoint,
                            run=run,
                            condition=condition,
                            split=split,
                            task=group.task,
                            repeat=row.slot,
                            trajectory=row,
                        )
                        for row in group.trajectories.all()
                    ]
                )


def _finish(world: World, actor: Any, first: str, evaluated: bool) -> None:
    parent = world.runs[f"e3-s{first}"].parent_checkpoint
    if evaluated:
        evaluate(world, None, parent, 0.4)
        for arm, skill in (("context", 0.5), ("e2f", 0.5)):
            run = world.runs[f"{arm}-s{first}"]
            run.head.refresh_from_db()
            evaluate(world, run, run.head.checkpoint, skill)
    for arm in ("context", "e2f"):
        run = world.runs[f"{arm}-s{first}"]
        run.head.refresh_from_db()
        _move(run, "completed", "budget spent", actor, world.tick(), phase="done")
        append_receipt(
            f"run:{run.uid}", "run.completed", str(run.uid), {"steps": run.head.steps}, actor=actor, at=world.tick()
        )
    gated = world.runs[f"e4-s{first}"]
    _move(gated, "refused", "gate: 2 actionable cases, minimum 3", actor, world.tick(), phase="done")
    append_receipt(
        f"execution:{world.execution.uid}",
        "gate.refused",
        str(gated.uid),
        {"cases": 2, "minimum": 3, "met": False},
        actor=actor,
        at=world.tick(),
    )
    table = json.dumps(
        {"schema": "workbench.vocabulary/1", "tokenizer_sha256": fake_sha("tokenizer"), "texts": world.words.texts},
        ensure_ascii=False,
    ).encode()
    m.BlobRef.objects.create(sha256=blob_store().put(table), bytes=len(table), kind="vocabulary")


def _jobs(world: World, first: str) -> None:
    run = world.runs[f"e3-s{first}"]
    run.head.refresh_from_db()
    rows = [
        ("collect", "rollout", "collect_shard", "leased", ""),
        ("update", "update", "apply_update", "queued", ""),
        ("boom", "rollout", "collect_shard", "errored", "MemoryError: 4.1 GiB asked, 2.0 GiB free. Attempt 3 of 3."),
        ("done", "update", "apply_update", "succeeded", ""),
    ]
    for name, queue, kind, state, error in rows:
        key = f"{run.uid}:{name}:{run.head.batch}"
        job = m.Job.objects.create(
            uid=derive_uid(None, f"job:{key}"),
            key=key,
            kind=kind,
            queue=queue,
            execution=world.execution,
            run=run,
            spec={"batch": run.head.batch},
            state=state,
            attempt=1 if state != "queued" else 0,
            owner="worker-1" if state == "leased" else "",
            lease_until=world.clock + timedelta(seconds=90) if state == "leased" else None,
            heartbeat_at=world.clock if state == "leased" else None,
            progress={"done": 9, "total": 16, "what": "group 53, slot 3 of 4, turn 2"} if state == "leased" else {},
            error=error,
            created_at=world.tick(),
            finished_at=world.clock if state in ("succeeded", "errored") else None,
        )
        m.JobTransition.objects.create(
            job=job, from_state="queued", to_state="leased", attempt=job.attempt, owner="worker-1", at=world.clock
        )
