"""Reward v2.1, success and premature finish, each worked by hand."""

from __future__ import annotations

import pytest

from tests.environments.episodes import (
    ENVIRONMENT,
    ILLEGAL,
    TIMED_OUT,
    UNEXECUTED,
    finish,
    needed,
    play,
    read,
    search,
    task_of,
)
from workbench.contracts.records import RewardRecord, TurnRecord
from worker.environments.base import Task


def rewarded(task: Task, turns: list[TurnRecord], terminal: str) -> tuple[RewardRecord, dict[str, float | None]]:
    record = ENVIRONMENT.reward(task, turns, terminal)
    return record, {item.name: item.value for item in record.components}


def test_ideal_single_label_episode_earns_everything() -> None:
    """search (hits the document), Finish citing it with its value.

    evidence = .25*1 + .5*(.5*1/1 + .5*1/1) + .25*1/1 = 1; process = (1 + 1 + 1/1)/3 = 1;
    efficiency = 1 (no call after coverage). total = .45 + .45 + .10 = 1.
    """
    task = task_of("single_label")
    (one,) = needed(task)
    turns, terminal = play(task, [search(one), finish(one["value"], one["id"])])
    record, values = rewarded(task, turns, terminal)
    assert values == {
        "evidence": 1.0, "process": 1.0, "efficiency": 1.0, "medical_correctness": None, "safety": None,
    }  # fmt: skip
    assert record.total == pytest.approx(1.0)
    assert ENVIRONMENT.success(task, turns, terminal) and not ENVIRONMENT.is_premature(task, turns)


def test_formula_and_stored_components() -> None:
    """Weights .45, .45, .10, points = weight * value, total = gate * sum; the two judged components have none."""
    task = task_of("two_sources")
    first = needed(task)[0]
    turns, terminal = play(task, [search(first), finish("none")])
    record, _ = rewarded(task, turns, terminal)
    assert (record.reward_id, record.version) == ("evidence_search.reward", "2.1")
    assert [(item.name, item.weight) for item in record.components] == [
        ("evidence", 0.45), ("process", 0.45), ("efficiency", 0.10), ("medical_correctness", 0.0), ("safety", 0.0),
    ]  # fmt: skip
    for item in record.components[:3]:
        assert item.state == "measured" and item.value is not None
        assert item.points == pytest.approx(item.weight * item.value)
    for item in record.components[3:]:
        assert (item.value, item.points, item.state) == (None, None, "not_measured")
    assert record.total == pytest.approx(sum(item.points or 0.0 for item in record.components))


def test_notice_heading_is_not_retrieved_until_opened() -> None:
    """search lists the heading (productive), Finish cites it unopened: not retrieved.

    source 0 (nothing retrieved), proximity .5*0 + .5*0 = 0, citation 0/1 = 0: evidence 0.
    process = (1 + 1 + 1/1)/3 = 1; efficiency 0 (never covered). total = .45.
    """
    task = task_of("single_notice")
    (one,) = needed(task)
    turns, terminal = play(task, [search(one), finish("none", one["id"])])
    record, values = rewarded(task, turns, terminal)
    assert values["evidence"] == 0.0 and values["process"] == 1.0 and values["efficiency"] == 0.0
    assert record.total == pytest.approx(0.45)
    assert not ENVIRONMENT.success(task, turns, terminal) and ENVIRONMENT.is_premature(task, turns)
    opened, terminal = play(task, [search(one), read(one), finish(one["value"], one["id"])])
    assert ENVIRONMENT.reward(task, opened, terminal).total == pytest.approx(1.0)
    assert ENVIRONMENT.success(task, opened, terminal) and not ENVIRONMENT.is_premature(task, opened)


def test_honest_empty_finish_keeps_its_process_credit() -> None:
    """Three time-outs, then Finish "none" citing nothing.

    evidence 0; process = (legal 1 + non-repeated 1 + productive 0 of 0 answered = 0)/3 = 2/3:
    trying a failed call again is no repeat. efficiency 0. total = .45 * 2/3 = .30.
    """
    task = task_of("single_label")
    (one,) = needed(task)
    turns, terminal = play(task, [(search(one), TIMED_OUT)] * 3 + [finish("none")])
    record, values = rewarded(task, turns, terminal)
    assert values["evidence"] == 0.0 and values["process"] == pytest.approx(2 / 3) and values["efficiency"] == 0.0
    assert record.total == pytest.approx(0.30) and record.gate == 1.0
    assert ENVIRONMENT.is_premature(task, turns) and not ENVIRONMENT.success(task, turns, terminal)


def test_finish_without_any_call_earns_less_than_trying() -> None:
    """No call at all: process = (1 + 0 + 0)/3, total = .45/3 = .15, below the .30 of an honest attempt."""
    task = task_of("single_label")
    turns, terminal = play(task, [finish("none")])
    assert ENVIRONMENT.reward(task, turns, terminal).total == pytest.approx(0.15)


def test_policy_error_closes_the_gate() -> None:
    """A covered, well-searched episode that ends unparseable: gate 0, total 0, components still stored."""
    task = task_of("single_label")
    (one,) = needed(task)
    turns, terminal = play(task, [search(one), ILLEGAL])
    record, values = rewarded(task, turns, terminal)
    assert record.gate == 0.0 and record.total == 0.0 and values["efficiency"] == 1.0
    assert not ENVIRONMENT.success(task, turns, terminal) and not ENVIRONMENT.is_premature(task, turns)


def test_budget_exhausted_is_rewarded_normally() -> None:
    """search covers the need, one repeat, then an unexecuted call ends the budget.

    source 1, proximity 0 (nothing cited or answered), citation 0: evidence = .25.
    process = (0 + (1 - 1/2) + 1/2)/3 = 1/3. efficiency = 1 - .25*1 = .75 (the unexecuted call costs nothing).
    total = .45*.25 + .45/3 + .10*.75 = .1125 + .15 + .075 = .3375.
    """
    task = task_of("single_label")
    (one,) = needed(task)
    turns, terminal = play(task, [search(one), search(one), (search(one), UNEXECUTED)])
    record, values = rewarded(task, turns, terminal)
    assert terminal == "budget_exhausted" and record.gate == 1.0
    assert values["evidence"] == pytest.approx(0.25) and values["process"] == pytest.approx(1 / 3)
    assert values["efficiency"] == pytest.approx(0.75)
    assert record.total == pytest.approx(0.3375)


def test_citing_everything_is_no_remedy() -> None:
    """Both hits of a search cited, one of them needed, value stated.

    proximity = .5 * (1 / max(1 needed, 2 cited)) + .5 = .75; evidence = .25 + .5*.75 + .25*2/2 = .875.
    Success holds: every needed document is cited and no cited one is unretrieved.
    """
    task = task_of("single_registry")
    (one,) = needed(task)
    turns, _ = play(task, [search(one)])
    assert turns[0].observation is not None
    hits = [item["id"] for item in turns[0].observation.facts["documents"]]
    assert len(hits) == 2
    turns, terminal = play(task, [search(one), finish(one["value"], *hits)])
    record, values = rewarded(task, turns, terminal)
    assert values["evidence"] == pytest.approx(0.875)
    assert record.total == pytest.approx(0.45 * 0.875 + 0.45 + 0.10)
    assert ENVIRONMENT.success(task, turns, terminal)


def test_neighbouring_document_is_graded() -> None:
    """Only the other hit (same entity and family) cited, nothing stated: grade .5.

    proximity = .5*.5 + .5*0 = .25; evidence = .25*1 + .5*.25 + .25*1 = .625. No success.
    """
    task = task_of("single_registry")
    (one,) = needed(task)
    turns, _ = play(task, [search(one)])
    assert turns[0].observation is not None
    other = next(item["id"] for item in turns[0].observation.facts["documents"] if item["id"] != one["id"])
    turns, terminal = play(task, [search(one), finish("none", other)])
    _, values = rewarded(task, turns, terminal)
    assert values["evidence"] == pytest.approx(0.625)
    assert not ENVIRONMENT.success(task, turns, terminal) and not ENVIRONMENT.is_premature(task, turns)


def test_unretrieved_citation_is_invalid_and_premature() -> None:
    """The needed document and one that was never shown are cited: citation 1/2, proximity .5*1/2 + .5 = .75.

    evidence = .25 + .5*.75 + .25*.5 = .75; no success (an invalid citation), and premature (cited, not retrieved).
    """
    task = task_of("single_label")
    (one,) = needed(task)
    turns, _ = play(task, [search(one)])
    assert turns[0].observation is not None
    shown = {item["id"] for item in turns[0].observation.facts["documents"]}
    unseen = next(item.id for item in ENVIRONMENT.world.documents if item.id not in shown)
    turns, terminal = play(task, [search(one), finish(one["value"], one["id"], unseen)])
    _, values = rewarded(task, turns, terminal)
    assert values["evidence"] == pytest.approx(0.75)
    assert not ENVIRONMENT.success(task, turns, terminal) and ENVIRONMENT.is_premature(task, turns)


def test_wrong_source_first_costs_process_only() -> None:
    """Wrong source (unproductive), right source, Finish: process = (1 + 1 + 1/2)/3 = 5/6; evidence and efficiency 1."""
    task = task_of("single_label")
    (one,) = needed(task)
    turns, terminal = play(task, [search(one, "registry"), search(one), finish(one["value"], one["id"])])
    record, values = rewarded(task, turns, terminal)
    assert values["process"] == pytest.approx(5 / 6) and values["evidence"] == 1.0 and values["efficiency"] == 1.0
    assert record.total == pytest.approx(0.55 + 0.45 * 5 / 6)


def test_success_needs_every_document_cited() -> None:
    """Two documents retrieved, one cited: no success; both cited: success. Without Finish: none."""
    task = task_of("two_sources")
    steps = [step for item in needed(task) for step in (search(item), read(item))]
    ids = [item["id"] for item in needed(task)]
    answer = " ".join(item["value"] for item in needed(task))
    assert not ENVIRONMENT.success(task, *play(task, [*steps, finish(answer, ids[0])]))
    assert ENVIRONMENT.success(task, *play(task, [*steps, finish(answer, *ids)]))
    assert not ENVIRONMENT.success(task, *play(task, steps))


def test_recorded_productive_flags_agree_with_the_reward() -> None:
    """The session's is_productive and the reward's own recount from facts: 2 of 3 calls here (a repeat is none)."""
    task = task_of("single_notice")
    (one,) = needed(task)
    turns, terminal = play(task, [search(one), search(one), read(one), finish(one["value"], one["id"])])
    flags = [turn.tool_call.is_productive for turn in turns if turn.tool_call is not None]
    assert flags == [True, False, True]
    record = ENVIRONMENT.reward(task, turns, terminal)
    detail = next(item.detail for item in record.components if item.name == "process")
    assert (detail["productive_calls"], detail["answered_calls"], detail["needless_repeats"]) == (2, 3, 1)
