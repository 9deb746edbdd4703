"""What Prometheus scrapes: this process's requests, and the state of jobs, runs and store read from the database.

The database is read at most once in ``settings.METRICS_KEPT_SECONDS``; histories are read from their newest
end only (``RECENT`` rows). What is not known has no series: an absent GPU is not an idle one.
"""

from __future__ import annotations

import logging
import platform
import re
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from importlib import metadata
from pathlib import Path
from typing import Any

import django
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.models import Count, Min, Q, Sum
from django.utils import timezone
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from runs.actions.tombstones import produced_again
from runs.models import BlobRef, Execution, Job, JobTransition, RunHead, StreamHead, Tombstone
from workbench.celery import COMPUTE_QUEUES
from workbench.home import running_supervisor
from workbench.operations import machine
from workbench.operations.traffic import REGISTRY as TRAFFIC

log = logging.getLogger(__name__)

RECENT = 2_000  # newest job transitions that start-up latency is taken from
RECENT_FAILURES = 2_000
WINDOW = timedelta(minutes=5)
MOST_CAUSES = 30
_CLASS = re.compile(r"^([A-Z][A-Za-z]{2,40}(?:Error|Exception|Died|Mismatch|Changed|Missing|Corrupt|Lost|Timeout))\b")
_KNOWN = (
    ("engine process died", "engine_died"),
    ("lease ran out", "lease_ran_out"),
    ("attempts lost", "attempts_lost"),
    ("out of memory", "out_of_memory"),
)
Found = Iterator[Metric]


def cause_of(error: str) -> str:
    """A short name of what an error text says, out of few: texts themselves would make a series each."""
    lowered = error[:400].lower()
    for part, name in _KNOWN:
        if part in lowered:
            return name
    match = _CLASS.match(error)
    return match[1] if match else "other"


def nearest_rank(values: Sequence[float], share: float) -> float:
    """The smallest value such that ``share`` of all are not above it. ``values`` is sorted and not empty."""
    return values[max(0, -(-int(share * 100) * len(values) // 100) - 1)]


def _gauge(name: str, text: str, labels: Sequence[str], rows: Iterable[tuple[Sequence[str], float]]) -> Metric:
    family = GaugeMetricFamily(f"workbench_{name}", text, labels=labels)
    for values, number in rows:
        family.add_metric(list(values), number)
    return family


def _jobs(at: datetime) -> Found:
    table = list(
        Job.objects.values("queue", "state").annotate(n=Count("pk"), attempts=Sum("attempt")).order_by("queue", "state")
    )
    yield _gauge(
        "jobs", "Jobs by queue and state.", ("queue", "state"), [((r["queue"], r["state"]), r["n"]) for r in table]
    )
    attempts: Counter[str] = Counter()
    for row in table:
        attempts[row["queue"]] += row["attempts"] or 0
    yield _gauge(
        "job_attempts", "Attempts of all jobs, by queue.", ("queue",), [((q,), n) for q, n in sorted(attempts.items())]
    )
    oldest = Job.objects.filter(state="queued").values("queue").annotate(first=Min("created_at")).order_by("queue")
    yield _gauge(
        "oldest_queued_job_seconds",
        "Age of the oldest queued job, by queue.",
        ("queue",),
        [((row["queue"],), max(0.0, (at - row["first"]).total_seconds())) for row in oldest],
    )


def _leases(at: datetime) -> Found:
    leased = Job.objects.filter(state="leased").values("queue")
    rows = list(leased.annotate(beat=Min("heartbeat_at"), late=Count("pk", filter=Q(lease_until__lt=at))))
    yield _gauge(
        "oldest_heartbeat_seconds",
        "Time since the oldest last heartbeat of a leased job, by queue.",
        ("queue",),
        [((row["queue"],), max(0.0, (at - row["beat"]).total_seconds())) for row in rows if row["beat"] is not None],
    )
    yield _gauge(
        "leases_run_out",
        "Leased jobs whose lease has run out, by queue.",
        ("queue",),
        [((row["queue"],), row["late"]) for row in rows],
    )


def _startup(at: datetime) -> Found:
    """Time from a job's creation until its first lease, over the newest transitions."""
    newest = JobTransition.objects.order_by("-pk").values_list("to_state", "attempt", "at", "job__created_at")[:RECENT]
    waits = sorted(
        max(0.0, (leased - created).total_seconds())
        for state, attempt, leased, created in newest
        if state == "leased" and attempt == 1
    )
    quantiles = [((str(share),), nearest_rank(waits, share)) for share in (0.5, 0.99)] if waits else []
    yield _gauge("job_startup_seconds", "Time from creation to first lease, recent jobs.", ("quantile",), quantiles)
    yield _gauge(
        "job_startup_jobs", "Recent jobs that workbench_job_startup_seconds is taken from.", (), [((), len(waits))]
    )


def _failures(at: datetime) -> Found:
    newest = Job.objects.filter(state__in=("failed", "errored")).order_by("-pk")
    counts: Counter[tuple[str, str, str]] = Counter(
        (state, kind, cause_of(error))
        for state, kind, error in newest.values_list("state", "kind", "error")[:RECENT_FAILURES]
    )
    kept = counts.most_common(MOST_CAUSES)
    yield _gauge(
        "job_failures",
        f"The newest {RECENT_FAILURES} failed and errored jobs by cause.",
        ("state", "kind", "cause"),
        sorted(kept),
    )


def _heads(at: datetime) -> Found:
    for name, model in (("executions", Execution), ("runs", RunHead)):
        rows = model._base_manager.values_list("state").annotate(n=Count("pk")).order_by("state")
        yield _gauge(name, f"{name.capitalize()} by state.", ("state",), [((state,), n) for state, n in rows])
    streams = StreamHead.objects.aggregate(n=Count("pk"), receipts=Sum("seq"))
    yield _gauge("receipt_streams", "Receipt chains, each with its head.", (), [((), streams["n"])])
    yield _gauge("receipts", "Receipts in all chains.", (), [((), streams["receipts"] or 0)])


def _store(at: datetime) -> Found:
    ledger = BlobRef.objects.aggregate(n=Count("pk"), size=Sum("bytes"))
    removed = Tombstone.objects.exclude(sha256__in=produced_again()).values("sha256")
    gone = BlobRef.objects.filter(sha256__in=removed).aggregate(n=Count("pk"), size=Sum("bytes"))
    rows = [(("held",), (ledger["size"] or 0) - (gone["size"] or 0)), (("tombstoned",), gone["size"] or 0)]
    yield _gauge("blob_bytes", "Bytes of blobs that rows name: held, and removed by retention.", ("kind",), rows)
    counts = [(("held",), ledger["n"] - gone["n"]), (("tombstoned",), gone["n"])]
    yield _gauge("blobs", "Blobs that rows name: held, and removed by retention.", ("kind",), counts)
    free = shutil.disk_usage(Path(settings.BLOB_ROOT)).free
    yield _gauge("disk_free_bytes", "Free space of the disk that holds the blob store.", (), [((), free)])


def compute_workers(at: datetime) -> int | None:
    """Compute processes of the running supervisor, else those that held a lease lately; None where none is known."""
    state = running_supervisor(settings.HOME)
    if state is not None and isinstance(state.get("processes"), dict):
        return sum(1 for name, item in state["processes"].items() if name.startswith("compute") and item.get("pid"))
    newest = JobTransition.objects.order_by("-pk").filter(job__queue__in=COMPUTE_QUEUES)
    owners = {owner for owner, when in newest.values_list("owner", "at")[:RECENT] if owner and when >= at - WINDOW}
    return len(owners) or None


def busy_seconds(at: datetime) -> float:
    """Seconds that leases of compute jobs lasted within the window, all workers together."""
    start = at - WINDOW
    newest = JobTransition.objects.filter(job__queue__in=COMPUTE_QUEUES).order_by("-pk")
    rows = newest.values_list("job_id", "attempt", "from_state", "to_state", "at")[: 4 * RECENT]
    begun: dict[tuple[int, int], datetime] = {}
    ended: dict[tuple[int, int], datetime] = {}
    for job, attempt, from_state, to_state, when in rows:
        if to_state == "leased":
            begun[job, attempt] = when
        elif from_state == "leased" and when >= start:
            ended[job, attempt] = when
    for job, attempt in Job.objects.filter(state="leased", queue__in=COMPUTE_QUEUES).values_list("pk", "attempt")[
        :RECENT
    ]:
        ended[job, attempt] = at
    return sum(max(0.0, (when - max(start, begun.get(key, start))).total_seconds()) for key, when in ended.items())


def _idle(at: datetime) -> Found:
    workers = compute_workers(at)
    rows = []
    if workers:
        rows = [((), min(1.0, max(0.0, 1.0 - busy_seconds(at) / (workers * WINDOW.total_seconds()))))]
        yield _gauge("compute_workers", "Compute worker processes.", (), [((), workers)])
    yield _gauge("compute_idle_share", "Share of the last 5 minutes that compute workers held no job.", (), rows)


def _machine(at: datetime) -> Found:
    cpu = machine.cpu_busy_share()
    yield _gauge(
        "cpu_busy_share",
        "Share of processor time in use since the scrape before.",
        (),
        [] if cpu is None else [((), cpu)],
    )
    gpus = machine.gpu_busy_shares() or []
    yield _gauge(
        "gpu_busy_share",
        "Share of time that a GPU was in use.",
        ("gpu",),
        [((str(i),), share) for i, share in enumerate(gpus)],
    )


def _build(at: datetime) -> Found:
    try:
        version = metadata.version("workbench")
    except metadata.PackageNotFoundError:  # run from its folder
        version = "source"
    labels = {
        "version": version,
        "python": platform.python_version(),
        "django": django.get_version(),
        "database": connection.vendor,
    }
    yield _gauge("build_info", "Versions; always 1.", tuple(labels), [(tuple(labels.values()), 1)])


PARTS: tuple[Callable[[datetime], Found], ...] = (
    _jobs, _leases, _startup, _failures, _heads, _store, _idle, _machine, _build,
)  # fmt: skip


class DatabaseCollector(Collector):
    """Reads the state at most once in a while; where a part breaks, the others are still told."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at = float("-inf")
        self._kept: list[Metric] = []

    def describe(self) -> list[Metric]:
        """Nothing: registering must not read the database."""
        return []

    def collect(self) -> list[Metric]:
        """The families of this moment."""
        with self._lock:
            if time.monotonic() - self._at >= settings.METRICS_KEPT_SECONDS:
                self._kept = self._read()
                self._at = time.monotonic()
            return self._kept

    def _read(self) -> list[Metric]:
        found: list[Metric] = []
        broken = []
        started, at = time.perf_counter(), timezone.now()
        for part in PARTS:
            name = part.__name__.strip("_")
            try:
                found.extend(part(at))
            except (DatabaseError, OSError) as error:
                log.warning("metrics: %s could not be read: %s", name, type(error).__name__)
                broken.append(name)
                if isinstance(error, DatabaseError) and not connection.in_atomic_block:
                    connection.close()
        found.append(_gauge("metrics_part_up", "1: this part of the metrics could be read.", ("part",), [
            ((part.__name__.strip("_"),), float(part.__name__.strip("_") not in broken)) for part in PARTS
        ]))  # fmt: skip
        found.append(
            _gauge("metrics_read_seconds", "Time that reading took.", (), [((), time.perf_counter() - started)])
        )
        return found


STATE = CollectorRegistry(auto_describe=False)
STATE.register(DatabaseCollector())


def exposition() -> bytes:
    """Everything in Prometheus's text format."""
    result: Any = generate_latest(TRAFFIC) + generate_latest(STATE)
    return bytes(result)
