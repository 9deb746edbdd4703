"""``bench sandbox``: what isolation costs a trial, beside the same driver as a bare process, in turns.

A trial is everything that a verdict costs: the workspace is written, the sandbox is set up, the driver runs the hidden
calls, the sandbox and the workspace are removed. The bare process runs the same driver on the same calls in a folder
that is already there. Overhead = trial - bare, pair by pair. Milliseconds of wall time.
"""

from __future__ import annotations

import os
import platform
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from worker.environments.code_repair.generator import Built, generate
from worker.sandbox.base import Sandbox
from worker.sandbox.traces import Traces, groups_now, traces
from worker.sandbox.workspace import workspace
from worker.verifiers.trial import HiddenTest, TrialReport, driver_program, run_trial

GOAL_MS = 50.0
SECONDS = 5.0  # of one hidden call; none of these comes near it
Say = Callable[[str], None]


@dataclass(frozen=True)
class Subject:
    """What every trial of one measurement runs: a tree and its hidden calls."""

    files: Mapping[str, bytes]
    tests: tuple[HiddenTest, ...]


def bundled_subject() -> Subject:
    """A generated task with its defects in it: some of its tests pass, some fail."""
    found, _ = generate("bench-sandbox", {"train": 1})
    built: Built = found["train"][0]
    return Subject(
        {path: text.encode() for path, text in built.files.items()},
        tuple(HiddenTest(c.id, c.module, c.function, c.arguments, c.expected) for c in built.hidden),
    )


def quantile(values: list[float], share: float) -> float:
    """The smallest value that at least ``share`` of the values do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, -(-int(share * 100) * len(ordered) // 100) - 1)]


def without_times(report: TrialReport) -> TrialReport:
    """What two trials of one artefact must agree in."""
    return replace(report, setup_s=0.0, run_s=0.0, cleanup_s=0.0)


@dataclass(frozen=True)
class Row:
    """Trials in a row: their reports, and what they left."""

    reports: tuple[TrialReport, ...]
    left: Traces

    @property
    def different(self) -> int:
        """How many different reports there are, times apart."""
        return len({repr(without_times(item)) for item in self.reports})


def trials_in_a_row(sandbox: Sandbox, subject: Subject, trials: int, ports: tuple[int, ...] = ()) -> Row:
    """Run one artefact ``trials`` times, whatever it is, then look for what is left.

    ``ports``: at which the artefact tries to listen.
    """
    groups = groups_now()
    with tempfile.TemporaryDirectory(prefix="workbench-trials-") as name:
        folder = Path(name)
        reports = tuple(
            run_trial(sandbox, subject.files, subject.tests, seconds=SECONDS, below=folder) for _ in range(trials)
        )
        return Row(reports, traces(folder, ports, groups))


def benchmark(sandbox: Sandbox, trials: int, say: Say) -> dict[str, Any]:
    """Run ``trials`` pairs in a row after one untimed pair, then look for what is left.

    The artefact is the bundled one: a bare process isolates nothing, so it runs the product's own code alone.
    Raises ``ValueError`` for fewer than one trial.
    """
    if trials < 1:
        raise ValueError(f"trials: got {trials}, expected at least 1")
    subject, groups = bundled_subject(), groups_now()
    with tempfile.TemporaryDirectory(prefix="workbench-bench-sandbox-") as name:
        folder = Path(name)
        pairs = [_pair(sandbox, subject, folder) for _ in range(trials + 1)][1:]
        say(f"{trials} trials")
        row = Row(tuple(item.report for item in pairs), traces(folder, (), groups))
    total, bare = [item.trial for item in pairs], [item.bare for item in pairs]
    over = [mine - theirs for mine, theirs in zip(total, bare, strict=True)]
    return {
        "overhead_median_ms": quantile(over, 0.5),
        "overhead_p95_ms": quantile(over, 0.95),
        "trial_median_ms": quantile(total, 0.5),
        "trial_p95_ms": quantile(total, 0.95),
        "bare_median_ms": quantile(bare, 0.5),
        "bare_p95_ms": quantile(bare, 0.95),
        "parts_median_ms": {
            part: quantile([1000 * getattr(item, part) for item in row.reports], 0.5)
            for part in ("setup_s", "run_s", "cleanup_s")
        },
        "trials": trials,
        "tests": len(subject.tests),
        "level": sandbox.level.record(),
        "complete": sum(item.complete for item in row.reports),
        "reports": row.different,
        "left": row.left.record(),
        "goal": {"overhead_median_ms": f"below {GOAL_MS:g}", "met": quantile(over, 0.5) < GOAL_MS},
        "machine": {
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "platform": platform.platform(),
            "load": round(os.getloadavg()[0], 2),
        },
    }


@dataclass(frozen=True)
class Pair:
    """One trial and one bare process, in milliseconds of wall time."""

    report: TrialReport
    trial: float
    bare: float


def _pair(sandbox: Sandbox, subject: Subject, folder: Path) -> Pair:
    began = time.perf_counter()
    report = run_trial(sandbox, subject.files, subject.tests, seconds=SECONDS, below=folder)
    trial = 1000 * (time.perf_counter() - began)
    with workspace(subject.files, below=folder) as place:
        program = driver_program(subject.tests, SECONDS)
        argv, given, environment = list(program.argv), program.stdin, dict(program.environment)
        began = time.perf_counter()
        subprocess.run(argv, cwd=place, input=given, capture_output=True, check=True, env=environment)
        return Pair(report, trial, 1000 * (time.perf_counter() - began))


def free_port() -> int:
    """A port of this machine's own network that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
