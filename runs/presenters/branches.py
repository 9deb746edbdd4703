"""Same-state branches for pages: two points beside each other, their proofs, and the sign beside D's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from runs.models import BranchContinuation, Intervention, StateBranch, Trajectory
from workbench.contracts.branches import AFTER, BEFORE, signs_agree


@dataclass(frozen=True)
class PointView:
    """One point. ``holds``: every hash of the proof is one. ``standard_error`` None of fewer than two."""

    point: str
    proof: dict[str, Any]
    holds: bool
    mean: float | None
    n: int
    standard_error: float | None
    rows: list[BranchContinuation]

    @property
    def succeeded(self) -> int:
        """Continuations that succeeded."""
        return sum(row.success is True for row in self.rows)


@dataclass(frozen=True)
class BranchView:
    """One record. ``difference``: D of the trajectory where this turn's block was the one removed, else None."""

    own: StateBranch
    points: list[PointView]
    difference: float | None
    agree: bool | None


def difference_of(trajectory: Trajectory, decision: int) -> float | None:
    """D of the trajectory's intervention where it removed this decision's block; None otherwise."""
    found = Intervention.objects.filter(trajectory=trajectory, selected=decision).first()
    return None if found is None else found.difference


def view_of(own: StateBranch) -> BranchView:
    """Everything of one record."""
    rows = list(own.continuations.order_by("point", "index"))
    points = []
    for proof in own.points:
        name = proof["point"]
        mine = [row for row in rows if row.point == name]
        hashes = {proof["recorded"], proof["replayed"], proof["restored"], *(row.start_state_sha256 for row in mine)}
        mean, n = (own.before, own.before_n) if name == BEFORE else (own.after, own.after_n)
        points.append(PointView(name, proof, len(hashes) == 1, mean, n, proof["standard_error"], mine))
    difference = difference_of(own.trajectory, own.decision)
    assert [point.point for point in points] == [BEFORE, AFTER]
    return BranchView(own, points, difference, signs_agree(own.value, difference))
