"""Fixtures of the engine tests: a described tiny world and helpers that build job specifications."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.engine.support import LORA, MemoryStore, TinyEnvironment, write_model
from workbench.contracts.canonical import derive_uid, parse_canonical
from workbench.contracts.jobs import (
    CollectSpec,
    DescribeResult,
    DescribeSpec,
    EnvironmentRef,
    GroupSpec,
    PolicyRef,
    SlotSpec,
)
from worker.engine import policy as policy_module
from worker.engine import train


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("tiny-model"))


class TinyWorld:
    """A described model and environment, and specifications over them."""

    def __init__(self, folder: Path, cache_dir: Path, adaptation: dict[str, Any], config: dict[str, Any]):
        self.store, self.cache_dir, self.config = MemoryStore(), cache_dir, config
        self.spec = DescribeSpec(
            str(folder), "float32", adaptation, "tests.engine.support:TinyFormatter", TinyEnvironment.id, config
        )
        self.described: DescribeResult = train.describe(self.spec, self.store, cache_dir=cache_dir)
        tasks = parse_canonical(self.store.get(self.described.task_set_sha256))
        self.task_uids = [task["uid"] for task in tasks]

    def policy_ref(self, adapter: str | None = None, version: int = 0) -> PolicyRef:
        found = self.described
        return PolicyRef(
            self.spec.model,
            found.base_model_sha256,
            found.tokenizer_sha256,
            adapter or found.parent_adapter_sha256,
            version,
            "float32",
            self.spec.adaptation,
            self.spec.formatter,
        )

    def collect_spec(
        self, *, groups: int = 2, slots: int = 4, injected: tuple[int, ...] = (), **changes: Any
    ) -> CollectSpec:
        run = str(derive_uid(None, "run"))
        items = []
        for ordinal in range(groups):
            uid = str(derive_uid(run, f"group:{ordinal}"))
            parts = tuple(
                SlotSpec(str(derive_uid(uid, f"slot:{slot}")), slot, str(1000 * ordinal + slot + 1))
                for slot in range(slots)
            )
            task = self.task_uids[ordinal % len(self.task_uids)]
            items.append(GroupSpec(uid, ordinal, task, "control", injected, parts))
        found = self.described
        values: dict[str, Any] = {
            "run_uid": run,
            "plan_sha256": "0" * 64,
            "purpose": "train",
            "condition": "train",
            "split": "train",
            "policy": self.policy_ref(),
            "environment": EnvironmentRef(
                self.spec.environment,
                found.environment_version,
                found.environment_code_sha256,
                self.config,
                found.task_set_sha256,
            ),
            "reward": {"id": "tiny", "version": "1"},
            "sampling": {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "max_new_tokens": 24},
            "max_decisions": 5,
            "advantage": {"kind": "grpo", "eps": 1e-6},
            "runtime": found.runtime,
            "groups": tuple(items),
        }
        return CollectSpec(**{**values, **changes})


@pytest.fixture
def make_world(model_folder: Path, tmp_path: Path) -> Callable[..., TinyWorld]:
    def build(
        adaptation: dict[str, Any] | None = None, config: dict[str, Any] | None = None, folder: Path | None = None
    ) -> TinyWorld:
        policy_module.clear_residents()
        return TinyWorld(folder or model_folder, tmp_path / "cache", adaptation or LORA, config or {})

    return build
