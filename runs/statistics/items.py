"""Item facts (the input of every statistic), the metrics of an item, and the grid of requested items."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from workbench.contracts.errors import RecordError
from workbench.contracts.records import (
    BUDGET_EXHAUSTED,
    FINISH,
    INFRASTRUCTURE_INVALID,
    POLICY_ERROR,
    VALID,
    OutcomeFacts,
)

MISSING = "missing"  # requested, without any outcome so far; neither a failure nor a zero
STATUSES = (VALID, INFRASTRUCTURE_INVALID, MISSING)
BINARY, COUNT, SCORE = "binary", "count", "score"


@dataclass(frozen=True)
class ItemFacts:
    """One evaluation item: (checkpoint, condition, split, task, repeat) and what came of it.

    Filled from evaluation rows or item manifests; read by ``build_aggregate`` and ``task_table``.
    ``arm`` and ``run_seed`` are None for the parent checkpoint. ``facts`` and ``terminal`` are None
    unless the item is valid; ``reward`` and ``success`` None means not measured, never 0.
    ``is_final`` is False for checkpoints of a run before its last. ``verifier`` names what judged
    the item (success definition and reward version): items that differ in it are not averaged.
    """

    checkpoint_uid: str
    checkpoint_sha256: str
    arm: str | None
    run_seed: str | None
    condition: str  # standard | stress
    split: str
    task_key: str
    task_uid: str
    family: str
    repeat: int
    status: str  # valid | infrastructure_invalid | missing
    reward: float | None
    success: bool | None
    facts: OutcomeFacts | None
    terminal: str | None  # finish | policy_error | budget_exhausted; None unless valid
    is_final: bool = True
    verifier: str = ""

    @property
    def valid(self) -> bool:
        """Whether the policy produced an outcome that can be judged."""
        return self.status == VALID

    @property
    def slot(self) -> tuple[str, str, int]:
        """(split, task key, repeat): with the condition it fixes the item's seed."""
        return (self.split, self.task_key, self.repeat)

    @property
    def where(self) -> str:
        """The item's place, for errors."""
        return f"{self.checkpoint_uid}/{self.condition}/{self.split}/{self.task_key}/{self.repeat}"


def check_item(item: ItemFacts) -> None:
    """Raise ``RecordError`` naming field, value and expectation where an item contradicts itself."""

    def refuse(field: str, got: object, expected: str) -> None:
        raise RecordError(f"{item.where}: {field}: got {got!r}, expected {expected}")

    if item.status not in STATUSES:
        refuse("status", item.status, " | ".join(STATUSES))
    if (item.arm is None) != (item.run_seed is None):
        refuse("run_seed", item.run_seed, "a seed with an arm, None for the parent")
    if item.valid:
        if item.facts is None:
            refuse("facts", item.facts, "outcome facts of a valid item")
        if item.terminal not in (FINISH, POLICY_ERROR, BUDGET_EXHAUSTED):
            refuse("terminal", item.terminal, f"{FINISH} | {POLICY_ERROR} | {BUDGET_EXHAUSTED}")
        if item.reward is not None and not math.isfinite(item.reward):
            refuse("reward", item.reward, "a finite number or None")
        return
    for field in ("reward", "success", "facts", "terminal"):
        if getattr(item, field) is not None:
            refuse(field, getattr(item, field), f"None for status {item.status}")


def _fact(name: str) -> Callable[[ItemFacts], float | None]:
    def read(item: ItemFacts) -> float | None:
        value = getattr(item.facts, name)
        return None if value is None else float(value)

    return read


def _policy_failure(item: ItemFacts) -> float | None:
    return float(item.terminal == POLICY_ERROR or not (item.facts and item.facts.parser_valid))


def _optional(value: float | bool | None) -> float | None:
    return None if value is None else float(value)


def _premature(item: ItemFacts) -> float | None:
    if not (item.facts and item.facts.finished):
        return 0.0
    return _optional(item.facts.premature_finish)


def _continued(item: ItemFacts) -> float | None:
    if item.facts is None or item.facts.fatal_confirmed is None:
        return 0.0
    return _optional(item.facts.continued_after_fatal)


@dataclass(frozen=True)
class Metric:
    """A number of every valid item; ``read`` gives None where it was not measured."""

    name: str
    kind: str  # binary | count | score
    read: Callable[[ItemFacts], float | None]


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("reward", SCORE, lambda item: _optional(item.reward)),
        Metric("success", BINARY, lambda item: _optional(item.success)),
        Metric("finish", BINARY, _fact("finished")),
        Metric("policy_failure", BINARY, _policy_failure),
        Metric("premature_finish_all", BINARY, _premature),
        Metric("budget_exhausted", BINARY, lambda item: float(item.terminal == BUDGET_EXHAUSTED)),
        Metric("tool_depth", COUNT, _fact("tool_depth")),
        Metric("repeat_any", BINARY, lambda item: float(bool(item.facts and item.facts.repeat_calls > 0))),
        Metric("repeat_calls", COUNT, _fact("repeat_calls")),
        Metric("fatal", BINARY, lambda item: float(bool(item.facts and item.facts.fatal_confirmed is not None))),
        Metric("continued_after_fatal_all", BINARY, _continued),
        Metric("exposed", BINARY, _fact("exposed")),
        Metric("recovery_all", BINARY, lambda item: float(bool(item.facts and item.facts.recovered))),
    )
}
JUDGED = ("reward", "success")  # depend on the verifier: never averaged over two of them


def complete_grid(items: Iterable[ItemFacts]) -> list[ItemFacts]:
    """The items in canonical order, with a ``missing`` row for each requested item that is absent.

    All checkpoints face the same items, so what one checkpoint has under a condition and split was
    requested of every checkpoint that has any item there. Raises ``RecordError`` for an item given
    twice, a task key with two uids, or a checkpoint with two identities.
    """
    rows = sorted(items, key=lambda item: (item.checkpoint_uid, item.condition, *item.slot))
    requested: dict[tuple[str, str], dict[tuple[str, str, int], ItemFacts]] = {}
    cells: dict[tuple[str, str, str], dict[tuple[str, str, int], ItemFacts]] = {}
    for item in rows:
        check_item(item)
        cell = cells.setdefault((item.checkpoint_uid, item.condition, item.split), {})
        if item.slot in cell:
            raise RecordError(f"{item.where}: got the item twice, expected it once")
        cell[item.slot] = item
        requested.setdefault((item.condition, item.split), {}).setdefault(item.slot, item)
    _check_identities(rows)
    for (_, condition, split), cell in cells.items():
        owner = next(iter(cell.values()))
        for slot, like in requested[condition, split].items():
            if slot not in cell:
                cell[slot] = _missing(owner, like)
    return sorted(
        (item for cell in cells.values() for item in cell.values()),
        key=lambda item: (item.arm or "", item.run_seed or "", item.checkpoint_uid, item.condition, *item.slot),
    )


def _missing(owner: ItemFacts, like: ItemFacts) -> ItemFacts:
    """The absent item of ``owner``'s checkpoint at the slot of ``like``."""
    return replace(
        like,
        checkpoint_uid=owner.checkpoint_uid,
        checkpoint_sha256=owner.checkpoint_sha256,
        arm=owner.arm,
        run_seed=owner.run_seed,
        is_final=owner.is_final,
        status=MISSING,
        reward=None,
        success=None,
        facts=None,
        terminal=None,
    )


def _check_identities(rows: Sequence[ItemFacts]) -> None:
    """One identity per checkpoint, one uid and family per task key, one parent, one final per run."""
    seen: dict[tuple[str, ...], tuple[object, ...]] = {}
    for item in rows:
        pairs: list[tuple[tuple[str, ...], tuple[object, ...]]] = [
            (
                ("checkpoint", item.checkpoint_uid),
                (item.checkpoint_sha256, item.arm, item.run_seed, item.is_final),
            ),
            (("task", item.split, item.task_key), (item.task_uid, item.family)),
        ]
        if item.arm is None:
            pairs.append((("parent",), (item.checkpoint_uid,)))
        elif item.is_final:
            pairs.append((("final", item.arm, str(item.run_seed)), (item.checkpoint_uid,)))
        for key, value in pairs:
            if seen.setdefault(key, value) != value:
                raise RecordError(f"{' '.join(key)}: got {value}, expected {seen[key]} as in an earlier item")
