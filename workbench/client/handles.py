"""Plans, executions, runs, jobs and checkpoints: what they are, and what can be done with them.

Each is a frozen picture of one moment; ``refresh()`` and every change return a new one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from workbench.contracts.canonical import parse_json

from .errors import PreconditionFailed, WaitTimeout, WorkbenchError
from .following import Scope, follow_to_end
from .reading import build
from .records import (
    Cell,
    Checked,
    Difference,
    Evaluation,
    Group,
    Preview,
    Progress,
    Receipt,
    Series,
    SeriesDefinition,
    Trajectory,
)
from .tables import Rows
from .transport import Transport

POLL_SECONDS = 0.5
ENDED_EXECUTION = frozenset({"closed", "stopped", "cancelled", "interrupted"})
ENDED_RUN = frozenset({"completed", "stopped", "refused", "partial_invalid", "cancelled", "interrupted"})
ENDED_JOB = frozenset({"succeeded", "failed", "errored", "cancelled"})
OnEvent = Callable[[Receipt], None]


class _Handle:
    """Something with an address. ``_where``: the first part of it."""

    uid: str
    _transport: Transport
    _where = ""

    def _path(self, rest: str = "") -> str:
        return f"{self._where}/{self.uid}{rest}"

    def refresh(self) -> Self:
        """The same thing as it is now."""
        return build(type(self), self._transport.get(self._path()).value, _transport=self._transport)

    def _changed(self, verb: str, body: Any = None) -> Self:
        answer = self._transport.post(self._path(f"/{verb}"), body)
        return build(type(self), answer.value, _transport=self._transport)


@dataclass(frozen=True)
class Job(_Handle):
    """A unit of work. ``failed`` is the experiment's, ``errored`` is the server's or the machine's."""

    _where = "jobs"
    uid: str
    key: str
    kind: str
    queue: str
    state: str
    attempt: int
    max_attempts: int
    run: str | None
    execution: str | None
    spec: Any
    progress: Any
    result: Any
    error: str
    created_at: datetime
    finished_at: datetime | None
    _transport: Transport = field(repr=False, compare=False)

    def wait(self, *, timeout: float | None = None, on_progress: Callable[[Any], None] | None = None) -> Job:
        """The job at its end. Raises ``WaitTimeout`` after ``timeout`` seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        job, said = self, None
        while job.state not in ENDED_JOB:
            if end is not None and time.monotonic() > end:
                raise WaitTimeout(f"job {job.key}: it is still {job.state} after {timeout:g} s; it goes on")
            self._transport.sleep(POLL_SECONDS)
            job = job.refresh()
            if on_progress is not None and job.progress and job.progress != said:
                said = job.progress
                on_progress(said)
        return job


@dataclass(frozen=True)
class Checkpoint(_Handle):
    """A policy by hash. ``held`` False with ``tombstone`` None: the store has lost its bytes."""

    _where = "checkpoints"
    uid: str
    sha256: str
    run: str | None
    parent: str | None
    policy_version: int
    kind: str
    base_model_sha256: str
    tokenizer_sha256: str
    adaptation: dict[str, Any]
    bytes: int
    created_at: datetime
    held: bool
    tombstone: str | None
    _transport: Transport = field(repr=False, compare=False)

    def download(self, to: str | Path, *, progress: Callable[[int, int | None], None] | None = None) -> Path:
        """The adapter in the file ``to``, resumed after an interruption, kept only if its hash is ``sha256``.

        Raises ``Gone`` where retention removed the bytes; the problem says how to make them again.
        """
        return self._transport.download(self._path("/bytes"), Path(to), self.sha256, progress)


@dataclass(frozen=True)
class Run(_Handle):
    """One arm at one seed."""

    _where = "runs"
    uid: str
    name: str
    study: str | None
    plan: str | None
    plan_sha256: str | None
    execution: str | None
    arm: str | None
    seed: str
    origin: str
    state: str
    phase: str
    reason: str
    batches: int
    steps: int
    policy_version: int
    checkpoint_sha256: str | None
    trajectories: int
    generated_tokens: int
    runtime: str
    created_at: datetime
    updated_at: datetime
    _transport: Transport = field(repr=False, compare=False)

    @property
    def is_ended(self) -> bool:
        """Whether nothing more happens by itself."""
        return self.state in ENDED_RUN

    def pause(self) -> Run:
        """Let jobs in flight end and start no other."""
        return self._changed("pause")

    def resume(self) -> Run:
        """Go on."""
        return self._changed("resume")

    def cancel(self) -> Run:
        """End it for good."""
        return self._changed("cancel")

    def groups(self, **filters: Any) -> Rows[Group]:
        """Its groups; filters as in the API (``purpose``, ``eligible``, ``signal``, …)."""
        return Rows(self._transport, "groups", Group, {"run": self.uid, **filters})

    def iter_trajectories(self, **filters: Any) -> Rows[Trajectory]:
        """Its trajectories (``success``, ``has_fatal``, ``min_reward``, …)."""
        return Rows(self._transport, "trajectories", Trajectory, {"run": self.uid, **filters})

    def checkpoints(self, **filters: Any) -> Rows[Checkpoint]:
        """Its checkpoints."""
        return Rows(self._transport, "checkpoints", Checkpoint, {"run": self.uid, **filters}, handles=True)

    def series_list(self) -> list[SeriesDefinition]:
        """Which series there are."""
        items = self._transport.get(self._path("/series")).value["items"]
        return [build(SeriesDefinition, item) for item in items]

    def series(self, key: str) -> Series:
        """Every stored point of one series."""
        return build(Series, self._transport.get(self._path(f"/series/{key}")).value)

    def events(self, *, begin: str = "beginning") -> Iterator[Receipt]:
        """Its receipts as they come, endlessly; ``begin``: beginning or now."""
        return Scope(self._transport, {"run": self.uid}).events(begin=begin)

    def follow(self, *, progress: bool = True, on_event: OnEvent | None = None, timeout: float | None = None) -> Run:
        """The run at its end, with a progress bar over its batches."""
        budget = self._budget()

        def look() -> tuple[Run, bool, tuple[int, int, str]]:
            run = self.refresh()
            return run, run.is_ended, (run.batches, budget, f"{run.name} {run.state} {run.phase}")

        return follow_to_end(Scope(self._transport, {"run": self.uid}), look, "batch", progress, on_event, timeout)

    def wait(self, *, timeout: float | None = None) -> Run:
        """The run at its end, silently."""
        return self.follow(progress=False, timeout=timeout)

    def _budget(self) -> int:
        """Batches that its arm asks for, from the frozen plan; 0 where there is none."""
        if self.plan is None or self.plan_sha256 is None:
            return 0
        body: Any = parse_json(self._transport.bytes(f"plans/{self.plan}/bytes", self.plan_sha256))
        for arm in body["arms"]:
            if arm["key"] == self.arm:
                return int(arm["config"]["budget"]["batches"])
        return 0


@dataclass(frozen=True)
class Execution(_Handle):
    """How far a frozen plan is."""

    _where = "executions"
    uid: str
    study: str
    plan: str
    plan_slug: str
    plan_sha256: str
    state: str
    phase: str
    reason: str
    updated_at: datetime
    _transport: Transport = field(repr=False, compare=False)

    @property
    def is_ended(self) -> bool:
        """Whether nothing more happens by itself."""
        return self.state in ENDED_EXECUTION

    def pause(self) -> Execution:
        """Let jobs in flight end and start no other."""
        return self._changed("pause")

    def resume(self) -> Execution:
        """Go on."""
        return self._changed("resume")

    def cancel(self) -> Execution:
        """End it for good."""
        return self._changed("cancel")

    def progress(self) -> Progress:
        """Jobs done of those expected, and what runs now."""
        return build(Progress, self._transport.get(self._path("/progress")).value)

    def runs(self, **filters: Any) -> Rows[Run]:
        """Its runs."""
        return Rows(self._transport, "runs", Run, {"execution": self.uid, **filters}, handles=True)

    def jobs(self, **filters: Any) -> Rows[Job]:
        """Its jobs."""
        return Rows(self._transport, "jobs", Job, {"execution": self.uid, **filters}, handles=True)

    def events(self, *, begin: str = "beginning") -> Iterator[Receipt]:
        """Its receipts and those of its runs as they come, endlessly; ``begin``: beginning or now."""
        return Scope(self._transport, {"execution": self.uid}).events(begin=begin)

    def follow(
        self, *, progress: bool = True, on_event: OnEvent | None = None, timeout: float | None = None
    ) -> Execution:
        """The execution at its end, with a progress bar over its jobs.

        ``on_event`` gets every receipt since the beginning, once and in order within each stream.
        Raises ``WaitTimeout`` after ``timeout`` seconds; the execution itself goes on.
        """

        def look() -> tuple[Execution, bool, tuple[int, int, str]]:
            state, at = self.refresh(), self.progress()
            return state, state.is_ended, (at.done, at.expected, f"{state.state} {at.phase}")

        return follow_to_end(Scope(self._transport, {"execution": self.uid}), look, "job", progress, on_event, timeout)

    def wait(self, *, timeout: float | None = None) -> Execution:
        """The execution at its end, silently."""
        return self.follow(progress=False, timeout=timeout)


@dataclass(frozen=True)
class Plan(_Handle):
    """A plan's head: its draft, and its frozen version once there is one."""

    _where = "plans"
    uid: str
    study: str
    slug: str
    state: str
    revision: int
    draft_text: str
    sha256: str | None
    version: str | None
    frozen_at: datetime | None
    execution: str | None
    _transport: Transport = field(repr=False, compare=False)

    def validate(self, text: str | None = None) -> Checked:
        """Every fault of a document (by default of the draft), saved nowhere."""
        given = self.draft_text if text is None else text
        return build(Checked, self._transport.post(self._path("/validate"), {"text": given}).value)

    def save(self, text: str) -> Plan:
        """The draft with another text. Raises ``PreconditionFailed`` where another writer saved first."""
        answer = self._transport.get(self._path())
        now = build(Plan, answer.value, _transport=self._transport)
        if (now.revision, now.draft_text) == (self.revision + 1, text):
            return now  # saved by an earlier call whose answer was lost
        if now.revision != self.revision:
            raise PreconditionFailed(
                412, "Precondition failed", f"plan {self.slug}: got revision {self.revision}, expected {now.revision}"
            )
        try:
            saved = self._transport.put(self._path(), {"text": text}, etag=answer.headers.get("ETag", ""))
        except PreconditionFailed:
            found = self.refresh()  # an answer that was lost on its way looks like another writer
            if (found.revision, found.draft_text) == (now.revision + 1, text):
                return found
            raise
        return build(Plan, saved.value, _transport=self._transport)

    def difference(self, against: str | Plan) -> Difference:
        """Members that differ from another plan, or from a frozen version by its hash (8 digits or more)."""
        other = against if isinstance(against, str) else against.uid
        return build(Difference, self._transport.get(self._path("/difference"), {"against": other}).value)

    def inspect(self, *, timeout: float | None = None, on_progress: Callable[[Any], None] | None = None) -> Job:
        """Have a worker say what a freeze would bind, and wait for it.

        Raises ``WorkbenchError`` with the worker's words where the draft names what cannot be bound.
        """
        job = build(Job, self._transport.post(self._path("/inspect")).value, _transport=self._transport)
        job = job.wait(timeout=timeout, on_progress=on_progress)
        if job.state != "succeeded":
            raise WorkbenchError(f"plan {self.slug}: the inspection {job.state}: {job.error}")
        return job

    def preview(self) -> Preview:
        """What a freeze would store, identities and code included. Raises ``Conflict`` before an inspection."""
        return build(Preview, self._transport.get(self._path("/preview")).value)

    def freeze(self) -> Plan:
        """Bind everything; the bytes never change again. Raises ``Conflict`` before an inspection."""
        return self._changed("freeze")

    def supersede(self, reason: str) -> Plan:
        """Mark a frozen plan as replaced; its results stay."""
        return self._changed("supersede", {"reason": reason})

    def start(self) -> Execution:
        """Start the frozen plan; an execution that exists is returned as it is."""
        return build(Execution, self._transport.post(self._path("/start")).value, _transport=self._transport)

    def bytes(self) -> bytes:
        """Canonical bytes of the frozen plan, their hash checked."""
        if self.sha256 is None:
            raise WorkbenchError(f"plan {self.slug}: it is a draft, which has no canonical bytes")
        return self._transport.bytes(self._path("/bytes"), self.sha256)

    def cells(self) -> list[Cell]:
        """Evaluation as n of N, by checkpoint, condition and split."""
        return [build(Cell, item) for item in self._transport.get(self._path("/cells")).value["cells"]]

    def evaluations(self, **filters: Any) -> Rows[Evaluation]:
        """Its evaluation items (``condition``, ``split``, ``arm``, ``success``, …)."""
        return Rows(self._transport, "evaluations", Evaluation, {"plan": self.uid, **filters})
