"""Rows of groups and updates for page tests, with real capture and trace bytes."""

from __future__ import annotations

import random
from array import array
from typing import Any

from runs import models as m
from runs.storage import blob_store
from tests.pages.episodes import SYSTEM, Episode, play
from tests.pages.state import World, fake_sha
from workbench.capturefile import write_group_file
from workbench.contracts import layout
from workbench.contracts.capture import Capture
from workbench.tracefile import Trace, write_frame


def add_group(
    world: World,
    run: Any,
    checkpoint: Any,
    spec: Any,
    purpose: str,
    condition: str,
    split: str,
    skill: float = 0.5,
    broken: bool | None = None,
) -> tuple[Any, list[Episode | None]]:
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
        signal = (
            "signal"
            if sigma > 1e-6
            else (
                "zero_all_right"
                if all(e.success for e in episodes if e)
                else "zero_all_wrong"
                if max(rewards) < 0.5
                else "zero_equal"
            )
        )
    captures = [
        (slot.trajectory_uid, _captures(world, task.prompt, slot, e, checkpoint.policy_version))
        for slot, e in zip(spec.slots, episodes, strict=True)
    ]
    blob, refs = write_group_file([(uid, [c.to_bytes() for c in found]) for uid, found in captures])
    blob_sha = blob_store().put(blob)
    group = m.Group.objects.create(
        uid=spec.group_uid,
        plan_version=world.version,
        run=run,
        checkpoint=checkpoint,
        purpose=purpose,
        condition=condition,
        split=split,
        ordinal=spec.ordinal,
        task=task,
        failure_profile=spec.failure_profile,
        identities={"base_model": fake_sha("base"), "tokenizer": fake_sha("tokenizer"), "reward": "2.1"},
        policy_version=checkpoint.policy_version,
        eligible=eligible,
        ineligible_reason=None if eligible else f"slot {episodes.index(None)}: worker died",
        signal=signal,
        mean=mean,
        sigma=sigma,
        record_sha256=fake_sha(spec.group_uid),
        capture_blob_sha256=blob_sha,
        capture_blob_bytes=len(blob),
        created_at=world.tick(4),
    )
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
                slot.trajectory_uid,
                decision,
                "main",
                decision - 1 if decision else None,
                policy_version,
                slot.seed,
                {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "max_new_tokens": 64},
                {"base_model": fake_sha("base"), "adapter": fake_sha("adapter")},
                fake_sha(f"{slot.trajectory_uid}:{decision}"),
                array("i", ids),
                array("i", generated),
                array("B", [1] * len(generated)),
                array("B", [1] * len(think) + [kind] * len(action)),
                array("f", [-noise.expovariate(1.4) for _ in generated]),
            )
        )
        ids = ids + generated + world.words.encode(f"<|obs|> {step.text} <|assistant|>")
    return found


def _trajectory(
    group: Any,
    slot: Any,
    episode: Episode | None,
    captures: list[Capture],
    places: dict[Any, Any],
    advantage: float | None,
) -> None:
    counts = {
        "generated_tokens": sum(len(c.generated_ids) for c in captures),
        "policy_tokens": sum(len(c.generated_ids) for c in captures),
        "prompt_tokens": sum(len(c.prompt_ids) for c in captures),
    }
    common = {
        "uid": slot.trajectory_uid,
        "group": group,
        "slot": slot.slot,
        "seed": slot.seed,
        "success_definition": "evidence_search.success/1",
        "initial_state_sha256": fake_sha("state"),
        **counts,
    }
    if episode is None:
        m.Trajectory.objects.create(
            **common, status="infrastructure_invalid", invalid_reason="worker died", injections=[], invariants=[]
        )
        return
    total = sum(len(c.prompt_ids) for c in captures[-1:]) + sum(len(c.generated_ids) for c in captures[-1:])
    names = [
        ("replay_ids", total),
        ("one_version", counts["policy_tokens"]),
        ("causal_order", len(episode.steps) - 1),
        ("terminal_agreement", 3),
    ]
    calls = [step for step in episode.steps if step.tool]
    row = m.Trajectory.objects.create(
        **common,
        status="valid",
        terminal=episode.terminal,
        success=episode.success,
        reward_total=episode.reward,
        advantage=advantage,
        reward_version="2.1",
        gate=episode.gate,
        finished=episode.terminal == "finish",
        parser_valid=episode.gate > 0,
        premature_finish=(not episode.success) if episode.terminal == "finish" else None,
        tool_depth=len(calls),
        repeat_calls=0,
        productive_calls=sum(s.status == "ok" for s in calls),
        failures_seen=episode.failures,
        exposed=episode.failures > 0,
        recovered=episode.recovered,
        fatal_start=episode.fatal_start,
        fatal_confirmed=episode.fatal_confirmed,
        continued_after_fatal=None
        if episode.fatal_confirmed is None
        else len(episode.steps) > episode.fatal_confirmed + 1,
        unmatched_final_action=False,
        injections=episode.injections,
        invariants=[
            {"name": n, "holds": True, "checked": c, "failing_decision": None, "failing_token": None, "detail": ""}
            for n, c in names
        ],
        final_state_sha256=fake_sha("final"),
    )
    m.RewardComponent.objects.bulk_create(
        [
            m.RewardComponent(
                trajectory=row,
                name=n,
                weight=w,
                value=v,
                points=None if v is None else round(w * v, 4),
                state="not_measured" if v is None else "measured",
                detail={},
            )
            for n, w, v in episode.components
        ]
    )
    ordinal = 0
    for decision, (step, capture) in enumerate(zip(episode.steps, captures, strict=True)):
        ref = places[(str(slot.trajectory_uid), decision)]
        turn = m.Turn.objects.create(
            trajectory=row,
            decision=decision,
            branch="main",
            parent_decision=capture.parent_decision,
            capture_sha256=ref.capture_sha256,
            offset=ref.offset,
            length=ref.length,
            prompt_tokens=len(capture.prompt_ids),
            generated_tokens=len(capture.generated_ids),
            policy_tokens=len(capture.generated_ids),
            action_kind="tool" if step.tool else "finish" if step.finish else "unparseable",
            parse_error=step.error,
            think_text=step.think,
            action_text=step.action,
            finish=step.finish,
            state_before=fake_sha(f"{decision}"),
            state_after=fake_sha(f"{decision + 1}"),
            policy_version=capture.policy_version,
        )
        if step.tool:
            call = m.ToolCall.objects.create(
                turn=turn,
                ordinal=ordinal,
                tool=step.tool,
                arguments=step.arguments,
                executed=True,
                backend_called=not step.injected,
                is_repeat=False,
                is_productive=step.status == "ok",
            )
            m.Observation.objects.create(
                call=call,
                status=step.status,
                retryable=True if step.status != "ok" else None,
                injected=step.injected,
                text=step.text,
                facts={},
            )
            ordinal += 1


def add_update(world: World, run: Any, before: Any, batch: int, groups: list[Any], credit: str) -> Any:
    rng, uid = world.rng, layout.update_uid(str(run.uid), batch)
    trained = [group for group, _ in groups if group.signal == "signal"]
    after = before
    if trained:
        version = before.policy_version + 1
        after = m.Checkpoint.objects.create(
            uid=layout.checkpoint_uid(str(run.uid), version),
            run=run,
            parent=before,
            sha256=fake_sha(f"{run.uid}:{version}"),
            policy_version=version,
            kind="update",
            base_model_sha256=before.base_model_sha256,
            tokenizer_sha256=before.tokenizer_sha256,
            adaptation={"kind": "lora", "rank": 8},
            blob_bytes=4096,
            created_at=world.tick(2),
        )
    frames, blob, credits, masked_total = [], b"", [], 0
    for group in trained:
        for row in group.trajectories.prefetch_related("turns"):
            trace, cut = _trace(row, credit, rng)
            masked_total += cut
            for step in (0, 1):
                frame, sha = write_frame(
                    Trace(str(row.uid), 2 * batch + step, rng.gauss(0, 0.1), rng.expovariate(1), **trace[step])
                )
                frames.append((2 * batch + step, row, sha, len(blob), len(frame)))
                blob += frame
            credits.append((row, cut))
    update = m.UpdateBatch.objects.create(
        uid=uid,
        run=run,
        batch=batch,
        policy_version=before.policy_version,
        checkpoint_before=before,
        checkpoint_after=after,
        optimizer_before=None,
        optimizer_after=fake_sha(f"opt{batch}"),
        capture_digest=fake_sha(f"digest{batch}"),
        old_logprobs_sha256=fake_sha("old"),
        trace_blob_sha256=blob_store().put(blob) if blob else None,
        skipped=None if trained else "no_signal",
        note=None,
        clipping_inert=False,
        record_sha256=fake_sha(f"update{uid}"),
    )
    for row, cut in credits:
        m.TrajectoryCredit.objects.create(
            update=update,
            trajectory=row,
            advantage=row.advantage,
            policy_tokens=row.policy_tokens,
            trained_tokens=row.policy_tokens - cut,
            masked_tokens=cut,
            clamp_actionable=bool(row.fatal_start and (row.advantage or 0) < 0),
            fatal_start=row.fatal_start,
            engine_drift_mean=2e-6,
            engine_drift_max=2e-5,
        )
    for step in (0, 1) if trained else ():
        m.UpdateStep.objects.create(
            update=update,
            step=2 * batch + step,
            epoch=step,
            minibatch=0,
            loss=rng.gauss(0, 0.02),
            grad_norm=abs(rng.gauss(1, 0.2)) * (4 if batch == 7 and step else 1),
            update_norm=0.01,
            relative_update_norm=1e-4,
            clip_low_share=0.004 * batch * step,
            clip_high_share=0.006 * batch * step,
            ratio_max_deviation=0.0 if step == 0 else 0.4,
            kl_k1=0.001 * batch,
            kl_k3=0.0012 * batch,
            entropy=1.7 - 0.03 * batch + rng.gauss(0, 0.03),
            trained_tokens=sum(r.policy_tokens - c for r, c in credits),
            masked_tokens=masked_total,
            trajectories=len(credits),
        )
    for step, row, sha, offset, length in frames:
        m.TraceFrame.objects.create(
            update=update, step=step, trajectory=row, frame_sha256=sha, offset=offset, length=length
        )
    m.ConsumedGroup.objects.bulk_create([m.ConsumedGroup(group=group, update=update) for group, _ in groups])
    return after


def _trace(row: Any, credit: str, rng: random.Random) -> tuple[list[dict[str, Any]], int]:
    decisions = [t.decision for t in row.turns.order_by("decision") for _ in range(t.policy_tokens)]
    keep = [not (credit == "fatal_suffix" and row.fatal_start is not None and d >= row.fatal_start) for d in decisions]
    old = [-rng.expovariate(1.4) for _ in decisions]
    steps = []
    for step in (0, 1):
        shift = [0.0 if step == 0 else rng.gauss(0, 0.12) for _ in decisions]
        ratio = [2.718281828**s for s in shift]
        advantage = row.advantage or 0.0
        clipped = [2 if r > 1.2 and advantage > 0 else 1 if r < 0.8 and advantage < 0 else 0 for r in ratio]
        steps.append(
            {
                "decisions": array("i", decisions),
                "old_logprobs": array("f", old),
                "new_logprobs": array("f", [o + s for o, s in zip(old, shift, strict=True)]),
                "ratios": array("f", ratio),
                "clipped": array("B", clipped),
                "entropies": array("f", [rng.expovariate(0.8) for _ in decisions]),
                "is_credited": array("B", [int(k) for k in keep]),
                "advantages": array("f", [advantage if k else 0.0 for k in keep]),
            }
        )
    return steps, keep.count(False)
