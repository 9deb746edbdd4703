"""Environment controls as an operation: the environment by name, its task set into the store, every slot tried."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from workbench.contracts.canonical import canonical_bytes
from workbench.contracts.controls import ControlsResult, ControlsSpec
from worker.environments.base import artefacts_of
from worker.environments.controls import Progress, run_controls
from worker.environments.registry import environment_code_sha256, get_environment
from worker.environments.taskvalues import task_values

from .faults import reach


def controls(
    spec: ControlsSpec, store: Any, *, cache_dir: Path | None = None, progress: Progress | None = None
) -> ControlsResult:
    """No policy and no model is loaded. Raises ``EnvironmentFault`` as ``run_controls`` does."""
    environment = get_environment(spec.environment, spec.config)
    task_set = f"{spec.environment}/{environment.version}"
    found = list(run_controls(environment, task_set, spec.splits, progress=progress))
    tasks = store.put(canonical_bytes(task_values(environment.tasks(), task_set)))
    reach("blob_written")
    artefacts = artefacts_of(environment)
    assert artefacts is not None  # run_controls refused it otherwise
    return ControlsResult(
        spec.environment,
        environment.version,
        environment_code_sha256(environment),
        tasks,
        artefacts.verifier,
        tuple(spec.splits),
        tuple(slot for slot, _ in found),
        tuple(timing for _, timing in found),
    )
