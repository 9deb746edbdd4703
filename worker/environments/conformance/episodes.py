"""Episodes without a policy: scripted actions in a real session, recorded as the rollout records them.

``manage.py environment check`` and an inspection play them to examine an environment and its reward.
Run as a module it writes everything that such episodes showed, for comparison between processes:
``python -m worker.environments.conformance.episodes PATH CONFIG_JSON FILE``.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.contracts.canonical import canonical_bytes, digest, parse_json
from workbench.contracts.errors import CanonicalError
from workbench.contracts.records import (
    BUDGET_EXHAUSTED,
    FINISH,
    POLICY_ERROR,
    TOOL,
    UNPARSEABLE,
    ObservationRecord,
    ToolCallRecord,
    TurnRecord,
)
from workbench.contracts.wire import to_wire
from worker.engine.toolschema import schema_error
from worker.environments.base import Demonstration, Environment, FinishAction, Session, Task, ToolAction, ToolSpec

Action = ToolAction | FinishAction
NO_CAPTURE = "0" * 64
SEED, DEMONSTRATIONS, SCRIPTS, PER_SPLIT = 20260917, 64, 6, 3


@dataclass(frozen=True)
class Episode:
    """A finished episode: its records, why it ended, and its session."""

    task: Task
    turns: tuple[TurnRecord, ...]
    terminal: str
    session: Session


def read_action(text: str, tools: Sequence[ToolSpec]) -> Action | None:
    """The action that a demonstration's text stands for; None where a strict reader would refuse it."""
    try:
        value = parse_json(text)
    except CanonicalError:
        return None
    if not isinstance(value, dict):
        return None
    if "finish" in value:
        answer, cited = value.get("finish"), value.get("cite")
        if set(value) != {"finish", "cite"} or not isinstance(answer, str) or not isinstance(cited, list):
            return None
        return FinishAction(answer, tuple(cited)) if all(isinstance(item, str) and item for item in cited) else None
    name = value.pop("tool", None)
    spec = next((item for item in tools if item.name == name), None)
    return None if spec is None or schema_error(value, spec.parameters) else ToolAction(spec.name, value)


def made_up_calls(tools: Sequence[ToolSpec]) -> list[ToolAction]:
    """One legal call of each tool whose schema says how to make one."""
    calls = []
    for tool in tools:
        properties, required = tool.parameters.get("properties", {}), tool.parameters.get("required", [])
        arguments = {name: _value(properties.get(name, {})) for name in required}
        if schema_error(arguments, tool.parameters) is None:
            calls.append(ToolAction(tool.name, arguments))
    return calls


def _value(schema: dict[str, Any]) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "string")
    text = "x" * max(1, schema.get("minLength", 1))
    return {"integer": schema.get("minimum", 1), "number": schema.get("minimum", 1), "boolean": True}.get(kind, text)


def first_demonstrations(
    environment: Environment, seed: int = SEED, count: int = DEMONSTRATIONS
) -> list[Demonstration]:
    """The first demonstrations of a seed; fewer, or none, where the environment has no more."""
    return list(itertools.islice(environment.demonstrations(seed), count))


def scripts_of(environment: Environment, tools: Sequence[ToolSpec]) -> list[list[Action]]:
    """Action sequences to play: the legal actions of the first demonstrations, then one call of every tool."""
    found: list[list[Action]] = []
    for item in first_demonstrations(environment):
        actions = [action for turn in item.turns if (action := read_action(turn.action, tools)) is not None]
        if actions and len(found) < SCRIPTS:
            found.append(actions)
    return [*found, [*made_up_calls(tools), FinishAction("", ())]]


def sample_tasks(tasks: Sequence[Task], per_split: int = PER_SPLIT) -> list[Task]:
    """The first tasks of each split."""
    splits = dict.fromkeys(task.split for task in tasks)
    return [task for split in splits for task in [item for item in tasks if item.split == split][:per_split]]


def play(
    environment: Environment,
    task: Task,
    script: Sequence[Action],
    *,
    max_decisions: int = 64,
    injected: tuple[int, ...] = (),
) -> Episode:
    """Play a script; where it ends without a Finish, an unparseable turn follows.

    A spent budget leaves its last call unexecuted, as in a rollout.
    """
    session = environment.reset(task)
    turns: list[TurnRecord] = []
    calls, executed, terminal = 0, set[str](), POLICY_ERROR
    legal = [action for action in script if isinstance(action, FinishAction) or action.tool in task.tools]
    for decision, action in enumerate([*legal, None]):
        before, kind = session.state_hash(), UNPARSEABLE
        call: ToolCallRecord | None = None
        seen: ObservationRecord | None = None
        finish: dict[str, Any] | None = None
        if isinstance(action, FinishAction):
            kind, terminal = FINISH, FINISH
            session.finish(action)
            finish = {"answer": action.answer, "citations": list(action.citations)}
        elif action is not None:
            kind, key = TOOL, digest({"tool": action.tool, "arguments": action.arguments})
            is_last = decision + 1 >= max_decisions
            if is_last:
                terminal = BUDGET_EXHAUSTED
                call = ToolCallRecord(calls, action.tool, action.arguments, False, False, key in executed, None)
            else:
                left = max_decisions - decision - 1
                short = calls in injected
                result = environment.injected_failure(action, left) if short else session.step(action)
                seen = ObservationRecord(result.status, result.retryable, short, result.text, dict(result.facts))
                call = ToolCallRecord(
                    calls, action.tool, action.arguments, True, not short, key in executed, result.is_productive
                )
            executed.add(key)
            calls += 1
        turns.append(_turn(decision, kind, call, seen, finish, before, session.state_hash()))
        if kind != TOOL or (call is not None and not call.executed):
            break
    return Episode(task, tuple(turns), terminal, session)


def _turn(
    decision: int,
    kind: str,
    call: ToolCallRecord | None,
    seen: ObservationRecord | None,
    finish: dict[str, Any] | None,
    before: str,
    after: str,
) -> TurnRecord:
    return TurnRecord(
        decision=decision,
        parent_decision=decision - 1 if decision else None,
        branch="main",
        capture_sha256=NO_CAPTURE,
        prompt_tokens=1,
        generated_tokens=1,
        policy_tokens=1,
        action_kind=kind,
        parse_error="scripted" if kind == UNPARSEABLE else None,
        think_text=None,
        action_text="",
        tool_call=call,
        finish=finish,
        observation=seen,
        policy_version=0,
        state_before_sha256=before,
        state_after_sha256=after,
    )


def shown(environment: Environment) -> Iterator[tuple[str, str]]:
    """(what, canonical text) of everything that an environment shows; equal in every process for a deterministic one.

    Texts, tools, tasks, demonstrations, and turns, states and rewards of sample episodes.
    """
    for what, value in _values(environment):
        yield what, canonical_bytes(value).decode()


def _values(environment: Environment) -> Iterator[tuple[str, Any]]:
    tools, tasks = list(environment.tools()), list(environment.tasks())
    yield "instructions()", environment.instructions()
    yield "success_definition()", environment.success_definition()
    yield "tools()", [to_wire(tool) for tool in tools]
    yield "tasks()", [[task.identity(), task.key, task.split, task.family] for task in tasks]
    yield "demonstrations()", [to_wire(item) for item in first_demonstrations(environment)]
    for task in sample_tasks(tasks):
        for number, script in enumerate(scripts_of(environment, tools), 1):
            episode, at = play(environment, task, script), f"task {task.key}, script {number}: "
            yield at + "turns", [to_wire(turn) for turn in episode.turns]
            yield at + "end and state", [episode.terminal, episode.session.state_hash()]
            yield at + "state_label()", environment.state_label(episode.session)
            yield at + "reward()", to_wire(environment.reward(task, episode.turns, episode.terminal))


def main(arguments: list[str]) -> int:
    """Entry point: write what a path and a configuration show into a file, as JSON."""
    from worker.environments.registry import get_environment

    path, config, out = arguments
    Path(out).write_text(json.dumps(list(shown(get_environment(path, json.loads(config))))), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
