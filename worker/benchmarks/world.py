"""What the benchmarks run on: the policy, environment and settings of a plan, and job specifications.

The specifications are those that the workers hand to the engine, so that ``collect`` and ``update``
do all that they do in a study: captures and traces written, credit computed, identities checked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from workbench.blobs import BlobStore
from workbench.contracts.canonical import derive_uid, parse_canonical, sha256_hex
from workbench.contracts.errors import EngineFault
from workbench.contracts.jobs import (
    CollectResult,
    CollectSpec,
    DescribeSpec,
    EnvironmentRef,
    GroupSpec,
    PolicyRef,
    SlotSpec,
    UpdateGroup,
    UpdateSpec,
)
from workbench.contracts.records import SIGNAL, GroupRecord
from workbench.contracts.seeds import derive_seed
from workbench.contracts.wire import parse_record, record_bytes
from worker.engine import train
from worker.engine.advantage import group_advantages
from worker.engine.policy import Policy, load_policy

PLAN_SHA256 = "0" * 64
RUN = str(derive_uid(None, "benchmark"))
ADAPTER_SCALE = 0.02  # of the random LoRA B: a fresh adapter would be the base model itself


@dataclass(frozen=True)
class Sizes:
    """How much is measured. Rows = groups * group size."""

    repeats: int = 9
    group_size: int = 4
    rollout_groups: int = 8
    update_groups: int = 4
    equal_groups: int = 8
    equal_tokens: int = 40  # most new tokens of the single-turn batch that is compared with TRL


class BenchWorld:
    """A described policy with a changed adapter, a store in ``folder``, and the specifications over them."""

    def __init__(self, plan: dict[str, Any], sizes: Sizes, folder: Path, cache_dir: Path, progress: Any = None):
        self.plan, self.sizes, self.cache_dir = plan, sizes, cache_dir
        self.store = BlobStore(folder / "blobs")
        policy, environment = plan["policy"], plan["environment"]
        spec = DescribeSpec(
            policy["model"],
            policy["dtype"],
            policy["adaptation"],
            policy["formatter"],
            environment["id"],
            environment["config"],
        )
        self.described = train.describe(spec, self.store, cache_dir=cache_dir, progress=progress)
        self.tasks = parse_canonical(self.store.get(self.described.task_set_sha256))
        self.task_uids = [task["uid"] for task in self.tasks if task["split"] == plan["rollout"]["split"]]
        if not self.task_uids:
            raise EngineFault(f"tasks: got none of split {plan['rollout']['split']!r}, expected at least one")
        self.adapter = self._changed_adapter()

    def _changed_adapter(self) -> str:
        """A LoRA adapter whose B matrices are not zero; in full fine-tuning the parent itself."""
        policy = self.policy(self.described.parent_adapter_sha256)
        generator = torch.Generator().manual_seed(1)
        policy.disturb()
        with torch.no_grad():
            for name, parameter in policy.trainable.items():
                if ".lora_B." in name:
                    parameter.copy_(torch.randn(parameter.shape, generator=generator) * ADAPTER_SCALE)
        return self.store.put(policy.adapter_blob())

    def policy_ref(self, adapter: str | None = None) -> PolicyRef:
        """Reference of the benchmark's policy."""
        policy, found = self.plan["policy"], self.described
        return PolicyRef(
            model=policy["model"],
            base_model_sha256=found.base_model_sha256,
            tokenizer_sha256=found.tokenizer_sha256,
            adapter_sha256=adapter or self.adapter,
            policy_version=0,
            dtype=policy["dtype"],
            adaptation=policy["adaptation"],
            formatter=policy["formatter"],
        )

    def policy(self, adapter: str | None = None) -> Policy:
        """The policy, loaded."""
        return load_policy(self.policy_ref(adapter), self.store, cache_dir=self.cache_dir)

    def collect_spec(self, groups: int, **changes: Any) -> CollectSpec:
        """``groups`` groups without injected failures. ``changes``: fields that differ from the plan's."""
        found, rollout, objective = self.described, self.plan["rollout"], self.plan["objective"]
        values: dict[str, Any] = {
            "run_uid": RUN,
            "plan_sha256": PLAN_SHA256,
            "purpose": "train",
            "condition": "train",
            "split": rollout["split"],
            "policy": self.policy_ref(),
            "environment": EnvironmentRef(
                found.environment,
                found.environment_version,
                found.environment_code_sha256,
                self.plan["environment"]["config"],
                found.task_set_sha256,
            ),
            "reward": {"id": self.plan["reward"]["id"], "version": self.plan["reward"]["version"]},
            "sampling": rollout["sampling"],
            "max_decisions": rollout["max_decisions"],
            "advantage": {"kind": objective["advantage"], "eps": objective["advantage_eps"]},
            "runtime": found.runtime,
            "groups": tuple(self._group(ordinal) for ordinal in range(groups)),
        }
        return CollectSpec(**{**values, **changes})

    def _group(self, ordinal: int) -> GroupSpec:
        uid = str(derive_uid(RUN, f"group:{ordinal}"))
        slots = tuple(
            SlotSpec(str(derive_uid(uid, f"slot:{slot}")), slot, derive_seed("benchmark", ordinal, slot))
            for slot in range(self.sizes.group_size)
        )
        return GroupSpec(uid, ordinal, self.task_uids[ordinal % len(self.task_uids)], "control", (), slots)

    def collect(self, spec: CollectSpec) -> CollectResult:
        """The job's own function."""
        return train.collect(spec, self.store, cache_dir=self.cache_dir)

    def update_spec(self, result: CollectResult) -> UpdateSpec:
        """One epoch in one minibatch over collected groups, every group with a signal in it.

        The rewards are scripted (a ramp over the slots), so that each repeat and each machine trains on
        all rows; advantages follow from them.
        """
        return UpdateSpec(
            run_uid=RUN,
            plan_sha256=PLAN_SHA256,
            update_uid=str(derive_uid(RUN, "update:0")),
            batch=0,
            first_step=0,
            policy=self.policy_ref(),
            optimizer_sha256=None,
            objective=self.plan["objective"],
            optimizer={**self.plan["optimizer"], "epochs": 1, "minibatches": 1},
            runtime=self.described.runtime,
            groups=tuple(self._scripted(item) for item in result.groups),
            reference_adapter_sha256=self.described.parent_adapter_sha256,
        )

    def _scripted(self, item: Any) -> UpdateGroup:
        record = parse_record(GroupRecord, item.record_json.encode())
        if not record.eligible:
            raise EngineFault(f"group {record.uid}: got {record.ineligible_reason}, expected an eligible group")
        rewards = [
            (slot + record.ordinal % 3) / (len(record.trajectories) + 2) for slot in range(len(record.trajectories))
        ]
        trajectories = tuple(
            replace(found, reward=replace(found.reward, total=value)) if found.reward is not None else found
            for found, value in zip(record.trajectories, rewards, strict=True)
        )
        objective = self.plan["objective"]
        statistics = group_advantages(rewards, objective["advantage"], objective["advantage_eps"])
        record = replace(
            record,
            trajectories=trajectories,
            mean=statistics.mean,
            sigma=statistics.sigma,
            advantages_G=statistics.advantages_G,
            signal=SIGNAL,
        )
        data = record_bytes(record)
        return UpdateGroup(data.decode(), sha256_hex(data), item.capture_blob_sha256, item.captures)
