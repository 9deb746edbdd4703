"""What is examined, and how a check says that it does not hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from worker.environments.base import Environment, FinishAction, Task, ToolAction, ToolSpec
from worker.environments.registry import get_environment

from .episodes import Action, Episode, made_up_calls, play, sample_tasks, scripts_of

# Parts of the bundled references that a question has to name.
BUNDLED_NAMED = {"evidence_search": ("entity", "attribute", "family")}


class Broken(Exception):
    """A check that does not hold; the message says where, what was found and what was expected."""


@dataclass
class Subject:
    """What is examined. ``reward``: id of an outside reward, or None for the environment's own rules.

    ``brief``: two episodes of one task stand for the sample, where only the record's id and version are in question.
    """

    name: str
    config: dict[str, Any]
    reward: str | None = None
    expected_version: str | None = None
    brief: bool = False

    def build(self) -> Environment:
        return get_environment(self.name, self.config)

    @cached_property
    def environment(self) -> Environment:
        return self.build()

    @cached_property
    def tools(self) -> list[ToolSpec]:
        return list(self.environment.tools())

    @cached_property
    def tasks(self) -> list[Task]:
        return list(self.environment.tasks())

    @cached_property
    def scripts(self) -> list[list[Action]]:
        return scripts_of(self.environment, self.tools)

    def calls(self, task: Task) -> Iterator[list[ToolAction]]:
        """Executable calls of each script on a task."""
        for script in self.scripts:
            yield [item for item in script if isinstance(item, ToolAction) and item.tool in task.tools]

    @cached_property
    def episodes(self) -> list[Episode]:
        """Sample episodes: as scripted, with a small budget, with injected failures, and without any action."""
        found = []
        if self.brief:
            calls: list[Action] = [*made_up_calls(self.tools), FinishAction("", ())]
            return [play(self.environment, self.tasks[0], calls), play(self.environment, self.tasks[0], [])]
        for task in sample_tasks(self.tasks):
            for script in self.scripts:
                found.append(play(self.environment, task, script))
                found.append(play(self.environment, task, script, max_decisions=2))
                found.append(play(self.environment, task, script, injected=(0,)))
            found.append(play(self.environment, task, []))
        return found

    @property
    def named_in_prompt(self) -> frozenset[str]:
        """Keys of the hidden reference whose values a question has to name."""
        declared = getattr(self.environment, "named_in_prompt", BUNDLED_NAMED.get(self.name, ()))
        return frozenset(declared)


def expect(holds: bool, where: str, got: Any, expected: str) -> None:
    if not holds:
        raise Broken(f"{where}: got {str(got)[:160]}, expected {expected}")


def require_text(value: Any, where: str) -> None:
    expect(isinstance(value, str) and bool(value.strip()), where, repr(value), "text")


def leaves(value: Any, path: str, key: str) -> Iterator[tuple[str, str, str]]:
    """(path, last key, text) of each text and number below ``value``."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from leaves(item, f"{path}.{name}", name)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from leaves(item, f"{path}[{index}]", key)
    elif isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip():
        yield path, key, str(value)
