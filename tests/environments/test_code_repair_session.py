"""Sessions of ``code_repair``: what each tool shows, state and its equalities, visible tests as Observations."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.environments.repairs import ENVIRONMENT, SUBMIT, TEST, broken_files, edit, gold_edits
from workbench.contracts.canonical import canonical_bytes, parse_canonical
from workbench.contracts.errors import EnvironmentFault
from worker.environments.base import Environment, Session, Task, ToolAction
from worker.environments.code_repair import visible
from worker.environments.code_repair.session import RepairSession, replay_session, restore_session
from worker.environments.code_repair.visible import VisibleRun, VisibleTests
from worker.sandbox.base import SandboxFault
from worker.verifiers.trial import TrialReport

TASKS = ENVIRONMENT.tasks()
HAND = Task(
    "hand",
    "train",
    "hand",
    "Repair hand: a.py",
    {
        "files": {"a.py": "def a(x):  # x\n    return x + 1\n", "b.py": "def b(x):\n    return x\n"},
        "visible": [
            {"id": "a_v", "module": "a.py", "function": "a", "arguments": [2], "expected": 2},
            {"id": "b_v", "module": "b.py", "function": "b", "arguments": ["q"], "expected": "q"},
        ],
    },
    {"tests": [], "fail_to_pass": [], "pass_to_pass": [], "gold": {"a.py": "def a(x):  # x\n    return x\n"}},
    ("list", "read", "search", "edit", "test"),
)


def untested(task: Task, files: Mapping[str, str]) -> VisibleRun:
    """Stands for the visible tests where what they say does not matter."""
    return VisibleRun(f"{len(files)} files", 0, 1)


def hand() -> RepairSession:
    return RepairSession(HAND, untested)


def said(session: RepairSession, tool: str, **arguments: object) -> tuple[str, str, bool]:
    found = session.step(ToolAction(tool, dict(arguments)))
    return found.status, found.text, found.is_productive


def test_it_is_an_environment() -> None:
    environment: Environment = ENVIRONMENT
    assert isinstance(environment.reset(TASKS[0]), Session)


def test_list_read_and_search() -> None:
    session = hand()
    assert said(session, "list") == ("ok", "a.py\nb.py", False)
    assert said(session, "read", path="a.py") == ("ok", "1 def a(x):  # x\n2     return x + 1", True)
    assert said(session, "read", path="a.py", start=2) == ("ok", "2     return x + 1", False)
    assert said(session, "read", path="b.py") == ("ok", "1 def b(x):\n2     return x", False)
    assert said(session, "read", path="a.py", start=3) == ("error", "a.py has 2 lines", False)
    assert said(session, "read", path="c.py") == ("error", "no file c.py", False)
    assert said(session, "search", text="return x") == ("ok", "a.py 2 return x + 1\nb.py 2 return x", False)
    assert said(session, "search", text="none of it") == ("ok", "nothing found", False)


def test_a_long_file_and_many_hits_are_cut_and_say_so() -> None:
    session = hand()
    session.step(edit(path="long.py", text="".join(f"x = {number}\n" for number in range(300))))
    shown = said(session, "read", path="long.py")[1].split("\n")
    assert shown[0] == "1 x = 0" and shown[199:] == ["200 x = 199", "100 more from 201"]
    assert said(session, "read", path="long.py", start=299)[1] == "299 x = 298\n300 x = 299"
    assert said(session, "search", text="x = 1")[1].split("\n")[-1] == "91 more"  # 111 lines, 20 shown


def test_edits_change_the_tree_or_say_why_not() -> None:
    session = hand()
    done = session.step(edit(path="a.py", line=2, text="return x"))
    assert (done.status, done.text, done.is_productive) == ("ok", "edited a.py", True)
    assert done.facts["paths"] == ["a.py"] and done.facts["after"]["a.py"] == session.manifest()["a.py"]
    assert done.facts["before"]["a.py"] == hand().manifest()["a.py"]
    assert session.files["a.py"] == "def a(x):  # x\n    return x\n"
    assert said(session, "edit", path="a.py", line=2, text="return x") == ("ok", "nothing changed", False)
    assert said(session, "edit", path="a.py", line=7, text="") == ("error", "not edited: a.py has 2 lines", False)
    several = [{"path": "b.py", "text": ""}, {"path": "n.py", "text": "N = 1\n"}]
    assert said(session, "edit", edits=several) == ("ok", "edited b.py n.py", False)  # neither is broken
    assert session.step(edit(path="m.py", text="")).facts["before"] == {"m.py": None}
    assert session.edits == 3


def test_a_test_is_productive_once_for_each_tree_and_what_it_says_is_no_state() -> None:
    def other(task: Task, files: Mapping[str, str]) -> VisibleRun:
        return VisibleRun("something else", 1, 1)

    first, second = hand(), RepairSession(HAND, other)
    assert said(first, "test") == ("ok", "2 files", True) and said(second, "test") == ("ok", "something else", True)
    assert first.state_hash() == second.state_hash()
    assert said(first, "test")[2] is False
    first.step(edit(path="a.py", line=2, text="return x"))
    assert said(first, "test")[2] is True
    assert (
        ENVIRONMENT.state_label(first) == "1 edits, tested" and ENVIRONMENT.state_label(hand()) == "0 edits, untested"
    )


def test_nothing_after_the_submission_and_no_foreign_tool() -> None:
    session = hand()
    before = session.state_hash()
    with pytest.raises(EnvironmentFault, match="got 'open', expected one of"):
        session.step(ToolAction("open", {}))
    session.finish(SUBMIT)
    assert session.state_hash() != before
    for act in (lambda: session.finish(SUBMIT), lambda: session.step(TEST), lambda: session.advance(TEST)):
        with pytest.raises(EnvironmentFault, match="submission"):
            act()


def test_a_snapshot_holds_what_differs_and_is_of_its_task() -> None:
    session = hand()
    session.step(edit(path="b.py", line=2, text="return 0"))
    state = parse_canonical(session.snapshot())
    assert state["changed"] == {"b.py": "def b(x):\n    return 0\n"}
    assert restore_session(HAND, session.snapshot(), untested).files == session.files
    forged = canonical_bytes({**state, "changed": {"b.py": ""}})
    for task, snapshot in ((TASKS[0], session.snapshot()), (HAND, forged), (HAND, canonical_bytes({"task": "x"}))):
        with pytest.raises(EnvironmentFault, match="snapshot"):
            restore_session(task, snapshot, untested)


PATHS = st.sampled_from(["a.py", "b.py", "n.py", "a.py/x"])
CALLS = st.one_of(
    st.sampled_from([ToolAction("list", {}), TEST, ToolAction("search", {"text": "return"})]),
    st.builds(lambda path: ToolAction("read", {"path": path}), PATHS),
    st.builds(
        lambda path, line, text: edit(path=path, line=line, text=text), PATHS, st.integers(1, 3), st.text(max_size=4)
    ),
    st.builds(lambda path, text: edit(path=path, text=text), PATHS, st.text(max_size=4)),
)
HISTORIES = st.lists(CALLS, max_size=6)


@settings(max_examples=60, deadline=None)
@given(HISTORIES, HISTORIES)
def test_fork_restore_and_replay_agree(before: list[ToolAction], after: list[ToolAction]) -> None:
    """Equal action sequences give equal states and Observations, by whichever way the state was reached."""
    session = hand()
    for action in before:
        session.step(action)
    forked, restored = session.fork(), restore_session(HAND, session.snapshot(), untested)
    replayed = replay_session(HAND, before, untested)
    assert session.state_hash() == forked.state_hash() == restored.state_hash() == replayed.state_hash()
    frozen = session.state_hash()
    for action in after:
        results = [item.step(action) for item in (forked, restored, replayed)]
        assert results[0] == results[1] == results[2]
        states = {item.state_hash() for item in (forked, restored, replayed)}
        labels = {ENVIRONMENT.state_label(item) for item in (forked, restored, replayed)}
        assert len(states) == len(labels) == 1 and frozen not in states
    assert session.state_hash() == frozen, "a fork must not move its origin"


def test_visible_tests_run_in_the_sandbox_and_are_read_alike_every_time() -> None:
    """a(2) = 3 is not 2; mended, both pass; a file that does not parse and a value without an address."""
    tests = VisibleTests()
    files = dict(HAND.initial_state["files"])
    assert tests(HAND, files).text == "1 of 2 pass\na.py a(2) gives 3 not 2"
    mended = {**files, "a.py": "def a(x):\n    return x\n"}
    assert tests(HAND, mended) == VisibleRun("2 of 2 pass", 2, 2)
    silent = tests(HAND, {**files, "a.py": "def a(x)\n"})
    assert silent.text.startswith("1 of 2 pass\na.py a(2) import_error: SyntaxError: ") and "/" not in silent.text
    raising = {**files, "a.py": "def a(x):\n    raise ValueError(f'at {object()} in {__file__}')\n"}
    texts = {VisibleTests()(HAND, raising).text for _ in range(2)}
    assert len(texts) == 1 and "raised: ValueError: at <object object at 0x> in " in texts.pop()
    shuffled = {**files, "a.py": "def a(x):\n    return list({'p', 'q', 'r', 's', 't'})\n"}
    assert len({VisibleTests()(HAND, shuffled).text for _ in range(3)}) == 1


def test_a_tree_is_tested_once_and_a_broken_sandbox_is_nobodys_result(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[int] = []
    real = visible.run_trial

    def counted(*arguments: object, **settings_: object) -> TrialReport:
        runs.append(1)
        return real(*arguments, **settings_)  # type: ignore[arg-type]

    monkeypatch.setattr(visible, "run_trial", counted)
    tests, files = VisibleTests(), dict(HAND.initial_state["files"])
    assert tests(HAND, files) == tests(HAND, dict(files)) and len(runs) == 1
    tests(HAND, {**files, "c.py": ""})
    assert len(runs) == 2

    def broken() -> object:
        raise SandboxFault("no sandbox here")

    monkeypatch.setattr(visible, "get_sandbox", broken)
    with pytest.raises(EnvironmentFault, match="visible tests: no sandbox here"):
        VisibleTests()(HAND, files)


def test_no_hidden_test_is_in_the_workspace_or_in_anything_shown() -> None:
    """Every tool on a task: the expected value of a hidden test is seen nowhere that its code does not say it."""
    for task in TASKS[:3]:
        session = ENVIRONMENT.reset(task)
        assert isinstance(session, RepairSession)
        calls = [ToolAction("list", {}), TEST, ToolAction("search", {"text": "e"})]
        calls += [ToolAction("read", {"path": path}) for path in session.files]
        shown = "\n".join(session.step(action).text for action in [*calls, *gold_edits(task), TEST])
        assert not any(f"{item['id']}" in shown for item in task.hidden["tests"])
        assert set(session.files) == set(task.initial_state["files"])
        visible_calls = [(item["function"], item["arguments"]) for item in task.initial_state["visible"]]
        hidden_calls = [(item["function"], item["arguments"]) for item in task.hidden["tests"]]
        assert any(call not in visible_calls for call in hidden_calls)
        assert set(broken_files(task)) <= set(session.files)
