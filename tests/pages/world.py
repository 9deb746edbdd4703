"""A small valid world for page tests: one frozen plan, its runs, groups with captures, updates with traces.

Rows are written as the recorder writes them; captures and traces are real bytes in a blob store.
Every number follows from ``seed``; none is a result of anything.
"""

from __future__ import annotations

import json
import random
from array import array
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction

from runs import models as m
from runs.actions.actors import person_actor, service_actor
from runs.actions.plans import ensure_study, freeze_plan, plan_body, save_draft
from runs.actions.receipts import append_receipt
from runs.actions.tasks import store_task_set
from runs.storage import blob_store
from tests.pages.episodes import SYSTEM, TASKS, Episode, play
from tests.pages.text import Words
from workbench.capturefile import write_group_file
from workbench.contracts import layout
from workbench.contracts.canonical import canonical_bytes, derive_uid, sha256_hex
from workbench.contracts.capture import Capture
from workbench.tracefile import Trace, write_frame

T0 = datetime(2026, 11, 30, 0, 12, 6, tzinfo=UTC)
SEEDS = ["17", "7", "42"]


def fake_sha(name: str) -> str:
    """A hash of nothing but a name, where no bytes are needed."""
    return sha256_hex(name.encode())


@dataclass
class World:
    """What was built, for tests to find their way."""

    study: Any = None
    plan: Any = None
    version: Any = None
    execution: Any = None
    runs: dict[str, Any] = field(default_factory=dict)
    words: Words = field(default_factory=Words)
    rng: random.Random = field(default_factory=lambda: random.Random(3))
    clock: datetime = T0

    def tick(self, seconds: float = 3.0) -> datetime:
        """The next moment."""
        self.clock += timedelta(seconds=seconds)
        return self.clock


def plan_document(batches: int, seeds: list[str]) -> dict[str, Any]:
    """The plan of the world."""
    cycle = ["control", "prefix_fatal_opportunity", "immediate_fatal_opportunity", "isolated_recoverable_failure"]
    return {
        "schema": "workbench.plan/1", "study": "fatal-mask-pair", "name": "small", "scale": "small",
        "title": {"en": "Fatal suffix mask, strict pair", "zh": "致命后缀掩码，严格配对"},
        "question": {"en": "Does cutting credit after a Fatal change recovery under injected failures?", "zh": "在注入失败下，截断致命之后的信用是否改变恢复率？"},
        "policy": {"model": "embedded-evidence-search"}, "environment": {"id": "evidence_search"}, "reward": {"id": "evidence_search", "version": "2.1"},
        "rollout": {"groups_per_batch": 4, "group_size": 4}, "failure": {"train_cycle": [], "stress_cycle": cycle[1:]},
        "optimizer": {"learning_rate": 0.003}, "budget": {"batches": batches, "max_steps": 2 * batches},
        "seeds": seeds,
        "arms": [
            {"key": "context", "title": {"en": "Vanilla, no failures", "zh": "原版，无失败"}, "role": "context", "seeds": [seeds[0]]},
            {"key": "e2f", "title": {"en": "Vanilla mask", "zh": "原版掩码"}, "role": "pair", "overrides": {"failure": {"train_cycle": cycle}}},
            {"key": "e3", "title": {"en": "Fatal suffix mask", "zh": "致命后缀掩码"}, "role": "pair", "overrides": {"failure": {"train_cycle": cycle}, "objective": {"credit": "fatal_suffix"}}},
            {"key": "e4", "title": {"en": "One-sided clamp", "zh": "单侧截断"}, "role": "gated", "seeds": [seeds[0]], "overrides": {"failure": {"train_cycle": cycle}, "objective": {"credit": "one_sided_clamp"}}, "gate": {"rule": "clamp_actionable_cases", "counted_over": "e3", "minimum": 3}},
        ],
        "strict_pairs": [{"arms": ["e2f", "e3"], "treatment": ["objective.credit"]}],
        "preflight": {"groups": 4},
        "evaluation": {"splits": [{"split": "test", "tasks": 9}], "repeats": 2},
        "endpoints": [{"id": "recovery", "definition": "evidence_search.recovery/1", "metric": "recovery_all", "direction": "increase", "unit": "share", "margin": 0.1, "split": "test", "condition": "stress", "compare": {"kind": "pair", "arms": ["e2f", "e3"]}}],
        "claims": {"reach": {"en": "failure-conditioned resilience under the frozen, injected protocol", "zh": "冻结的注入协议下、以失败为条件的韧性"}, "cannot_show": {"en": "general ability, production robustness, learned stopping", "zh": "一般能力、生产环境稳健性、学会停止"}},
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
        {"key": f"{key}-{split[:2]}{i}", "split": split, "family": key.split("-")[0], "prompt": prompt,
         "initial_state": {"n": i}, "hidden": {"doc": "label/L-14/r2"}, "tools": ["search", "open"]}
        for split, count in (("train", 2), ("test", 2)) for i in range(count) for key, prompt in TASKS
    ]  # fmt: skip
    tasks = [{**task, "initial_state": {"n": n}} for n, task in enumerate(tasks)]
    task_set = store_task_set(canonical_bytes(tasks), environment="evidence_search", version="2")
    rows = list(task_set.all_tasks())
    splits = {s: [{"uid": str(t.uid), "sha256": t.task_sha256, "family": t.family} for t in rows if t.split == s] for s in ("train", "test")}
    world.words.encode(SYSTEM)
    bindings = {
        "policy": {"base_model_sha256": fake_sha("base"), "tokenizer_sha256": fake_sha("tokenizer"), "parent_adapter_sha256": fake_sha("E1R"), "parent_adapter_bytes": 4096, "parameters": 550_000, "trainable_parameters": 36_000},
        "environment": {"id": "evidence_search", "version": "2", "code_sha256": fake_sha("environment")},
        "reward": {"code_sha256": fake_sha("reward")}, "harness": fake_sha("harness"), "formatter": "compact", "runtime": "cpu-torch-2.13-t1",
        "task_set": {"sha256": task_set.sha256, "splits": splits},
    }  # fmt: skip
    world.study = ensure_study("fatal-mask-pair", title={"en": "Fatal mask pair", "zh": "致命掩码配对"}, summary={"en": "One policy mask, everything else equal.", "zh": "只差一个策略掩码，其余全部相等。"}, by=actor, at=world.tick())
    world.plan = save_draft(world.study, "small", json.dumps(plan_document(batches, seeds), ensure_ascii=False), by=actor, at=world.tick())
    world.version = freeze_plan(world.plan, bindings, by=actor, at=world.tick())
    world.plan.refresh_from_db()


def _start(world: World, actor: Any) -> None:
    version, body = world.version, plan_body(world.version)
    world.execution = m.Execution.objects.create(uid=layout.execution_uid(str(version.uid)), plan_version=version, state="running", phase="train", updated_at=world.tick())
    m.ExecutionTransition.objects.create(execution=world.execution, from_state="pending", to_state="running", reason="started", actor=actor, at=world.clock)
    policy = body["bindings"]["policy"]
    parent = m.Checkpoint.objects.create(
        uid=layout.parent_checkpoint_uid(str(version.uid)), sha256=policy["parent_adapter_sha256"], policy_version=0, kind="parent",
        base_model_sha256=policy["base_model_sha256"], tokenizer_sha256=policy["tokenizer_sha256"], adaptation={"kind": "lora", "rank": 8}, blob_bytes=4096, created_at=world.clock,
    )  # fmt: skip
    for arm in version.arms.order_by("position"):
        for seed in arm.seeds:
            run = m.Run.objects.create(uid=layout.run_uid(str(version.uid), arm.key, seed), execution=world.execution, plan_version=version, arm=arm, seed=seed, name=f"{arm.key}-s{seed}", parent_checkpoint=parent, created_at=world.tick())
            m.RunHead.objects.create(run=run, state="pending", phase="train", checkpoint=parent, runtime="cpu-torch-2.13-t1", updated_at=world.clock)
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
            group, episodes = add_group(world, run, checkpoint, spec, "train", "train", "train", batch, skill=min(0.9, 0.3 + 0.05 * batch))
            groups.append((group, episodes))
            slots += 4
            tokens += sum(t.generated_tokens for t in group.trajectories.all())
        checkpoint = _update(world, run, checkpoint, batch, groups, config["objective"]["credit"])
        append_receipt(f"run:{run.uid}", "update.applied", str(run.uid), {"batch": batch, "adapter_after": checkpoint.sha256}, actor=actor, at=world.tick())
    m.RunHead.objects.filter(run=run).update(policy_version=checkpoint.policy_version, checkpoint=checkpoint, batch=batches, steps=2 * batches, trajectories=slots, generated_tokens=tokens, updated_at=world.clock)


def add_group(world: World, run: Any, checkpoint: Any, spec: Any, purpose: str, condition: str, split: str, batch: int, skill: float = 0.5, broken: bool | None = None) -> tuple[Any, list[Episode | None]]:
    """One group with its trajectories, turns, calls, Observations, rewards and capture file."""
    rng, task = world.rng, m.Task.objects.get(uid=spec.task_uid)
    easy = rng.random() < 0.3 and purpose == "train"
    base = random.Random(f"{spec.group_uid}")
    episodes: list[Episode | None] = []
    for slot in spec.slots:
        source = random.Random(f"{base.random() if not easy else 0.37}-{spec.ordinal if easy else slot.slot}")
        episodes.append(play(source, task.key, spec.failure_profile, 0.95 if easy else skill))
    if broken or (broken is None and purpose == "train" and rng.random() < 0.08):
        episodes[rng.randrange(4)] = None
    rewards = [e.reward for e in episodes if e]
    eligible = len(rewards) == len(episodes)
    mean = sum(rewards) / len(rewards) if eligible and purpose == "train" else None
    sigma = (sum((r - mean) ** 2 for r in rewards) / len(rewards)) ** 0.5 if mean is not None else None
    signal = None
    if sigma is not None:
        signal = "signal" if sigma > 1e-6 else ("zero_all_right" if all(e.success for e in episodes if e) else "zero_all_wrong" if max(rewards) < 0.5 else "zero_equal")
    captures = [(slot.trajectory_uid, _captures(world, task.prompt, slot, e, checkpoint.policy_version)) for slot, e in zip(spec.slots, episodes, strict=True)]
    blob, refs = write_group_file([(uid, [c.to_bytes() for c in found]) for uid, found in captures])
    blob_sha = blob_store().put(blob)
    group = m.Group.objects.create(
        uid=spec.group_uid, plan_version=world.version, run=run, checkpoint=checkpoint, purpose=purpose, condition=condition, split=split, ordinal=spec.ordinal,
        task=task, failure_profile=spec.failure_profile, identities={"base_model": fake_sha("base"), "tokenizer": fake_sha("tokenizer"), "reward": "2.1"}, policy_version=checkpoint.policy_version,
        eligible=eligible, ineligible_reason=None if eligible else f"slot {episodes.index(None)}: worker died", signal=signal, mean=mean, sigma=sigma,
        record_sha256=fake_sha(spec.group_uid), capture_blob_sha256=blob_sha, capture_blob_bytes=len(blob), created_at=world.tick(4),
    )  # fmt: skip
    places = {(ref.trajectory_uid, ref.decision): ref for ref in refs}
    for slot, episode, (_, found) in zip(spec.slots, episodes, captures, strict=True):
        advantage = None
        if mean is not None and sigma is not None and episode:
            advantage = (episode.reward - mean) / (sigma + 1e-6) if signal == "signal" else 0.0
        _trajectory(group, slot, episode, found, places, advantage)
    return group, episodes


def _captures(world: World, prompt: str, slot: Any, episode: Episode | None, policy_version: int) -> list[Capture]:
    ids = world.words.encode(SYSTEM + prompt + " <|assistant|>")
    found: list[Capture] = []
    for decision, step in enumerate(episode.steps if episode else []):
        think = world.words.encode(f"<think> {step.think} </think>")
        action = world.words.encode(step.action + "<|end|>")
        generated = think + action
        kind = 3 if step.finish else 2
        noise = random.Random(f"{slot.trajectory_uid}:{decision}")
        found.append(
            Capture(
                slot.trajectory_uid, decision, "main", decision - 1 if decision else None, policy_version, slot.seed, {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "max_new_tokens": 64},
                {"base_model": fake_sha("base"), "adapter": fake_sha("adapter")}, fake_sha(f"{slot.trajectory_uid}:{decision}"), array("i", ids), array("i", generated),
                array("B", [1] * len(generated)), array("B", [1] * len(think) + [kind] * len(action)), array("f", [-noise.expovariate(1.4) for _ in generated]),
            )
        )  # fmt: skip
        ids = ids + generated + world.words.encode(f"<|obs|> {step.text} <|assistant|>")
    return found


def _trajectory(group: Any, slot: Any, episode: Episode | None, captures: list[Capture], places: dict[Any, Any], advantage: float | None) -> None:
    counts = {"generated_tokens": sum(len(c.generated_ids) for c in captures), "policy_tokens": sum(len(c.generated_ids) for c in captures), "prompt_tokens": sum(len(c.prompt_ids) for c in captures)}
    common = {"uid": slot.trajectory_uid, "group": group, "slot": slot.slot, "seed": slot.seed, "success_definition": "evidence_search.success/1", "initial_state_sha256": fake_sha("state"), **counts}
    if episode is None:
        m.Trajectory.objects.create(**common, status="infrastructure_invalid", invalid_reason="worker died", injections=[], invariants=[])
        return
    total = sum(len(c.prompt_ids) for c in captures[-1:]) + sum(len(c.generated_ids) for c in captures[-1:])
    names = [("replay_ids", total), ("one_version", counts["policy_tokens"]), ("causal_order", len(episode.steps) - 1), ("terminal_agreement", 3)]
    calls = [step for step in episode.steps if step.tool]
    row = m.Trajectory.objects.create(
        **common, status="valid", terminal=episode.terminal, success=episode.success, reward_total=episode.reward, advantage=advantage, reward_version="2.1", gate=episode.gate,
        finished=episode.terminal == "finish", parser_valid=episode.gate > 0, premature_finish=(not episode.success) if episode.terminal == "finish" else None, tool_depth=len(calls), repeat_calls=0,
        productive_calls=sum(s.status == "ok" for s in calls), failures_seen=episode.failures, exposed=episode.failures > 0, recovered=episode.recovered, fatal_start=episode.fatal_start,
        fatal_confirmed=episode.fatal_confirmed, continued_after_fatal=None if episode.fatal_confirmed is None else len(episode.steps) > episode.fatal_confirmed + 1, unmatched_final_action=False,
        injections=episode.injections, invariants=[{"name": n, "holds": True, "checked": c, "failing_decision": None, "failing_token": None, "detail": ""} for n, c in names], final_state_sha256=fake_sha("final"),
    )  # fmt: skip
    m.RewardComponent.objects.bulk_create([m.RewardComponent(trajectory=row, name=n, weight=w, value=v, points=None if v is None else round(w * v, 4), state="not_measured" if v is None else "measured", detail={}) for n, w, v in episode.components])
    ordinal = 0
    for decision, (step, capture) in enumerate(zip(episode.steps, captures, strict=True)):
        ref = places[(str(slot.trajectory_uid), decision)]
        turn = m.Turn.objects.create(
            trajectory=row, decision=decision, branch="main", parent_decision=capture.parent_decision, capture_sha256=ref.capture_sha256, offset=ref.offset, length=ref.length, prompt_tokens=len(capture.prompt_ids),
            generated_tokens=len(capture.generated_ids), policy_tokens=len(capture.generated_ids), action_kind="tool" if step.tool else "finish" if step.finish else "unparseable", parse_error=step.error, think_text=step.think, action_text=step.action,
            finish=step.finish, state_before=fake_sha(f"{decision}"), state_after=fake_sha(f"{decision + 1}"), policy_version=capture.policy_version,
        )  # fmt: skip
        if step.tool:
            call = m.ToolCall.objects.create(turn=turn, ordinal=ordinal, tool=step.tool, arguments=step.arguments, executed=True, backend_called=not step.injected, is_repeat=False, is_productive=step.status == "ok")
            m.Observation.objects.create(call=call, status=step.status, retryable=True if step.status != "ok" else None, injected=step.injected, text=step.text, facts={})
            ordinal += 1


def _update(world: World, run: Any, before: Any, batch: int, groups: list[Any], credit: str) -> Any:
    rng, uid = world.rng, layout.update_uid(str(run.uid), batch)
    trained = [group for group, _ in groups if group.signal == "signal"]
    after = before
    if trained:
        version = before.policy_version + 1
        after = m.Checkpoint.objects.create(uid=layout.checkpoint_uid(str(run.uid), version), run=run, parent=before, sha256=fake_sha(f"{run.uid}:{version}"), policy_version=version, kind="update", base_model_sha256=before.base_model_sha256, tokenizer_sha256=before.tokenizer_sha256, adaptation={"kind": "lora", "rank": 8}, blob_bytes=4096, created_at=world.tick(2))
    frames, blob, credits, masked_total = [], b"", [], 0
    for group in trained:
        for row in group.trajectories.prefetch_related("turns"):
            trace, cut = _trace(row, credit, rng)
            masked_total += cut
            for step in (0, 1):
                frame, sha = write_frame(Trace(str(row.uid), 2 * batch + step, rng.gauss(0, 0.1), rng.expovariate(1), **trace[step]))
                frames.append((2 * batch + step, row, sha, len(blob), len(frame)))
                blob += frame
            credits.append((row, cut))
    update = m.UpdateBatch.objects.create(uid=uid, run=run, batch=batch, policy_version=before.policy_version, checkpoint_before=before, checkpoint_after=after, optimizer_before=None, optimizer_after=fake_sha(f"opt{batch}"), capture_digest=fake_sha(f"digest{batch}"), old_logprobs_sha256=fake_sha("old"), trace_blob_sha256=blob_store().put(blob) if blob else None, skipped=None if trained else "no_signal", note=None, clipping_inert=False, record_sha256=fake_sha(f"update{uid}"))
    for row, cut in credits:
        m.TrajectoryCredit.objects.create(update=update, trajectory=row, advantage=row.advantage, policy_tokens=row.policy_tokens, trained_tokens=row.policy_tokens - cut, masked_tokens=cut, clamp_actionable=bool(row.fatal_start and (row.advantage or 0) < 0), fatal_start=row.fatal_start, engine_drift_mean=2e-6, engine_drift_max=2e-5)
    for step in (0, 1) if trained else ():
        m.UpdateStep.objects.create(update=update, step=2 * batch + step, epoch=step, minibatch=0, loss=rng.gauss(0, 0.02), grad_norm=abs(rng.gauss(1, 0.2)) * (4 if batch == 7 and step else 1), update_norm=0.01, relative_update_norm=1e-4, clip_low_share=0.004 * batch * step, clip_high_share=0.006 * batch * step, ratio_max_deviation=0.0 if step == 0 else 0.4, kl_k1=0.001 * batch, kl_k3=0.0012 * batch, entropy=1.7 - 0.03 * batch + rng.gauss(0, 0.03), trained_tokens=sum(r.policy_tokens - c for r, c in credits), masked_tokens=masked_total, trajectories=len(credits))
    for step, row, sha, offset, length in frames:
        m.TraceFrame.objects.create(update=update, step=step, trajectory=row, frame_sha256=sha, offset=offset, length=length)
    m.ConsumedGroup.objects.bulk_create([m.ConsumedGroup(group=group, update=update) for group, _ in groups])
    return after


def _trace(row: Any, credit: str, rng: random.Random) -> tuple[list[dict[str, Any]], int]:
    decisions = [t.decision for t in row.turns.order_by("decision") for _ in range(t.policy_tokens)]
    keep = [not (credit == "fatal_suffix" and row.fatal_start is not None and d >= row.fatal_start) for d in decisions]
    old = [-rng.expovariate(1.4) for _ in decisions]
    steps = []
    for step in (0, 1):
        shift = [0.0 if step == 0 else rng.gauss(0, 0.12) for _ in decisions]
        ratio = [2.718281828 ** s for s in shift]
        advantage = row.advantage or 0.0
        clipped = [2 if r > 1.2 and advantage > 0 else 1 if r < 0.8 and advantage < 0 else 0 for r in ratio]
        steps.append({"decisions": array("i", decisions), "old_logprobs": array("f", old), "new_logprobs": array("f", [o + s for o, s in zip(old, shift, strict=True)]), "ratios": array("f", ratio), "clipped": array("B", clipped), "entropies": array("f", [rng.expovariate(0.8) for _ in decisions]), "is_credited": array("B", [int(k) for k in keep]), "advantages": array("f", [advantage if k else 0.0 for k in keep])})
    return steps, keep.count(False)


def _evaluate(world: World, run: Any, checkpoint: Any, skill: float) -> None:
    body = plan_body(world.version)
    for condition, split in layout.evaluation_grid(body):
        for shard in layout.evaluation_shards(body, world.version.sha256, str(checkpoint.uid), condition, split):
            for spec in shard:
                group, _ = add_group(world, run, checkpoint, spec, "evaluate", condition, split, 0, skill=skill, broken=False)
                m.EvaluationItem.objects.bulk_create([m.EvaluationItem(uid=derive_uid(row.uid, "item"), plan_version=world.version, checkpoint=checkpoint, run=run, condition=condition, split=split, task=group.task, repeat=row.slot, trajectory=row) for row in group.trajectories.all()])


def _finish(world: World, actor: Any, first: str, evaluated: bool) -> None:
    parent = world.runs[f"e3-s{first}"].parent_checkpoint
    if evaluated:
        _evaluate(world, None, parent, 0.4)
        for arm, skill in (("context", 0.5), ("e2f", 0.5)):
            run = world.runs[f"{arm}-s{first}"]
            run.head.refresh_from_db()
            _evaluate(world, run, run.head.checkpoint, skill)
    for arm in ("context", "e2f"):
        run = world.runs[f"{arm}-s{first}"]
        run.head.refresh_from_db()
        _move(run, "completed", "budget spent", actor, world.tick(), phase="done")
        append_receipt(f"run:{run.uid}", "run.completed", str(run.uid), {"steps": run.head.steps}, actor=actor, at=world.tick())
    gated = world.runs[f"e4-s{first}"]
    _move(gated, "refused", "gate: 2 actionable cases, minimum 3", actor, world.tick(), phase="done")
    append_receipt(f"execution:{world.execution.uid}", "gate.refused", str(gated.uid), {"cases": 2, "minimum": 3, "met": False}, actor=actor, at=world.tick())
    table = json.dumps({"schema": "workbench.vocabulary/1", "tokenizer_sha256": fake_sha("tokenizer"), "texts": world.words.texts}, ensure_ascii=False).encode()
    m.BlobRef.objects.create(sha256=blob_store().put(table), bytes=len(table), kind="vocabulary")


def _jobs(world: World, first: str) -> None:
    run = world.runs[f"e3-s{first}"]
    run.head.refresh_from_db()
    rows = [("collect", "rollout", "collect_shard", "leased", ""), ("update", "update", "apply_update", "queued", ""), ("boom", "rollout", "collect_shard", "errored", "MemoryError: 4.1 GiB asked, 2.0 GiB free. Attempt 3 of 3."), ("done", "update", "apply_update", "succeeded", "")]
    for name, queue, kind, state, error in rows:
        key = f"{run.uid}:{name}:{run.head.batch}"
        job = m.Job.objects.create(uid=derive_uid(None, f"job:{key}"), key=key, kind=kind, queue=queue, execution=world.execution, run=run, spec={"batch": run.head.batch}, state=state, attempt=1 if state != "queued" else 0, owner="worker-1" if state == "leased" else "", lease_until=world.clock + timedelta(seconds=90) if state == "leased" else None, heartbeat_at=world.clock if state == "leased" else None, progress={"done": 9, "total": 16, "what": "group 53, slot 3 of 4, turn 2"} if state == "leased" else {}, error=error, created_at=world.tick(), finished_at=world.clock if state in ("succeeded", "errored") else None)
        m.JobTransition.objects.create(job=job, from_state="queued", to_state="leased", attempt=job.attempt, owner="worker-1", at=world.clock)
