"""Artefacts of the scripted engine: one file that the only turn mends half, and a verifier without a sandbox."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tests.runs.scripted import VERIFIER
from workbench.contracts.canonical import sha256_hex
from workbench.contracts.errors import EnvironmentFault
from workbench.contracts.jobs import CollectSpec, GroupSpec
from workbench.contracts.records import RewardComponent, TurnRecord
from workbench.contracts.trials import TrialsResult, TrialsSpec, tree_digest
from worker.environments.base import Task
from worker.verifiers.trial import Observed, TrialReport

if TYPE_CHECKING:
    from tests.runs.engine_double import Script

BROKEN, MENDED = b"broken", b"mended"
LISTS = (("f1", "f2"), ("p",))
FINAL = {"a.py": sha256_hex(MENDED)}
LEVEL = {"backend": "none", "version": "0", "process_bound": "none", "memory_bound": "none", "unisolated": True}


def components(spec: CollectSpec, group: GroupSpec, slot: int) -> tuple[RewardComponent, ...]:
    """U = 1/2 in every slot (f1 passes, f2 fails, p passes), and a style that tells the slots apart."""
    detail = {
        "observed": {"f1": "PASSED", "f2": "FAILED:assertion", "p": "PASSED"},
        "verifier": VERIFIER,
        "tree_sha256": tree_digest(FINAL),
    }
    style = 0.4 * (slot % 2)
    return (
        RewardComponent("fail_to_pass", 1.0, 0.5, 0.5, "measured", detail),
        RewardComponent("regression", -1.0, 0.0, -0.0, "measured", {}),
        RewardComponent("style", 1.0, style, style, "measured", {}),
    )


class ScriptedArtefacts:
    """The artefact part of an environment. ``options``: {"incomplete": kinds of trees whose trial is unknown}."""

    id, version, verifier = "evidence_search", "1", VERIFIER

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = options
        self.tried = 0

    def trees(self, task: Task, turns: Sequence[TurnRecord]) -> tuple[list[dict[str, str]], dict[str, bytes]]:
        """The first turn mends ``a.py``; a later one changes nothing."""
        first = {"a.py": sha256_hex(BROKEN)}
        contents = {sha256_hex(data): data for data in (BROKEN, MENDED)}
        return [first, *[dict(FINAL) for _ in turns]], contents

    def is_test_path(self, path: str) -> bool:
        return path.startswith("test")

    def trial(self, task: Task, files: Mapping[str, bytes]) -> TrialReport:
        """f1 passes where the file is mended; f2 never; p always."""
        self.tried += 1
        if self.options.get("no_sandbox"):
            raise EnvironmentFault("trial: no sandbox")
        mended = files["a.py"] == MENDED
        incomplete = bool(self.options.get("incomplete"))
        observed = (
            Observed("f1", "PASSED", None, "value")
            if mended
            else Observed("f1", "FAILED", "assertion", "another value"),
            Observed("f2", "FAILED", "assertion", "another value"),
            Observed("p", "PASSED", None, "value"),
        )
        return TrialReport(
            VERIFIER, tree_digest({path: sha256_hex(data) for path, data in files.items()}), not incomplete,
            observed[:1] if incomplete else observed, "2 of 3 tests without an observation" if incomplete else None,
            0, None, sha256_hex(b"out"), sha256_hex(b""), 0.25, 0.5, 0.125, LEVEL,
        )  # fmt: skip

    def lists(self, task: Task) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return LISTS


def trials(spec: TrialsSpec, script: Script, store: Any) -> TrialsResult:
    """Answer to a trials job: the engine's own function, on these artefacts and a clock of whole seconds."""
    from worker.engine.trials import run_group_trials

    ticks = iter(range(10_000))
    return run_group_trials(spec, ScriptedArtefacts(script.trials), store, clock=lambda: float(next(ticks)))  # type: ignore[arg-type]
