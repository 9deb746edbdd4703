"""Groups of the tiny world with trials made by hand: which turn was chosen, and D."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tests.engine.test_update import run, update_spec
from workbench.contracts.canonical import sha256_hex
from workbench.contracts.jobs import CollectResult, UpdateGroup, UpdateResult, UpdateSpec
from workbench.contracts.records import GroupRecord, TrajectoryRecord, UpdateRecord
from workbench.contracts.trials import AVAILABLE, EXECUTE, GroupTrials, InterventionRecord, trials_uid
from workbench.contracts.wire import parse_record, record_bytes

VERIFIER = "tiny.verifier/1"
Choice = tuple[str, int | None, float | None]  # status, selected decision, D
Choose = Callable[[int, TrajectoryRecord], Choice]


def everywhere(difference: float) -> Choose:
    """The first turn of each trajectory, with one D."""
    return lambda slot, item: (AVAILABLE, item.turns[0].decision, difference)


def intervention(item: TrajectoryRecord, choice: Choice) -> InterventionRecord:
    """The record of one choice; U without the block is 0.5, so that D is exact."""
    status, selected, difference = choice
    tokens = {turn.decision: turn.policy_tokens for turn in item.turns}
    known = difference is not None
    return InterventionRecord(
        trajectory_uid=item.uid, slot=item.slot, status=status, detail=None, blocks=(), selected=selected,
        policy_tokens=sum(tokens.values()), selected_tokens=None if selected is None else tokens[selected],
        final_tree_sha256=None, without_tree_sha256=None, final_paths=None, touched_share=None, is_empty_patch=None,
        original_utility=0.5 + difference if difference is not None else None, without_utility=0.5 if known else None,
        difference=difference, replays_agree=0, replays=0, repeats_agree=0, repeats=0,
    )  # fmt: skip


def trials_of_group(record: GroupRecord, choose: Choose, mode: str = EXECUTE) -> GroupTrials:
    """Trials of a recorded group."""
    return GroupTrials(
        uid=trials_uid(record.uid), group_uid=record.uid, run_uid=record.run_uid, plan_sha256=record.plan_sha256,
        ordinal=record.ordinal, purpose="train", verifier=VERIFIER, seed="1",
        settings={"mode": mode, "replays": 0, "repeats": 0}, fail_to_pass=("a",), pass_to_pass=(),
        snapshots_sha256=None, unavailable=None, trials=(),
        interventions=tuple(intervention(item, choose(slot, item)) for slot, item in enumerate(record.trajectories)),
    )  # fmt: skip


def tried(group: UpdateGroup, choose: Choose, **changes: Any) -> UpdateGroup:
    """The group with its trials. ``changes``: fields of the trials record."""
    record = parse_record(GroupRecord, group.record_json.encode())
    mode = changes.pop("mode", EXECUTE)
    data = record_bytes(replace(trials_of_group(record, choose, mode), **changes))
    return replace(group, trials_json=data.decode(), trials_sha256=sha256_hex(data))


def edit_spec(world: Any, result: CollectResult, credit: str, choose: Choose, **changes: Any) -> UpdateSpec:
    """An update of an arm with credit from edits, every group tried."""
    mode = changes.pop("mode", EXECUTE)
    objective = {"credit": credit, "edit_weight": 1.0, "edit_cap": 1.0, **changes.pop("objective", {})}
    spec = update_spec(world, result, objective=objective, **changes)
    return replace(spec, groups=tuple(tried(group, choose, mode=mode) for group in spec.groups))


def flat(groups: Sequence[UpdateGroup]) -> tuple[UpdateGroup, ...]:
    """The same groups with all rewards 0: no variance, no advantage."""
    found = []
    for group in groups:
        record = parse_record(GroupRecord, group.record_json.encode())
        equal = tuple(replace(item, reward=replace(item.reward, total=0.0)) for item in record.trajectories)  # type: ignore[type-var]
        data = record_bytes(replace(
            record, trajectories=equal, signal="zero_all_wrong", mean=0.0, sigma=0.0,
            advantages_G=(0.0,) * len(equal),
        ))  # fmt: skip
        found.append(replace(group, record_json=data.decode(), record_sha256=sha256_hex(data)))
    return tuple(found)


def applied(world: Any, spec: UpdateSpec) -> tuple[UpdateRecord, UpdateResult]:
    """Run the update."""
    return run(world, spec)
