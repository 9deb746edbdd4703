# ruff: noqa: E501
"""Trials of the deep run of the generated world: every group tried, every trajectory with a verdict without its block."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from runs import models as m
from workbench.contracts.trials import STATUSES

SECTION = {"seed": "29", "replays": 0, "repeats": 0, "pilot": False, "every_arm": True}
VERIFIER = "hand/1"
AT = "/studies/study-0/plans/plan-0/"


def _sha(kind: str, n: int) -> str:
    return hashlib.sha256(f"{kind}:{n}".encode()).hexdigest()


def _status(t: int) -> str:
    return STATUSES[0] if t % 5 else STATUSES[2 + t // 5 % 4]


def edit_of(t: int) -> str:
    """The stored term of trajectory ``t``, as JSON."""
    d = (t % 9 - 4) / 4 if _status(t) == "available" else None
    known = d is not None
    return json.dumps({
        "arm": "M", "status": "applied" if known else _status(t), "selected": 3 if known else None, "tokens": 300,
        "selected_tokens": 30 if known else 0, "difference": d, "shrinkage": 0.5 if d else 1.0 if known else None,
        "capped": bool(d), "signed_mass": 150.0 * (d or 0), "l1_mass": 150.0 * abs(d or 0), "squared_mass": 750.0 * (d or 0) ** 2,
    })  # fmt: skip


def add_tried(insert: Any, uid: Any, at: Any, *, deep: int, slots: int, version: int) -> None:
    """Rows for the first ``deep`` groups, which the first run has."""
    insert(
        m.TrialSet, "id uid group_id run_id plan_version_id purpose ordinal verifier seed mode replays repeats fail_to_pass"
        " pass_to_pass record_sha256 created_at",
        ((g + 1, uid("trialset", g), g + 1, 1, version, "train", g, VERIFIER, "29", "execute", 0, 0, '["a", "b"]', '["c"]',
          _sha("trials", g), at(g)) for g in range(deep)),
    )  # fmt: skip
    block = {"decision": 3, "paths": ["a.py"], "before": {"a.py": None}, "after": {"a.py": _sha("file", 0)}}
    blocks = json.dumps(
        [block | {"decision": n, "eligible": n > 1, "reason": None if n > 1 else "overwritten"} for n in range(6)]
    )

    def interventions() -> Iterator[tuple[Any, ...]]:
        for t in range(deep * slots):
            status, original = _status(t), (t % 5) / 2 - 1
            known = status == "available"
            d = (t % 9 - 4) / 4
            yield (
                t + 1, t // slots + 1, t + 1, t % slots, status, blocks, 4, 3 if known else None, 300, 30 if known else None,
                _sha("tree", t), 2, 0.5 if known else None, t % 7 == 0 if known else None, original, original - d if known else None,
                d if known else None, 0, 0, 0, 0,
            )  # fmt: skip

    insert(
        m.Intervention, "id trial_set_id trajectory_id slot status blocks eligible_blocks selected policy_tokens"
        " selected_tokens final_tree_sha256 final_paths touched_share is_empty_patch original_utility without_utility"
        " difference replays_agree replays repeats_agree repeats", interventions(),
    )  # fmt: skip
    observed = json.dumps([{"test": "a", "status": "FAILED", "cause": "timeout", "detail": ""}]
                          + [{"test": x, "status": "PASSED", "cause": None, "detail": ""} for x in "bc"])  # fmt: skip

    def trials() -> Iterator[tuple[Any, ...]]:
        for n in range(2 * deep * slots):
            t, executed = n // 2, n % 2
            yield (
                n + 1, uid("trial", n), t // slots + 1, t + 1, "intervention" if executed else "original", 0, _sha("tree", n),
                VERIFIER, 1, 0.5, 0, observed, '{"unisolated": false}' if executed else "{}", "[]",
                *((0.1, 0.01, 0.02, 0.01, 0.04) if executed else (None,) * 5),
            )  # fmt: skip

    insert(
        m.Trial, "id uid trial_set_id trajectory_id kind repeat tree_sha256 verifier complete utility success observed level"
        " repeated queue_s setup_s run_s cleanup_s service_s", trials(),
    )  # fmt: skip


def tried_addresses(of: Any) -> list[str]:
    """Pages of trials. ``of``: uid of the n-th of a kind, as text."""
    return [
        f"{AT}edit-credit/", f"{AT}trials/", f"{AT}trials/?list=queries", f"{AT}trials/?cause=timeout&verdict=failure&arm=context",
        f"{AT}trials/?list=queries&status=format_error", f"{AT}trials/?page=40", f"{AT}trials/?run={of('run', 0)}",
        f"/trajectories/{of('trajectory', 6)}/edits/", f"/updates/{of('update', 1)}/edit-credit/",
    ]  # fmt: skip
