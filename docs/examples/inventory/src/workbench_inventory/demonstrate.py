"""Scripted, deliberately imperfect episodes in fresh warehouses: what the embedded policy is warm-started on.

New numbers in every warehouse teach copying, not memorising. The mistakes leave a policy that
sometimes fails, which is where the group advantage of GRPO comes from.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

from worker.environments.base import Demonstration, DemonstrationTurn

from .world import ITEMS, Shelf, Warehouse

WRONG_UNITS, WRONG_SUPPLIER, SKIP_ITEM, CITE_NONE, TIMED_OUT, STOPS = 0.12, 0.10, 0.18, 0.10, 0.12, 0.2


def timeout_text(calls_left: int) -> str:
    """What an injected time-out looks like."""
    return f"timeout retryable left {calls_left}"


def prompt_of(items: list[str]) -> str:
    """The question of a task."""
    return f"Restock {' and '.join(items)}."


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


class Script:
    """One episode: it counts, looks the supplier up, orders, and reports what it ordered."""

    def __init__(self, rng: random.Random, warehouse: Warehouse, shelves: list[Shelf], budget: int):
        self.rng, self.warehouse, self.shelves, self.budget = rng, warehouse, shelves, budget
        self.turns: list[DemonstrationTurn] = []
        self.coverage: set[str] = set()
        self.placed: list[tuple[int, Shelf]] = []

    def run(self) -> Demonstration:
        """The whole episode."""
        for index, shelf in enumerate(self.shelves):
            if index and self.rng.random() < SKIP_ITEM:
                self.coverage.add("skipped_item")
                break
            if not self._restock(shelf):
                break
        self._report()
        prompt = prompt_of([shelf.item for shelf in self.shelves])
        return Demonstration(prompt, tuple(self.turns), tuple(sorted(self.coverage)))

    def _restock(self, shelf: Shelf) -> bool:
        """Three calls for one item; whether the episode goes on."""
        units, supplier = shelf.short, shelf.supplier
        for tool in ("count", "supplier"):
            if not self._call(f"{tool} {shelf.item}", tool, {"item": shelf.item}):
                return False
        if self.rng.random() < WRONG_UNITS:
            self.coverage.add("wrong_units")
            units = self.rng.randint(11, 99)
        if self.rng.random() < WRONG_SUPPLIER:
            self.coverage.add("wrong_supplier")
            supplier = self.rng.choice([item.supplier for item in self.warehouse.by_item.values()])
        arguments = {"item": shelf.item, "units": units, "supplier": supplier}
        if not self._call(f"order {shelf.item} {units} from {supplier}", "order", arguments):
            return False
        if supplier == shelf.supplier:
            self.placed.append((units, shelf))
        return True

    def _call(self, think: str, tool: str, arguments: dict[str, str | int]) -> bool:
        """One call, perhaps timed out first; False where the script gives up."""
        action = _text({"tool": tool, **arguments})
        while self.rng.random() < TIMED_OUT:
            if len(self.turns) >= self.budget - 2:
                return False
            self.coverage.add("timed_out")
            self.turns.append(DemonstrationTurn(think, action, timeout_text(self.budget - len(self.turns) - 1)))
            if self.rng.random() < STOPS:
                self.coverage.add("gave_up")
                return False
            think = f"retry {think.removeprefix('retry ')}"
        if len(self.turns) >= self.budget - 1:
            return False  # the last decision is kept for the report
        self.coverage.add(f"{tool}_ok")
        self.turns.append(DemonstrationTurn(think, action, getattr(self.warehouse, tool)(**arguments)[1]))
        return True

    def _report(self) -> None:
        cited = [shelf.supplier for _, shelf in self.placed]
        if cited and self.rng.random() < CITE_NONE:
            self.coverage.add("cited_nothing")
            cited = []
        self.coverage.add("reported" if self.placed else "reported_nothing")
        answer = " ".join(str(units) for units, _ in self.placed) or "none"
        think = " ".join(["ordered", *(f"{units} {shelf.item} from {shelf.supplier}" for units, shelf in self.placed)])
        self.turns.append(DemonstrationTurn(think, _text({"finish": answer, "cite": cited}), None))


def demonstrations(seed: int, budget: int) -> Iterator[Demonstration]:
    """An endless stream; equal seeds give equal streams."""
    rng = random.Random(f"inventory.demonstrations:{seed}")
    while True:
        items = rng.sample(ITEMS, 8)
        warehouse = Warehouse.build(rng, items)
        for _ in range(6):
            chosen = rng.sample(items, rng.choice((1, 2)))
            yield Script(rng, warehouse, [warehouse.by_item[item] for item in chosen], budget).run()
