"""A small world with trials: four arms, a pilot, groups with edits, updates with stored terms."""

from __future__ import annotations

import json
import random
from typing import Any

from django.db import transaction

from runs import models as m
from runs.actions.actors import service_actor
from runs.actions.plans import ensure_study, freeze_plan, plan_body, save_draft
from runs.actions.receipts import append_receipt
from runs.actions.tasks import store_task_set
from runs.storage import blob_store
from tests.pages import rows
from tests.pages.state import World, fake_sha
from tests.pages.trial_plan import ARMS, Repair, document, repair, tasks
from tests.pages.trial_rows import VERIFIER, add_credit, add_trials
from tests.pages.world import _move, _start
from workbench.capturefile import write_group_file
from workbench.contracts import layout
from workbench.contracts.canonical import canonical_bytes
from workbench.contracts.plan_schema import EDIT_CREDITS


def build(batches: int = 2, trained: int = 2, study: str = "edit-credit") -> World:
    """``trained`` of ``batches`` are done in every arm."""
    world = World(rng=random.Random(11))
    with transaction.atomic():
        actor = service_actor("scheduler")
        _freeze(world, actor, batches, study)
        _start(world, actor)
        body = plan_body(world.version)
        parent = m.Run.objects.filter(execution=world.execution).first().parent_checkpoint
        for shard in layout.preflight_shards(body, world.version.sha256, str(world.execution.uid)):
            for spec in shard:
                add_trials(world, *add_group(world, None, parent, spec, "preflight"), actor)
        for key, credit in ARMS:
            _train(world, world.runs[f"{key}-s17"], credit, trained, actor)
        texts = {"schema": "workbench.vocabulary/1", "tokenizer_sha256": fake_sha("repair-tokenizer"),
                 "texts": world.words.texts}  # fmt: skip
        table = json.dumps(texts, ensure_ascii=False).encode()
        m.BlobRef.objects.get_or_create(
            sha256=blob_store().put(table), defaults={"bytes": len(table), "kind": "vocabulary"}
        )
    return world


def _freeze(world: World, actor: Any, batches: int, study: str) -> None:
    task_set = store_task_set(canonical_bytes(tasks()), environment="code_repair", version="1")
    found = list(task_set.all_tasks())
    splits = {
        split: [{"uid": str(x.uid), "sha256": x.task_sha256, "family": x.family} for x in found if x.split == split]
        for split in ("train", "test")
    }
    bindings = {
        "policy": {
            "base_model_sha256": fake_sha("base"), "tokenizer_sha256": fake_sha("repair-tokenizer"),
            "parent_adapter_sha256": fake_sha("repair-parent"), "parent_adapter_bytes": 4096, "parameters": 550_000,
            "trainable_parameters": 36_000,
        },
        "environment": {
            "id": "code_repair", "version": "1", "code_sha256": fake_sha("repair"), "verifier": VERIFIER,
        },
        "reward": {"code_sha256": fake_sha("reward")},
        "harness": fake_sha("harness"),
        "formatter": "compact",
        "runtime": "cpu-torch-2.13-t1",
        "task_set": {"sha256": task_set.sha256, "splits": splits},
    }  # fmt: skip
    world.study = ensure_study(
        study, title={"en": "Edit credit", "zh": "编辑信用"},
        summary={"en": "One edit taken back.", "zh": "收回一次编辑。"}, by=actor, at=world.tick(), visibility="public",
    )  # fmt: skip
    text = json.dumps({**document(batches), "study": study}, ensure_ascii=False)
    world.plan = save_draft(world.study, "tried", text, by=actor, at=world.tick())
    world.version = freeze_plan(world.plan, bindings, by=actor, at=world.tick())
    world.plan.refresh_from_db()


def add_group(world: World, run: Any, checkpoint: Any, spec: Any, purpose: str) -> tuple[Any, list[Repair]]:
    """One group of repairs with captures."""
    task = m.Task.objects.get(uid=spec.task_uid)
    flat = world.rng.random() < 0.2
    repairs = [repair(random.Random(f"{spec.group_uid}{0 if flat else slot.slot}")) for slot in spec.slots]
    rewards = [item.episode.reward for item in repairs]
    mean = sum(rewards) / len(rewards)
    sigma = (sum((value - mean) ** 2 for value in rewards) / len(rewards)) ** 0.5
    signal = "signal" if sigma > 1e-6 else "zero_all_right" if mean == 1 else "zero_all_wrong"
    captures = [
        (slot.trajectory_uid, rows._captures(world, task.prompt, slot, item.episode, checkpoint.policy_version))
        for slot, item in zip(spec.slots, repairs, strict=True)
    ]
    blob, refs = write_group_file([(uid, [c.to_bytes() for c in found]) for uid, found in captures])
    group = m.Group.objects.create(
        uid=spec.group_uid, plan_version=world.version, run=run, checkpoint=checkpoint, purpose=purpose,
        condition="train", split="train", ordinal=spec.ordinal, task=task, failure_profile=spec.failure_profile,
        identities={"base_model": fake_sha("base"), "tokenizer": fake_sha("repair-tokenizer"), "reward": "1"},
        policy_version=checkpoint.policy_version, eligible=True, signal=signal, mean=mean, sigma=sigma,
        record_sha256=fake_sha(spec.group_uid), capture_blob_sha256=blob_store().put(blob),
        capture_blob_bytes=len(blob), created_at=world.tick(4),
    )  # fmt: skip
    places = {(ref.trajectory_uid, ref.decision): ref for ref in refs}
    for slot, item, (_, found) in zip(spec.slots, repairs, captures, strict=True):
        advantage = (item.episode.reward - mean) / (sigma + 1e-6) if signal == "signal" else 0.0
        rows._trajectory(group, slot, item.episode, found, places, advantage)
    return group, repairs


def _train(world: World, run: Any, credit: str, batches: int, actor: Any) -> None:
    _move(run, "running", "started", actor, world.tick())
    checkpoint, body, arm = run.parent_checkpoint, plan_body(world.version), EDIT_CREDITS.get(credit, "O")
    objective = layout.arm_of(body, run.arm.key)["config"]["objective"]
    for batch in range(batches):
        groups = []
        for spec in layout.training_groups(body, world.version.sha256, str(run.uid), run.arm.key, run.seed, batch):
            group, repairs = add_group(world, run, checkpoint, spec, "train")
            add_trials(world, group, repairs, actor)
            groups.append(group)
        checkpoint = _update(world, run, checkpoint, batch, groups, objective, arm, actor)
    m.RunHead.objects.filter(run=run).update(
        policy_version=checkpoint.policy_version, checkpoint=checkpoint, batch=batches, steps=batches,
        updated_at=world.clock,
    )  # fmt: skip


def _update(
    world: World, run: Any, before: Any, batch: int, groups: list[Any], objective: dict[str, Any], arm: str, actor: Any
) -> Any:
    version = before.policy_version + 1
    after = m.Checkpoint.objects.create(
        uid=layout.checkpoint_uid(str(run.uid), version), run=run, parent=before,
        sha256=fake_sha(f"{run.uid}:{version}"), policy_version=version, kind="update",
        base_model_sha256=before.base_model_sha256, tokenizer_sha256=before.tokenizer_sha256,
        adaptation={"kind": "lora", "rank": 8}, blob_bytes=4096, created_at=world.tick(2),
    )  # fmt: skip
    update = m.UpdateBatch.objects.create(
        uid=layout.update_uid(str(run.uid), batch), run=run, batch=batch, policy_version=before.policy_version,
        checkpoint_before=before, checkpoint_after=after, optimizer_before=None,
        optimizer_after=fake_sha(f"opt{batch}"), capture_digest=fake_sha(f"digest{batch}"),
        old_logprobs_sha256=fake_sha("old"), trace_blob_sha256=None, skipped=None, note=None, clipping_inert=True,
        record_sha256=fake_sha(f"update{run.uid}{batch}"),
    )  # fmt: skip
    trained = 0
    for group in groups:
        if group.signal != "signal" and not (
            arm in "BM" and group.trial_set.interventions.exclude(difference=0).exists()
        ):
            continue
        for row in group.trajectories.prefetch_related("turns").order_by("slot"):
            add_credit(update, row, objective, arm)
            trained += row.policy_tokens
    m.UpdateStep.objects.create(
        update=update, step=batch, epoch=0, minibatch=0, loss=0.01, grad_norm=1.0, update_norm=0.01,
        relative_update_norm=1e-4, clip_low_share=0.0, clip_high_share=0.0, ratio_max_deviation=0.0, kl_k1=0.0,
        kl_k3=0.0, entropy=1.2, trained_tokens=trained, masked_tokens=0, trajectories=4 * len(groups),
    )  # fmt: skip
    m.ConsumedGroup.objects.bulk_create([m.ConsumedGroup(group=group, update=update) for group in groups])
    told = {"batch": batch, "adapter_after": after.sha256, "update": str(update.uid)}
    append_receipt(
        f"run:{run.uid}", "update.applied", str(run.uid), {**told, "record_sha256": update.record_sha256},
        actor=actor, at=world.tick(),
    )  # fmt: skip
    return after


def addresses(world: World) -> dict[str, str]:
    """Addresses of its pages that hang on a row."""
    known = m.Intervention.objects.filter(difference__gt=0, eligible_blocks__gt=1).earliest("pk")
    wrong = m.Intervention.objects.filter(status="format_error").earliest("pk")
    first = {key: m.UpdateBatch.objects.filter(run=world.runs[f"{key}-s17"]).earliest("batch") for key in "me"}
    return {
        "edits": f"/trajectories/{known.trajectory.uid}/edits/",
        "untried_edit": f"/trajectories/{wrong.trajectory.uid}/edits/",
        "tried_group": f"/groups/{known.trial_set.group.uid}/",
        "coefficients": f"/updates/{first['m'].uid}/edit-credit/",
        "terminal_coefficients": f"/updates/{first['e'].uid}/edit-credit/",
    }
