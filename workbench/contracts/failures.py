"""Controlled failures V2: a deterministic schedule, frozen before any result, equal in every arm.

The schedule reads only (group, slot, logical tool-call ordinal). The policy must first emit a real
ToolAction; the runtime then answers with a retryable timeout and the backend is not called. All
slots of a group share one profile, so that a group's advantage never compares different schedules.
"""

from __future__ import annotations

from typing import Any

SCHEMA = "workbench.failures/2"

# Logical tool-call ordinals (from 0) that are injected.
PROFILES: dict[str, tuple[int, ...]] = {
    "control": (),
    "immediate_fatal_opportunity": (0, 1, 2),
    "prefix_fatal_opportunity": (1, 2, 3),
    "isolated_recoverable_failure": (0,),
}


def schedule_document(train_cycle: list[str], stress_cycle: list[str]) -> dict[str, Any]:
    """The schedule as a plan binds it: the profiles with their ordinals and the two cycles over group ordinals."""
    return {
        "schema": SCHEMA,
        "profiles": {name: list(PROFILES[name]) for name in sorted(PROFILES)},
        "train_cycle": list(train_cycle),
        "stress_cycle": list(stress_cycle),
    }


def profile_of(cycle: list[str], group_ordinal: int) -> str:
    """Profile of a group (or of an evaluation task, by its position in the frozen task list)."""
    return cycle[group_ordinal % len(cycle)] if cycle else "control"


def injected_ordinals(profile: str) -> tuple[int, ...]:
    """Logical tool-call ordinals that the profile injects."""
    return PROFILES[profile]
