"""Reward, success and premature submission of a repair, from the verdict on its final tree.

``total = clip(U - format error, -1, 1)`` with U = passed fail-to-pass / all fail-to-pass - 1[some pass-to-pass fails].
With a format error at the end the total is min(0, U): what was repaired before it earns nothing, and harm stays harm.
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.contracts.errors import EnvironmentFault
from workbench.contracts.records import FINISH, POLICY_ERROR, RewardComponent, RewardRecord, TurnRecord
from workbench.contracts.rewards import FAIL_TO_PASS, FORMAT_ERROR, REGRESSION, reward_total
from worker.verifiers.trial import PASSED, TrialReport, is_success

REWARD_ID, REWARD_VERSION = "code_repair", "1.0.0"
SUCCESS_DEFINITION = "code_repair.success/1"
Lists = tuple[Sequence[str], Sequence[str]]


def require_complete(report: TrialReport) -> TrialReport:
    """An incomplete report is unknown, never a zero: the trajectory has no reward. Raises ``EnvironmentFault``."""
    if not report.complete:
        raise EnvironmentFault(f"trial: {report.unknown}")
    return report


def compute_reward(report: TrialReport, lists: Lists, terminal: str) -> RewardRecord:
    """Reward of a finished episode whose final tree has this complete report."""
    status = require_complete(report).status
    fail_to_pass, pass_to_pass = lists
    passed = sum(status[name] == PASSED for name in fail_to_pass)
    broken = sum(status[name] != PASSED for name in pass_to_pass)
    share, regression = passed / len(fail_to_pass), float(broken > 0)
    spoilt = max(0.0, share - regression) if terminal == POLICY_ERROR else 0.0
    observed = {
        item.test: item.status if item.cause is None else f"{item.status}:{item.cause}" for item in report.observed
    }
    components = (
        RewardComponent(
            FAIL_TO_PASS,
            1.0,
            share,
            share,
            "measured",
            {
                "passed": passed,
                "total": len(fail_to_pass),
                "observed": observed,
                "verifier": report.verifier,
                "tree_sha256": report.tree_sha256,
            },
        ),
        RewardComponent(
            REGRESSION, -1.0, regression, -regression, "measured", {"broken": broken, "total": len(pass_to_pass)}
        ),
        RewardComponent(FORMAT_ERROR, -1.0, spoilt, -spoilt, "measured", {"terminal": terminal}),
    )
    return RewardRecord(REWARD_ID, REWARD_VERSION, 1.0, components, reward_total(1.0, components))


def is_repaired(report: TrialReport, lists: Lists, terminal: str) -> bool:
    """Success 1: every fail-to-pass test passes and no pass-to-pass test is broken, at the end of the episode.

    The state that was reached counts, so a spent budget may succeed; an episode that ended with a format error failed.
    """
    return terminal != POLICY_ERROR and bool(is_success(require_complete(report), *lists))


def is_premature(turns: Sequence[TurnRecord]) -> bool:
    """Submitted without any edit that changed something."""
    submitted = bool(turns) and turns[-1].action_kind == FINISH
    return submitted and not any(
        turn.tool_call is not None
        and turn.tool_call.tool == "edit"
        and turn.observation is not None
        and bool(turn.observation.facts.get("paths"))
        for turn in turns
    )
