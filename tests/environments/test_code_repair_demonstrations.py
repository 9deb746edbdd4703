"""Demonstrations of repairs: fresh tasks, noise, text that the parser and the sandbox agree with."""

from __future__ import annotations

import itertools
from collections import Counter
from random import Random

from tests.environments.repairs import ENVIRONMENT
from worker.engine.compact import parse_action
from worker.environments.base import FinishAction, ToolAction
from worker.environments.code_repair.demonstrate import Script, fresh_tasks
from worker.environments.code_repair.functions import functions_of, thought_before
from worker.environments.code_repair.own_trees import observe, run_own
from worker.environments.code_repair.visible import VisibleTests, as_test
from worker.verifiers.trial import PASSED

MANY = list(itertools.islice(ENVIRONMENT.demonstrations(5), 600))
FILE = "from fee import fee\ndef charge(a):  # fee of a, times 6\n    c = fee(5)\n    return c * 6\n"


def scripts(count: int, seed: int = 3) -> list[Script]:
    rng = Random(seed)
    found = [Script(built, rng, 14) for built in itertools.islice(fresh_tasks(rng, ENVIRONMENT.shapes), count)]
    for script in found:
        script.run()
    return found


def test_equal_seeds_give_equal_streams() -> None:
    assert list(itertools.islice(ENVIRONMENT.demonstrations(5), 40)) == MANY[:40]
    assert list(itertools.islice(ENVIRONMENT.demonstrations(6), 40)) != MANY[:40]


def test_a_shape_of_the_task_set_is_left_out() -> None:
    """Of one stream the task whose shape is forbidden is missing, and nothing else before it."""
    first = list(itertools.islice(fresh_tasks(Random(1), frozenset()), 12))
    forbidden = {first[4].shape()}
    again = list(itertools.islice(fresh_tasks(Random(1), forbidden), 8))
    assert [item.identity() for item in again[:4]] == [item.identity() for item in first[:4]]
    assert forbidden.isdisjoint(item.shape() for item in again)
    assert ENVIRONMENT.shapes.isdisjoint(
        item.shape() for item in itertools.islice(fresh_tasks(Random(2), ENVIRONMENT.shapes), 60)
    )


def test_what_is_demonstrated_is_legal_but_for_what_is_malformed() -> None:
    """Each decision is read by the strict parser, and executes; the last is a submission or malformed."""
    illegal = 0
    for item in MANY:
        actions = [parse_action(turn.action, ENVIRONMENT.tools())[0] for turn in item.turns]
        illegal += sum(action is None for action in actions)
        assert (None in actions) == ("malformed" in item.coverage)
        assert all(isinstance(action, ToolAction) for action in actions[:-1])
        assert actions[-1] is None or actions[-1] == FinishAction("done", ())
        assert [turn.observation is None for turn in item.turns] == [False] * (len(item.turns) - 1) + [True]
        assert len(item.turns) == len(item.states) <= 14
    assert 0 < illegal < 0.01 * sum(len(item.turns) for item in MANY)


def test_replayed_in_a_session_of_the_product_the_text_is_the_same() -> None:
    """Observations that were made in this process equal those of the sandbox, broken trees among them."""
    sandboxed = VisibleTests()
    for script in scripts(12):
        session = ENVIRONMENT.reset(script.task)
        session.test_visible = sandboxed  # type: ignore[attr-defined]
        for turn in script.turns[:-1]:
            action, _ = parse_action(turn.action, ENVIRONMENT.tools())
            assert isinstance(action, ToolAction)
            assert session.step(action).text == turn.observation


def test_trees_that_do_not_import_say_so_as_the_sandbox_does() -> None:
    sandboxed = VisibleTests()
    task = next(item for item in ENVIRONMENT.tasks() if item.initial_state["visible"])
    path = task.initial_state["visible"][0]["module"]
    broken = {
        "indentation": "return a\n    return a\n",
        "no function": "x = 1\n",
        "raises": "def f(a):\n    return b\n",
        "no module": "from nowhere import f\n",
    }
    for text in broken.values():
        files = {**task.initial_state["files"], path: text}
        mine, theirs = run_own(task, files), sandboxed(task, files)
        assert mine.passed == theirs.passed < mine.total
        assert mine.text.splitlines()[0] == theirs.text.splitlines()[0]
    files = {**task.initial_state["files"], path: broken["indentation"]}
    assert run_own(task, files) == sandboxed(task, files)


def test_every_behaviour_occurs() -> None:
    """Each of these in at least 1 % of 600 episodes; malformed ones are rarer."""
    coverage = Counter(name for item in MANY for name in set(item.coverage))
    wanted = {
        "read_ok", "edit_ok", "test_ok", "mend", "no_first_test", "skip_file", "explore", "wrong_text", "wrong_line",
        "no_change", "lazy_return", "harm", "harmless", "retest", "repair_after_failure", "finish_after_edits",
        "finish_without_edit",
    }  # fmt: skip
    assert {name for name in wanted if coverage[name] < 0.01 * len(MANY)} == set()
    assert coverage["malformed"] > 0


def test_the_repairer_succeeds_often_and_harms_sometimes() -> None:
    """By the hidden tests: a share that leaves both outcomes common, two edits or more on average, some harm."""
    outcomes, edits = [], []
    for script in scripts(150, 8):
        tests = [as_test(item) for item in script.task.hidden["tests"]]
        passed = {item.test for item in observe(script.session.files, tests) if item.status == PASSED}
        repaired = len(passed & set(script.task.hidden["fail_to_pass"])) / len(script.task.hidden["fail_to_pass"])
        outcomes.append(repaired - (not passed.issuperset(script.task.hidden["pass_to_pass"])))
        edits.append(script.session.edits)
    assert 0.3 < sum(value == 1 for value in outcomes) / len(outcomes) < 0.8
    assert 0.02 < sum(value < 0 for value in outcomes) / len(outcomes) < 0.3
    assert sum(edits) / len(edits) > 2


def test_the_thought_before_an_edit_was_read() -> None:
    """It stands in an earlier Observation, unless an edit of the same function came between."""
    found = copied = 0
    for item in MANY:
        seen = ""
        for turn in item.turns:
            if turn.action.startswith('{"tool":"edit"') and turn.action.endswith("}"):
                found += 1
                copied += turn.think in seen
            seen += f"{turn.observation}\n"
    assert found > 1000 and copied / found > 0.9


def test_thought_by_hand() -> None:
    """From the name to the line, numbered as ``read`` numbers; a line above every function alone."""
    assert thought_before(FILE, 3) == "charge(a):  # fee of a, times 6\n3     c = fee(5)"
    assert thought_before(FILE, 4).endswith("3     c = fee(5)\n4     return c * 6")
    assert thought_before(FILE, 2) == "charge(a):  # fee of a, times 6"
    assert thought_before(FILE, 1) == "1 from fee import fee"


def test_functions_by_hand() -> None:
    found = functions_of("ledger", {"charge.py": FILE})
    assert list(found) == ["charge"]
    assert (found["charge"].lines, found["charge"].first, found["charge"].parameters) == ((2, 3, 4), 2, ("a",))
