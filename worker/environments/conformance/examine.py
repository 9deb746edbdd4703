"""Runs the checks: all of them for ``manage.py environment check``, the quick ones before anything is bound.

Nothing here knows a policy: scripted episodes are played (``episodes``). A broken environment is
refused before a run starts, with every finding.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.contracts.errors import ContractError, EnvironmentFault, FaultBoundary
from worker.environments.code import code_identity
from worker.environments.registry import environment_path, is_bundled, is_outside_reward

from . import content, outcomes, sessions
from .subject import Broken, Subject


@dataclass(frozen=True)
class Result:
    """Outcome of one check. ``ok`` None: not reached, since an earlier one failed."""

    name: str
    title: str
    ok: bool | None
    detail: str


@dataclass(frozen=True)
class Report:
    """All results, with the identity of the code that was examined."""

    environment: str
    path: str
    reward: str | None
    code: dict[str, Any] | None
    code_sha256: str | None
    results: tuple[Result, ...]

    @property
    def ok(self) -> bool:
        return all(item.ok for item in self.results)

    def failures(self) -> list[Result]:
        return [item for item in self.results if item.ok is False]


Check = Callable[[Subject], str]


CHECKS: tuple[tuple[Check, str], ...] = (
    (content.interface, "interface"),
    (content.configuration, "configuration"),
    (content.tools, "tools"),
    (content.tasks, "tasks and splits"),
    (content.hidden, "hidden reference"),
    (sessions.reset, "reset"),
    (sessions.steps, "steps and Observations"),
    (sessions.snapshots, "snapshot and restore"),
    (sessions.forks, "fork"),
    (sessions.replays, "replay and state hashes"),
    (sessions.failures, "retryable failures"),
    (sessions.budget, "budget and end"),
    (outcomes.reward, "reward"),
    (outcomes.outcomes, "success and outcomes"),
    (content.demonstrations, "demonstrations"),
    (content.purity, "determinism between processes"),
)


QUICK = (
    content.interface,
    content.tools,
    content.tasks,
    content.hidden,
    sessions.reset,
    sessions.steps,
    outcomes.reward,
)


NEEDED = (
    content.interface,
    content.tools,
    content.tasks,
    sessions.reset,
)  # the others would only repeat what these say


def examine(subject: Subject, checks: Sequence[tuple[Check, str]] = CHECKS) -> Report:
    """Run checks in order. Never raises: what an environment raises is its check's finding."""
    results, blocked = [], False
    try:
        path = environment_path(subject.name)
        code = code_identity(type(subject.environment))
    except FaultBoundary as error:
        found = Result("loading", "loading", False, str(error))
        return Report(subject.name, subject.name, subject.reward, None, None, (found,))
    for check, title in checks:
        if blocked:
            results.append(Result(check.__name__, title, None, "not reached"))
            continue
        try:
            results.append(Result(check.__name__, title, True, check(subject)))
        except (Broken, FaultBoundary, ContractError) as error:
            results.append(Result(check.__name__, title, False, str(error)))
        except Exception as error:  # whatever own code raises
            results.append(Result(check.__name__, title, False, _raised(error)))
        blocked = not results[-1].ok and check in NEEDED
    return Report(subject.name, path, subject.reward, code.value(), code.sha256(), tuple(results))


def _raised(error: Exception) -> str:
    """What was raised, and where: an ``assert`` says nothing else."""
    frames = traceback.extract_tb(error.__traceback__)
    at = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno} in {frames[-1].name})" if frames else ""
    said = str(error) or (frames[-1].line if frames else "") or ""
    return f"{type(error).__name__}: {said}{at}"


def require(name: str, config: dict[str, Any], reward: str | None, reward_version: str | None) -> None:
    """Refuse an own environment or reward that breaks a quick check. Raises ``EnvironmentFault`` naming every one.

    A bundled environment with its own reward has passed all of them in the product's tests; only id and version of
    its record are looked at.
    """
    is_brief = is_bundled(name) and (reward is None or not is_outside_reward(reward))
    subject = Subject(name, config, reward, reward_version, brief=is_brief)
    checks = [item for item in CHECKS if item[0] in QUICK]
    if is_bundled(name):
        checks = [item for item in checks if item[0] is outcomes.reward]
    found = examine(subject, checks).failures()
    if found:
        raise EnvironmentFault("; ".join(f"{item.title}: {item.detail}" for item in found))
