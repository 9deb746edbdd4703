"""TRL's training step on a batch of ours: the same model, adapter, rows, advantages and optimizer settings.

TRL is a test requirement; it is imported here and nowhere else in the product, when a step is built.
"""

from __future__ import annotations

import contextlib
import io
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from worker.engine.batch import TrajectoryTokens
from worker.engine.checkpoint import load_adapter
from worker.engine.policy import adapt

LOSS_TYPES = {"trajectory_balanced": "grpo", "token_mean": "dapo", "fixed_length": "dr_grpo"}


class TrlMissing(RuntimeError):
    """TRL is not installed, or another version than the comparison is written for."""


def require_trl() -> None:
    """Refuse to start without TRL, before anything is measured."""
    try:
        os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import trl
    except ImportError as error:
        raise TrlMissing(
            f"trl: got no installation ({error}), expected TRL 1.x of tests/requirements.txt: run `make bench`"
        ) from error
    if trl.__version__.split(".")[0] != "1":
        raise TrlMissing(f"trl: got version {trl.__version__}, expected 1.x: run `make bench`")


def trl_inputs(trajectories: Sequence[TrajectoryTokens], pad_id: int) -> dict[str, Tensor]:
    """Prepared inputs of single-turn trajectories: prompts padded on the left, completions on the right."""
    prompts, completions = [], []
    for trajectory in trajectories:
        (sequence,) = trajectory.sequences
        start = sequence.positions[0]
        if list(sequence.positions) != list(range(start, len(sequence.ids))):
            raise ValueError(f"trajectory {trajectory.uid}: got Observations in it, expected a single turn")
        prompts.append(list(sequence.ids[:start]))
        completions.append(list(sequence.ids[start:]))
    wide, long = max(map(len, prompts)), max(map(len, completions))
    return {
        "prompt_ids": torch.tensor([[pad_id] * (wide - len(row)) + row for row in prompts]),
        "prompt_mask": torch.tensor([[0] * (wide - len(row)) + [1] * len(row) for row in prompts]),
        "completion_ids": torch.tensor([row + [pad_id] * (long - len(row)) for row in completions]),
        "completion_mask": torch.tensor([[1] * len(row) + [0] * (long - len(row)) for row in completions]),
        "advantages": torch.tensor([trajectory.advantage for trajectory in trajectories]),
        "num_items_in_batch": torch.tensor(float(sum(map(len, completions)))),
    }


def _no_reward(completions: list[Any], **_: Any) -> list[float | None]:
    """A reward function, which the trainer demands; it is never called, since inputs are prepared."""
    return [None] * len(completions)


@dataclass(frozen=True)
class TrlSetting:
    """What their trainer is built from: our base model, adapter, objective and optimizer, and one prepared batch."""

    model_folder: Path
    adaptation: dict[str, Any]
    adapter: bytes
    tokenizer: Any
    objective: dict[str, Any]
    optimizer: dict[str, Any]
    inputs: dict[str, Tensor]
    group_size: int
    output: Path

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of their configuration."""
        objective, optimizer = self.objective, self.optimizer
        return {
            "output_dir": str(self.output),
            "use_cpu": True,
            "bf16": False,
            "gradient_checkpointing": False,
            "per_device_train_batch_size": len(self.inputs["advantages"]),
            "gradient_accumulation_steps": 1,
            "num_generations": self.group_size,
            "num_iterations": 1,
            "beta": 0.0,
            "loss_type": LOSS_TYPES[objective["aggregation"]],
            "epsilon": objective["clip_low"],
            "epsilon_high": objective["clip_high"],
            "max_completion_length": objective.get("fixed_length") or self.inputs["completion_ids"].shape[1],
            "learning_rate": optimizer["learning_rate"],
            "adam_beta1": optimizer["beta1"],
            "adam_beta2": optimizer["beta2"],
            "adam_epsilon": optimizer["eps"],
            "weight_decay": optimizer["weight_decay"],
            "max_grad_norm": optimizer["grad_clip"],
            "lr_scheduler_type": "constant",
            "max_steps": 1,
            "report_to": [],
            "disable_tqdm": True,
            "save_strategy": "no",
        }


class TrlStep:
    """A ``GRPOTrainer`` that trains on one prepared batch. Generation never runs."""

    def __init__(self, setting: TrlSetting):
        require_trl()
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            self._build(setting)

    def _build(self, setting: TrlSetting) -> None:
        from datasets import Dataset, disable_progress_bars
        from transformers import AutoModelForCausalLM
        from trl import GRPOConfig, GRPOTrainer

        disable_progress_bars()
        rows, tokenizer = len(setting.inputs["advantages"]), setting.tokenizer
        base = AutoModelForCausalLM.from_pretrained(
            setting.model_folder, dtype=torch.float32, attn_implementation="sdpa"
        )
        model, self.trainable = adapt(base, setting.adaptation)
        load_adapter(self.trainable, setting.adapter)
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.convert_ids_to_tokens(0)
        if tokenizer.eos_token is None:
            tokenizer.eos_token = tokenizer.pad_token
        self.trainer = GRPOTrainer(
            model=model,
            reward_funcs=_no_reward,
            args=GRPOConfig(**setting.arguments()),
            train_dataset=Dataset.from_dict({"prompt": ["-"] * rows}),
            processing_class=tokenizer,
        )
        self.grad_clip = setting.optimizer["grad_clip"]
        self.trainer.current_gradient_accumulation_steps = 1
        setattr(self.trainer, "_prepare_inputs", lambda _: dict(setting.inputs))  # noqa: B010 - an instance attribute over a method
        self.trainer.create_optimizer()
        self.model, self.optimizer = self.trainer.accelerator.prepare(self.trainer.model, self.trainer.optimizer)

    def step(self) -> float:
        """Training step, clipping and optimizer step; the loss."""
        loss = self.trainer.training_step(self.model, {}, None)
        self.trainer.accelerator.clip_grad_norm_(self.model.parameters(), self.grad_clip)
        self.optimizer.step()
        self.model.zero_grad()
        return float(loss)

    def loss_and_gradient(self, old_logprobs_BT: Tensor, inputs: dict[str, Tensor]) -> tuple[float, dict[str, Tensor]]:
        """Loss and gradients under given old log-probabilities [rows, completion]; applies no step."""
        self.model.zero_grad()
        self.model.train()
        loss = self.trainer.compute_loss(self.model, {**inputs, "old_per_token_logps": old_logprobs_BT})
        loss.backward()
        found = {
            name: parameter.grad.clone() for name, parameter in self.trainable.items() if parameter.grad is not None
        }
        self.model.zero_grad()
        return float(loss), found
