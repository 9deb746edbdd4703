"""Think segments of ``evidence_search``: read, checked against the corpus, paraphrased, corrupted."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.environments.episodes import ENVIRONMENT, needed, read, search, task_of
from worker.environments.base import THOUGHT_MEMBERS, FinishAction, Session, Task, Thought, ToolAction
from worker.environments.evidence_search.lexicon import ATTRIBUTES, FAMILIES

TASK = task_of("two_sources")
FIRST, SECOND = needed(TASK)


def line(document: dict[str, str]) -> str:
    return f"{document['entity']} {document['attribute']} {document['value']} [{document['id']}]"


def read_thought(text: str, *before: ToolAction, task: Task = TASK) -> Thought | None:
    return ENVIRONMENT.read_thought(task, ENVIRONMENT.replay(task, before), text)


def holds(text: str, *before: ToolAction) -> list[bool | None]:
    found = read_thought(text, *before)
    assert found is not None
    return [item.holds for item in found.statements]


def test_it_reads_thoughts() -> None:
    assert all(callable(getattr(ENVIRONMENT, name)) for name in THOUGHT_MEMBERS)


@pytest.mark.parametrize("verb", ["need", "check", "retry", "switch"])
def test_a_search_is_stated_with_its_source_and_query(verb: str) -> None:
    """Two facts: the question asks for it, and the attribute lies in that source family."""
    wanted = f"{FIRST['entity']} {FIRST['attribute']}"
    found = read_thought(f"{verb} {wanted} in {FIRST['family']}")
    assert found is not None and found.label == f"search {FIRST['family']}"
    assert found.action == search(FIRST) and ENVIRONMENT.action_label(search(FIRST)) == found.label
    assert [item.holds for item in found.statements] == [True, True]
    other = next(item for item in FAMILIES if item != FIRST["family"])
    assert holds(f"{verb} {wanted} in {other}") == [True, False]
    assert holds(f"{verb} Nobody {FIRST['attribute']} in {FIRST['family']}") == [False, True]
    assert holds(f"{verb} {FIRST['entity']} colour in {FIRST['family']}") == [False, False]


def test_an_open_states_what_the_document_is() -> None:
    heading = f"{FIRST['entity']} {FIRST['attribute']}"
    found = read_thought(f"open {heading} [{FIRST['id']}]")
    assert found is not None and (found.label, found.action) == ("open", read(FIRST))
    assert holds(f"open {heading} [{FIRST['id']}]") == [True]
    assert holds(f"open {heading} [{SECOND['id']}]") == [False]


def test_found_facts_are_checked_against_the_corpus_and_against_what_was_read() -> None:
    """Both documents say what is stated; only the first has been opened."""
    text = f"found {line(FIRST)} and {line(SECOND)}"
    found = read_thought(text, read(FIRST))
    assert found is not None and found.label == "finish"
    assert found.action == FinishAction(f"{FIRST['value']} {SECOND['value']}", (FIRST["id"], SECOND["id"]))
    assert [item.holds for item in found.statements] == [True, True, True, False]
    wrong = line(FIRST).replace(FIRST["value"], "nothing")
    assert holds(f"found {wrong}", read(FIRST)) == [False, True]


def test_nothing_found_is_true_until_a_needed_document_was_read() -> None:
    found = read_thought("found none")
    assert found is not None and found.action == FinishAction("none", ())
    assert holds("found none") == [True] and holds("found none", read(SECOND)) == [False]


@pytest.mark.parametrize(
    "text",
    ["", "need", "need Zorvex dose", "need Zorvex dose in label now", "open Zorvex dose [12]", "found", "found x [100]",
     "found none and none", "Need Zorvex dose in label", "need Zorvex dose in label\n"],
)  # fmt: skip
def test_other_forms_are_unreadable(text: str) -> None:
    session = ENVIRONMENT.reset(TASK)
    assert read_thought(text) is None
    assert ENVIRONMENT.paraphrase_thought(TASK, session, text) is None
    assert ENVIRONMENT.corrupt_thought(TASK, session, text, "1") is None


SEGMENTS = st.one_of(
    st.builds(
        lambda verb, attribute: f"{verb} {FIRST['entity']} {attribute} in {ATTRIBUTES[attribute]}",
        st.sampled_from(["need", "check", "retry", "switch"]), st.sampled_from(sorted(ATTRIBUTES)),
    ),
    st.sampled_from([FIRST, SECOND]).map(lambda item: f"open {item['entity']} {item['attribute']} [{item['id']}]"),
    st.sampled_from(
        ["found none", f"found {line(FIRST)}", f"found {line(SECOND)} and {line(FIRST)}"]
    ),
)  # fmt: skip
EPISODES = st.lists(st.sampled_from([search(FIRST), search(SECOND), read(FIRST), read(SECOND)]), max_size=4)


@settings(max_examples=150, deadline=None)
@given(SEGMENTS, EPISODES, st.integers(0, 2**64 - 1))
def test_a_paraphrase_keeps_the_meaning_and_a_corruption_changes_the_action(
    text: str, before: list[ToolAction], seed: int
) -> None:
    """Other words, same action and facts; same form, another action. Neither touches the episode."""
    session: Session = ENVIRONMENT.replay(TASK, before)
    state, own = session.state_hash(), ENVIRONMENT.read_thought(TASK, session, text)
    assert own is not None
    other = ENVIRONMENT.paraphrase_thought(TASK, session, text)
    assert other is not None and other != text and ENVIRONMENT.read_thought(TASK, session, other) == own
    changed = ENVIRONMENT.corrupt_thought(TASK, session, text, str(seed))
    assert changed == ENVIRONMENT.corrupt_thought(TASK, session, text, str(seed))
    assert changed is not None and changed.split(" ")[0] == text.split(" ")[0]
    stated = ENVIRONMENT.read_thought(TASK, session, changed)
    assert stated is not None and stated.action is not None and stated.action != own.action
    assert session.state_hash() == state


def test_demonstrations_think_in_forms_that_are_read() -> None:
    """What the embedded policy is taught is what the environment reads: every segment of 200 episodes."""
    seen = set()
    stream = ENVIRONMENT.demonstrations(3)
    for _ in range(200):
        for turn in next(stream).turns:
            found = read_thought(turn.think)
            assert found is not None, turn.think
            seen.add(found.label)
    assert seen == {"search label", "search notice", "search registry", "open", "finish"}
