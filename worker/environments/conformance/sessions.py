"""Checks of running episodes: determinism, snapshot, fork, replay, failures, budget."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from workbench.contracts.canonical import canonical_bytes, parse_canonical
from workbench.contracts.errors import ContractError, EnvironmentFault, FaultBoundary
from workbench.contracts.records import ERROR, OK, TIMEOUT
from workbench.contracts.wire import to_wire
from worker.environments.base import FinishAction, Observation, Session, Task, ToolAction

from .episodes import sample_tasks
from .subject import Broken, Subject, expect, leaves

MAX_SNAPSHOT_BYTES, MAX_CALLS = 1_000_000, 64
SESSION_MEMBERS = ("step", "finish", "state_hash", "snapshot", "fork")
_SHA = re.compile(r"[0-9a-f]{64}")


def reset(subject: Subject) -> str:
    """Two resets of a task are the same state, in this instance and in another."""
    other, sample = subject.build(), sample_tasks(subject.tasks)
    for task in sample:
        first, second, third = subject.environment.reset(task), subject.environment.reset(task), other.reset(task)
        missing = [name for name in SESSION_MEMBERS if not callable(getattr(first, name, None))]
        expect(not missing, f"task {task.key}: session", f"no {', '.join(missing)}", "every method of Session")
        states = [item.state_hash() for item in (first, second, third)]
        expect(bool(_SHA.fullmatch(str(states[0]))), f"task {task.key}: state_hash()", states[0], "64 hex digits")
        expect(
            len(set(states)) == 1,
            f"task {task.key}: reset",
            sorted(set(states)),
            "equal state hashes: it is not deterministic",
        )
    return f"{len(sample)} tasks, twice and in a second instance"


def _observation(item: Any, where: str) -> None:
    expect(isinstance(item, Observation), where, type(item).__name__, "Observation")
    expect(item.status in (OK, ERROR, TIMEOUT), f"{where}.status", repr(item.status), "ok, error or timeout")
    expect(isinstance(item.text, str), f"{where}.text", type(item.text).__name__, "text")
    wanted = "None with ok, True or False with a failure"
    fits = item.retryable is None if item.status == OK else isinstance(item.retryable, bool)
    expect(fits, f"{where}.retryable", repr(item.retryable), wanted)
    expect(isinstance(item.is_productive, bool), f"{where}.is_productive", repr(item.is_productive), "True or False")
    try:
        canonical_bytes(item.facts)
    except ContractError as error:
        raise Broken(f"{where}.facts: got {error}, expected plain JSON values") from error


def _steps(subject: Subject) -> Iterator[tuple[Task, Session, ToolAction, list[ToolAction]]]:
    """Each call of each script on each sample task: (task, session before it, call, calls so far)."""
    for task in sample_tasks(subject.tasks, 2):
        for calls in subject.calls(task):
            session = subject.environment.reset(task)
            for index, action in enumerate(calls):
                yield task, session, action, calls[:index]
                session.step(action)


def steps(subject: Subject) -> str:
    """A call gives an Observation of the right types, and equal calls give equal ones in a second instance."""
    other, count = subject.build(), 0
    for task in sample_tasks(subject.tasks, 2):
        for calls in subject.calls(task):
            first, second = subject.environment.reset(task), other.reset(task)
            for action in calls:
                where = f"task {task.key}: {action.tool}({json.dumps(action.arguments)})"
                seen = first.step(action)
                _observation(seen, where)
                again = second.step(action)
                expect(to_wire(seen) == to_wire(again), where, f"{seen} and {again}", "equal Observations")
                same = first.state_hash() == second.state_hash()
                expect(same, f"{where}: state_hash()", "two values", "equal states after equal calls")
                count += 1
    return f"{count} calls"


def snapshots(subject: Subject) -> str:
    """A snapshot is canonical JSON, restores to the same state, and belongs to its task."""
    count, largest, chosen = 0, 0, sample_tasks(subject.tasks, 2)
    for task, session, _, _ in _steps(subject):
        data = session.snapshot()
        expect(isinstance(data, bytes), f"task {task.key}: snapshot()", type(data).__name__, "bytes")
        parse_canonical(data)
        again = subject.environment.restore(task, data)
        same = (again.state_hash(), again.snapshot()) == (session.state_hash(), data)
        expect(same, f"task {task.key}: restore", "another state", "the state of the snapshot")
        count, largest = count + 1, max(largest, len(data))
    expect(largest <= MAX_SNAPSHOT_BYTES, "snapshot()", f"{largest} bytes", f"at most {MAX_SNAPSHOT_BYTES}")
    if len(chosen) > 1:
        data = subject.environment.reset(chosen[0]).snapshot()
        try:
            subject.environment.restore(chosen[1], data)
        except (FaultBoundary, ContractError, ValueError):
            pass
        else:
            raise Broken(f"restore: got the snapshot of {chosen[0].key} for {chosen[1].key}, expected EnvironmentFault")
    return f"{count} states, at most {largest} bytes"


def forks(subject: Subject) -> str:
    """A fork is the same state and goes on alone."""
    count = 0
    for task, session, action, _ in _steps(subject):
        before, copy = session.state_hash(), session.fork()
        expect(copy.state_hash() == before, f"task {task.key}: fork", "another state", "the state of its session")
        copy.step(action)
        same = session.state_hash() == before
        expect(same, f"task {task.key}: fork", "a call on the fork that changed its session", "independent states")
        count += 1
    return f"{count} states"


def replays(subject: Subject) -> str:
    """Playing calls again reaches the state that stepping reached; states of different histories differ."""
    count, states = 0, set()
    for task, session, _, calls in _steps(subject):
        found = subject.environment.replay(task, calls).state_hash()
        expect(
            found == session.state_hash(), f"task {task.key}: replay of {len(calls)} calls", found, "the stepped state"
        )
        count += 1
        states.add(found)
    expect(len(states) > 1, "state_hash()", "one value for every state", "hashes that tell states apart")
    return f"{count} histories, {len(states)} states"


def failures(subject: Subject) -> str:
    """The injected failure is a retryable failure, of every tool, at any number of calls left, and leaks nothing."""
    named, task, count = subject.named_in_prompt, subject.tasks[0], 0
    for calls in subject.calls(task):
        for action in calls:
            for left in (0, 1, 5):
                item = subject.environment.injected_failure(action, left)
                where = f"injected_failure({action.tool}, {left})"
                _observation(item, where)
                is_failure = item.status != OK and item.retryable is True
                expect(is_failure, where, f"{item.status}, retryable {item.retryable}", "a retryable failure")
                for path, key, text in leaves(task.hidden, "hidden", ""):
                    if key not in named and len(text) > 2:
                        expect(text not in item.text, f"{where}.text", f"{path} in it", "nothing of the reference")
                count += 1
    return f"{count} failures"


def _refused(where: str, act: Callable[[], Any]) -> None:
    """``act`` comes after the end of an episode and must not be accepted."""
    try:
        act()
    except EnvironmentFault:
        return
    raise Broken(f"{where} after Finish: got accepted, expected EnvironmentFault")


def budget(subject: Subject) -> str:
    """A session takes as many calls as a budget may allow, and none after its Finish."""
    for task in sample_tasks(subject.tasks, 1):
        session = subject.environment.reset(task)
        calls = [action for calls in subject.calls(task) for action in calls]
        for index in range(MAX_CALLS if calls else 0):
            session.step(calls[index % len(calls)])
        before, end = session.state_hash(), FinishAction("", ())
        session.finish(end)
        expect(session.state_hash() != before, f"task {task.key}: finish", "an unchanged state hash", "another state")
        _refused(f"task {task.key}: finish", partial(session.finish, end))
        if calls:
            _refused(f"task {task.key}: step", partial(session.step, calls[0]))
    return f"{MAX_CALLS} calls, none after Finish"
