"""The environment class. Workbench finds it by its entry point ``inventory`` or by its dotted path."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Any

from workbench.contracts.records import TIMEOUT, RewardRecord, TurnRecord
from worker.environments.base import Demonstration, Observation, Session, Task, ToolAction, ToolSpec

from . import demonstrate, reward
from .session import StockSession, restore
from .world import ITEMS, Warehouse

_ITEM = {"type": "string", "minLength": 1, "maxLength": 20}


def _schema(**properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


TOOLS = (
    ToolSpec("count", "Count an item: how many units are short.", _schema(item=_ITEM)),
    ToolSpec("supplier", "Find the supplier of an item.", _schema(item=_ITEM)),
    ToolSpec(
        "order",
        "Order units of an item from its supplier.",
        _schema(
            item=_ITEM,
            units={"type": "integer", "minimum": 1, "maximum": 99},
            supplier={"type": "string", "pattern": "^[0-9]{3}$"},
        ),
    ),
)
SPLITS = {"train": 16, "validation": 10, "test": 10}  # items of each split; no item in two of them


class Inventory:
    """Restock one or two items: count, find the supplier, order, report.

    ``config``: ``world_seed`` (which warehouse) and ``budget`` (decisions that demonstrations use).
    """

    id = "inventory"
    version = "1.0.0"
    named_in_prompt = ("item",)  # the question has to name the items; nothing else of the reference

    def __init__(self, config: dict[str, Any]) -> None:
        settings = {"world_seed": 7, "budget": 7}
        unknown = sorted(set(config) - set(settings))
        if unknown:
            raise ValueError(f"config: got {unknown}, expected only {sorted(settings)}")
        settings |= config
        for name, value in settings.items():
            if type(value) is not int or value < 1:
                raise ValueError(f"config.{name}: got {value!r}, expected a positive integer")
        self.budget = settings["budget"]
        rng = random.Random(f"inventory.world:{settings['world_seed']}")
        self.warehouse = Warehouse.build(rng, ITEMS)
        self._tasks = tuple(self._build_tasks(rng))

    def _build_tasks(self, rng: random.Random) -> Iterator[Task]:
        items = rng.sample(ITEMS, sum(SPLITS.values()))
        start = 0
        for split, count in SPLITS.items():
            mine, start = items[start : start + count], start + count
            asked = [[item] for item in mine] + [list(pair) for pair in itertools.combinations(mine, 2)]
            rng.shuffle(asked)
            for names in asked:
                yield Task(
                    key="+".join(names),
                    split=split,
                    family="one_item" if len(names) == 1 else "two_items",
                    prompt=demonstrate.prompt_of(names),
                    initial_state={},
                    hidden={"orders": [self.warehouse.by_item[name].need() for name in names]},
                    tools=tuple(tool.name for tool in TOOLS),
                )

    def tasks(self) -> Sequence[Task]:
        """Every task, split by split."""
        return self._tasks

    def instructions(self) -> str:
        """System text of every task."""
        return "Order what is short from its supplier, then report units and suppliers. Retry after a timeout."

    def tools(self) -> Sequence[ToolSpec]:
        """count, supplier, order."""
        return TOOLS

    def reset(self, task: Task) -> Session:
        """A fresh episode."""
        return StockSession(self.warehouse, task)

    def restore(self, task: Task, snapshot: bytes) -> Session:
        """The episode whose state is ``snapshot``."""
        return restore(self.warehouse, task, snapshot)

    def replay(self, task: Task, actions: Sequence[ToolAction]) -> Session:
        """The episode after ``actions``."""
        session = StockSession(self.warehouse, task)
        for action in actions:
            session.step(action)
        return session

    def injected_failure(self, action: ToolAction, calls_left: int) -> Observation:
        """The retryable time-out of a failure schedule; the warehouse is not asked."""
        return Observation(TIMEOUT, demonstrate.timeout_text(calls_left), retryable=True)

    def reward(self, task: Task, turns: Sequence[TurnRecord], terminal: str) -> RewardRecord:
        """``inventory.reward``; a plan may name ``inventory.careful`` in its place."""
        return reward.StockReward().score(task, turns, terminal)

    def success(self, task: Task, turns: Sequence[TurnRecord], terminal: str) -> bool:
        """See ``reward.is_success``."""
        return reward.is_success(task, turns, terminal)

    def success_definition(self) -> str:
        """Definition id of ``success``."""
        return "inventory.success/1"

    def is_premature(self, task: Task, turns: Sequence[TurnRecord]) -> bool:
        """See ``reward.is_premature``."""
        return reward.is_premature(task, turns)

    def demonstrations(self, seed: int) -> Iterator[Demonstration]:
        """See ``demonstrate``."""
        return demonstrate.demonstrations(seed, self.budget)

    def state_label(self, session: Session) -> str:
        """Calls made so far by tool: ``count 1 supplier 0 order 0``."""
        assert isinstance(session, StockSession)
        made = [call["tool"] for call in session.calls]
        return " ".join(f"{tool.name} {made.count(tool.name)}" for tool in TOOLS)
