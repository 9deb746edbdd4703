"""What an attack is: an attempt to make a page say more than its evidence, and what must find it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evidence.attacks.world import AttackWorld

REFUSED, VERIFY, COPY, TRIGGERS = "refused", "verify", "copy", "triggers"
Attempt = Callable[[AttackWorld], Any]


@dataclass(frozen=True)
class Guard:
    """A check that finds an attack: ``module:name``. Switched off, it does nothing and gives ``gives``.

    ``plain``: the name is a value or property, which then is ``gives`` itself.
    """

    where: str
    gives: Any = None
    plain: bool = False


@dataclass(frozen=True)
class Attack:
    """One attempt.

    ``by`` refused: an action raises and the message holds ``expect``; verify: a problem (step, table, column), whose
    column begins with what is expected; copy: a signed head kept elsewhere disagrees, ``expect`` is the kind of
    trouble; triggers: the database refuses. ``guards``: the checks that find it, all of them: without them it
    goes unfound.
    """

    key: str
    title: str
    attempt: Attempt
    by: str
    expect: Any
    guards: tuple[Guard, ...] = ()

    def found_by(self) -> str:
        """What finds it, in words."""
        if self.by == VERIFY:
            step, table, column = self.expect
            return f"verify, step {step}: {table}.{column}"
        if self.by == COPY:
            return f"signed heads kept elsewhere: {self.expect}"
        if self.by == TRIGGERS:
            return "the database's append-only triggers"
        return "refused when it is tried"


def step(name: str) -> tuple[Guard, ...]:
    """The check of a step of ``verify``, by its function."""
    return (Guard(f"evidence.verify:{name}"),)
