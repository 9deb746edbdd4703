"""The trials of one collected group: what would the verdict be without one edit of each trajectory?

Order, in every group: (1) trees are rebuilt from the recorded turns, their state hashes checked; (2) a block is drawn
from the trees alone; (3) only then are verdicts read: the reward's own, and a fresh trial of the tree without the
block. Nothing is generated again and no verdict is taken over from another trial.

A sandbox or harness that fails makes a trial unknown; what an artefact does is its own failure. Both are records.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.contracts.canonical import sha256_hex
from workbench.contracts.errors import EngineFault
from workbench.contracts.records import GroupRecord, TrajectoryRecord
from workbench.contracts.trials import (
    AVAILABLE,
    EXECUTE,
    FACTUAL_REPLAY,
    INTERVENTION,
    INTERVENTION_REPEAT,
    NO_ORIGINAL_UTILITY,
    ORIGINAL,
    SELECT,
    SELECTED,
    TRIAL_INCOMPLETE,
    GroupTrials,
    InterventionRecord,
    TrialRecord,
    TrialsResult,
    TrialsSpec,
    pack_snapshots,
    tree_digest,
)
from workbench.contracts.wire import parse_record, record_bytes
from worker.environments.base import Environment, Task, artefacts_of

from . import own
from .checkpoint import checked
from .collect import Progress, read_tasks
from .counterfactual import Intervention
from .faults import reach
from .identities import runtime_facts, runtime_identity
from .trial_bench import Bench, Lists, agreement, difference, original_trial
from .trial_choice import Choice, choices

MOST_REPEATS = 16


def _executed(
    choice: Choice, uid: str, original: TrialRecord | None, bench: Bench, settings: Mapping[str, Any]
) -> list[TrialRecord]:
    """Trials of one trajectory: the intervention, its repeats, and replays of the original tree."""
    if settings["mode"] != EXECUTE or original is None or choice.plan is None:
        return []
    made, tree = [], choice.plan.tree
    if tree is not None:
        made.append(bench.run(tree, choice.contents, uid, INTERVENTION, 0))
        made += [
            bench.run(tree, choice.contents, uid, INTERVENTION_REPEAT, number) for number in range(settings["repeats"])
        ]
    made += [
        bench.run(choice.trees[-1], choice.contents, uid, FACTUAL_REPLAY, number)
        for number in range(settings["replays"])
    ]
    return made


def _intervention(
    item: TrajectoryRecord, choice: Choice, trials: Sequence[TrialRecord], mode: str, lists: Lists
) -> InterventionRecord:
    plan = choice.plan
    by_kind = {
        kind: [t for t in trials if t.kind == kind]
        for kind in (ORIGINAL, INTERVENTION, FACTUAL_REPLAY, INTERVENTION_REPEAT)
    }
    original = next(iter(by_kind[ORIGINAL]), None)
    without = next(iter(by_kind[INTERVENTION]), None)
    status, detail = _status(item, plan, original, without, mode)
    replays_agree, replays = agreement(original, by_kind[FACTUAL_REPLAY])
    repeats_agree, repeats = agreement(without, by_kind[INTERVENTION_REPEAT])
    selected = None if plan is None or plan.block is None else plan.block.decision
    return InterventionRecord(
        trajectory_uid=item.uid,
        slot=item.slot,
        status=status,
        detail=detail,
        blocks=choice.blocks,
        selected=selected,
        policy_tokens=sum(turn.policy_tokens for turn in item.turns),
        selected_tokens=None if selected is None else item.turns[selected].policy_tokens,
        final_tree_sha256=tree_digest(choice.trees[-1]) if choice.trees else None,
        without_tree_sha256=None if plan is None or plan.tree is None else tree_digest(plan.tree),
        final_paths=None if plan is None else plan.final_paths,
        touched_share=None if plan is None else plan.touched_share,
        is_empty_patch=None if selected is None or plan is None else plan.is_empty_patch,
        original_utility=None if original is None else original.utility,
        without_utility=None if without is None else without.utility,
        difference=(
            difference(original, without, lists)
            if status == AVAILABLE and original is not None and without is not None
            else None
        ),
        replays_agree=replays_agree,
        replays=replays,
        repeats_agree=repeats_agree,
        repeats=repeats,
    )


def _status(
    item: TrajectoryRecord,
    plan: Intervention | None,
    original: TrialRecord | None,
    without: TrialRecord | None,
    mode: str,
) -> tuple[str, str | None]:
    """Status and detail of an intervention."""
    if plan is None:
        return NO_ORIGINAL_UTILITY, f"infrastructure-invalid: {item.invalid_reason}"
    if plan.unavailable is not None:
        return plan.unavailable, None
    if mode == SELECT:
        return SELECTED, None
    if original is None:
        return NO_ORIGINAL_UTILITY, "the reward holds no complete verdict"
    if without is None or not without.complete:
        return TRIAL_INCOMPLETE, None if without is None else without.unknown
    return AVAILABLE, None


def checked_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Raises ``EngineFault`` for settings that this module does not know."""
    found = dict(settings)
    counts = [found.get("replays"), found.get("repeats")]
    known = set(found) == {"mode", "replays", "repeats"} and found["mode"] in (EXECUTE, SELECT)
    if not known or any(type(count) is not int or not 0 <= count <= MOST_REPEATS for count in counts):
        raise EngineFault(
            f"settings: got {found}, expected mode {EXECUTE} or {SELECT}, replays and repeats from 0 to {MOST_REPEATS}"
        )
    return found


def run_group_trials(
    spec: TrialsSpec,
    environment: Environment,
    store: Any,
    *,
    progress: Progress | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> TrialsResult:
    """The trials of the group that ``spec`` holds. ``store``: ``put`` and ``get`` by hash.

    Raises ``EngineFault`` for an environment without artefacts, a record with another hash, a task that is not of the
    set, and a reward of another tree or verifier; ``EnvironmentFault`` where recorded actions do not lead to recorded
    states. Nothing of the group is recorded then.
    """
    started, settings = clock(), checked_settings(spec.settings)
    artefacts = artefacts_of(environment)
    if artefacts is None:
        raise EngineFault(f"environment: got {environment.id}, which keeps no artefacts, expected one that does")
    record, task = _group(spec, environment, store)
    lists = artefacts.lists(task)
    chosen = choices(record, artefacts, task, spec.seed)  # from here on verdicts may be read
    done = [0]

    def on_trial() -> None:
        done[0] += 1
        if progress is not None:
            progress({"stage": "trials", "finished": done[0]})

    bench = Bench(artefacts, task, lists, clock, started, on_trial)
    interventions, trials = [], []
    for item, choice in zip(record.trajectories, chosen, strict=True):
        original = None
        if choice.plan is not None:
            original = original_trial(
                item.reward, trajectory_uid=item.uid, tree=choice.trees[-1], verifier=artefacts.verifier, lists=lists
            )
        own_trials = [*([] if original is None else [original])]
        own_trials += _executed(choice, item.uid, original, bench, settings)
        interventions.append(_intervention(item, choice, own_trials, settings["mode"], lists))
        trials += own_trials
    snapshots = _snapshots(record, chosen)
    name = None if snapshots is None else store.put(snapshots)
    reach("blob_written")
    made = GroupTrials(
        uid=spec.trials_uid, group_uid=record.uid, run_uid=spec.run_uid, plan_sha256=spec.plan_sha256,
        ordinal=record.ordinal, purpose=record.purpose, verifier=artefacts.verifier, seed=spec.seed, settings=settings,
        fail_to_pass=tuple(lists[0]), pass_to_pass=tuple(lists[1]), snapshots_sha256=name, unavailable=None,
        interventions=tuple(interventions), trials=tuple(trials),
    )  # fmt: skip
    data = record_bytes(made)
    timing = {"seconds": clock() - started, "trials": float(len(bench.timings))}
    size = 0 if snapshots is None else len(snapshots)
    return TrialsResult(data.decode(), sha256_hex(data), size, tuple(bench.timings), timing)


def _group(spec: TrialsSpec, environment: Environment, store: Any) -> tuple[GroupRecord, Task]:
    data = spec.record_json.encode()
    if sha256_hex(data) != spec.record_sha256:
        raise EngineFault(f"record_sha256: got {sha256_hex(data)}, expected {spec.record_sha256}")
    record = parse_record(GroupRecord, data)
    task_set = f"{spec.environment.environment}/{environment.version}"
    tasks = read_tasks(checked(store, spec.environment.task_set_sha256, "task set"), task_set)
    if record.task_uid not in tasks:
        raise EngineFault(
            f"task_uid: got {record.task_uid}, expected a task of the set {spec.environment.task_set_sha256}"
        )
    return record, tasks[record.task_uid]


def _snapshots(record: GroupRecord, chosen: Sequence[Choice]) -> bytes | None:
    rebuilt = {item.uid: choice for item, choice in zip(record.trajectories, chosen, strict=True) if choice.trees}
    if not rebuilt:
        return None
    contents: dict[str, bytes] = {}
    for choice in rebuilt.values():
        contents.update(choice.contents)
    return pack_snapshots({uid: choice.trees for uid, choice in rebuilt.items()}, contents)


def trials(spec: TrialsSpec, store: Any, *, cache_dir: Path, progress: Progress | None = None) -> TrialsResult:
    """The operation: bound code and runtime first, then ``run_group_trials``. No policy is loaded."""
    found = runtime_identity(spec.policy.dtype)
    if found != spec.runtime:
        raise EngineFault(f"runtime: got {found} ({runtime_facts(spec.policy.dtype)}), expected {spec.runtime}")
    return run_group_trials(spec, own.bound_code(spec).environment, store, progress=progress)
