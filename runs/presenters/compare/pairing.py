"""Paired outcomes of two arms: which items belong together, flips per task, and sums that a reader can check."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from runs.models import EvaluationItem, PlanVersion, RunHead

T = "trajectory__"
FIELDS = ("status", "terminal", "success", "finished", "recovered", "parser_valid", "reward_total", "uid")
Row = Mapping[str, Any]


def _policy_failure(row: Row) -> bool:
    return row[f"{T}terminal"] == "policy_error" or not row[f"{T}parser_valid"]


@dataclass(frozen=True)
class Outcome:
    """A pass-or-fail reading of an item; ``passes`` None where it was not measured. ``good`` False: fewer is better."""

    key: str
    word: Any
    passes: Callable[[Row], bool | None]
    good: bool = True


# Keys are those of the stored aggregate's metrics.
OUTCOMES: dict[str, Outcome] = {
    item.key: item
    for item in (
        Outcome("success", _("success"), lambda row: row[f"{T}success"]),
        Outcome("recovery_all", _("recovery"), lambda row: bool(row[f"{T}recovered"])),
        Outcome("finish", _("finish"), lambda row: row[f"{T}finished"]),
        Outcome("policy_failure", _("parser or policy failure"), _policy_failure, good=False),
    )
}


@dataclass(frozen=True)
class Cell:
    """One repeat of one task at one seed. ``a`` and ``b``: 1, 0, or None where that side has no outcome."""

    seed: str
    repeat: int
    a: int | None
    b: int | None
    left: Any
    right: Any

    @property
    def flip(self) -> str:
        """gained (b only), lost (a only), or nothing."""
        if self.a is None or self.b is None or self.a == self.b:
            return ""
        return "gained" if self.b else "lost"


def letter(value: int | None) -> str:
    """P passed, F failed, a dot for no outcome."""
    return "·" if value is None else "P" if value else "F"


@dataclass(frozen=True)
class Strip:
    """One task: its cells by seed and repeat. ``a`` and ``b`` means over seeds of per-seed means of paired repeats."""

    task: str
    family: str
    cells: list[Cell]
    a: float | None
    b: float | None

    @property
    def seeds(self) -> list[tuple[str, list[Cell]]]:
        """Cells by seed, in order."""
        found: dict[str, list[Cell]] = {}
        for cell in self.cells:
            found.setdefault(cell.seed, []).append(cell)
        return list(found.items())

    @property
    def left(self) -> str:
        """The first arm's letters, seeds apart by a space."""
        return " ".join("".join(letter(cell.a) for cell in cells) for _seed, cells in self.seeds)

    @property
    def right(self) -> str:
        """The second arm's letters."""
        return " ".join("".join(letter(cell.b) for cell in cells) for _seed, cells in self.seeds)

    @property
    def gained(self) -> int:
        """Repeats that only the second arm passes."""
        return sum(cell.flip == "gained" for cell in self.cells)

    @property
    def lost(self) -> int:
        """Repeats that only the first arm passes."""
        return sum(cell.flip == "lost" for cell in self.cells)

    @property
    def difference(self) -> float | None:
        """Second minus first; None without a pair."""
        return None if self.a is None or self.b is None else self.b - self.a


def final_checkpoints(version: PlanVersion, arms: Sequence[str]) -> dict[int, list[tuple[str, str]]]:
    """Final checkpoint -> (arm, seed) of the runs that ended on it.

    A run that completed without a step ends on its parent; one that still stands there has no final policy yet.
    """
    found: dict[int, list[tuple[str, str]]] = {}
    heads = RunHead.objects.filter(run__plan_version=version, run__arm__key__in=arms, checkpoint__isnull=False)
    heads = heads.exclude(~Q(state="completed"), checkpoint=F("run__parent_checkpoint"))
    for checkpoint, arm, seed in heads.values_list("checkpoint_id", "run__arm__key", "run__seed"):
        found.setdefault(checkpoint, []).append((arm, seed))
    return found


def paired_rows(version: PlanVersion, arms: Sequence[str], place: tuple[str, str]) -> list[dict[str, Any]]:
    """Items of the arms' final checkpoints at one condition and split, each with ``arm`` and ``seed``. Two queries."""
    finals = final_checkpoints(version, arms)
    rows = EvaluationItem.objects.filter(
        plan_version=version, checkpoint_id__in=finals, condition=place[0], split=place[1]
    ).values("checkpoint_id", "repeat", "task__key", "task__family", *[f"{T}{name}" for name in FIELDS])
    return [{**row, "arm": arm, "seed": seed} for row in rows for arm, seed in finals[row["checkpoint_id"]]]


def strips(rows: Iterable[Row], arms: tuple[str, str], outcome: Outcome, seeds: Sequence[str] = ()) -> list[Strip]:
    """One strip per task, largest gain first. ``seeds``: their order; others follow."""
    place = {seed: i for i, seed in enumerate(seeds)}
    tasks: dict[str, dict[tuple[str, int], dict[str, Row]]] = {}
    families: dict[str, str] = {}
    for row in rows:
        tasks.setdefault(row["task__key"], {}).setdefault((row["seed"], row["repeat"]), {})[row["arm"]] = row
        families[row["task__key"]] = row["task__family"]
    found = []
    for task, slots in tasks.items():
        order = sorted(slots, key=lambda slot: (place.get(slot[0], len(place)), slot[0], slot[1]))
        cells = [_cell(slot, slots[slot], arms, outcome) for slot in order]
        found.append(Strip(task, families[task], cells, *_means(cells)))
    return sorted(found, key=lambda strip: (-(strip.difference or 0.0), strip.task))


def _cell(slot: tuple[str, int], sides: Mapping[str, Row], arms: tuple[str, str], outcome: Outcome) -> Cell:
    values, uids = [], []
    for arm in arms:
        row = sides.get(arm)
        measured = outcome.passes(row) if row is not None and row[f"{T}status"] == "valid" else None
        values.append(None if measured is None else int(measured))
        uids.append(None if row is None else row[f"{T}uid"])
    return Cell(slot[0], slot[1], values[0], values[1], uids[0], uids[1])


def _means(cells: Sequence[Cell]) -> tuple[float | None, float | None]:
    """Mean over seeds of the per-seed mean over repeats that both sides have, as the stored statistics do."""
    seeds: dict[str, list[Cell]] = {}
    for cell in cells:
        if cell.a is not None and cell.b is not None:
            seeds.setdefault(cell.seed, []).append(cell)
    if not seeds:
        return None, None
    sides = [
        math.fsum(math.fsum(getattr(cell, side) for cell in part) / len(part) for part in seeds.values()) / len(seeds)
        for side in ("a", "b")
    ]
    return sides[0], sides[1]


@dataclass(frozen=True)
class Flips:
    """Sums over the strips: every cell is both, neither, gained, lost or unpaired, and the five add up to ``cells``."""

    cells: int
    both: int
    neither: int
    gained: int
    lost: int
    unpaired: int
    better: int
    worse: int
    tied: int


def flips(found: Sequence[Strip]) -> Flips:
    """Counts over all strips; ``better`` tasks pass more often in the second arm."""
    cells = [cell for strip in found for cell in strip.cells]
    paired = [cell for cell in cells if cell.a is not None and cell.b is not None]
    steps = [strip.difference for strip in found if strip.difference is not None]
    return Flips(
        cells=len(cells),
        both=sum(cell.a == cell.b == 1 for cell in paired),
        neither=sum(cell.a == cell.b == 0 for cell in paired),
        gained=sum(cell.flip == "gained" for cell in paired),
        lost=sum(cell.flip == "lost" for cell in paired),
        unpaired=len(cells) - len(paired),
        better=sum(step > 0 for step in steps),
        worse=sum(step < 0 for step in steps),
        tied=sum(step == 0 for step in steps),
    )
