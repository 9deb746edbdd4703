"""Calls the seven stages in order: rollout, reward, advantage; then credit, batch, loss, update.

``collect`` (stages 1-3) and ``update`` (stages 4-7) are separate entries: there is none that collects
a group and trains on it at once. Both read and write the content-addressed store and nothing else.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from workbench.capturefile import write_group_file
from workbench.contracts.canonical import canonical_bytes, sha256_hex
from workbench.contracts.errors import EngineFault
from workbench.contracts.jobs import (
    CollectedGroup,
    CollectResult,
    CollectSpec,
    DescribeResult,
    DescribeSpec,
    PolicyRef,
    UpdateResult,
    UpdateSpec,
)
from workbench.contracts.records import EVALUATE, PREFLIGHT, Identities
from workbench.contracts.wire import record_bytes
from worker.environments.registry import environment_code_sha256, get_environment, reward_code_sha256
from worker.environments.taskvalues import task_values

from . import own
from .checkpoint import checked
from .collect import Progress, World, group_record, read_tasks
from .faults import reach
from .identities import harness_code_sha256, runtime_facts, runtime_identity
from .metrics import collection_metrics
from .policy import Policy, find_base, initial_adapter, load_policy
from .records import SamplingConfig
from .rollout import RolloutSettings, run_rollouts
from .sampler import Sampler
from .text_metrics import content_test

MAX_ROWS = 32


def require_runtime(expected: str, dtype: str) -> None:
    """Refuse to compute under another runtime than the plan's; threads are part of it."""
    found = runtime_identity(dtype)
    if found != expected:
        raise EngineFault(f"runtime: got {found} ({runtime_facts(dtype)}), expected {expected}")


def world_of(spec: CollectSpec, code: own.BoundCode, policy: Policy, store: Any) -> World:
    """The bound environment with the plan's tasks. Raises ``EngineFault`` for a task that is not of the set."""
    task_set = f"{spec.environment.environment}/{code.environment.version}"
    tasks = read_tasks(checked(store, spec.environment.task_set_sha256, "task set"), task_set)
    missing = [group.task_uid for group in spec.groups if group.task_uid not in tasks]
    if missing:
        raise EngineFault(f"task_uid: got {missing[0]}, expected a task of the set {spec.environment.task_set_sha256}")
    return World(code.environment, tasks, policy.formatter, code.rules, code.reward_id)


def identities_of(spec: CollectSpec, policy: Policy, code: own.BoundCode) -> Identities:
    """Everything that a record of this job was made under."""
    return Identities(
        base_model=policy.base_model_sha256,
        adapter=policy.adapter_sha256,
        tokenizer=policy.tokenizer_sha256,
        formatter=policy.formatter.identity(),
        environment=spec.environment.code_sha256,
        harness=harness_code_sha256(),
        runtime=spec.runtime,
        reward=code.reward_sha256,
        task_set=spec.environment.task_set_sha256,
        policy_version=spec.policy.policy_version,
    )


def capture_identities(identities: Identities) -> dict[str, str]:
    """The identities that a capture binds."""
    names = ("base_model", "adapter", "tokenizer", "formatter", "environment", "harness", "runtime")
    return {name: getattr(identities, name) for name in names}


def collect(spec: CollectSpec, store: Any, *, cache_dir: Path, progress: Progress | None = None) -> CollectResult:
    """Stages 1-3 for one shard. Raises ``EngineFault`` where the job cannot be done as specified."""
    started, cpu = time.perf_counter(), time.process_time()
    require_runtime(spec.runtime, spec.policy.dtype)
    sampling = SamplingConfig.from_spec(spec.sampling)
    if sampling.truncates and spec.purpose != EVALUATE:
        raise EngineFault(f"sampling: got {spec.sampling}, expected top_p 1 and top_k 0: truncation biases the ratio")
    rows = sum(len(group.slots) for group in spec.groups)
    if not 1 <= rows <= MAX_ROWS:
        raise EngineFault(f"groups: got {rows} rows, expected 1 to {MAX_ROWS}")
    code = own.bound_code(spec)
    policy = load_policy(spec.policy, store, cache_dir=cache_dir, environment_config=spec.environment.config)
    world = world_of(spec, code, policy, store)
    identities = identities_of(spec, policy, code)
    settings = RolloutSettings(
        capture_identities(identities) | code.outside, spec.policy.policy_version, spec.sampling, spec.max_decisions
    )
    stop = policy.formatter.stop_ids()
    sampler = Sampler(policy, sampling, rows=rows, stop_ids=stop, context=policy.context())
    loaded = time.perf_counter()
    rollouts = run_rollouts(
        spec.groups, world.tasks, world.environment, policy.formatter, sampler, settings, progress
    )  # stage 1
    sampled = time.perf_counter()
    records = [group_record(group, rollouts, world, spec, identities) for group in spec.groups]  # stages 2 and 3
    collected = []
    for record in records:
        blob, refs = write_group_file([(item.uid, rollouts[item.uid].captures) for item in record.trajectories])
        name = store.put(blob)
        reach("blob_written")
        data = record_bytes(record)
        collected.append(CollectedGroup(data.decode(), sha256_hex(data), name, len(blob), refs))
    phase = spec.purpose if spec.purpose in (PREFLIGHT, "train") else spec.condition
    metrics = collection_metrics(
        records,
        rollouts,
        phase,
        spec.split,
        spec.policy.policy_version,
        is_content=content_test(policy.tokenizer),
        demonstrated=policy.demonstrated_states(),
    )
    ended = time.perf_counter()
    timing = {
        "load_seconds": loaded - started,
        "rollout_seconds": sampled - loaded,
        "seconds": ended - started,
        "cpu_seconds": time.process_time() - cpu,
        "policy_tokens": float(sampler.policy_tokens),
        "ingested_tokens": float(sampler.ingested_tokens),
    }
    return CollectResult(tuple(collected), metrics, timing)


def update(spec: UpdateSpec, store: Any, *, cache_dir: Path, progress: Progress | None = None) -> UpdateResult:
    """Stages 4-7 for one optimizer batch: all or nothing. See ``worker.engine.update``."""
    require_runtime(spec.runtime, spec.policy.dtype)
    own.require_profile(spec.policy)
    policy = load_policy(spec.policy, store, cache_dir=cache_dir)
    from . import update as update_stage

    return update_stage.apply_update(spec, policy, store, progress)


def describe(spec: DescribeSpec, store: Any, *, cache_dir: Path, progress: Progress | None = None) -> DescribeResult:
    """What a plan binds at freeze: builds or finds the base model, writes the initial adapter and the task set."""
    environment = get_environment(spec.environment, spec.environment_config)
    if progress is not None:
        progress({"stage": "base_model"})
    files = find_base(spec.model, cache_dir, environment_config=spec.environment_config, progress=progress)
    ref = PolicyRef(
        spec.model,
        files.base_model_sha256,
        files.tokenizer_sha256,
        None,
        0,
        spec.dtype,
        spec.adaptation,
        spec.formatter,
    )
    adapter = initial_adapter(ref, cache_dir, environment_config=spec.environment_config)
    policy = load_policy(ref, store, cache_dir=cache_dir, environment_config=spec.environment_config)
    task_set = f"{spec.environment}/{environment.version}"
    tasks = canonical_bytes(task_values(environment.tasks(), task_set))
    vocabulary = canonical_bytes([policy.tokenizer.decode([index]) for index in range(len(policy.tokenizer))])
    return DescribeResult(
        base_model_sha256=files.base_model_sha256,
        tokenizer_sha256=files.tokenizer_sha256,
        parent_adapter_sha256=store.put(adapter),
        parent_adapter_bytes=len(adapter),
        vocabulary_sha256=store.put(vocabulary),
        parameters=policy.resident.parameters,
        trainable_parameters=sum(parameter.numel() for parameter in policy.trainable.values()),
        runtime=runtime_identity(spec.dtype),
        runtime_facts=runtime_facts(spec.dtype),
        formatter=policy.formatter.identity(),
        environment=spec.environment,
        environment_version=environment.version,
        success_definition=environment.success_definition(),
        environment_code_sha256=environment_code_sha256(environment),
        reward_code_sha256=reward_code_sha256(environment, spec.reward.get("id")),
        harness_code_sha256=harness_code_sha256(),
        task_set_sha256=store.put(tasks),
        warm_start=files.report,
        code=own.described_code(spec, environment),
        verifier=getattr(environment, "verifier", None),
    )
