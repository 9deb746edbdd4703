"""Two rewards over the same measurements, each with every component stored.

``inventory.reward``   the environment's own: 0.7 ordered + 0.1 checked + 0.2 reported.
``inventory.careful``  registered apart: looking before ordering weighs more, 0.5 + 0.3 + 0.2.

Both are functions of the task and the recorded turns alone, so anyone can compute them again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.contracts.records import FINISH, OK, UNPARSEABLE, RewardComponent, RewardRecord, TurnRecord
from worker.environments.base import Task


def done(turns: Sequence[TurnRecord]) -> list[tuple[str, dict[str, Any]]]:
    """(tool, arguments) of each call that the warehouse carried out, in order."""
    return [
        (turn.tool_call.tool, turn.tool_call.arguments)
        for turn in turns
        if turn.tool_call is not None and turn.observation is not None and turn.observation.status == OK
    ]


def ordered(task: Task, turns: Sequence[TurnRecord]) -> tuple[float, dict[str, Any]]:
    """Share of needed orders that were placed with the right units, over the larger of needed and placed orders."""
    needed, placed = task.hidden["orders"], [call for tool, call in done(turns) if tool == "order"]
    right = sum(need in placed for need in needed)
    return right / max(len(needed), len(placed)), {"needed": len(needed), "placed": len(placed), "right": right}


def checked(task: Task, turns: Sequence[TurnRecord]) -> tuple[float, dict[str, Any]]:
    """Share of look-ups (count and supplier of each needed item) that were made."""
    wanted = {(tool, need["item"]) for need in task.hidden["orders"] for tool in ("count", "supplier")}
    made = {(tool, call["item"]) for tool, call in done(turns)} & wanted
    return len(made) / len(wanted), {"wanted": len(wanted), "made": len(made)}


def reported(task: Task, turns: Sequence[TurnRecord]) -> tuple[float, dict[str, Any]]:
    """Half: the answer states all needed units; half: it cites exactly the suppliers. 0 without a Finish."""
    finish = turns[-1].finish if turns else None
    if finish is None:
        return 0.0, {"units": None, "suppliers": None}
    needed = task.hidden["orders"]
    words = str(finish["answer"]).split()
    units = sum(str(need["units"]) in words for need in needed) / len(needed)
    suppliers = float(sorted(finish["citations"]) == sorted(need["supplier"] for need in needed))
    return (units + suppliers) / 2, {"units": units, "suppliers": suppliers}


MEASURES = {"ordered": ordered, "checked": checked, "reported": reported}


def score(
    reward_id: str, version: str, weights: Mapping[str, float], task: Task, turns: Sequence[TurnRecord]
) -> RewardRecord:
    """The record: gate 0 where a turn could not be read, else the weighted measures."""
    gate = 0.0 if any(turn.action_kind == UNPARSEABLE for turn in turns) else 1.0
    components = []
    for name, measure in MEASURES.items():
        value, detail = measure(task, turns)
        components.append(RewardComponent(name, weights[name], value, weights[name] * value, "measured", detail))
    points = sum(part.points or 0.0 for part in components)
    return RewardRecord(reward_id, version, gate, tuple(components), gate * min(1.0, max(0.0, points)))


class StockReward:
    """The environment's own reward."""

    id, version = "inventory.reward", "1"
    weights = {"ordered": 0.7, "checked": 0.1, "reported": 0.2}

    def score(self, task: Task, turns: Sequence[TurnRecord], terminal: str) -> RewardRecord:
        """Reward of a finished episode."""
        return score(self.id, self.version, self.weights, task, turns)


class CarefulReward(StockReward):
    """The same measures with more weight on looking before ordering."""

    id, version = "inventory.careful", "1"
    weights = {"ordered": 0.5, "checked": 0.3, "reported": 0.2}


def is_success(task: Task, turns: Sequence[TurnRecord], terminal: str) -> bool:
    """A legal Finish, and exactly the needed orders were placed."""
    placed = [call for tool, call in done(turns) if tool == "order"]
    needed = task.hidden["orders"]
    return terminal == FINISH and len(placed) == len(needed) and all(need in placed for need in needed)


def is_premature(task: Task, turns: Sequence[TurnRecord]) -> bool:
    """Finished although an item had not been looked up."""
    return bool(turns) and turns[-1].finish is not None and checked(task, turns)[0] < 1.0
