"""What the runner process calls: one function from an operation and plain values to plain values."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workbench.contracts.branches import BranchSpec
from workbench.contracts.controls import ControlsSpec
from workbench.contracts.errors import EngineFault
from workbench.contracts.jobs import CollectSpec, DescribeSpec, UpdateSpec
from workbench.contracts.probe import ProbeSpec
from workbench.contracts.trials import TrialsSpec
from workbench.contracts.wire import from_wire, to_wire

from . import branches, controls, deferred, own, probe, train, trials
from .identities import harness_code_sha256, runtime_identity

OPERATIONS: dict[str, tuple[type, Callable[..., Any]]] = {
    "collect": (CollectSpec, train.collect),
    "update": (UpdateSpec, train.update),
    "probe": (ProbeSpec, probe.probe),
    "trials": (TrialsSpec, trials.trials),
    "controls": (ControlsSpec, controls.controls),
    "branch": (BranchSpec, branches.branch),
    "describe": (DescribeSpec, own.inspect),
}


def preload() -> None:
    """Import what the first job needs anyway, so that it need not wait for it."""
    deferred.leave_out()
    for name in ("peft", "transformers.models.auto.modeling_auto", "transformers.models.qwen3.modeling_qwen3"):
        importlib.import_module(name)


def handle(
    op: str, spec: dict[str, Any], *, store: Any, cache_dir: Path | str, progress: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    """Answer of one job as a wire value.

    ``op``: runtime (identities of this process) or one of ``OPERATIONS``. ``spec``: wire value of the matching
    specification. ``store``: ``put(bytes) -> sha256`` and ``get(sha256) -> bytes``.
    ``progress`` receives small dictionaries. Raises ``EngineFault``, ``RecordError`` or
    ``CaptureError``: nothing is committed then.
    """
    if op == "runtime":
        return {"runtime": runtime_identity(spec["dtype"]), "harness": harness_code_sha256()}
    if op not in OPERATIONS:
        raise EngineFault(f"op: got {op!r}, expected runtime or one of {sorted(OPERATIONS)}")
    kind, function = OPERATIONS[op]
    result = function(from_wire(kind, spec), store, cache_dir=Path(cache_dir), progress=progress)
    value: dict[str, Any] = to_wire(result)
    return value
