"""Sessions: results, faults, and the equalities of fork, snapshot, restore and replay."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.environments.episodes import ENVIRONMENT, finish, needed, read, search, task_of
from workbench.contracts.canonical import canonical_bytes, parse_canonical
from workbench.contracts.errors import EnvironmentFault
from worker.environments.base import Environment, Session, ToolAction
from worker.environments.evidence_search.lexicon import ATTRIBUTES, FAMILIES, NAMES

TASKS = ENVIRONMENT.tasks()
WORDS = st.sampled_from([*NAMES, *ATTRIBUTES, "nothing"])
SEARCHES = st.builds(
    lambda source, words: ToolAction("search", {"source": source, "query": " ".join(words)}),
    st.sampled_from(FAMILIES),
    st.lists(WORDS, min_size=1, max_size=3),
)
OPENS = st.builds(lambda number: ToolAction("open", {"id": str(number)}), st.integers(100, 399))
ACTIONS = st.lists(st.one_of(SEARCHES, OPENS), max_size=6)


def test_it_is_an_environment() -> None:
    environment: Environment = ENVIRONMENT
    assert isinstance(environment.reset(TASKS[0]), Session)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(TASKS) - 1), ACTIONS, ACTIONS)
def test_fork_restore_and_replay_agree(index: int, before: list[ToolAction], after: list[ToolAction]) -> None:
    """Equal action sequences give equal states and Observations, by whichever way the state was reached."""
    task = TASKS[index]
    session = ENVIRONMENT.reset(task)
    for action in before:
        session.step(action)
    forked, restored = session.fork(), ENVIRONMENT.restore(task, session.snapshot())
    replayed = ENVIRONMENT.replay(task, before)
    assert session.state_hash() == forked.state_hash() == restored.state_hash() == replayed.state_hash()
    frozen = session.state_hash()
    for action in after:
        results = [item.step(action) for item in (forked, restored, replayed)]
        assert results[0] == results[1] == results[2]
    assert forked.state_hash() == restored.state_hash() == replayed.state_hash()
    assert session.state_hash() == frozen, "a fork must not move its origin"


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(TASKS) - 1), ACTIONS)
def test_every_call_moves_the_state_and_labels_stay_coarse(index: int, actions: list[ToolAction]) -> None:
    session = ENVIRONMENT.reset(TASKS[index])
    seen = {session.state_hash()}
    for count, action in enumerate(actions, start=1):
        session.step(action)
        assert session.state_hash() not in seen
        seen.add(session.state_hash())
        assert ENVIRONMENT.state_label(session).endswith(f"after {count}")


def test_notice_is_read_by_opening() -> None:
    task = task_of("single_notice")
    (one,) = needed(task)
    session = ENVIRONMENT.reset(task)
    listed = session.step(search(one))
    assert listed.status == "ok" and listed.is_productive and one["value"] not in listed.text.split()
    assert listed.facts["documents"] == [] and one["id"] in {item["id"] for item in listed.facts["listed"]}
    opened = session.step(read(one))
    assert opened.is_productive and opened.text.split()[2] == one["value"]
    assert ENVIRONMENT.state_label(session) == "read 1/1 after 2"


def test_facts_hold_no_value() -> None:
    """Facts are stored beside prompts and pages; the value of a document is in the Observation's text only."""
    task = task_of("single_label")
    result = ENVIRONMENT.reset(task).step(search(needed(task)[0]))
    assert all(set(item) == {"id", "family", "entity", "attribute"} for item in result.facts["documents"])


def test_unknown_document_is_a_plain_error_and_no_match_is_none() -> None:
    session = ENVIRONMENT.reset(TASKS[0])
    free = next(str(number) for number in range(100, 400) if str(number) not in ENVIRONMENT.world.by_id)
    missing = session.step(ToolAction("open", {"id": free}))
    assert (missing.status, missing.retryable, missing.text) == ("error", False, f"no document {free}")
    nothing = session.step(ToolAction("search", {"source": "label", "query": "nothing"}))
    assert (nothing.status, nothing.retryable, nothing.text) == ("ok", None, "no match")


def test_only_the_schedule_makes_retryable_failures() -> None:
    action = search(needed(TASKS[0])[0])
    injected = ENVIRONMENT.injected_failure(action, 4)
    assert (injected.status, injected.retryable, injected.text) == ("timeout", True, "timeout retryable left 4")
    assert injected.facts == {} and not injected.is_productive


def test_faults_of_the_runtime() -> None:
    session = ENVIRONMENT.reset(TASKS[0])
    with pytest.raises(EnvironmentFault, match="tool: got 'shell'"):
        session.step(ToolAction("shell", {}))
    session.finish(finish("none"))
    with pytest.raises(EnvironmentFault, match="after Finish"):
        session.step(search(needed(TASKS[0])[0]))
    with pytest.raises(EnvironmentFault, match="second Finish"):
        session.finish(finish("none"))


def test_foreign_snapshots_and_tasks_are_refused() -> None:
    session = ENVIRONMENT.reset(TASKS[0])
    with pytest.raises(EnvironmentFault, match=r"snapshot\.task"):
        ENVIRONMENT.restore(TASKS[1], session.snapshot())
    state = parse_canonical(session.snapshot())
    state.pop("read")
    with pytest.raises(EnvironmentFault, match="snapshot: got other fields"):
        ENVIRONMENT.restore(TASKS[0], canonical_bytes(state))
    other = type(ENVIRONMENT)({"world_seed": 12}).tasks()[0]
    with pytest.raises(ValueError, match="corpus_sha256"):
        ENVIRONMENT.reset(other)
