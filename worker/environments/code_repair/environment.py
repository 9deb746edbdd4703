"""The environment class: ties tasks, sessions, trials, reward and demonstrations together."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from workbench.contracts.canonical import digest
from workbench.contracts.errors import EnvironmentFault
from workbench.contracts.records import TIMEOUT, RewardRecord, TurnRecord
from worker.environments.base import Demonstration, FinishAction, Observation, Session, Task, ToolAction, ToolSpec
from worker.sandbox.base import SandboxFault
from worker.sandbox.choose import get_sandbox
from worker.verifiers.trial import VERIFIER, TrialReport, run_trial

from . import demonstrate, reward
from .edits import MOST_EDITS
from .session import RepairSession, replay_session, restore_session, state_name
from .tasks import generated
from .visible import VisibleTests, as_test

INSTRUCTIONS = (
    "Each comment says what its function does. Edit what does not, then finish without citations. "
    "If the latest observation is retryable and budget remains, retry or go on."
)
_PATH = {"type": "string", "minLength": 1, "maxLength": 300, "description": "Path of a file, as list shows it."}
_LINE = {
    "type": ["integer", "string"],
    "minimum": 1,
    "description": "The line to replace: its number from 1, or its text where no other line is the same.",
}
_TEXT = {
    "type": "string",
    "description": "The new line, indented as the old one unless it begins with space; without line, the whole file.",
}


def _object(properties: dict[str, Any], required: Sequence[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


TOOL_SPECS = (
    ToolSpec("list", "Paths of all files.", _object({}, ())),
    ToolSpec(
        "read",
        "A file with line numbers, from the line start.",
        _object({"path": _PATH, "start": {"type": "integer", "minimum": 1}}, ("path",)),
    ),
    ToolSpec(
        "search",
        "Lines that contain a text, with path and number.",
        _object({"text": {"type": "string", "minLength": 1, "maxLength": 200}}, ("text",)),
    ),
    ToolSpec(
        "edit",
        "Replace one line (path, line, text), write a whole file (path, text), or do several of these in order "
        "(edits). Either all of a call is done or nothing.",
        _object(
            {
                "path": _PATH,
                "line": _LINE,
                "text": _TEXT,
                "edits": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": MOST_EDITS,
                    "items": _object({"path": _PATH, "line": _LINE, "text": _TEXT}, ("path", "text")),
                },
            },
            (),
        ),
    ),
    ToolSpec("test", "Run the visible tests.", _object({}, ())),
)

DEFAULTS: dict[str, int] = {"seed": 7, "max_decisions": 14}
_TEST_PATH = re.compile(r"(^|/)(tests?/.*|test_[^/]*\.py|[^/]*_test\.py|conftest\.py)$")
VERDICTS_KEPT = 256


class CodeRepair:
    """Repair small Python programs whose comments say what they should do; hidden tests judge the final tree.

    ``config``: ``seed`` (which task set) and ``max_decisions`` (what the demonstrations count down from; a plan's own
    budget is the runtime's). Raises ``ValueError`` for anything else.
    """

    id = "code_repair"
    version = "1.0.0"
    verifier = VERIFIER
    judges_end_state = True  # a spent budget may succeed: the tree that was reached is what counts
    named_in_prompt = ("module", "function")
    undemonstrated = ("list", "search")  # of use in larger trees: here the prompt lists every file

    def __init__(self, config: dict[str, Any]) -> None:
        unknown = sorted(set(config) - set(DEFAULTS))
        if unknown:
            raise ValueError(f"config: got {unknown}, expected only {sorted(DEFAULTS)}")
        merged = {**DEFAULTS, **config}
        for name, value in merged.items():
            if type(value) is not int or value < 1:
                raise ValueError(f"config.{name}: got {value!r}, expected a positive integer")
        self.config = merged
        self._tasks, self.funnel, self.shapes = generated(merged["seed"])
        self._visible = VisibleTests()
        self._verdicts: OrderedDict[str, TrialReport] = OrderedDict()

    def tasks(self) -> Sequence[Task]:
        """All tasks, split by split."""
        return self._tasks

    def instructions(self) -> str:
        """System text shared by every task and every arm."""
        return INSTRUCTIONS

    def tools(self) -> Sequence[ToolSpec]:
        """list, read, search, edit, test. Submission is the Finish."""
        return TOOL_SPECS

    def reset(self, task: Task) -> Session:
        """A fresh episode."""
        return RepairSession(task, self._visible)

    def restore(self, task: Task, snapshot: bytes) -> Session:
        """The episode whose state is ``snapshot``."""
        return restore_session(task, snapshot, self._visible)

    def replay(self, task: Task, actions: Sequence[ToolAction]) -> Session:
        """The episode after ``actions``; no test runs."""
        return replay_session(task, actions, self._visible)

    def injected_failure(self, action: ToolAction, calls_left: int) -> Observation:
        """The retryable time-out of the failure schedule; equal for every tool, so it leaks nothing."""
        return Observation(TIMEOUT, f"timeout retryable left {calls_left}", retryable=True)

    def reward(self, task: Task, turns: Sequence[TurnRecord], terminal: str) -> RewardRecord:
        """Reward 1.0.0 from one fresh trial of the final tree; see ``reward.compute_reward``.

        Raises ``EnvironmentFault`` where the trial is incomplete: a fault of the sandbox is no verdict.
        """
        report = reward.require_complete(self.trial(task, self._final(task, turns)))
        self._verdicts[_episode(task, turns)] = report
        if len(self._verdicts) > VERDICTS_KEPT:
            self._verdicts.popitem(last=False)
        return reward.compute_reward(report, self.lists(task), terminal)

    def success(self, task: Task, turns: Sequence[TurnRecord], terminal: str) -> bool:
        """See ``reward.is_repaired``. Reads the verdict that this episode's own reward had, else runs a trial."""
        report = self._verdicts.get(_episode(task, turns)) or self.trial(task, self._final(task, turns))
        return reward.is_repaired(report, self.lists(task), terminal)

    def success_definition(self) -> str:
        """Definition id of ``success``."""
        return reward.SUCCESS_DEFINITION

    def is_premature(self, task: Task, turns: Sequence[TurnRecord]) -> bool:
        """See ``reward.is_premature``."""
        return reward.is_premature(turns)

    def demonstrations(self, seed: int) -> Iterator[Demonstration]:
        """Scripted noisy repairs of fresh tasks, endless."""
        return demonstrate.demonstrations(seed, self.config["max_decisions"], self.shapes)

    def state_label(self, session: Session) -> str:
        """Edits so far and whether they were tested: ``2 edits, untested``."""
        assert isinstance(session, RepairSession)
        return state_name(session.edits, session.is_tested)

    def trees(self, task: Task, turns: Sequence[TurnRecord]) -> tuple[list[dict[str, str]], dict[str, bytes]]:
        """Trees before each decision and the final one, and contents by hash; see ``base.Artefacts``."""
        session = RepairSession(task, self._visible)
        trees, contents = [session.manifest()], dict[str, bytes]()
        _keep(session, contents)
        for turn in turns:
            _require_state(turn.decision, "before", session.state_hash(), turn.state_before_sha256)
            call = turn.tool_call
            if turn.finish is not None:
                session.finish(FinishAction(turn.finish["answer"], tuple(turn.finish["citations"])))
            elif call is not None and call.executed and call.backend_called:
                session.advance(ToolAction(call.tool, call.arguments))
            _require_state(turn.decision, "after", session.state_hash(), turn.state_after_sha256)
            trees.append(session.manifest())
            _keep(session, contents)
        return trees, contents

    def _final(self, task: Task, turns: Sequence[TurnRecord]) -> dict[str, bytes]:
        trees, contents = self.trees(task, turns)
        return {path: contents[sha256] for path, sha256 in trees[-1].items()}

    def is_test_path(self, path: str) -> bool:
        """A file below tests/, or one that a test runner would collect."""
        return _TEST_PATH.search(path) is not None

    def trial(self, task: Task, files: Mapping[str, bytes]) -> TrialReport:
        """The hidden tests of a task on a tree, in a fresh sandbox. Raises ``EnvironmentFault`` where there is none."""
        try:
            sandbox = get_sandbox()
        except SandboxFault as error:
            raise EnvironmentFault(f"trial: {error}") from error
        return run_trial(sandbox, files, [as_test(item) for item in task.hidden["tests"]])

    def lists(self, task: Task) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Ids of the fail-to-pass and of the pass-to-pass tests."""
        return tuple(task.hidden["fail_to_pass"]), tuple(task.hidden["pass_to_pass"])


def _episode(task: Task, turns: Sequence[TurnRecord]) -> str:
    """What tells an episode from every other: a capture names its trajectory and its seed."""
    return digest([task.identity(), *[[turn.capture_sha256, turn.state_after_sha256] for turn in turns]])


def _keep(session: RepairSession, contents: dict[str, bytes]) -> None:
    for path, sha256 in session.manifest().items():
        contents.setdefault(sha256, session.files[path].encode())


def _require_state(decision: int, when: str, found: str, recorded: str) -> None:
    if found != recorded:
        raise EnvironmentFault(f"turn {decision}: got state {found} {when} it, expected {recorded} as recorded")
