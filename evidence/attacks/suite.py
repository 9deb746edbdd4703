"""Tries every attack on one world, each rolled back before the next, and says what found it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from django.db import Error as DatabaseError
from django.db import transaction
from django.utils import translation

from evidence.actions.signing import check_copy
from evidence.attacks import on_chains, on_evidence, on_records, on_runs
from evidence.attacks.attack import COPY, REFUSED, TRIGGERS, VERIFY, Attack
from evidence.attacks.world import AttackWorld
from evidence.verify import verify
from runs.errors import DomainError
from workbench.contracts.errors import ContractError
from workbench.db import AppendOnlyViolation

ATTACKS: tuple[Attack, ...] = (*on_evidence.ATTACKS, *on_records.ATTACKS, *on_chains.ATTACKS, *on_runs.ATTACKS)
REFUSALS = (DomainError, ContractError, AppendOnlyViolation)
# What this world cannot try, and why; each is tested where it can be.
ELSEWHERE = (
    ("resampled trajectories", "needs a model: ``verify`` step 10 and ``study verify --replay`` run the real one"),
    ("a weight update that did not happen", "needs a model: retention produces removed adapters again and compares"),
    ("equal short ids on one page", "a matter of pages, which show ids that are unique within the list"),
    ("a tail younger than the newest anchor",
     "reviews, answers, closings and exports anchor at once, the scheduler all else once a minute: what is cut off "
     "with its receipts within that minute, or while no scheduler runs, is in no head"),
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What became of an attack. ``message``: what the check said; empty where it went unfound."""

    attack: Attack
    found: bool
    message: str

    def as_json(self) -> dict[str, Any]:
        """Plain values for the command."""
        return {
            "key": self.attack.key, "title": self.attack.title, "found": self.found,
            "by": self.attack.found_by(), "message": self.message,
        }  # fmt: skip


def clean(world: AttackWorld) -> list[str]:
    """What is wrong with the world before any attack: nothing, or the suite says nothing."""
    found = [str(problem) for problem in verify(store=world.store).faults]
    return found + [str(trouble) for trouble in check_copy(world.kept)]


def run_attack(world: AttackWorld, attack: Attack) -> Outcome:
    """Try one attack and undo it. One that fails in another way than it should goes unfound, with what was said."""
    kept = world.kept
    with translation.override("en"):
        try:
            with transaction.atomic():
                outcome = _FINDERS[attack.by](world, attack)
                transaction.set_rollback(True)
        finally:
            world.restore()
            world.kept = kept
    return outcome


def run_all(
    world: AttackWorld, attacks: Iterable[Attack] = ATTACKS, *, tell: Callable[[Outcome], None] | None = None
) -> list[Outcome]:
    """Every attack in turn."""
    found = []
    for attack in attacks:
        outcome = run_attack(world, attack)
        found.append(outcome)
        if tell is not None:
            tell(outcome)
    return found


def _refused(world: AttackWorld, attack: Attack) -> Outcome:
    try:
        with transaction.atomic():
            attack.attempt(world)
    except REFUSALS as error:
        return Outcome(attack, attack.expect in str(error), str(error))
    return Outcome(attack, False, "")


def _triggers(world: AttackWorld, attack: Attack) -> Outcome:
    try:
        with transaction.atomic():
            attack.attempt(world)
    except DatabaseError as error:
        return Outcome(attack, attack.expect in str(error), str(error))
    return Outcome(attack, False, "")


def _verified(world: AttackWorld, attack: Attack) -> Outcome:
    attack.attempt(world)
    step, table, column = attack.expect
    for problem in verify(store=world.store, steps=[step]).faults:
        if (problem.step, problem.table) == (step, table) and problem.column.startswith(column):
            return Outcome(attack, True, str(problem))
    return Outcome(attack, False, "")


def _copied(world: AttackWorld, attack: Attack) -> Outcome:
    attack.attempt(world)
    for trouble in check_copy(world.kept):
        if trouble.kind == attack.expect:
            return Outcome(attack, True, str(trouble))
    return Outcome(attack, False, "")


_FINDERS: dict[str, Callable[[AttackWorld, Attack], Outcome]] = {
    REFUSED: _refused, VERIFY: _verified, COPY: _copied, TRIGGERS: _triggers,
}  # fmt: skip
