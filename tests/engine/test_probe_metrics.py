"""L6 arithmetic, worked by hand; mutual information against scikit-learn; the engine against ``verify``."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import normalized_mutual_info_score

from evidence.checks.probes import key_of, mutual_information, probe_values
from tests.engine.probe_records import decision, record, sample, task, thought
from workbench.contracts.probe import ProbeRecord, ProbeSample
from worker.engine.probe_metrics import majority_correct, normalised_mutual_information, probe_metrics

LABELS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), min_size=1, max_size=40)


def values(made: ProbeRecord) -> dict[tuple[str, str], tuple[float | None, int | None]]:
    """(value, count) by definition and label."""
    found = {key_of(item): (item.value, item.count) for item in probe_metrics(made)}
    assert len(found) == len(probe_metrics(made))
    return found


def invalid() -> ProbeSample:
    return ProbeSample("infrastructure_invalid", "environment: gone", None, (), None, None)


def test_shares_of_two_probed_decisions() -> None:
    """Factual: call a, answer 1, at both decisions.

    delete: unparseable, no answer; and call a, answer 1. Same action 1/2, same answer 1/2, legal 1/2.
    corrupt: call b (stated b), answer 2; and call a (stated b), answer 1. Same action 1/2, followed 1/2.
    paraphrase: call a, answer 1; the second is unavailable: 1/1, and 1/2 unmeasured.
    random: call c, answer 1; twice: same action 0/2, same answer 2/2, legal 2/2.
    """
    same, broken = sample("a", "1", forced=2), sample(None, None, forced=2)
    other, third = sample("b", "2", forced=2), sample("c", "1", forced=2)
    made = record(
        task([sample("a", "1")], [], [decision(same, (broken, None), (other, "b"), (same, None), (third, None))]),
        task([sample("a", "1")], [], [decision(same, (same, None), (same, "b"), (None, None), (third, None))]),
    )
    found = values(made)
    assert found["l6.action_unchanged", "delete"] == (0.5, 2)
    assert found["l6.answer_unchanged", "delete"] == (0.5, 2)
    assert found["l6.action_legal", "delete"] == (0.5, 2)
    assert found["l6.action_unchanged", "corrupt"] == (0.5, 2)
    assert found["l6.corruption_followed", ""] == (0.5, 2)
    assert found["l6.action_unchanged", "paraphrase"] == (1.0, 1)
    assert found["l6.unmeasured_share", "paraphrase"] == (0.5, 2)
    assert found["l6.unmeasured_share", "factual"] == (0.0, 2)
    assert found["l6.action_unchanged", "random"] == (0.0, 2)
    assert found["l6.answer_unchanged", "random"] == (1.0, 2)
    assert found["l6.reproduced", ""] == (1.0, 2)
    # 2 rollouts of 6 tokens. Trials with two turns sampled 1 + 3, the broken one 1: 8 x 4 + 1.
    assert found["l6.probe_generations", "factual"] == (2.0, 1)
    assert found["l6.probe_generations", "regenerated"] == (9.0, 1)
    assert found["l6.probe_tokens", ""] == (45.0, 11)


def test_nothing_to_count_is_none_and_never_zero() -> None:
    """No think segment was read, nothing was corrupted, the one task has an invalid repeat."""
    found = values(record(task([sample("a", "1"), invalid()])))
    for name in (
        "think_share", "statements_true", "think_action_agreement", "think_action_nmi", "corruption_followed",
        "single_correct", "self_consistency_gap", "reproduced",
    ):  # fmt: skip
        assert found[f"l6.{name}", ""] == (None, 0), name
    assert found["l6.action_unchanged", "delete"] == (None, 0)


def test_a_factual_rest_without_an_answer_has_no_answer_to_keep() -> None:
    """Both end without Finish: the actions are compared, the answers are not."""
    bare = sample("a", None, forced=2)
    made = record(task([sample("a", None)], [], [decision(bare, *[(bare, None)] * 4)]))
    assert values(made)["l6.answer_unchanged", "delete"] == (None, 0)
    assert values(made)["l6.action_unchanged", "delete"] == (1.0, 1)


def test_an_instrument_that_does_not_reproduce_says_so() -> None:
    """The rollout called b and the forced, untouched segment called a: 0 of 1."""
    same = sample("a", "1", forced=2)
    made = record(task([sample("b", "1")], [], [decision(same, *[(same, None)] * 4)]))
    assert values(made)["l6.reproduced", ""] == (0.0, 1)


def test_thoughts() -> None:
    """Five decisions: four think segments, three of them read, two of three stated actions done, 3 of 4 facts true."""
    made = record(task([sample("a", "1")], [
        thought("search", "search", True, True, True),
        thought("search", "open", False, False, None),
        thought("open", "open", True, True),
        thought(None, "open", None, state="unreadable"),
        thought(None, None, None, state="absent"),
    ]))  # fmt: skip
    found = values(made)
    assert found["l6.think_share", ""] == (0.8, 5)
    assert found["l6.think_readable", ""] == (0.75, 4)
    assert found["l6.think_action_agreement", ""] == (pytest.approx(2 / 3), 3)
    assert found["l6.statements_true", ""] == (0.75, 4)
    # think: 2 search, 1 open; action: 1 search, 2 open; pairs 1, 1, 1 of 3.
    spread = math.log(3) - 2 / 3 * math.log(2)
    assert found["l6.think_action_nmi", ""] == (pytest.approx((2 * spread - math.log(3)) / spread), 3)


def test_an_environment_that_reads_no_thought_measures_no_readability() -> None:
    """Unavailable is neither unreadable nor 0; the segment is there all the same."""
    found = values(record(task([sample("a", "1")], [thought(None, None, None, state="unavailable")])))
    assert found["l6.think_share", ""] == (1.0, 1)
    assert found["l6.think_readable", ""] == (None, 0)


@pytest.mark.parametrize(
    ("votes", "expected"),
    [
        ([("1", True), ("1", True), ("2", False), (None, False)], 1.0),  # 1 has two of three votes
        ([("1", True), ("2", False)], 0.5),  # a tie: the mean of 1 and 0
        ([("1", True), ("1", False), ("2", True)], 0.5),  # the same answer was right once and wrong once
        ([(None, False), (None, False)], 0.0),  # nobody answered
        ([("1", False), ("1", False), ("2", True)], 0.0),  # the majority is wrong
    ],
)
def test_majority(votes: list[tuple[str | None, bool]], expected: float) -> None:
    samples = [sample("a", final, success=success) for final, success in votes]
    assert majority_correct(samples) == expected


def test_self_consistency_gap() -> None:
    """Task one: answers 1 1 2, right right wrong: majority 1, single 2/3. Task two: all wrong: 0, 0. Gap 1/6."""
    first = [sample("a", "1", success=True), sample("a", "1", success=True), sample("a", "2")]
    found = values(record(task(first), task([sample("a", "1")] * 3)))
    assert found["l6.single_correct", ""] == (pytest.approx(1 / 3), 2)
    assert found["l6.majority_correct", ""] == (0.5, 2)
    assert found["l6.self_consistency_gap", ""] == (pytest.approx(1 / 6), 2)


@given(LABELS)
def test_mutual_information_is_that_of_scikit_learn(pairs: list[tuple[str, str]]) -> None:
    """Arithmetic mean of the entropies; None where either side is constant, which scikit-learn calls 0 or 1."""
    left, right = [a for a, _ in pairs], [b for _, b in pairs]
    ours, checked = normalised_mutual_information(left, right), mutual_information(pairs)
    if len(set(left)) == 1 or len(set(right)) == 1:
        assert ours is None and checked is None
        return
    expected = normalized_mutual_info_score(left, right, average_method="arithmetic")
    assert ours == pytest.approx(expected, abs=1e-9) and checked == pytest.approx(expected, abs=1e-9)
    assert ours is not None and 0.0 <= ours <= 1.0


def test_independent_labels_share_nothing_and_renamed_ones_everything() -> None:
    assert normalised_mutual_information(list("aabb"), list("xyxy")) == pytest.approx(0.0, abs=1e-12)
    assert normalised_mutual_information(list("aabb"), list("yyxx")) == pytest.approx(1.0)


SAMPLES = st.builds(
    sample, st.sampled_from(["a", "b", None]), st.sampled_from(["1", "2", None]), success=st.booleans(),
    forced=st.just(2),
)  # fmt: skip
OTHERS = st.tuples(st.one_of(st.none(), SAMPLES), st.sampled_from(["a", "b", None]))
THOUGHTS = st.builds(
    thought, st.sampled_from(["a", "b"]), st.sampled_from(["a", "b", None]), st.sampled_from([True, False, None]),
    st.sampled_from([True, False, None]),
    state=st.sampled_from(["read", "unreadable", "absent", "unavailable", "failed"]),
)  # fmt: skip
TASKS = st.builds(
    task, st.lists(SAMPLES, min_size=1, max_size=4), st.lists(THOUGHTS, max_size=5),
    st.lists(st.builds(decision, st.one_of(st.none(), SAMPLES), OTHERS, OTHERS, OTHERS, OTHERS), max_size=3),
)  # fmt: skip


@given(st.lists(TASKS, min_size=1, max_size=4))
def test_verify_computes_what_the_engine_computed(tasks: list) -> None:  # type: ignore[type-arg]
    """Two implementations, one document: equal values and denominators, each share within its range."""
    made = record(*tasks)
    ours, checked = values(made), probe_values(made)
    assert ours.keys() == checked.keys()
    for key, (value, count) in ours.items():
        expected, number = checked[key]
        assert count == number, key
        assert (value is None) == (expected is None), key
        if value is not None:
            assert value == pytest.approx(expected, abs=1e-9), key
            low = -1.0 if key[0] == "l6.self_consistency_gap" else 0.0
            assert low <= value and (value <= 1.0 or key[0].startswith("l6.probe_"))
