"""Demonstrations for the warm start: a scripted, deliberately noisy repairer in fresh random tasks.

Each task has functions, constants and defects of its own and none has the shape of a task of the task set, so that a
learner must read and copy and cannot memorise. The noise gives a warm-started policy the variance that credit lives
on, harmful edits among it. Before an edit the think segment copies the function's source, as it was read, from its
name to the line to replace: path, line and text follow from it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from random import Random

from workbench.contracts.seeds import derive_seed
from worker.environments.base import Demonstration, DemonstrationTurn, ToolAction
from worker.verifiers.trial import FAILED

from .functions import Function, functions_of, thought_before
from .generator import Built, build, trouble
from .own_trees import observe, run_own
from .session import RepairSession, state_name
from .tasks import as_task
from .templates import CODE_BASES
from .visible import as_test

TASK_EPISODES = 2


@dataclass(frozen=True)
class Noise:
    """Probabilities of the scripted repairer's departures from the ideal episode."""

    no_first_test: float = 0.05
    skip_file: float = 0.06
    explore: float = 0.40  # reads a file that no visible test names
    wrong_text: float = 0.10
    wrong_line: float = 0.03
    no_change: float = 0.04
    lazy_return: float = 0.03
    harm: float = 0.16  # of a file read, that it edits a sound function in it
    harmless: float = 0.20  # share of those that change no value
    retest: float = 0.60
    repair: float = 0.85  # after a test that still fails
    malformed: float = 0.002  # per decision


NOISE = Noise()


class _Over(Exception):
    """The episode has taken its last decision."""


def read_text(path: str) -> str:
    """The canonical action text of a read."""
    return _compact({"tool": "read", "path": path})


def edit_text(path: str, line: int, text: str) -> str:
    """The canonical action text of an edit of one line."""
    return _compact({"tool": "edit", "path": path, "line": line, "text": text})


def test_text() -> str:
    """The canonical action text of a test."""
    return _compact({"tool": "test"})


def finish_text() -> str:
    """The canonical action text of a submission."""
    return _compact({"finish": "done", "cite": []})


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


class Script:
    """One scripted episode: decides, meets Observations, collects turns and the states visited."""

    def __init__(self, built: Built, rng: Random, max_decisions: int):
        self.built, self.rng, self.max_decisions = built, rng, max_decisions
        self.task = as_task(built, "demonstration", "demonstration")
        self.session = RepairSession(self.task, run_own)
        self.functions = functions_of(built.code_base, built.gold)
        self.turns: list[DemonstrationTurn] = []
        self.coverage: list[str] = []
        self.states: list[str] = []
        self.failing: list[str] = []  # functions, in the order of the last test
        self.seen: list[str] = []  # paths

    def run(self) -> Demonstration:
        """The whole episode."""
        try:
            self._repair()
            self._turn("done", finish_text(), None)
        except _Over:
            pass
        return Demonstration(self.task.prompt, tuple(self.turns), tuple(self.coverage), tuple(self.states))

    # --- the plan of an episode -----------------------------------------------------------------

    def _repair(self) -> None:
        if self._chance(NOISE.no_first_test):
            self.coverage.append("no_first_test")
            for path in list(self.session.files):
                self._visit(path, "look")
        else:
            self._test("check")
            self._visit_failing()
        while self._chance(NOISE.explore):
            left = [path for path in self.session.files if path not in self.seen]
            if not left:
                break
            self.coverage.append("explore")
            self._visit(self.rng.choice(left), "look")
        while self.session.edits and not self.session.is_tested and self._chance(NOISE.retest):
            self.coverage.append("retest")
            self._test("check")
            if not self.failing or not self._chance(NOISE.repair):
                break
            self.coverage.append("repair_after_failure")
            self._visit_failing()

    def _visit_failing(self) -> None:
        """Every file with a function that fails, in the order shown; some are skipped."""
        paths = list(dict.fromkeys(self.functions[name].path for name in self.failing))
        for path in paths:
            if self._chance(NOISE.skip_file):
                self.coverage.append("skip_file")
            else:
                names = [name for name in self.failing if self.functions[name].path == path]
                self._visit(path, f"{names[0]} fails")

    def _visit(self, path: str, think: str) -> None:
        """Read a file and edit what differs from the sound tree; now and then something that does not."""
        self._turn(think, read_text(path), ToolAction("read", {"path": path}))
        self.seen.append(path)
        sound = self.built.gold[path].splitlines()
        for number, line in enumerate(self.session.files[path].splitlines(), 1):
            if line != sound[number - 1]:
                self._mend(path, number, sound[number - 1].strip())
        if self._chance(NOISE.harm):
            healthy = [item for item in self.functions.values() if item.path == path and self._is_sound(item)]
            if healthy:
                self._touch(self.rng.choice(healthy))

    def _is_sound(self, function: Function) -> bool:
        mine, gold = self.session.files[function.path].splitlines(), self.built.gold[function.path].splitlines()
        return all(mine[number - 1] == gold[number - 1] for number in function.lines)

    # --- edits ----------------------------------------------------------------------------------

    def _mend(self, path: str, number: int, sound: str) -> None:
        """Replace a line that differs; mostly by the sound one."""
        lines = self.session.files[path].splitlines()
        now = lines[number - 1].strip()
        owner = next((item for item in self.functions.values() if item.path == path and number in item.lines), None)
        draw = self.rng.random()
        if draw < NOISE.wrong_text and owner is not None and number != owner.first:
            self._edit(path, number, self._wrong(owner, number, {now, sound}), "wrong_text")
        elif (draw := draw - NOISE.wrong_text) < NOISE.wrong_line and len(lines) > 1:
            other = self.rng.choice([item for item in range(1, len(lines) + 1) if item != number])
            self._edit(path, other, sound, "wrong_line")
        elif (draw := draw - NOISE.wrong_line) < NOISE.no_change:
            self._edit(path, number, now, "no_change")
        elif draw - NOISE.no_change < NOISE.lazy_return and owner is not None and number != owner.first:
            self._edit(path, number, f"return {owner.parameters[0]}", "lazy_return")
        else:
            self._edit(path, number, sound, "mend")

    def _touch(self, function: Function) -> None:
        """An edit of a sound function, mostly harmful."""
        number = self.rng.choice(function.lines[1:])
        now = self.built.gold[function.path].splitlines()[number - 1].strip()
        if self._chance(NOISE.harmless) and now.startswith("return "):
            self._edit(function.path, number, f"return ({now.removeprefix('return ')})", "harmless")
        else:
            self._edit(function.path, number, self._wrong(function, number, {now}), "harm")

    def _wrong(self, function: Function, number: int, not_these: Collection[str]) -> str:
        """Another text for a line: a defect of it, else something that returns early."""
        constants = {"k": self.rng.randint(2, 9), "n": self.rng.randint(2, 9)}
        place = number - function.first - 1
        texts = [text.format(**constants) for at, text in function.template.defects if at == place]
        texts = [text for text in texts if text not in not_these]
        return self.rng.choice(texts or [f"return {function.parameters[0]}"])

    def _edit(self, path: str, number: int, text: str, label: str) -> None:
        self.coverage.append(label)
        think = thought_before(self.session.files[path], number)
        self._turn(
            think, edit_text(path, number, text), ToolAction("edit", {"path": path, "line": number, "text": text})
        )

    # --- turns ----------------------------------------------------------------------------------

    def _test(self, think: str) -> None:
        self._turn(think, test_text(), ToolAction("test", {}))
        function = {case.id: case.function for case in self.built.visible}
        observed = observe(self.session.files, [as_test(case.as_json()) for case in self.built.visible])
        self.failing = [function[item.test] for item in observed if item.status == FAILED]

    def _turn(self, think: str, text: str, action: ToolAction | None) -> None:
        """One decision. Raises ``_Over`` after the last: the submission, a malformed one, or the budget's end."""
        self.states.append(state_name(self.session.edits, self.session.is_tested))
        if self._chance(NOISE.malformed):
            self.coverage.append("malformed")
            self.turns.append(DemonstrationTurn(think, self._malformed(text), None))
            raise _Over
        if action is not None and len(self.turns) == self.max_decisions - 1:
            think, text, action = "done", finish_text(), None  # a call on the last decision helps nobody
        if action is None:
            self.coverage.append("finish_after_edits" if self.session.edits else "finish_without_edit")
            self.turns.append(DemonstrationTurn(think, text, None))
            raise _Over
        self.coverage.append(f"{action.tool}_ok")
        self.turns.append(DemonstrationTurn(think, text, self.session.step(action).text))

    def _malformed(self, text: str) -> str:
        """A text that the strict parser refuses."""
        return self.rng.choice([text[:-1], _compact({"tool": "read"}), _compact({"finish": "done"})])

    def _chance(self, probability: float) -> bool:
        return self.rng.random() < probability


def fresh_tasks(rng: Random, shapes: Collection[str]) -> Iterator[Built]:
    """Endless sound proposals, none of a shape of the task set (``shapes``)."""
    while True:
        built = build(rng.choice(sorted(CODE_BASES)), rng)
        if trouble(built) is None and built.shape() not in shapes:
            yield built


def demonstrations(seed: int, max_decisions: int, shapes: Collection[str]) -> Iterator[Demonstration]:
    """An endless stream of scripted episodes, ``TASK_EPISODES`` a task; equal seeds give equal streams."""
    rng = Random(int(derive_seed("code_repair.demonstrations", seed)))
    for built in fresh_tasks(rng, shapes):
        for _ in range(TASK_EPISODES):
            yield Script(built, rng, max_decisions).run()
