"""A study that runs to its end in one process: real actions, real lifecycle, scripted engine.

``Lab`` holds the script and drives jobs in the order of their keys. The plan has a strict pair (V, F), a
gated arm K counted over F, two probe groups, two batches of one group, and four evaluation cells.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from runs.actions.actors import service_actor
from runs.actions.execution import start_execution
from runs.actions.plans import ensure_study, freeze_plan, save_draft
from runs.actions.tasks import store_task_set
from runs.models import Actor, Execution, Job, Plan, PlanVersion, Run, RunHead
from runs.storage import blob_store, reference_blobs
from tests.runs.builders import task_set_bytes
from tests.runs.engine_double import RUNTIME, Engine, Script
from tests.runs.scripted_plan import document
from workbench.contracts.canonical import canonical_bytes, sha256_hex
from worker import lifecycle

VERIFIER = "scripted/1"
AT = datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)  # before any clock: what is queued then can be claimed now


@dataclass
class Lab:
    """One database, one store and one scripted engine."""

    script: Script = field(default_factory=Script)
    sent: list[int] = field(default_factory=list)

    @property
    def actor(self) -> Actor:
        return service_actor("tester")

    def bindings(self) -> dict[str, Any]:
        """What the engine would describe."""
        store = blob_store()
        task_set = store_task_set(task_set_bytes(), environment="evidence_search", version="1", store=store)
        parent = store.put(b"parent adapter")
        reference_blobs({parent: "adapter"}, store=store)
        splits: dict[str, list[dict[str, str]]] = {}
        for task in task_set.all_tasks():
            entry = {"uid": str(task.uid), "sha256": task.task_sha256, "family": task.family}
            splits.setdefault(task.split, []).append(entry)
        return {
            "policy": {
                "base_model_sha256": sha256_hex(b"base"), "tokenizer_sha256": sha256_hex(b"tokenizer"),
                "parent_adapter_sha256": parent, "parent_adapter_bytes": 14, "formatter": "formatter",
            },
            "environment": {"id": "evidence_search", "version": "1", "code_sha256": sha256_hex(b"environment"),
                            "success_definition": "evidence_search.success/1"},
            "reward": {"code_sha256": sha256_hex(b"reward")}, "harness": sha256_hex(b"harness"), "runtime": RUNTIME,
            "task_set": {"sha256": task_set.sha256, "splits": splits},
        }  # fmt: skip

    def draft(self, **changes: Any) -> Plan:
        """A saved draft."""
        study = ensure_study(
            "scripted", title={"en": "S"}, summary={"en": "S"}, by=self.actor, at=AT, visibility="public"
        )
        plan = document(**changes)
        return save_draft(study, plan["name"], canonical_bytes(plan).decode(), by=self.actor, at=AT)

    def freeze(self, **changes: Any) -> PlanVersion:
        """A frozen plan."""
        bindings = self.bindings()
        if changes.get("trials"):  # the scripted environment leaves artefacts only where they are asked for
            bindings["environment"]["verifier"] = VERIFIER
        return freeze_plan(self.draft(**changes), bindings, by=self.actor, at=AT)

    def start(self, **changes: Any) -> Execution:
        """A started execution."""
        return start_execution(self.freeze(**changes), by=self.actor, at=AT, provenance={"commit": None})

    def step(self, execution: Execution, *, only: str = "") -> str | None:
        """Run the next queued job (whose key contains ``only``); None where nothing can be claimed."""
        for job in Job.objects.filter(execution=execution, state="queued", key__contains=only).order_by("key"):
            lifecycle.execute(job.pk)
            if Job.objects.get(pk=job.pk).attempt > job.attempt:
                return job.key
        return None

    def drive(self, execution: Execution, *, only: str = "", limit: int = 200) -> list[str]:
        """Run jobs until none is left; their keys in order."""
        done: list[str] = []
        while (key := self.step(execution, only=only)) is not None:
            done.append(key)
            assert len(done) < limit, "the execution does not come to an end"
        execution.refresh_from_db()
        return done


def run_of(execution: Execution, arm: str, seed: str = "1") -> Run:
    """The run of an arm at a seed."""
    return Run.objects.get(execution=execution, arm__key=arm, seed=seed)


def head_of(execution: Execution, arm: str, seed: str = "1") -> RunHead:
    """Its head, read now."""
    return RunHead.objects.get(run=run_of(execution, arm, seed))


@pytest.fixture
def lab(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A laboratory whose messages go nowhere: tests claim jobs by hand."""
    settings.BLOB_ROOT = tmp_path / "blobs"
    made = Lab()
    monkeypatch.setattr(lifecycle, "engine_client", lambda threads: Engine(blob_store(), made.script))
    monkeypatch.setattr("runs.dispatch.app.send_task", lambda name, args, **_: made.sent.append(args[0]))
    return made
