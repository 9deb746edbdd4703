"""Demonstrations: fresh worlds, noise, time-outs, and nothing that is held out."""

from __future__ import annotations

import itertools
import json
import random
import re
from collections import Counter

from tests.environments.episodes import ENVIRONMENT
from worker.environments.base import ToolAction
from worker.environments.evidence_search.demonstrate import Script
from worker.environments.evidence_search.environment import TOOL_SPECS, EvidenceSearch
from worker.environments.evidence_search.lexicon import HELD_OUT_PAIRS

MANY = list(itertools.islice(ENVIRONMENT.demonstrations(5), 1500))


def test_equal_seeds_give_equal_streams() -> None:
    assert list(itertools.islice(ENVIRONMENT.demonstrations(5), 40)) == MANY[:40]
    assert list(itertools.islice(ENVIRONMENT.demonstrations(6), 40)) != MANY[:40]


def test_worlds_are_fresh() -> None:
    """One fact has many different document ids and values: copying is the only way to know."""
    ids = {
        found
        for item in MANY
        for turn in item.turns
        for found in re.findall(r"Zorvex dose \d+ \[(\d+)\]", turn.observation or "")
    }
    assert len(ids) >= 5


def test_every_behaviour_occurs() -> None:
    """Coverage names behaviours; each of these occurs in at least 1 % of 1,500 episodes."""
    coverage = Counter(name for item in MANY for name in set(item.coverage))
    wanted = {
        "search_ok", "open_ok", "recovered", "retry", "switch", "stop_after_failure", "timeouts_1", "timeouts_2",
        "timeouts_3", "continued_after_fatal", "repeat", "wrong_source", "skip_second", "cite_all", "cite_wrong",
        "cite_none", "finish_complete", "finish_partial", "finish_without_evidence", "malformed",
    }  # fmt: skip
    assert wanted <= set(coverage)
    assert all(coverage[name] >= 15 for name in wanted), coverage


def test_held_out_patterns_never_occur() -> None:
    for item in MANY:
        asked = re.findall(r"(\w+) (\w+) in \w+", item.prompt.removeprefix("Find "))
        assert len({entity for entity, _ in asked}) == 1, item.prompt
        attributes = [attribute for _, attribute in asked]
        assert tuple(attributes) not in HELD_OUT_PAIRS and tuple(reversed(attributes)) not in HELD_OUT_PAIRS


def test_episodes_fit_their_budget() -> None:
    """At most ``max_decisions`` turns; only the last has no Observation; the last decision is never a call."""
    for length in (3, 7):
        environment = EvidenceSearch({"max_decisions": length})
        for item in itertools.islice(environment.demonstrations(1), 200):
            assert 1 <= len(item.turns) <= length
            assert [turn.observation is None for turn in item.turns] == [False] * (len(item.turns) - 1) + [True]


def test_tools_are_described() -> None:
    assert [tool.name for tool in TOOL_SPECS] == ["search", "open"]
    assert all(tool.parameters["additionalProperties"] is False for tool in TOOL_SPECS)


def test_states_are_those_of_a_real_session() -> None:
    """Scripts on the environment's own world, each executed call replayed: the labels before every decision agree."""
    known = 0
    for number, task in enumerate(ENVIRONMENT.tasks()[:60]):
        script = Script(ENVIRONMENT.world, task, random.Random(number), 7)
        found = script.run()
        session, calls = ENVIRONMENT.reset(task), 0
        assert len(found.states) == len(found.turns)
        for turn, label in zip(found.turns, found.states, strict=True):
            assert label == ENVIRONMENT.state_label(session)
            if turn.observation is None:
                continue
            if calls not in script.injected:
                value = json.loads(turn.action)
                assert session.step(ToolAction(value.pop("tool"), value)).text == turn.observation
            calls += 1
        known += len(set(found.states))
    assert known > 120
