"""Credit of arms O, B, M and E: an auxiliary term that is added to the group advantage, never in its place.

With A the group advantage, L the policy tokens of the trajectory, m those of the selected turn, I_e(t) its
indicator, lambda and the cap c from the plan, D = U(final) - U(without the block):

    O   nothing
    M   C(t) = s * lambda * D * L / m * I_e(t)          localised
    B   C(t) = s * lambda * D                           broadcast
    E   C(t) = clip(lambda * A * L / m, -c, c) * I_e(t)  localised terminal; never reads D
    s = min(1, c / |lambda * D * L / m|), and 1 where D = 0

The equations of M, B and s are a reconstruction from properties that the source states; E is quoted there. On one
trajectory B and M have equal signed mass s*lambda*D*L and equal L1 mass s*lambda*|D|*L, which ``edit_credit`` checks
each time. Squared mass, gradients and clipping are not equal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from workbench.contracts.errors import EngineFault

ARMS = ("O", "B", "M", "E")
NO_SELECTED_TOKEN = "no_selected_token"  # the chosen turn has no policy token: m = 0
TOLERANCE = 1e-9  # of a mass, relative to its size


class IdentityViolated(EngineFault):
    """Two masses that must be equal are not: the update stops."""


@dataclass(frozen=True)
class EditCredit:
    """The term of one trajectory. ``coefficients_T`` is parallel to its policy tokens.

    ``status``: applied, none (the arm adds nothing), or why it is unavailable; an unavailable term is 0 with that
    status, never a D of 0. ``shrinkage`` is s, None where it has no meaning; ``capped``: the cap acted.
    """

    arm: str
    status: str
    coefficients_T: tuple[float, ...]
    tokens: int
    selected_tokens: int
    difference: float | None
    shrinkage: float | None
    capped: bool
    signed_mass: float
    l1_mass: float
    squared_mass: float
    selected: int | None = None  # decision of the chosen block


def shrinkage(weight: float, difference: float, tokens: int, selected: int, cap: float) -> float:
    """s of M and B: what brings the localised coefficient within the cap; 1 where D = 0."""
    size = abs(weight * difference * tokens / selected)
    return 1.0 if size == 0 else min(1.0, cap / size)


def edit_credit(
    arm: str,
    *,
    advantage: float,
    decisions_T: Sequence[int],
    selected: int | None,
    difference: float | None,
    unavailable: str | None,
    weight: float,
    cap: float,
) -> EditCredit:
    """The auxiliary term of one trajectory.

    ``decisions_T``: decision of each policy token. ``selected``: the decision of the chosen block, or None.
    ``difference`` None with ``unavailable``: no complete trial; arm E does without it. ``weight``: lambda, ``cap``: c.
    Raises ``EngineFault`` for an unknown arm, a cap that is not positive or a number that is not finite, and
    ``IdentityViolated`` where the masses are not those of the definition.
    """
    if arm not in ARMS:
        raise EngineFault(f"credit.arm: got {arm!r}, expected one of {', '.join(ARMS)}")
    if not (math.isfinite(weight) and weight >= 0 and math.isfinite(cap) and cap > 0):
        raise EngineFault(f"credit: got lambda {weight} and cap {cap}, expected lambda >= 0 and a cap above 0")
    if not math.isfinite(advantage) or (difference is not None and not math.isfinite(difference)):
        raise EngineFault(f"credit: got advantage {advantage} and D {difference}, expected finite numbers")
    if (difference is None) != (unavailable is not None) and arm in ("B", "M"):
        raise EngineFault(f"credit: got D {difference} and status {unavailable}, expected one of them")
    tokens = len(decisions_T)
    chosen = [decision == selected for decision in decisions_T] if selected is not None else [False] * tokens
    count = sum(chosen)
    if arm == "O":
        return _none(arm, "none", tokens, count, None)
    if arm == "E":
        if count == 0:
            return _none(arm, unavailable or NO_SELECTED_TOKEN, tokens, 0, None)
        raw = weight * advantage * tokens / count
        value = max(-cap, min(cap, raw))
        found = tuple(value if item else 0.0 for item in chosen)
        return _made(arm, found, tokens, count, None, None, abs(raw) > cap)
    if difference is None:
        return _none(arm, str(unavailable), tokens, count, None)
    if count == 0:
        return _none(arm, NO_SELECTED_TOKEN, tokens, 0, difference)
    s = shrinkage(weight, difference, tokens, count, cap)
    local, wide = s * weight * difference * tokens / count, s * weight * difference
    found = tuple((local if item else 0.0) if arm == "M" else wide for item in chosen)
    made = _made(arm, found, tokens, count, difference, s, s < 1.0)
    _check(made, s * weight * difference * tokens)
    return made


def _none(arm: str, status: str, tokens: int, count: int, difference: float | None) -> EditCredit:
    return EditCredit(arm, status, (0.0,) * tokens, tokens, count, difference, None, False, 0.0, 0.0, 0.0)


def _made(
    arm: str, found: tuple[float, ...], tokens: int, count: int, difference: float | None, s: float | None, capped: bool
) -> EditCredit:
    signed, l1 = math.fsum(found), math.fsum(abs(value) for value in found)
    squared = math.fsum(value * value for value in found)
    return EditCredit(arm, "applied", found, tokens, count, difference, s, capped, signed, l1, squared)


def _check(made: EditCredit, expected: float) -> None:
    """Signed and L1 mass of B and M are those of the definition, whichever of the two it is."""
    allowed = TOLERANCE * max(1.0, abs(expected))
    for name, got, wanted in (("signed", made.signed_mass, expected), ("L1", made.l1_mass, abs(expected))):
        if not abs(got - wanted) <= allowed:  # also where one of them is no number
            raise IdentityViolated(f"credit.{name} mass of arm {made.arm}: got {got}, expected {wanted}")
