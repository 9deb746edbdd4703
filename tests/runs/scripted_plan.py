"""The plan document of the scripted study; no Django."""

from __future__ import annotations

import copy
from typing import Any


def document(**changes: Any) -> dict[str, Any]:
    """A complete plan document; ``changes`` replace whole top-level sections."""
    arm = {"title": {"en": "An arm"}}
    plan: dict[str, Any] = {
        "schema": "workbench.plan/1", "study": "scripted", "name": "scripted", "title": {"en": "Scripted"},
        "question": {"en": "Does it run?"}, "policy": {"model": "embedded-evidence-search"},
        "environment": {"id": "evidence_search"}, "reward": {"id": "evidence_search.reward", "version": "2.1"},
        "rollout": {"group_size": 2, "groups_per_batch": 1},
        "failure": {"train_cycle": ["control"], "stress_cycle": ["isolated_recoverable_failure"]},
        "optimizer": {"learning_rate": 0.001}, "budget": {"batches": 2, "max_steps": 4, "max_attempts": 3},
        "runtime": {"threads": 1, "shard_rows": 2}, "seeds": ["1"],
        "arms": [
            {"key": "V", "role": "pair", **arm},
            {"key": "F", "role": "pair", "overrides": {"objective": {"credit": "fatal_suffix"}}, **arm},
            {
                "key": "K", "role": "gated", "overrides": {"objective": {"credit": "one_sided_clamp"}},
                "gate": {"rule": "clamp_actionable_cases", "counted_over": "F", "minimum": 3}, **arm,
            },
        ],
        "strict_pairs": [{"arms": ["V", "F"], "treatment": ["objective.credit"]}],
        "preflight": {"groups": 2, "max_zero_variance_share": 0.5},
        "error_gate": {"max_invalid_share": 0.5, "minimum_trajectories": 4},
        "evaluation": {"splits": [{"split": "test", "tasks": 2}], "repeats": 2},
        "claims": {"reach": {"en": "This sample."}, "cannot_show": {"en": "Anything else."}},
    }  # fmt: skip
    return copy.deepcopy({**plan, **changes})
