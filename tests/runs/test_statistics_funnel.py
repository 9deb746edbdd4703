"""The throughput funnel and the decay of entropy, worked by hand and against NumPy."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from runs.statistics.decay import left, slope
from runs.statistics.funnel import STAGES, build_funnel, joined
from workbench.contracts.records import INFRASTRUCTURE_INVALID, VALID


def one(status: str = VALID, reason: str | None = None, holds: bool = True, tokens: int = 10) -> Any:
    turns = (SimpleNamespace(generated_tokens=tokens),)
    return SimpleNamespace(
        status=status, invalid_reason=reason, invariants=(SimpleNamespace(holds=holds),), turns=turns
    )


def group(*items: Any, version: int = 4, eligible: bool = True, signal: str | None = "signal") -> Any:
    return SimpleNamespace(
        trajectories=items, identities=SimpleNamespace(policy_version=version), eligible=eligible, signal=signal
    )


def test_funnel_by_hand() -> None:
    """Five groups of two under version 4.

    g1 signal (2 reach the end). g2: one lost by its worker, one fine: the group is incomplete. g3: one broken by
    infrastructure, one with a broken invariant. g4: sampled by version 3, too old. g5: complete, no variance.

    started 10; finished 9; not infrastructure-failed 8; reconstructed 7; not too old 5; complete 4; signal 2.
    """
    broken = one(INFRASTRUCTURE_INVALID, "environment: down")
    groups = [
        group(one(), one()),
        group(one(INFRASTRUCTURE_INVALID, "worker_lost: lease", tokens=0), one(), eligible=False, signal=None),
        group(broken, one(holds=False), eligible=False, signal=None),
        group(one(), one(), version=3),
        group(one(), one(tokens=30), signal="zero_all_right"),
    ]
    stages = build_funnel(groups, 4)
    assert [item.name for item in stages] == list(STAGES)
    assert [item.trajectories for item in stages] == [10, 9, 8, 7, 5, 4, 2]
    assert [item.share for item in stages] == [1.0, 0.9, 0.8, 0.7, 0.5, 0.4, 0.2]
    assert [item.tokens for item in stages] == [110, 110, 100, 90, 70, 60, 20]
    assert [item.trajectories for item in build_funnel(groups, 4, max_age=1)][4] == 7


def test_funnels_join_and_nothing_started_has_no_share() -> None:
    """10 of 10 and 0 of 2 with signal: 10 / 12."""
    good, empty = group(*[one() for _ in range(10)]), group(one(), one(), eligible=False, signal=None)
    stages = joined([build_funnel([good], 4), build_funnel([empty], 4)])
    assert stages[-1].trajectories == 10 and stages[-1].share == pytest.approx(10 / 12)
    assert [stage.share for stage in build_funnel([], 4)] == [None] * 7
    assert joined([])[0].share is None


def test_slope_by_hand_and_against_numpy() -> None:
    """(0, 3), (1, 2), (2, 1): -1 a version. One version alone has no slope."""
    assert slope([(0, 3.0), (1, 2.0), (2, 1.0)]) == pytest.approx(-1.0)
    assert slope([(2, 1.0), (2, 3.0)]) is None and slope([(0, 1.0)]) is None and slope([]) is None
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=20), rng.normal(size=20)
    assert slope(list(zip(x, y, strict=True))) == pytest.approx(float(np.polyfit(x, y, 1)[0]), rel=1e-10)


def test_share_left_by_hand() -> None:
    """From 2 nats to 0.5: a quarter is left; from 0 nothing can be said."""
    assert left(2.0, 0.5) == 0.25 and left(0.0, 0.0) is None
