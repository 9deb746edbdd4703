"""Records inside the engine, and the legend of dimension suffixes.

Suffixes of array names, everywhere in the engine::

    _P  prompts, one per group        _G  slots of a group (trajectories)
    _T  tokens of one sequence        _V  vocabulary
    _B  rows of a batch (sequences)   _N  policy tokens of a micro-batch, flat

``advantages_GT`` is parallel to the policy tokens of every slot; ``is_...`` names an indicator in
which 1 means what the name says.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from workbench.contracts.errors import EngineFault
from workbench.contracts.records import InjectionRecord, TurnRecord


@dataclass(frozen=True)
class SamplingConfig:
    """How tokens are drawn. ``temperature`` 0 is greedy; ``top_k`` 0 and ``top_p`` 1 truncate nothing."""

    temperature: float
    top_p: float
    top_k: int
    max_new_tokens: int

    @classmethod
    def from_spec(cls, sampling: dict[str, Any]) -> SamplingConfig:
        """From ``CollectSpec.sampling``; raises ``EngineFault`` naming a missing or illegal value."""
        try:
            found = cls(
                float(sampling.get("temperature", 1.0)),
                float(sampling.get("top_p", 1.0)),
                int(sampling.get("top_k", 0) or 0),
                int(sampling["max_new_tokens"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise EngineFault(f"sampling: got {sampling}, expected numbers with max_new_tokens ({error})") from error
        if found.temperature < 0 or not 0 < found.top_p <= 1 or found.top_k < 0 or found.max_new_tokens < 1:
            raise EngineFault(
                f"sampling: got {sampling}, expected temperature >= 0, 0 < top_p <= 1, max_new_tokens >= 1"
            )
        return found

    @property
    def truncates(self) -> bool:
        """Whether top-p or top-k changes the support: such samples are not the policy's own."""
        return self.top_p < 1.0 or self.top_k > 0


@dataclass(frozen=True)
class RowStart:
    """A row to open: prompt ids, slot seed, and where its noise counter stands."""

    prompt_ids: tuple[int, ...]
    seed: str
    decision: int = 0
    token: int = 0


@dataclass(frozen=True)
class GeneratedTurn:
    """One sampled decision of a row. Producer: sampler. Consumer: rollout.

    ``logprobs`` and ``entropies`` (nats) are parallel to ``generated_ids``, of the untempered,
    untruncated distribution. ``stopped`` is False where the token budget ended the turn.
    """

    row: int
    decision: int
    prompt_ids: tuple[int, ...]
    generated_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    entropies: tuple[float, ...]
    stopped: bool


@dataclass(frozen=True)
class TurnMeasure:
    """What the metrics read of a turn. Parallel to the generated ids."""

    decision: int
    generated_ids: tuple[int, ...]
    entropies: tuple[float, ...]
    segments: tuple[int, ...]
    state_label: str | None


@dataclass
class Rollout:
    """One slot while and after it runs. ``status`` and ``terminal`` as in ``TrajectoryRecord``."""

    trajectory_uid: str
    slot: int
    seed: str
    status: str
    invalid_reason: str | None = None
    terminal: str | None = None
    turns: list[TurnRecord] = field(default_factory=list)
    captures: list[bytes] = field(default_factory=list)
    measures: list[TurnMeasure] = field(default_factory=list)
    injections: tuple[InjectionRecord, ...] = ()
    initial_state_sha256: str = ""
    final_state_sha256: str | None = None
