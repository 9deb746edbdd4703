"""The one derivation of seeds. Seeds never depend on the arm, the clock, the worker or a checkpoint.

A seed is the first 8 bytes (big-endian) of SHA-256 over canonical JSON, carried as a decimal
string because JSON numbers hold 53 bits only.
"""

from __future__ import annotations

import hashlib

from .canonical import canonical_bytes


def derive_seed(purpose: str, *parts: str | int) -> str:
    """64-bit seed of a purpose and its coordinates, as a decimal string."""
    data = canonical_bytes(["workbench.seed/1", purpose, [str(part) for part in parts]])
    return str(int.from_bytes(hashlib.sha256(data).digest()[:8], "big"))


def slot_seed(plan_sha256: str, run_seed: str, purpose: str, group_ordinal: int, task_uid: str, slot: int) -> str:
    """Seed of one slot of a training or preflight group: equal in every arm of the plan."""
    return derive_seed(f"slot:{purpose}", plan_sha256, run_seed, group_ordinal, task_uid, slot)


def evaluation_seed(plan_sha256: str, condition: str, task_uid: str, repeat: int) -> str:
    """Seed of one evaluation item: equal for every checkpoint."""
    return derive_seed(f"evaluate:{condition}", plan_sha256, task_uid, repeat)


def probe_seed(plan_sha256: str, task_uid: str, repeat: int) -> str:
    """Seed of one factual rollout of a probe: equal for every checkpoint, arm and run."""
    return derive_seed("probe", plan_sha256, task_uid, repeat)


def order_seed(plan_sha256: str, run_seed: str) -> str:
    """Seed of the order in which a run meets its training tasks: equal in every arm."""
    return derive_seed("task_order", plan_sha256, run_seed)
