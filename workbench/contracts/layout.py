"""What a frozen plan asks for, item by item: runs, groups, slots, evaluation cells, with their uids and seeds.

Pure functions of the frozen body. Shard composition and order come from here alone, never from
load: so a shard that is collected twice on one machine gives the same bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from .canonical import derive_uid
from .failures import injected_ordinals, profile_of
from .jobs import GroupSpec, SlotSpec
from .probe import PROBE
from .records import EVALUATE, PREFLIGHT, TRAIN
from .seeds import evaluation_seed, order_seed, probe_seed, slot_seed
from .trials import EXECUTE, SELECT, selection_seed

Body = dict[str, Any]


def version_uid(plan_uid: str, plan_sha256: str) -> str:
    """Uid of a plan version."""
    return str(derive_uid(plan_uid, f"version:{plan_sha256}"))


def execution_uid(plan_version_uid: str) -> str:
    """Uid of the one execution of a plan version."""
    return str(derive_uid(plan_version_uid, "execution"))


def run_uid(plan_version_uid: str, arm: str, seed: str) -> str:
    """Uid of one arm at one seed."""
    return str(derive_uid(plan_version_uid, f"run:{arm}:{seed}"))


def parent_checkpoint_uid(plan_version_uid: str) -> str:
    """Uid of the checkpoint that every run starts from."""
    return str(derive_uid(plan_version_uid, "checkpoint:parent"))


def checkpoint_uid(run: str, policy_version: int) -> str:
    """Uid of a run's checkpoint after ``policy_version`` updates (from 1)."""
    return str(derive_uid(run, f"checkpoint:{policy_version}"))


def update_uid(run: str, batch: int) -> str:
    """Uid of one optimizer batch."""
    return str(derive_uid(run, f"update:{batch}"))


def arm_of(body: Body, key: str) -> dict[str, Any]:
    """The resolved arm of the frozen body."""
    return next(arm for arm in body["arms"] if arm["key"] == key)


def split_tasks(body: Body, split: str) -> list[dict[str, str]]:
    """Tasks of a split in their frozen order: uid, sha256, family."""
    tasks: list[dict[str, str]] = body["bindings"]["task_set"]["splits"].get(split, [])
    return tasks


def training_task(body: Body, plan_sha256: str, run_seed: str, split: str, ordinal: int) -> dict[str, str]:
    """Task of a training group: a fresh permutation of the split for every pass, equal in every arm."""
    tasks = split_tasks(body, split)
    turn, position = divmod(ordinal, len(tasks))
    seed = order_seed(plan_sha256, run_seed)

    def rank(task: dict[str, str]) -> str:
        return hashlib.sha256(f"{seed}:{turn}:{task['uid']}".encode()).hexdigest()

    return sorted(tasks, key=rank)[position]


def _group(parent: str, purpose: str, ordinal: int, task: str, profile: str, seeds: list[str]) -> GroupSpec:
    uid = str(derive_uid(parent, f"group:{purpose}:{ordinal}"))
    slots = tuple(SlotSpec(str(derive_uid(uid, f"slot:{slot}")), slot, seed) for slot, seed in enumerate(seeds))
    return GroupSpec(uid, ordinal, task, profile, injected_ordinals(profile), slots)


def training_groups(
    body: Body, plan_sha256: str, run: str, arm: str, run_seed: str, batch: int
) -> tuple[GroupSpec, ...]:
    """The P groups of one batch, collected as one shard."""
    config = arm_of(body, arm)["config"]
    rollout, cycle = config["rollout"], config["failure"]["train_cycle"]
    groups = []
    for ordinal in range(batch * rollout["groups_per_batch"], (batch + 1) * rollout["groups_per_batch"]):
        task = training_task(body, plan_sha256, run_seed, rollout["split"], ordinal)["uid"]
        seeds = [slot_seed(plan_sha256, run_seed, TRAIN, ordinal, task, slot) for slot in range(rollout["group_size"])]
        groups.append(_group(run, TRAIN, ordinal, task, profile_of(cycle, ordinal), seeds))
    return tuple(groups)


def preflight_shards(body: Body, plan_sha256: str, execution: str) -> list[tuple[GroupSpec, ...]]:
    """Probe groups of the parent under the plan's own configuration, before any run trains."""
    plan = body["plan"]
    if plan["preflight"] is None:
        return []
    rollout, cycle = plan["rollout"], plan["failure"]["train_cycle"]
    groups = []
    for ordinal in range(plan["preflight"]["groups"]):
        task = training_task(body, plan_sha256, "0", rollout["split"], ordinal)["uid"]
        seeds = [slot_seed(plan_sha256, "0", PREFLIGHT, ordinal, task, slot) for slot in range(rollout["group_size"])]
        groups.append(_group(execution, PREFLIGHT, ordinal, task, profile_of(cycle, ordinal), seeds))
    return _shards(groups, plan["runtime"]["shard_rows"])


def evaluation_shards(
    body: Body, plan_sha256: str, checkpoint: str, condition: str, split: str
) -> list[tuple[GroupSpec, ...]]:
    """Cells (task x repeats) of one checkpoint, condition and split. Seeds do not depend on the checkpoint."""
    plan = body["plan"]
    count = next(item["tasks"] for item in plan["evaluation"]["splits"] if item["split"] == split)
    cycle = plan["failure"]["stress_cycle"] if condition == "stress" else []
    cells = []
    for ordinal, task in enumerate(split_tasks(body, split)[:count]):
        repeats = range(plan["evaluation"]["repeats"])
        seeds = [evaluation_seed(plan_sha256, condition, task["uid"], repeat) for repeat in repeats]
        purpose = f"{EVALUATE}:{condition}:{split}"
        cells.append(_group(checkpoint, purpose, ordinal, task["uid"], profile_of(cycle, ordinal), seeds))
    return _shards(cells, plan["runtime"]["shard_rows"])


def evaluation_shard_count(body: Body, split: str) -> int:
    """Number of shards that ``evaluation_shards`` gives for a split, without building them."""
    count = next(item["tasks"] for item in body["plan"]["evaluation"]["splits"] if item["split"] == split)
    cells = body["plan"]["runtime"]["shard_rows"] // body["plan"]["evaluation"]["repeats"]
    return -(-min(count, len(split_tasks(body, split))) // cells)


def _shards(groups: list[GroupSpec], rows: int) -> list[tuple[GroupSpec, ...]]:
    shards: list[list[GroupSpec]] = []
    for group in groups:
        if not shards or sum(len(item.slots) for item in shards[-1]) + len(group.slots) > rows:
            shards.append([])
        shards[-1].append(group)
    return [tuple(shard) for shard in shards]


def probe_batches(body: Body, config: dict[str, Any]) -> list[int]:
    """Numbers of optimizer batches after which a run of this arm is probed: the plan's cadence and the budget's end.

    A run that ends earlier is probed at its end. The parent (after 0 batches) is probed once for all runs.
    """
    if body["plan"]["probe"] is None:
        return []
    every, last = body["plan"]["probe"]["every"], config["budget"]["batches"]
    return sorted({*range(every, last + 1, every), last})


def probe_uid(owner: str, batch: int) -> str:
    """Uid of a probe. ``owner``: the run, or the execution where the parent is probed."""
    return str(derive_uid(owner, f"probe:{batch}"))


def probe_groups(body: Body, plan_sha256: str, probe: str) -> tuple[GroupSpec, ...]:
    """One group a task of the probe set, a slot a repeat. Seeds depend on neither checkpoint nor arm."""
    settings = body["plan"]["probe"]
    groups = []
    for ordinal, task in enumerate(split_tasks(body, settings["split"])[: settings["tasks"]]):
        seeds = [probe_seed(plan_sha256, task["uid"], repeat) for repeat in range(settings["repeats"])]
        groups.append(_group(probe, PROBE, ordinal, task["uid"], "control", seeds))
    return tuple(groups)


def trials_key(owner: str, purpose: str, ordinal: int) -> str:
    """Key of the job that tries a group. ``owner``: the run, or the execution for preflight groups."""
    return f"{owner}:trials:{purpose}:{ordinal}"


def trial_settings(body: Body, purpose: str, arm: str | None) -> dict[str, Any] | None:
    """How the groups of a purpose (and arm) are tried: {"mode", "replays", "repeats"}; None: not at all.

    Replays and repeats are the pilot's alone. An arm that never reads D only chooses, unless every arm is tried.
    """
    section = body["plan"].get("trials")  # absent in bodies from before there were trials
    if section is None:
        return None
    if purpose == PREFLIGHT:
        found = {"mode": EXECUTE, "replays": section["replays"], "repeats": section["repeats"]}
        return found if section["pilot"] else None
    if purpose != TRAIN or arm is None:
        return None
    credit = arm_of(body, arm)["config"]["objective"]["credit"]
    if section["every_arm"] or credit in ("edit_broadcast", "edit_localised"):
        return {"mode": EXECUTE, "replays": 0, "repeats": 0}
    return {"mode": SELECT, "replays": 0, "repeats": 0} if credit == "edit_terminal" else None


def trial_seed(body: Body, run_seed: str | None) -> str:
    """Seed of the draws of a run; of preflight groups where ``run_seed`` is None."""
    return selection_seed(body["plan"]["trials"]["seed"], run_seed if run_seed is not None else "0")


def evaluation_grid(body: Body) -> Iterator[tuple[str, str]]:
    """Conditions x splits in the plan's order."""
    for condition in body["plan"]["evaluation"]["conditions"]:
        for item in body["plan"]["evaluation"]["splits"]:
            yield condition, item["split"]
