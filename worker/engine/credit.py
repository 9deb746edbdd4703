"""Stage 4, credit: which policy tokens an objective trains, and with which advantage.

``vanilla``          every policy token, with its trajectory's advantage.
``fatal_suffix``     of a Fatal trajectory only the tokens of decisions before ``fatal_start``.
``one_sided_clamp``  ``fatal_suffix``, and on Fatal trajectories with a kept prefix a negative
                     advantage is clamped at 0 there.
``edit_broadcast``, ``edit_localised``, ``edit_terminal``
                     ``vanilla`` plus the term of arms B, M and E (``edit_credit``), added to each token's
                     advantage, never in its place.

Rewards, groups and advantages are untouched: this is gradient hygiene. The result is one number and
one indicator per token, and nothing later asks where they came from: other rules can give any credit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from workbench.contracts.errors import EngineFault
from workbench.contracts.plan_schema import EDIT_CREDITS
from workbench.contracts.trials import InterventionRecord

from .edit_credit import EditCredit, edit_credit

KINDS = ("vanilla", "fatal_suffix", "one_sided_clamp")


@dataclass(frozen=True)
class TokenCredit:
    """Credit of one trajectory, parallel to its policy tokens. Producer: this stage. Consumer: loss.

    ``advantages_T``   what a token is credited with; 0 where it is cut.
    ``is_credited_T``  1 = counts in numerator and denominator of the loss, 0 = cut. A credited token may
                       have advantage 0: it still counts in the denominator.
    ``clamp_actionable``  Fatal, with a kept prefix and a negative advantage: the clamp would act.
    ``edit``           the term that the edit added to ``advantages_T``; None where the rule adds none.
    """

    advantages_T: tuple[float, ...]
    is_credited_T: tuple[int, ...]
    clamp_actionable: bool
    edit: EditCredit | None = None

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


def credit_with_edit(
    kind: str,
    advantage: float,
    decisions_T: Sequence[int],
    fatal_start: int | None,
    intervention: InterventionRecord,
    *,
    weight: float,
    cap: float,
) -> TokenCredit:
    """``vanilla`` plus the term of the trajectory's edit. ``weight``: lambda, ``cap``: c.

    Arm E reads which block was chosen and no verdict. Raises ``EngineFault`` where the intervention names other
    token counts than the captures have, ``IdentityViolated`` where masses are not those of the definition.
    """
    arm, selected = EDIT_CREDITS[kind], intervention.selected
    difference = None if arm == "E" else intervention.difference
    missing = selected is None if arm == "E" else difference is None
    term = edit_credit(
        arm,
        advantage=advantage,
        decisions_T=decisions_T,
        selected=selected,
        difference=difference,
        unavailable=intervention.status if missing else None,
        weight=weight,
        cap=cap,
    )
    counted = (intervention.policy_tokens, intervention.selected_tokens or 0)
    if counted != (term.tokens, term.selected_tokens):
        raise EngineFault(
            f"trajectory {intervention.trajectory_uid}.policy_tokens, selected_tokens: got {counted} in its trials,"
            f" expected {(term.tokens, term.selected_tokens)}, those of its captures"
        )
    plain = token_credit("vanilla", advantage, decisions_T, fatal_start)
    sums_T = tuple(own + added for own, added in zip(plain.advantages_T, term.coefficients_T, strict=True))
    return replace(plain, advantages_T=sums_T, edit=replace(term, selected=selected))
