"""Stage 4, credit: which policy tokens an objective trains, and with which advantage.

``vanilla``          every policy token, with its trajectory's advantage.
``fatal_suffix``     of a Fatal trajectory only the tokens of decisions before ``fatal_start``.
``one_sided_clamp``  ``fatal_suffix``, and on Fatal trajectories with a kept prefix a negative
                     advantage is clamped at 0 there.

Rewards, groups and advantages are untouched: this is gradient hygiene. The result is one number and
one indicator per token, and nothing later asks where they came from: other rules can give any credit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workbench.contracts.errors import EngineFault

KINDS = ("vanilla", "fatal_suffix", "one_sided_clamp")


@dataclass(frozen=True)
class TokenCredit:
    """Credit of one trajectory, parallel to its policy tokens. Producer: this stage. Consumer: loss.

    ``advantages_T``   what a token is credited with; 0 where it is cut.
    ``is_credited_T``  1 = counts in numerator and denominator of the loss, 0 = cut. A credited token may
                       have advantage 0: it still counts in the denominator.
    ``clamp_actionable``  Fatal, with a kept prefix and a negative advantage: the clamp would act.
    """

    advantages_T: tuple[float, ...]
    is_credited_T: tuple[int, ...]
    clamp_actionable: bool

    def __post_init__(self) -> None:
        if len(self.advantages_T) != len(self.is_credited_T):
            raise EngineFault(f"is_credited_T: got {len(self.is_credited_T)}, expected {len(self.advantages_T)} values")

    @property
    def trained(self) -> int:
        """Number of credited tokens."""
        return sum(self.is_credited_T)

    @property
    def is_zero(self) -> bool:
        """Whether no token would move the policy."""
        return not any(self.advantages_T)


def token_credit(kind: str, advantage: float, decisions_T: Sequence[int], fatal_start: int | None) -> TokenCredit:
    """Credit of one trajectory. ``decisions_T``: decision index of each policy token."""
    if kind not in KINDS:
        raise EngineFault(f"credit: got {kind!r}, expected one of {KINDS}")
    kept = [1 if fatal_start is None or decision < fatal_start else 0 for decision in decisions_T]
    clamp_actionable = fatal_start is not None and any(kept) and advantage < 0
    if kind == "vanilla":
        kept = [1] * len(kept)
    value = max(advantage, 0.0) if kind == "one_sided_clamp" and clamp_actionable else advantage
    return TokenCredit(tuple(value if keep else 0.0 for keep in kept), tuple(kept), clamp_actionable)
