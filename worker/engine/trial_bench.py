"""Verdicts of one task: the reward's own as a trial, fresh trials with what each took, and what follows from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from workbench.contracts.errors import EngineFault, EnvironmentFault
from workbench.contracts.records import RewardRecord
from workbench.contracts.rewards import FAIL_TO_PASS, utility_of
from workbench.contracts.trials import (
    ORIGINAL,
    TestObservation,
    TrialRecord,
    TrialTiming,
    status_of,
    tree_digest,
    trial_uid,
    utility_of_statuses,
)
from worker.environments.base import Artefacts, Task
from worker.verifiers.trial import TrialReport

from .faults import reach

Lists = tuple[Sequence[str], Sequence[str]]


def original_trial(
    reward: RewardRecord | None, *, trajectory_uid: str, tree: Mapping[str, str], verifier: str, lists: Lists
) -> TrialRecord | None:
    """The reward's own verdict as a trial; None where it has none. Nothing is executed.

    Raises ``EngineFault`` where it is of another tree or verifier, or its parts are not those of its observations.
    """
    parts = [] if reward is None else [part for part in reward.components if part.name == FAIL_TO_PASS]
    known = None if reward is None else utility_of(reward)
    if known is None or not parts or "observed" not in parts[0].detail:
        return None
    detail, identity = parts[0].detail, tree_digest(tree)
    for name, got, expected in (
        ("tree_sha256", detail.get("tree_sha256"), identity),
        ("verifier", detail.get("verifier"), verifier),
    ):
        if got != expected:
            raise EngineFault(f"reward of {trajectory_uid}: {name}: got {got}, expected {expected}")
    observed = []
    for test, said in sorted(detail["observed"].items()):
        status, _, cause = str(said).partition(":")
        observed.append(TestObservation(test, status, cause or None, ""))
    value = utility_of_statuses({item.test: item.status for item in observed}, *lists)
    if value is None or abs(float(value) - known) > 1e-9:
        raise EngineFault(f"reward of {trajectory_uid}: got U {known}, expected {value} from its observations")
    return TrialRecord(
        trial_uid(trajectory_uid, ORIGINAL, 0), trajectory_uid, ORIGINAL, 0, identity, verifier, True, float(value),
        value == 1, None, tuple(observed), None, None, None, None, {}, (),
    )  # fmt: skip


@dataclass
class Bench:
    """Executes trials of one task, each in a fresh sandbox, and keeps what each took. ``clock``: seconds."""

    artefacts: Artefacts
    task: Task
    lists: Lists
    clock: Callable[[], float]
    started: float
    on_trial: Callable[[], None]
    timings: list[TrialTiming] = field(default_factory=list)

    def run(
        self, tree: Mapping[str, str], contents: Mapping[str, bytes], uid: str, kind: str, repeat: int
    ) -> TrialRecord:
        """One trial. A fault of the sandbox is an unknown report, whichever way it is told."""
        name, identity = trial_uid(uid, kind, repeat), tree_digest(tree)
        files = {path: contents[sha256] for path, sha256 in tree.items()}
        begun = self.clock()
        reach("trial")
        try:
            report: TrialReport | None = self.artefacts.trial(self.task, files)
            trouble = None
        except EnvironmentFault as error:
            report, trouble = None, f"EnvironmentFault: {error}"[:300]
        ended = self.clock()
        parts = (0.0, 0.0, 0.0) if report is None else (report.setup_s, report.run_s, report.cleanup_s)
        self.timings.append(TrialTiming(name, begun - self.started, *parts, ended - begun))
        self.on_trial()
        if report is None:
            verifier = self.artefacts.verifier
            return TrialRecord(
                name, uid, kind, repeat, identity, verifier, False, None, None, trouble, (), None, None, None, None,
                {}, (),
            )  # fmt: skip
        return self._record(report, name, uid, kind, repeat, identity)

    def _record(self, report: TrialReport, name: str, uid: str, kind: str, repeat: int, identity: str) -> TrialRecord:
        if (report.tree_sha256, report.verifier) != (identity, self.artefacts.verifier):
            raise EngineFault(
                f"trial {name}: got {report.verifier} on {report.tree_sha256}, expected {self.artefacts.verifier} on "
                f"{identity}"
            )
        if report.reused_from is not None:
            raise EngineFault(f"trial {name}: got a verdict reused from {report.reused_from}, expected a fresh one")
        value = utility_of_statuses(report.status, *self.lists) if report.complete else None
        complete = value is not None
        return TrialRecord(
            uid=name,
            trajectory_uid=uid,
            kind=kind,
            repeat=repeat,
            tree_sha256=identity,
            verifier=report.verifier,
            complete=complete,
            utility=None if value is None else float(value),
            success=None if value is None else value == 1,
            unknown=None if complete else (report.unknown or "a test of the lists without an observation"),
            observed=tuple(TestObservation(o.test, o.status, o.cause, o.detail) for o in report.observed),
            exit_code=report.exit_code,
            signal=report.signal,
            stdout_sha256=report.stdout_sha256,
            stderr_sha256=report.stderr_sha256,
            level=dict(report.level),
            repeated=tuple(report.repeated),
        )


def agreement(first: TrialRecord | None, others: Sequence[TrialRecord]) -> tuple[int, int]:
    """(how many complete ones give every test the status that ``first`` gives it, how many are complete)."""
    known = [item for item in others if item.complete]
    if first is None or not first.complete:
        return 0, len(known)
    return sum(status_of(item) == status_of(first) for item in known), len(known)


def difference(original: TrialRecord, without: TrialRecord, lists: Lists) -> float:
    """D = U(original) - U(without), from the observations, rounded once."""
    values = [utility_of_statuses(status_of(item), *lists) for item in (original, without)]
    if values[0] is None or values[1] is None:
        raise EngineFault(f"D of {original.trajectory_uid}: got an incomplete trial, expected two complete ones")
    return float(values[0] - values[1])
