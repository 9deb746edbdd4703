"""Stage 2, reward: the plan's rules on the recorded turns, refused unless finite.

Infrastructure-invalid trajectories have no reward: this stage is not called for them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from workbench.contracts.errors import RewardFault
from workbench.contracts.records import RewardRecord, TurnRecord
from worker.environments.base import Task
from worker.environments.registry import RewardRules


def compute_reward(
    rules: RewardRules,
    task: Task,
    turns: Sequence[TurnRecord],
    terminal: str,
    *,
    expected_id: str | None = None,
    expected_version: str | None = None,
) -> RewardRecord:
    """Reward of a valid trajectory. Raises ``RewardFault`` where the rules break, differ in version or give no
    finite number."""
    try:
        record = rules.reward(task, turns, terminal)
    except Exception as error:
        raise RewardFault(f"reward: {type(error).__name__}: {error}") from error
    for name, got, expected in (("id", record.reward_id, expected_id), ("version", record.version, expected_version)):
        if expected is not None and got != expected:
            raise RewardFault(f"reward.{name}: got {got}, expected {expected}")
    numbers = [record.total, record.gate, *(part.points for part in record.components if part.points is not None)]
    if not all(math.isfinite(number) for number in numbers):
        raise RewardFault(f"reward.total: got {record.total}, expected a finite number")
    return record
