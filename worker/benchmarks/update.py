"""The update against TRL's step and against the arithmetic ideal."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from workbench.contracts.errors import EngineFault
from workbench.contracts.jobs import UpdateSpec
from worker.engine import train
from worker.engine import update as update_stage
from worker.engine.batch import TrajectoryTokens
from worker.engine.checkpoint import load_adapter
from worker.engine.credit import TokenCredit
from worker.engine.forward import token_logprobs
from worker.engine.loss import surrogate_terms, weighted_loss
from worker.engine.policy import find_base
from worker.engine.steps import build_minibatches, old_logprobs, run_steps

from .measure import Report, cpu_ratio, interleave, summary
from .trl_step import TrlSetting, TrlStep, trl_inputs
from .world import BenchWorld

SGEMM_SIZE, SGEMM_CALLS = 1024, 8
SHIFT = 0.3  # of the old log-probabilities in the comparison of losses: ratios e**+-0.3, clipping on both sides


@dataclass(frozen=True)
class Batch:
    """What an update trains on, as its own stages read it."""

    spec: UpdateSpec
    trajectories: tuple[TrajectoryTokens, ...]
    credits: tuple[TokenCredit, ...]

    @property
    def positions(self) -> int:
        """Ids that are processed, padding not counted."""
        return sum(len(sequence.ids) for item in self.trajectories for sequence in item.sequences)


def load_batch(world: BenchWorld, spec: UpdateSpec) -> Batch:
    """Stages 4 and 5 on the groups of ``spec``."""
    policy = world.policy()
    records = update_stage._read_groups(spec, policy)
    vocabulary = policy.causal_model().get_input_embeddings().weight.shape[0]
    found = update_stage.choose_groups(spec, records, world.store, vocabulary)
    if found.skipped is not None:
        raise EngineFault(f"batch: got {found.skipped}, expected groups to train on")
    return Batch(spec, found.trajectories, found.credits)


def whole_update(world: BenchWorld, spec: UpdateSpec) -> float:
    """The job's own function; its number of steps."""
    return train.update(spec, world.store, cache_dir=world.cache_dir).timing["steps"]


class OptimizerStep:
    """One optimizer step on a batch in memory, as TRL's prepared inputs are: old log-probabilities are given.

    Every call starts from the same adapter, so that ratios are exactly 1, as in TRL's own step.
    """

    def __init__(self, world: BenchWorld, batch: Batch):
        self.policy, self.batch = world.policy(), batch
        self.adapter = world.store.get(world.adapter)
        objective, settings = batch.spec.objective, batch.spec.optimizer
        self.minibatches = build_minibatches(batch.trajectories, batch.credits, objective, settings)
        self.optimizer = update_stage.make_optimizer(self.policy, settings)
        self.old = old_logprobs(self.policy, self.minibatches)

    def step(self) -> float:
        """Forward, backward, trace, clipping and optimizer step; the loss."""
        self.policy.disturb()
        load_adapter(self.policy.trainable, self.adapter)
        batch = self.batch
        steps = run_steps(
            self.policy,
            self.minibatches,
            batch.trajectories,
            batch.credits,
            self.old,
            batch.spec.objective,
            batch.spec.optimizer,
            self.optimizer,
            first_step=0,
        )
        return steps.records[0].loss

    def loss_and_gradient(self, old: dict[int, Tensor]) -> tuple[float, dict[str, Tensor]]:
        """Loss and gradients under given old log-probabilities, through the engine's stages; applies no step."""
        self.policy.disturb()
        load_adapter(self.policy.trainable, self.adapter)
        objective, total = self.batch.spec.objective, 0.0
        for minibatch in self.minibatches:
            for micro in minibatch.micro_batches:
                logprobs_N, _ = token_logprobs(self.policy, micro)
                advantages_N = torch.tensor(
                    [value for member in micro.members for value in self.batch.credits[member].advantages_T]
                )
                objective_N, _ = surrogate_terms(
                    logprobs_N,
                    torch.cat([old[member] for member in micro.members]),
                    advantages_N,
                    objective["clip_low"],
                    objective["clip_high"],
                )
                loss = weighted_loss(objective_N, torch.cat([minibatch.weights[member] for member in micro.members]))
                loss.backward()
                total += float(loss.detach())
        found = {}
        for name, parameter in self.policy.trainable.items():
            if parameter.grad is not None:
                found[name], parameter.grad = parameter.grad, None
        return total, found


def shifted(old: dict[int, Tensor]) -> dict[int, Tensor]:
    """Old log-probabilities moved up and down in turn, so that losses are not 0 and clipping acts on both sides."""
    return {
        member: values + SHIFT * torch.tensor([1.0 if (member + place) % 2 else -1.0 for place in range(len(values))])
        for member, values in old.items()
    }


def agreement(ours: OptimizerStep, theirs: TrlStep, inputs: dict[str, Tensor]) -> tuple[float, float, float]:
    """|difference| of the losses, greatest |difference| of the gradients, and the size of the greatest gradient."""
    old = shifted(ours.old)
    old_BT = torch.zeros(inputs["completion_ids"].shape)
    for member, values in old.items():
        old_BT[member, : len(values)] = values
    loss, gradient = ours.loss_and_gradient(old)
    their_loss, their_gradient = theirs.loss_and_gradient(old_BT, inputs)
    if sorted(gradient) != sorted(their_gradient):
        raise EngineFault(f"gradients: got {len(gradient)} and {len(their_gradient)}, expected the same parameters")
    difference = max(float((gradient[name] - their_gradient[name]).abs().max()) for name in gradient)
    size = max(float(values.abs().max()) for values in their_gradient.values())
    return abs(loss - their_loss), difference, size


def against_trl(world: BenchWorld, folder: Path, report: Report) -> dict[str, Any]:
    """``update_vs_trl_cpu``, ``job_vs_trl_cpu``, ``loss_difference`` and ``gradient_difference``."""
    sizes = world.sizes
    sampling = {**world.plan["rollout"]["sampling"], "max_new_tokens": sizes.equal_tokens}
    collected = world.collect(world.collect_spec(sizes.equal_groups, max_decisions=1, sampling=sampling))
    spec = world.update_spec(collected)
    batch = load_batch(world, spec)
    policy = world.policy()
    inputs = trl_inputs(batch.trajectories, pad_id=0)
    files = find_base(world.plan["policy"]["model"], world.cache_dir, expected=world.described.base_model_sha256)
    theirs = TrlStep(
        TrlSetting(
            files.path,
            world.plan["policy"]["adaptation"],
            world.store.get(world.adapter),
            policy.tokenizer,
            spec.objective,
            spec.optimizer,
            inputs,
            sizes.group_size,
            folder / "trl",
        )
    )
    ours = OptimizerStep(world, batch)
    loss, gradient, size = agreement(ours, theirs, inputs)
    arms = {"step": ours.step, "update": lambda: whole_update(world, spec), "TRL": theirs.step}
    found = interleave(arms, sizes.repeats, report, "update against TRL")
    rows = f"{len(batch.trajectories)} single-turn rows of at most {sizes.equal_tokens} new tokens, LoRA, same adapter"
    return {
        "update_vs_trl_cpu": cpu_ratio(
            found["step"],
            found["TRL"],
            f"{rows}; theirs: GRPOTrainer.training_step, clipping and optimizer step on prepared inputs; ours: "
            "run_steps with traces and gradient norms by trajectory, clipping and optimizer step",
        ),
        "job_vs_trl_cpu": cpu_ratio(
            found["update"],
            found["TRL"],
            f"{rows}; ours is the whole apply_update job: captures read and checked, credit, old log-probabilities, "
            "one step, trace, adapter and optimizer state written; theirs as above, none of these",
        ),
        "loss_difference": summary(
            [loss], "absolute", f"|ours - TRL's| on the same rows with old log-probabilities moved by +-{SHIFT}"
        ),
        "gradient_difference": summary(
            [gradient], "absolute", f"greatest |ours - TRL's| on the same rows; the greatest gradient is {size:.3g}"
        ),
    }


def sgemm_rate(calls: int = SGEMM_CALLS) -> float:
    """Floating-point operations of ``calls`` float32 products of square matrices."""
    left, right = torch.rand(SGEMM_SIZE, SGEMM_SIZE), torch.rand(SGEMM_SIZE, SGEMM_SIZE)
    for _ in range(calls):
        torch.mm(left, right)
    return 2.0 * SGEMM_SIZE**3 * calls


def matmul_parameters(model: Any) -> int:
    """Parameters that a position is multiplied with: linear layers and the output head; no embedding, no LoRA."""
    total = 0
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Linear) and ".lora_" not in name:
            total += module.weight.numel()
    return total


def against_ideal(world: BenchWorld, report: Report) -> dict[str, Any]:
    """``update_vs_ideal``: 8 operations a parameter and position (2 old, 2 forward, 4 backward) at the sgemm rate."""
    sizes = world.sizes
    spec = world.update_spec(world.collect(world.collect_spec(sizes.update_groups)))
    batch = load_batch(world, spec)
    parameters = matmul_parameters(world.policy().causal_model())
    operations = 8.0 * parameters * batch.positions
    arms = {"update": lambda: whole_update(world, spec), "sgemm": sgemm_rate}
    found = interleave(arms, sizes.repeats, report, "update against the ideal")
    values = [
        update.cpu_seconds / (operations / gemm.rate)
        for update, gemm in zip(found["update"], found["sgemm"], strict=True)
    ]
    rate = summary([item.rate / 1e9 for item in found["sgemm"]], "GFLOP/s", f"{SGEMM_SIZE} x {SGEMM_SIZE} products")
    how = (
        f"the whole apply_update job, one epoch, on {len(batch.trajectories)} multi-turn trajectories with "
        f"{batch.positions} positions; ideal = 8 x {parameters} parameters x positions / the sgemm rate of the repeat"
    )
    return {"update_vs_ideal": summary(values, "our CPU seconds / the ideal's, lower is better", how), "sgemm": rate}
