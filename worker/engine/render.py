"""Prompt formatters: how a task, its tools and Observations become token ids, and how output is read.

A formatter is an identity bound into captures. Two exist: ``compact`` (embedded policy) and ``chat``
(the tokenizer's own chat template). Both carry tokens verbatim across turns: the prompt of turn
k+1 is the prompt of turn k, the generated ids, and new ids for the Observation. Nothing is ever
decoded and tokenised again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from worker.environments.base import FinishAction, ToolAction, ToolSpec


@dataclass(frozen=True)
class ParsedTurn:
    """What a generated turn says. Exactly one of ``action`` and ``error`` is set.

    ``segments`` is parallel to the generated ids: SEGMENT_* of ``workbench.contracts.capture``.
    ``is_policy_token`` is parallel too: 1 for every sampled token.
    """

    think_text: str | None
    action_text: str
    action: ToolAction | FinishAction | None
    error: str | None
    segments: tuple[int, ...]
    is_policy_token: tuple[int, ...]


class Formatter(Protocol):
    """Turns text into ids and generated ids into a ``ParsedTurn``."""

    name: str  # compact | chat

    def identity(self) -> str:
        """Sha256 over name, version, template and special ids."""
        ...

    def stop_ids(self) -> tuple[int, ...]:
        """Generation of a turn ends with one of these (included in the generated ids)."""
        ...

    def start(self, instructions: str, tools: Sequence[ToolSpec], prompt: str) -> list[int]:
        """Ids of the first prompt, up to and including the assistant header."""
        ...

    def observe(self, text: str) -> list[int]:
        """Ids appended after a turn's generated ids: Observation, then the next assistant header."""
        ...

    def read(self, generated_ids: Sequence[int], tools: Sequence[ToolSpec]) -> ParsedTurn:
        """Strict reading: anything but one legal ToolAction or Finish is an error, never repaired."""
        ...


@runtime_checkable
class ForcesThink(Protocol):
    """Optional part of a formatter: a think segment that is given to the policy instead of sampled."""

    def encode(self, text: str) -> list[int]:
        """Ids of plain text, as they stand inside a think segment."""
        ...

    def force_think(self, think_ids: Sequence[int]) -> list[int]:
        """Leading ids of a turn whose think segment is ``think_ids``; an action is all that may follow."""
        ...
