"""Multi-turn rollouts against `transformers` generate, one by one and batched.

All three sample the same merged policy on the same prompts under the same budgets. Ours is the whole
collect job: captures, rewards, advantages and metrics included. Theirs prefills the context again
every turn, as ``generate`` does, acts in the same environment, and keeps no record.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from workbench.contracts.jobs import CollectSpec
from worker.engine.collect import read_tasks
from worker.engine.render import Formatter
from worker.environments.base import Environment, Session, Task, ToolAction, ToolSpec
from worker.environments.registry import get_environment

from .measure import Report, interleave, rate_ratio, summary
from .world import BenchWorld

PAD_ID = 0


@dataclass
class _Episode:
    """One row: its context so far, its session and the decisions made."""

    ids: list[int]
    session: Session
    tools: tuple[ToolSpec, ...]
    decisions: int = 0


class GenerateRollouts:
    """Rollouts through ``model.generate`` for the rows of a specification."""

    def __init__(self, world: BenchWorld, spec: CollectSpec):
        policy = world.policy()
        model = copy.deepcopy(policy.resident.model)
        self.model = model.merge_and_unload() if hasattr(model, "merge_and_unload") else model
        self.model.eval()
        self.formatter: Formatter = policy.formatter
        self.environment: Environment = get_environment(spec.environment.environment, spec.environment.config)
        name = f"{spec.environment.environment}/{spec.environment.version}"
        self.tasks: dict[str, Task] = read_tasks(world.store.get(spec.environment.task_set_sha256), name)
        self.spec = spec

    def _start(self) -> list[_Episode]:
        found = []
        for group in self.spec.groups:
            task = self.tasks[group.task_uid]
            tools = tuple(tool for tool in self.environment.tools() if tool.name in task.tools)
            prompt = self.formatter.start(self.environment.instructions(), tools, task.prompt)
            found += [_Episode(list(prompt), self.environment.reset(task), tools) for _ in group.slots]
        return found

    def run(self, rows: int) -> float:
        """Run every row, at most ``rows`` at once; the number of sampled tokens."""
        torch.manual_seed(1)
        episodes = self._start()
        tokens = 0
        for start in range(0, len(episodes), rows):
            active = episodes[start : start + rows]
            while active:
                generated = self._generate([item.ids for item in active])
                tokens += sum(map(len, generated))
                active = [item for item, ids in zip(active, generated, strict=True) if self._act(item, ids)]
        return float(tokens)

    def _generate(self, contexts: Sequence[list[int]]) -> list[list[int]]:
        width = max(map(len, contexts))
        ids = torch.tensor([[PAD_ID] * (width - len(row)) + row for row in contexts])
        mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in contexts])
        stop = list(self.formatter.stop_ids())
        sampling = self.spec.sampling
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            output: Tensor = self.model.generate(
                input_ids=ids,
                attention_mask=mask,
                do_sample=True,
                temperature=sampling["temperature"],
                top_p=1.0,
                top_k=0,
                max_new_tokens=sampling["max_new_tokens"],
                eos_token_id=stop,
                pad_token_id=PAD_ID,
            )
        return [_until_stop(row, stop) for row in output[:, width:].tolist()]

    def _act(self, item: _Episode, ids: list[int]) -> bool:
        """Read and execute one turn; whether the row goes on."""
        parsed = self.formatter.read(ids, item.tools)
        item.ids += ids
        item.decisions += 1
        if not isinstance(parsed.action, ToolAction) or item.decisions >= self.spec.max_decisions:
            return False
        item.ids += self.formatter.observe(item.session.step(parsed.action).text)
        return True


def _until_stop(ids: list[int], stop: Sequence[int]) -> list[int]:
    for place, token in enumerate(ids):
        if token in stop:
            return ids[: place + 1]
    return ids


def against_generate(world: BenchWorld, report: Report) -> dict[str, Any]:
    """``rollout_vs_generate_one``, ``rollout_vs_generate_batched`` and the rates behind them."""
    spec = world.collect_spec(world.sizes.rollout_groups)
    rows = sum(len(group.slots) for group in spec.groups)
    theirs = GenerateRollouts(world, spec)
    arms = {
        "collect": lambda: world.collect(spec).timing["policy_tokens"],
        "generate batched": lambda: theirs.run(rows),
        "generate one by one": lambda: theirs.run(1),
    }
    found = interleave(arms, world.sizes.repeats, report, "rollouts")
    how = (
        f"{rows} multi-turn rows, at most {spec.max_decisions} decisions of {spec.sampling['max_new_tokens']} tokens; "
        "ours is the whole collect job with captures, rewards, metrics; theirs prefills every turn and keeps no record"
    )
    rates = {
        name.replace(" ", "_"): summary([item.rate for item in items], "policy tokens per CPU second", how)
        for name, items in found.items()
    }
    return {
        "rollout_vs_generate_one": rate_ratio(found["collect"], found["generate one by one"], how),
        "rollout_vs_generate_batched": rate_ratio(found["collect"], found["generate batched"], how),
        "tokens_per_second": rates,
        "collect_tokens_per_wall_second": summary(
            [item.amount / item.wall_seconds for item in found["collect"]], "policy tokens per second", how
        ),
    }
