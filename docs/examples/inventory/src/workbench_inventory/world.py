"""A warehouse: which items are short, by how many units, and which supplier sells them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

ITEMS = (
    "anchor", "bearing", "bolt", "bracket", "bushing", "cable", "clamp", "clip", "collar", "coupler", "filter",
    "flange", "gasket", "gear", "grommet", "hinge", "hose", "latch", "lever", "magnet", "nail", "nozzle", "nut",
    "piston", "plate", "pulley", "rivet", "roller", "rotor", "screw", "seal", "sensor", "shaft", "sleeve",
    "spring", "switch", "valve", "washer", "wheel", "wrench",
)  # fmt: skip


@dataclass(frozen=True)
class Shelf:
    """One item: ``short`` units are missing, ``supplier`` (three digits) sells it."""

    item: str
    short: int
    supplier: str

    def need(self) -> dict[str, str | int]:
        """The order that this shelf needs."""
        return {"item": self.item, "units": self.short, "supplier": self.supplier}


class Warehouse:
    """An immutable set of shelves by item."""

    def __init__(self, shelves: Sequence[Shelf]):
        self.by_item = {shelf.item: shelf for shelf in shelves}

    @classmethod
    def build(cls, rng: random.Random, items: Sequence[str]) -> Warehouse:
        """Shortages and suppliers drawn from ``rng``; each supplier sells one item."""
        suppliers = rng.sample(range(100, 1000), len(items))
        return cls([Shelf(item, rng.randint(11, 99), str(one)) for item, one in zip(items, suppliers, strict=True)])

    def count(self, item: str) -> tuple[str, str]:
        """(status, text) of a stock count."""
        shelf = self.by_item.get(item)
        return ("ok", f"{item} short {shelf.short}") if shelf else ("error", f"no item {item}")

    def supplier(self, item: str) -> tuple[str, str]:
        """(status, text) of a look-up of who sells an item."""
        shelf = self.by_item.get(item)
        return ("ok", f"{item} from {shelf.supplier}") if shelf else ("error", f"no item {item}")

    def order(self, item: str, units: int, supplier: str) -> tuple[str, str]:
        """(status, text) of an order; a supplier that does not sell the item refuses it."""
        shelf = self.by_item.get(item)
        if shelf is None or shelf.supplier != supplier:
            return "error", f"{supplier} refuses {item}"
        return "ok", f"ordered {units} {item}"
