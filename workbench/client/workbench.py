"""``Workbench``: one server, one token."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import httpx

from workbench.contracts import capture as contracts

from .errors import WorkbenchError
from .following import Scope
from .handles import Checkpoint, Execution, Job, Plan, Run
from .logged import LoggedRun
from .logger import EVERY, RunLogger, replay
from .reading import build
from .receipts import ChainReport, verify_chain
from .records import (
    Capture,
    Evaluation,
    Group,
    Me,
    Receipt,
    Stream,
    Study,
    Task,
    TaskSet,
    Trajectory,
    TrajectoryDetail,
)
from .spool import spools
from .tables import Rows, _installed
from .transport import Transport

DEFAULT_URL = "http://127.0.0.1:8000"


def spool_folder() -> Path:
    """Where runs that are logged wait for the server: ``WORKBENCH_SPOOL``, else the user's state folder."""
    given = os.environ.get("WORKBENCH_SPOOL", "").strip()
    if given:
        return Path(given).expanduser()
    base = os.environ.get("XDG_STATE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".local" / "state") / "workbench" / "spool"


class Workbench:
    """Client of one server.

    ``url`` and ``token`` default to ``WORKBENCH_URL`` and ``WORKBENCH_TOKEN``. ``timeout``: seconds for one request;
    ``retries``: attempts after the first, for connections that break and for 429, 502, 503 and 504.
    ``http``: an ``httpx.Client`` of your own (proxies, certificates); its address and headers are set here.
    Use it in a ``with`` block, or call ``close()``.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout: float = 30.0,
        retries: int = 6,
        http: httpx.Client | None = None,
    ):
        address = (url or os.environ.get("WORKBENCH_URL") or DEFAULT_URL).rstrip("/")
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise WorkbenchError(f"url: got {address!r}, expected http://host or https://host")
        self.url = address
        secret = token if token is not None else os.environ.get("WORKBENCH_TOKEN", "")
        client = http or httpx.Client(timeout=timeout)
        client.base_url = httpx.URL(f"{address}/api/v1/")
        client.headers["Accept"] = "application/json, application/problem+json, */*"
        if secret:
            client.headers["Authorization"] = f"Bearer {secret}"
        self._http = client
        self._transport = Transport(client, retries)

    def __repr__(self) -> str:
        return f"Workbench({self.url!r})"  # never the token

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def me(self) -> Me:
        """Who you are to this server, and what you may do in each study."""
        return build(Me, self._transport.get("me").value)

    # -- studies and plans -------------------------------------------------------------------------

    def studies(self, **filters: Any) -> Rows[Study]:
        """Studies that you can see (``visibility``)."""
        return Rows(self._transport, "studies", Study, filters)

    def study(self, slug: str) -> Study:
        """One study."""
        return build(Study, self._transport.get(f"studies/{slug}").value)

    def create_study(
        self, slug: str, title_en: str, *, title_zh: str = "", summary_en: str = "", summary_zh: str = "",
        visibility: str = "private",
    ) -> Study:  # fmt: skip
        """A new study; you become its admin."""
        body = {
            "slug": slug, "title_en": title_en, "title_zh": title_zh, "summary_en": summary_en,
            "summary_zh": summary_zh, "visibility": visibility,
        }  # fmt: skip
        return build(Study, self._transport.post("studies", body).value)

    def plans(self, **filters: Any) -> Rows[Plan]:
        """Plans (``study``, ``state``, ``slug``, ``sha256`` by prefix)."""
        return Rows(self._transport, "plans", Plan, filters, handles=True)

    def plan(self, uid: str) -> Plan:
        """One plan by its uid."""
        return build(Plan, self._transport.get(f"plans/{uid}").value, _transport=self._transport)

    def create_plan(self, study: str, slug: str, text: str) -> Plan:
        """A new draft in a study. ``text``: a plan document as YAML or JSON."""
        answer = self._transport.post(f"studies/{study}/plans", {"slug": slug, "text": text})
        return build(Plan, answer.value, _transport=self._transport)

    # -- runs logged from elsewhere ----------------------------------------------------------------

    def log_run(
        self, study: str, name: str = "", *, framework: str = "", tags: dict[str, str] | None = None,
        folder: Path | None = None, every: float | None = EVERY,
    ) -> RunLogger:  # fmt: skip
        """Begin a run and log into it from a training program, which no outage of the server stops.

        The server is asked once, here: raises ``ProblemError`` for what no repeat mends, such as a study that you do
        not see (``NotFound``) or a token without the scope log (``Forbidden``). A server that is away raises nothing.

        ``folder``: where what is not sent yet waits (``WORKBENCH_SPOOL``, else the user's state folder).
        ``every``: seconds between batches; None: only ``flush`` and ``finish`` send values.
        """
        return RunLogger(
            self._transport, study, name, framework=framework, tags=tags, folder=folder or spool_folder(), every=every
        )

    def replay(self, folder: Path | None = None) -> dict[Path, bool]:
        """Send what earlier processes left in a spool folder; for each file whether the server has everything."""
        return {spool.path: replay(self._transport, spool) for spool in spools(folder or spool_folder())}

    def logged_runs(self, **filters: Any) -> Rows[LoggedRun]:
        """Logged runs (``study``, ``status``, ``origin``, ``framework``, ``name``, ``deleted``, ``where``)."""
        return Rows(self._transport, "logged-runs", LoggedRun, filters, handles=True)

    def logged_run(self, uid: str) -> LoggedRun:
        """One logged run, with parameters and tags."""
        return build(LoggedRun, self._transport.get(f"logged-runs/{uid}").value, _transport=self._transport)

    # -- executions, runs, jobs --------------------------------------------------------------------

    def executions(self, **filters: Any) -> Rows[Execution]:
        """Executions (``study``, ``plan``, ``state``)."""
        return Rows(self._transport, "executions", Execution, filters, handles=True)

    def execution(self, uid: str) -> Execution:
        """One execution."""
        return build(Execution, self._transport.get(f"executions/{uid}").value, _transport=self._transport)

    def runs(self, **filters: Any) -> Rows[Run]:
        """Runs (``study``, ``plan``, ``execution``, ``arm``, ``seed``, ``state``, ``name``, ``created_after``)."""
        return Rows(self._transport, "runs", Run, filters, handles=True)

    def run(self, uid: str) -> Run:
        """One run."""
        return build(Run, self._transport.get(f"runs/{uid}").value, _transport=self._transport)

    def jobs(self, **filters: Any) -> Rows[Job]:
        """Jobs (``run``, ``execution``, ``state``, ``kind``)."""
        return Rows(self._transport, "jobs", Job, filters, handles=True)

    def job(self, uid: str) -> Job:
        """One job."""
        return build(Job, self._transport.get(f"jobs/{uid}").value, _transport=self._transport)

    # -- what was collected ------------------------------------------------------------------------

    def groups(self, **filters: Any) -> Rows[Group]:
        """Groups (``run``, ``plan``, ``purpose``, ``condition``, ``split``, ``eligible``, ``signal``, …)."""
        return Rows(self._transport, "groups", Group, filters)

    def group(self, uid: str) -> Group:
        """One group."""
        return build(Group, self._transport.get(f"groups/{uid}").value)

    def trajectories(self, **filters: Any) -> Rows[Trajectory]:
        """Trajectories (``group``, ``run``, ``plan``, ``success``, ``has_fatal``, ``min_reward``, …)."""
        return Rows(self._transport, "trajectories", Trajectory, filters)

    def trajectory(self, uid: str) -> TrajectoryDetail:
        """One trajectory with its turns, reward components and invariants."""
        return build(TrajectoryDetail, self._transport.get(f"trajectories/{uid}").value)

    def tokens(self, trajectory: str | Trajectory) -> Any:
        """Every captured token of a trajectory as a ``pyarrow.Table``; its hash is checked on arrival."""
        uid = trajectory if isinstance(trajectory, str) else trajectory.uid
        data = self._transport.bytes(f"trajectories/{uid}/tokens.arrow")
        ipc = _installed("pyarrow.ipc")
        return ipc.open_stream(io.BytesIO(data)).read_all()

    def captures(self, **filters: Any) -> Rows[Capture]:
        """Captured model calls (``trajectory``, ``group``, ``run``, ``policy_version``)."""
        return Rows(self._transport, "captures", Capture, filters)

    def capture_bytes(self, sha256: str) -> bytes:
        """The exact bytes that a capture's hash covers, their hash checked on arrival."""
        return self._transport.bytes(f"captures/{sha256}/bytes", sha256)

    def capture(self, sha256: str) -> contracts.Capture:
        """A capture with its header and arrays, read from bytes whose hash was checked."""
        return contracts.Capture.from_bytes(self.capture_bytes(sha256))

    def checkpoints(self, **filters: Any) -> Rows[Checkpoint]:
        """Checkpoints (``run``, ``kind``, ``sha256`` by prefix, ``policy_version``)."""
        return Rows(self._transport, "checkpoints", Checkpoint, filters, handles=True)

    def checkpoint(self, uid: str) -> Checkpoint:
        """One checkpoint."""
        return build(Checkpoint, self._transport.get(f"checkpoints/{uid}").value, _transport=self._transport)

    def evaluations(self, **filters: Any) -> Rows[Evaluation]:
        """Evaluation items (``plan``, ``run``, ``arm``, ``checkpoint``, ``condition``, ``split``, ``success``)."""
        return Rows(self._transport, "evaluations", Evaluation, filters)

    def task_sets(self, **filters: Any) -> Rows[TaskSet]:
        """Task sets (``environment``, ``sha256`` by prefix)."""
        return Rows(self._transport, "task-sets", TaskSet, filters)

    def tasks(self, **filters: Any) -> Rows[Task]:
        """Tasks (``task_set``, ``split``, ``family``, ``key``)."""
        return Rows(self._transport, "tasks", Task, filters)

    def task(self, uid: str) -> Task:
        """One task, with its hidden reference where you may see it."""
        return build(Task, self._transport.get(f"tasks/{uid}").value)

    # -- receipts and events -----------------------------------------------------------------------

    def receipts(self, **filters: Any) -> Rows[Receipt]:
        """Receipts (``stream``, ``kind``, ``subject``, ``after_seq``)."""
        return Rows(self._transport, "receipts", Receipt, filters)

    def streams(self, **filters: Any) -> Rows[Stream]:
        """Heads of the receipt chains (``stream``)."""
        return Rows(self._transport, "streams", Stream, filters)

    def verify_chain(self, stream: str) -> ChainReport:
        """Hash every receipt of a stream here, from its first to its head; ``stream``: ``run:<uid>``, say."""
        head = self.streams(stream=stream).one()
        rows = self.receipts(stream=stream, order="oldest", limit=500)
        # What is appended while this reads belongs to the next look.
        return verify_chain(stream, (item for item in rows if item.seq <= head.seq), head.sha256)

    def events(self, *, begin: str = "beginning", **scope: str) -> Iterator[Receipt]:
        """Receipts as they come, endlessly, of one of ``study`` (slug), ``plan``, ``execution``, ``run``."""
        return Scope(self._transport, dict(scope)).events(begin=begin)
