"""The probe of the scripted engine: every task answers the same, and no intervention changes anything but deletion."""

from __future__ import annotations

from dataclasses import replace

from tests.engine.probe_records import decision, record, sample, task, thought
from workbench.contracts.canonical import sha256_hex
from workbench.contracts.probe import ProbeRecord, ProbeResult, ProbeSpec
from workbench.contracts.records import Identities
from workbench.contracts.wire import record_bytes
from worker.engine.probe_metrics import probe_metrics


def made_record(spec: ProbeSpec) -> ProbeRecord:
    """The record of the specification's tasks."""
    same, broken = sample("a", "1", success=True, forced=2), sample(None, None, forced=2)
    tasks = []
    for group in spec.collect.groups:
        rollouts = [sample("a", "1", success=slot.slot == 0) for slot in group.slots]
        probed = decision(same, (broken, None), (same, "b"), (same, None), (same, None))
        made = task(rollouts, [thought("call", "call", True, True, False)], [probed])
        tasks.append(replace(made, task_uid=group.task_uid))
    collect = spec.collect
    identities = Identities(
        base_model=collect.policy.base_model_sha256, adapter=str(collect.policy.adapter_sha256),
        tokenizer=collect.policy.tokenizer_sha256, formatter="formatter", environment=collect.environment.code_sha256,
        harness="harness", runtime=collect.runtime, reward="reward", task_set=collect.environment.task_set_sha256,
        policy_version=collect.policy.policy_version,
    )  # fmt: skip
    return record(
        *tasks, uid=spec.uid, run_uid=collect.run_uid, plan_sha256=collect.plan_sha256, batch=spec.batch,
        split=collect.split, settings=spec.settings, sampling=collect.sampling, max_decisions=collect.max_decisions,
        identities=identities,
    )  # fmt: skip


def probe(spec: ProbeSpec) -> ProbeResult:
    """Answer to a probe job."""
    made = made_record(spec)
    data = record_bytes(made)
    return ProbeResult(data.decode(), sha256_hex(data), probe_metrics(made), {"seconds": 2.5, "cpu_seconds": 2.0})
