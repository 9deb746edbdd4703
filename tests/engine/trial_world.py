"""A group to try: real episodes of one hand-made repair task, recorded as the runtime records them.

Three files. ``a.py`` and ``b.py`` are broken, ``c.py`` is sound; one hidden test each: fail-to-pass are those of a
and b, pass-to-pass that of c. So U = (a passes + b passes) / 2 - 1[c fails].
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from workbench.contracts.canonical import canonical_bytes, derive_uid, sha256_hex
from workbench.contracts.jobs import EnvironmentRef, PolicyRef
from workbench.contracts.records import (
    BUDGET_EXHAUSTED,
    FINISH,
    INFRASTRUCTURE_INVALID,
    POLICY_ERROR,
    TOOL,
    UNPARSEABLE,
    VALID,
    GroupRecord,
    Identities,
    ObservationRecord,
    OutcomeFacts,
    RewardRecord,
    ToolCallRecord,
    TrajectoryRecord,
    TurnRecord,
)
from workbench.contracts.trials import TrialsSpec, trials_uid
from workbench.contracts.wire import record_bytes
from worker.environments.base import FinishAction, Task, ToolAction
from worker.environments.code_repair.environment import CodeRepair
from worker.environments.taskvalues import task_values

FILES = {
    "a.py": "def add(x, y):  # x plus y\n    return x - y\n",
    "b.py": "def double(x):  # x times 2\n    return x * 3\n",
    "c.py": "def one():  # 1\n    return 1\n",
}
TESTS = [
    {"id": "add", "module": "a.py", "function": "add", "arguments": [2, 3], "expected": 5},
    {"id": "double", "module": "b.py", "function": "double", "arguments": [2], "expected": 4},
    {"id": "one", "module": "c.py", "function": "one", "arguments": [], "expected": 1},
]
HIDDEN = {
    "tests": TESTS, "fail_to_pass": ["add", "double"], "pass_to_pass": ["one"],
    "gold": {"a.py": "def add(x, y):  # x plus y\n    return x + y\n"}, "controls": {},
}  # fmt: skip
TASK = Task("hand.1", "train", "hand", "Repair it.", {"files": FILES, "visible": []}, HIDDEN,
            ("list", "read", "search", "edit", "test"))  # fmt: skip
SUBMIT, GARBAGE = FinishAction("done", ()), "garbage"
READ = ToolAction("read", {"path": "a.py"})
Step = ToolAction | FinishAction | str


def edit(path: str, text: str) -> ToolAction:
    """Replace the second line."""
    return ToolAction("edit", {"path": path, "line": 2, "text": text})


MEND_A, MEND_B, BREAK_C = edit("a.py", "return x + y"), edit("b.py", "return x * 2"), edit("c.py", "return 2")


@lru_cache(maxsize=1)
def environment() -> CodeRepair:
    """The environment; its own task set is not used."""
    return CodeRepair({})


def played(steps: Sequence[Step], tokens: int = 5) -> tuple[list[TurnRecord], str]:
    """Turns and terminal reason of an episode. Decision k wrote ``tokens + k`` policy tokens."""
    session, turns, ordinal, terminal = environment().reset(TASK), [], 0, BUDGET_EXHAUSTED
    for decision, step in enumerate(steps):
        before, kind = session.state_hash(), TOOL
        call: ToolCallRecord | None = None
        seen: ObservationRecord | None = None
        end: dict[str, Any] | None = None
        if isinstance(step, str):
            kind, terminal = UNPARSEABLE, POLICY_ERROR
        elif isinstance(step, FinishAction):
            kind, terminal = FINISH, FINISH
            session.finish(step)
            end = {"answer": step.answer, "citations": list(step.citations)}
        else:
            result = session.step(step)
            seen = ObservationRecord(result.status, result.retryable, False, result.text, dict(result.facts))
            call = ToolCallRecord(ordinal, step.tool, step.arguments, True, True, False, result.is_productive)
            ordinal += 1
        turns.append(
            TurnRecord(
                decision, decision - 1 if decision else None, "main", "0" * 64, 10, tokens + decision,
                tokens + decision, kind, "illegal" if kind == UNPARSEABLE else None, None, "{}", call, end, seen, 0,
                before, session.state_hash(),
            )
        )  # fmt: skip
    return turns, terminal


GROUP_UID = str(derive_uid(None, "hand group"))
FACTS = OutcomeFacts(True, True, False, 0, 0, 0, 0, False, None, None, None, None, False)


def trajectory(
    slot: int, turns: Sequence[TurnRecord], terminal: str, reward: RewardRecord | None, invalid: str | None = None
) -> TrajectoryRecord:
    """One slot; infrastructure-invalid where ``invalid`` says why."""
    return TrajectoryRecord(
        uid=str(derive_uid(GROUP_UID, f"slot:{slot}")), slot=slot, seed=str(slot),
        task_uid=TASK.uid("code_repair/1.0.0"), failure_profile="control",
        status=VALID if invalid is None else INFRASTRUCTURE_INVALID,
        invalid_reason=invalid, terminal=terminal if invalid is None else None, turns=tuple(turns), injections=(),
        facts=FACTS if invalid is None else None, reward=reward, success=None if reward is None else reward.total == 1,
        success_definition="code_repair.success/1", invariants=(), initial_state_sha256="0" * 64,
        final_state_sha256=None,
    )  # fmt: skip


def group(items: Sequence[TrajectoryRecord], version: str) -> GroupRecord:
    """A training group of these slots."""
    identities = Identities("b", "a", "t", "f", "e", "h", "r", "w", "s", 0)
    return GroupRecord(
        uid=GROUP_UID, run_uid=str(derive_uid(None, "run")), plan_sha256="1" * 64, purpose="train", condition="train",
        split="train", ordinal=3, task_uid=TASK.uid(f"code_repair/{version}"), task_sha256=TASK.identity(),
        family="hand", failure_profile="control", sampling={}, identities=identities, trajectories=tuple(items),
        eligible=True, ineligible_reason=None, signal="signal", mean=0.0, sigma=1.0, advantage_kind="grpo",
        advantages_G=(0.0,) * len(items),
    )  # fmt: skip


class Blobs(dict[str, bytes]):
    """A store in memory."""

    def put(self, data: bytes) -> str:
        name = sha256_hex(data)
        self[name] = data
        return name

    def get(self, name: str, default: Any = None) -> Any:
        return self[name]


def specification(record: GroupRecord, store: Blobs, version: str, *, seed: str = "1", **settings: Any) -> TrialsSpec:
    """What a trials job of this group is handed."""
    data = record_bytes(record)
    tasks = store.put(canonical_bytes(task_values([TASK], f"code_repair/{version}")))
    policy = PolicyRef("m", "b", "t", None, 0, "float32", {"kind": "full"}, "compact")
    return TrialsSpec(
        trials_uid=trials_uid(record.uid), run_uid=record.run_uid, plan_sha256=record.plan_sha256,
        record_json=data.decode(), record_sha256=sha256_hex(data), policy=policy,
        environment=EnvironmentRef("code_repair", version, "e", {}, tasks), reward={"id": "code_repair"}, seed=seed,
        settings={"mode": "execute", "replays": 0, "repeats": 0, **settings}, runtime="r",
    )  # fmt: skip


def episode(slot: int, steps: Sequence[Step]) -> TrajectoryRecord:
    """A played slot with its own reward, from a real trial of its final tree."""
    turns, terminal = played(steps)
    return trajectory(slot, turns, terminal, environment().reward(TASK, turns, terminal))
