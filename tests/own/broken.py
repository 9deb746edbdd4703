"""Environments that break one rule each; every class says which check must find it."""

from __future__ import annotations

import itertools
import os
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from workbench_inventory.environment import Inventory
from workbench_inventory.session import StockSession

from workbench.contracts.canonical import digest
from workbench.contracts.records import RewardRecord, TurnRecord
from worker.environments.base import Demonstration, FinishAction, Observation, Task, ToolAction, ToolSpec

_counter = itertools.count()


class Lenient(Inventory):
    """configuration: ignores a setting that does not exist."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__({})


class OddSchema(Inventory):
    """tools: a keyword that nothing enforces."""

    def tools(self) -> Sequence[ToolSpec]:
        first, *rest = super().tools()
        return [replace(first, parameters={**first.parameters, "dependentRequired": {}}), *rest]


class NoTrainSplit(Inventory):
    """tasks: every task is a test task."""

    def tasks(self) -> Sequence[Task]:
        return [replace(task, split="test") for task in super().tasks()]


class UnknownSplit(Inventory):
    """tasks: a split that no plan can name."""

    def tasks(self) -> Sequence[Task]:
        return [replace(task, split="development") for task in super().tasks()]


class OneTaskTwice(Inventory):
    """tasks: a training task is a test task too."""

    def tasks(self) -> Sequence[Task]:
        found = list(super().tasks())
        return [*found, replace(found[0], key="again", split="test")]


class Shuffled(Inventory):
    """tasks: another order in every instance."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__(config)
        turn = next(_counter) % len(self._tasks)
        self._tasks = (*self._tasks[turn:], *self._tasks[:turn])


class Leaks(Inventory):
    """hidden: the prompt says how many units are short."""

    def tasks(self) -> Sequence[Task]:
        found = []
        for task in super().tasks():
            units = task.hidden["orders"][0]["units"]
            found.append(replace(task, prompt=f"{task.prompt} Short: {units}."))
        return found


class _Salted(StockSession):
    def __init__(self, session: StockSession, salt: int):
        super().__init__(session.warehouse, session.task)
        self.salt = salt

    def state_hash(self) -> str:
        return digest([self.salt, len(self.calls)])


class RandomReset(Inventory):
    """reset: a new state every time."""

    def reset(self, task: Task) -> Any:
        return _Salted(StockSession(self.warehouse, task), next(_counter))


class _WrongType(StockSession):
    def step(self, action: ToolAction) -> Any:
        return super().step(action).text


class TextObservation(Inventory):
    """steps: an Observation that is a text."""

    def reset(self, task: Task) -> Any:
        return _WrongType(self.warehouse, task)


class _Retryable(StockSession):
    def step(self, action: ToolAction) -> Observation:
        return replace(super().step(action), retryable=True)


class RetryableSuccess(Inventory):
    """steps: a success that says that it may be retried."""

    def reset(self, task: Task) -> Any:
        return _Retryable(self.warehouse, task)


class Forgetful(Inventory):
    """snapshots: restores an empty episode."""

    def restore(self, task: Task, snapshot: bytes) -> Any:
        return self.reset(task)


class _Shared(StockSession):
    def fork(self) -> StockSession:
        return self


class SharedFork(Inventory):
    """forks: the fork is the session itself."""

    def reset(self, task: Task) -> Any:
        return _Shared(self.warehouse, task)


class Skips(Inventory):
    """replays: leaves the first call out."""

    def replay(self, task: Task, actions: Sequence[ToolAction]) -> Any:
        return super().replay(task, actions[1:])


class FinalFailure(Inventory):
    """failures: the injected failure may not be retried."""

    def injected_failure(self, action: ToolAction, calls_left: int) -> Observation:
        return Observation("timeout", "timeout", retryable=False)


class _Endless(StockSession):
    def finish(self, action: FinishAction) -> None:
        self.calls.append({"finish": action.answer})


class NeverEnds(Inventory):
    """budget: takes calls after its Finish."""

    def reset(self, task: Task) -> Any:
        return _Endless(self.warehouse, task)


class OnlyTotal(Inventory):
    """reward: a number without its parts."""

    def reward(self, task: Task, turns: Sequence[TurnRecord], terminal: str) -> RewardRecord:
        return replace(super().reward(task, turns, terminal), components=())


class WrongTotal(Inventory):
    """reward: a total that is not the sum of its parts."""

    def reward(self, task: Task, turns: Sequence[TurnRecord], terminal: str) -> RewardRecord:
        return replace(super().reward(task, turns, terminal), total=0.9)


class Remembers(Inventory):
    """reward: another number the second time."""

    def reward(self, task: Task, turns: Sequence[TurnRecord], terminal: str) -> RewardRecord:
        record = super().reward(task, turns, terminal)
        return replace(record, version=str(next(_counter)))


class EasyWin(Inventory):
    """outcomes: success without a Finish."""

    def success(self, task: Task, turns: Sequence[TurnRecord], terminal: str) -> bool:
        return True


class NoOrders(Inventory):
    """demonstrations: none of them calls a tool that exists."""

    def demonstrations(self, seed: int) -> Iterator[Demonstration]:
        for item in super().demonstrations(seed):
            yield replace(item, turns=tuple(turn for turn in item.turns if '"order"' not in turn.action))


class Modest(Inventory):
    """demonstrations: a tool is listed as not demonstrated, and is."""

    undemonstrated = ("order",)


class Garbled(Inventory):
    """demonstrations: actions that no parser accepts."""

    def demonstrations(self, seed: int) -> Iterator[Demonstration]:
        for item in super().demonstrations(seed):
            yield replace(item, turns=tuple(replace(turn, action=turn.action[1:]) for turn in item.turns))


class GlobalRandom(Inventory):
    """purity: draws from Python's global generator."""

    def instructions(self) -> str:
        random.random()
        return super().instructions()


class HashOrder(Inventory):
    """purity: the order of a set of texts, which differs from process to process."""

    def instructions(self) -> str:
        return " ".join({"count", "supplier", "order", "report", "retry"})


class NotJson(Inventory):
    """steps: facts that no record can hold."""

    def reset(self, task: Task) -> Any:
        class Session(StockSession):
            def step(self, action: ToolAction) -> Observation:
                return replace(super().step(action), facts={"at": {1, 2}})

        return Session(self.warehouse, task)


class Partial:
    """loading: half of the interface."""

    id, version = "partial", "1"

    def __init__(self, config: dict[str, Any]) -> None:
        raise AssertionError("a class without the interface is never called")

    def tasks(self) -> Sequence[Task]:
        return []


class StateOfProcess(Inventory):
    """purity: the label of a state names the process."""

    def state_label(self, session: Any) -> str:
        return f"pid {os.getpid()}"


class Asserts(Inventory):
    """outcomes: raises without a word."""

    def state_label(self, session: Any) -> str:
        assert session is None
        return ""


class Forks(Inventory):
    """None by itself, but leaves processes: each instance forks two that would sleep for an hour."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.pids = config.get("pids")
        super().__init__({name: value for name, value in config.items() if name != "pids"})
        self.forks = 2

    def reset(self, task: Task) -> Any:
        if self.forks:
            self.forks -= 1
            child = os.fork()
            if child == 0:
                time.sleep(3600)
                os._exit(0)
            with open(self.pids, "a", encoding="ascii") as file:
                file.write(f"{child}\n")
        return super().reset(task)
