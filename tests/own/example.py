"""Names of the inventory example, and packages written on the spot."""

from __future__ import annotations

from pathlib import Path

from workbench.settings import BASE_DIR

EXAMPLE, SOURCES = BASE_DIR / "docs" / "examples" / "inventory", "src"
ENVIRONMENT = "workbench_inventory.environment:Inventory"
CAREFUL = "workbench_inventory.reward:CarefulReward"
REWARD_TEXT = """
from workbench.contracts.records import RewardComponent, RewardRecord

WEIGHT = {weight}


class Fixed:
    id, version = "{name}.fixed", "1"

    def score(self, task, turns, terminal):
        part = RewardComponent("finish", WEIGHT, 1.0, WEIGHT, "measured", {{}})
        return RewardRecord(self.id, self.version, 1.0, (part,), WEIGHT)
"""


def write_package(folder: Path, name: str, *, weight: float = 0.5, version: str | None = None) -> Path:
    """A package ``name`` with a reward; with ``version`` as an installed distribution that registers it."""
    package = folder / name
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text("")
    (package / "rules.py").write_text(REWARD_TEXT.format(weight=weight, name=name))
    (package / "table.json").write_text("{}")
    if version is not None:
        information = folder / f"{name}-{version}.dist-info"
        information.mkdir(exist_ok=True)
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (information / "top_level.txt").write_text(f"{name}\n")
        (information / "entry_points.txt").write_text(f"[workbench.rewards]\n{name}.fixed = {name}.rules:Fixed\n")
    return package
