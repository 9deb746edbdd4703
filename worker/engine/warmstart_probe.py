"""Sampled check of a policy: real episodes through the engine's own sampler and rollout.

Valid JSON says little and a low loss says nothing; whether *sampled* actions are legal and earn
reward is measured here, with the parser, the reward and the success test of the product.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from transformers import PreTrainedModel

from workbench.contracts.jobs import GroupSpec, SlotSpec
from workbench.contracts.records import FINISH, POLICY_ERROR, UNPARSEABLE, VALID
from workbench.contracts.seeds import derive_seed
from worker.environments.base import Environment, Task

from . import fastpath
from .outcomes import fatal_decisions, outcome_facts
from .records import Rollout, SamplingConfig
from .render import Formatter
from .rollout import RolloutSettings, run_rollouts
from .sampler import Sampler


@dataclass(frozen=True)
class ProbeStage:
    """What is sampled. ``injected``: ordinals of the logical tool calls that time out."""

    split: str = "validation"
    prompts: int = 32
    group: int = 4
    temperature: float = 1.0
    max_new_tokens: int = 72
    max_decisions: int = 7
    injected: tuple[int, ...] = ()
    rows: int = 64  # rows of one sampler


class LoadedPolicy:
    """The face that the sampler needs of a model that is in memory already."""

    def __init__(self, model: PreTrainedModel):
        self.model = model
        supported = fastpath.supports(model) is None
        self._weights = fastpath.merge_weights(model) if supported else None

    def causal_model(self) -> Any:
        """The transformers model."""
        return self.model

    def fast_weights(self) -> fastpath.Qwen3Weights | None:
        """Its weights for the fast path, where that applies."""
        return self._weights


def probe_tasks(environment: Environment, stage: ProbeStage) -> list[Task]:
    """The first ``stage.prompts`` tasks of the split. Raises ``ValueError`` where there are too few."""
    found = [task for task in environment.tasks() if task.split == stage.split][: stage.prompts]
    if len(found) < stage.prompts:
        raise ValueError(f"probe.prompts: got {stage.prompts}, expected at most {len(found)} ({stage.split})")
    return found


def sample_groups(
    model: PreTrainedModel,
    environment: Environment,
    formatter: Formatter,
    tasks: Sequence[Task],
    stage: ProbeStage,
    seed: int,
) -> list[list[Rollout]]:
    """``stage.group`` episodes of each task; equal arguments give equal episodes."""
    model.eval()
    policy = LoadedPolicy(model)
    sampling = SamplingConfig(stage.temperature, 1.0, 0, stage.max_new_tokens)
    settings = RolloutSettings(
        {"purpose": "warm-start probe"},
        0,
        {"temperature": stage.temperature, "top_p": 1.0, "top_k": 0, "max_new_tokens": stage.max_new_tokens},
        stage.max_decisions,
    )
    by_uid = {f"{index}": task for index, task in enumerate(tasks)}
    groups = [
        GroupSpec(
            uid,
            index,
            uid,
            "probe",
            stage.injected,
            tuple(
                SlotSpec(f"{uid}/{slot}", slot, derive_seed("warmstart.probe", seed, index, slot))
                for slot in range(stage.group)
            ),
        )
        for index, uid in enumerate(by_uid)
    ]
    per_batch = max(1, stage.rows // stage.group)
    found: dict[str, Rollout] = {}
    for start in range(0, len(groups), per_batch):
        part = groups[start : start + per_batch]
        sampler = Sampler(
            policy,
            sampling,
            rows=sum(len(group.slots) for group in part),
            stop_ids=formatter.stop_ids(),
            context=int(model.config.max_position_embeddings),
        )
        found |= run_rollouts(part, by_uid, environment, formatter, sampler, settings)
    return [[found[slot.trajectory_uid] for slot in group.slots] for group in groups]


def summarise(
    environment: Environment, tasks: Sequence[Task], groups: Sequence[Sequence[Rollout]]
) -> dict[str, float | int]:
    """Shares over decisions (``valid_actions``), episodes and groups; counts of all three stand beside them.

    Raises ``ValueError`` where an episode is infrastructure-invalid: a probe has no missing data.
    """
    episodes = [item for group in groups for item in group]
    broken = next((item for item in episodes if item.status != VALID or item.terminal is None), None)
    if broken is not None:
        raise ValueError(f"probe: got an invalid episode ({broken.invalid_reason}), expected every one valid")
    task_of = {item.trajectory_uid: task for task, group in zip(tasks, groups, strict=True) for item in group}
    turns = [turn for item in episodes for turn in item.turns]
    rewards = {
        item.trajectory_uid: environment.reward(task_of[item.trajectory_uid], item.turns, str(item.terminal)).total
        for item in episodes
    }
    successes = [environment.success(task_of[item.trajectory_uid], item.turns, str(item.terminal)) for item in episodes]
    facts = [outcome_facts(item.turns, str(item.terminal), None) for item in episodes]
    deviations = [statistics.pstdev([rewards[item.trajectory_uid] for item in group]) for group in groups]
    starts = [fatal_decisions(item.turns)[0] for item in episodes]
    exposed = [item for item in facts if item.exposed]
    count = len(episodes)
    return {
        "groups": len(groups),
        "episodes": count,
        "decisions": len(turns),
        "valid_actions": sum(turn.action_kind != UNPARSEABLE for turn in turns) / len(turns),
        "valid_episodes": sum(item.terminal != POLICY_ERROR for item in episodes) / count,
        "finished": sum(item.terminal == FINISH for item in episodes) / count,
        "reward_mean": statistics.fmean(rewards.values()),
        "reward_sd": statistics.pstdev(rewards.values()),
        "reward_sd_in_group": statistics.fmean(deviations),
        "zero_variance_groups": sum(item**2 <= 1e-12 for item in deviations) / len(groups),
        "success": sum(successes) / count,
        "exposed": len(exposed) / count,
        "recovered": sum(bool(item.recovered) for item in exposed) / count,
        "fatal": sum(item is not None for item in starts) / count,
        "fatal_with_prefix": sum(item is not None and item > 0 for item in starts) / count,
        "continued_after_fatal": sum(bool(item.continued_after_fatal) for item in facts) / count,
        "mean_decisions": len(turns) / count,
        "mean_turn_tokens": sum(turn.generated_tokens for turn in turns) / len(turns),
    }
