"""What is chosen in a tried group, from snapshots alone: trees, blocks, and the one that is drawn. Needs no torch.

Nothing here takes a reward or a verdict, so no choice can have seen one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workbench.contracts.errors import EngineFault
from workbench.contracts.records import POLICY_ERROR, VALID, GroupRecord, TurnRecord
from workbench.contracts.trials import EditBlockRecord
from worker.environments.base import Artefacts, Task

from .counterfactual import Intervention, judged_blocks, plan_intervention


@dataclass(frozen=True)
class Choice:
    """What snapshots alone say of one trajectory; made before any verdict is read.

    ``trees`` before each decision and the final one; empty, with ``plan`` None, where the trajectory is
    infrastructure-invalid and no tree was rebuilt.
    """

    trees: tuple[dict[str, str], ...]
    contents: Mapping[str, bytes]
    blocks: tuple[EditBlockRecord, ...]
    plan: Intervention | None


NOTHING = Choice((), {}, (), None)


def choose(
    artefacts: Artefacts, task: Task, turns: Sequence[TurnRecord], *, own_seed: str, terminal: str, seed: str
) -> Choice:
    """Trees, blocks and the drawn block of one trajectory. Takes turns and no reward: it cannot see a verdict.

    Raises ``EnvironmentFault`` where the recorded actions do not lead to the recorded states.
    """
    trees, contents = artefacts.trees(task, turns)
    if len(trees) != len(turns) + 1 or [turn.decision for turn in turns] != list(range(len(turns))):
        raise EngineFault(f"trees: got {len(trees)} of {len(turns)} turns, expected one before each decision and one")
    plan = plan_intervention(
        trees,
        own_seed=own_seed,
        seed=seed,
        has_format_error=terminal == POLICY_ERROR,
        is_test_path=artefacts.is_test_path,
        has_content=contents.__contains__,
    )
    judged = judged_blocks(trees, artefacts.is_test_path, has_content=contents.__contains__)
    blocks = tuple(
        EditBlockRecord(block.decision, block.paths, dict(block.before), dict(block.after), reason is None, reason)
        for block, reason in judged
    )
    return Choice(tuple(dict(tree) for tree in trees), contents, blocks, plan)


def choices(record: GroupRecord, artefacts: Artefacts, task: Task, seed: str) -> list[Choice]:
    """One a slot, in order."""
    return [
        choose(artefacts, task, item.turns, own_seed=item.seed, terminal=str(item.terminal), seed=seed)
        if item.status == VALID
        else NOTHING
        for item in record.trajectories
    ]
