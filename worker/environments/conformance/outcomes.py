"""Checks of what is concluded from recorded turns: reward, success, premature finish."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

from workbench.contracts.records import BUDGET_EXHAUSTED, FINISH, RewardRecord, TurnRecord
from workbench.contracts.rewards import reward_total
from workbench.contracts.wire import from_wire, to_wire
from worker.environments.registry import record_id, reward_rules

from .subject import Subject, expect, require_text


def _reward(record: Any, where: str) -> None:
    expect(isinstance(record, RewardRecord), where, type(record).__name__, "RewardRecord")
    expect(bool(record.components), f"{where}.components", "none", "every component stored")
    for part in record.components:
        at = f"{where}.{part.name}"
        if part.state == "not_measured":
            expect(part.value is None and part.points is None, at, part.value, "None where nothing was measured")
            continue
        expect(part.state == "measured", f"{at}.state", part.state, "measured or not_measured")
        expect(part.value is not None and part.points is not None, at, None, "a value and its points")
        fits = math.isfinite(part.value) and abs(part.weight * part.value - part.points) < 1e-9
        expect(fits, f"{at}.points", part.points, "weight * value")
    total = reward_total(record.gate, record.components)
    expect(abs(total - record.total) < 1e-9, f"{where}.total", record.total, f"gate * clip(sum of points) = {total}")


def reward(subject: Subject) -> str:
    """Finite, stored by component, equal when computed again from records that went through JSON."""
    rules, totals, names = reward_rules(subject.environment, subject.reward), [], set()
    for episode in subject.episodes:
        where = f"reward({episode.task.key}, {episode.terminal})"
        record = rules.reward(episode.task, episode.turns, episode.terminal)
        _reward(record, where)
        stored = [from_wire(TurnRecord, json.loads(json.dumps(to_wire(turn)))) for turn in episode.turns]
        again = rules.reward(episode.task, tuple(stored), episode.terminal)
        expect(to_wire(again) == to_wire(record), where, "another reward the second time", "one from records alone")
        totals.append(record.total)
        names.add((record.reward_id, record.version))
    expect(len(names) == 1, "reward: id and version", sorted(names), "one for every episode")
    (found,) = names
    if subject.reward is not None:
        expected = record_id(subject.reward)
        expect(found[0] == expected, "reward.id", found[0], f"{expected}, as the plan names it")
    if subject.expected_version is not None:
        expect(
            found[1] == subject.expected_version,
            "reward.version",
            found[1],
            f"{subject.expected_version}, as the plan says",
        )
    return f"{found[0]} {found[1]}: {len(totals)} episodes, {min(totals):.3f} to {max(totals):.3f}"


def outcomes(subject: Subject) -> str:
    """Success and premature finish are verdicts, and success needs a legal Finish.

    Where the class declares ``judges_end_state`` a spent budget may succeed too; a policy error never does.
    """
    ends_well = (FINISH, BUDGET_EXHAUSTED) if getattr(subject.environment, "judges_end_state", False) else (FINISH,)
    for episode in subject.episodes:
        won = subject.environment.success(episode.task, episode.turns, episode.terminal)
        where = f"success({episode.task.key}, {episode.terminal})"
        expect(isinstance(won, bool), where, repr(won), "True or False")
        expect(not won or episode.terminal in ends_well, where, "True without a Finish", "False")
        early = subject.environment.is_premature(episode.task, episode.turns)
        expect(isinstance(early, bool), f"is_premature({episode.task.key})", repr(early), "True or False")
        require_text(subject.environment.state_label(episode.session), "state_label()")
    ends = Counter(item.terminal for item in subject.episodes)
    expect(ends[BUDGET_EXHAUSTED] > 0 or not any(subject.scripts), "episodes", dict(ends), "one with a spent budget")
    return ", ".join(f"{name} {count}" for name, count in sorted(ends.items()))
