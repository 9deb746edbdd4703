"""/metrics: who may read it, what it says, and what it leaves out."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.http import HttpRequest
from django.test import Client, RequestFactory
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from runs.actions import jobs
from runs.actions.tokens import issue_token
from runs.models import Job, User
from tests.runs.builders import build_world
from tests.runs.scripted import Lab
from tests.runs.test_advance import ALONE
from workbench.operations import machine, metrics
from workbench.operations.views import is_on_this_machine

pytestmark = pytest.mark.django_db
Values = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture(autouse=True)
def fresh(settings: Any, tmp_path: Any) -> None:
    """No reading is kept from another test."""
    settings.METRICS_KEPT_SECONDS = 0.0
    settings.BLOB_ROOT = tmp_path / "blobs"
    settings.BLOB_ROOT.mkdir(exist_ok=True)


def read() -> Values:
    """Every sample by name and labels."""
    text = metrics.exposition().decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(found: Values, name: str, **labels: str) -> float | None:
    return found.get((f"workbench_{name}", tuple(sorted(labels.items()))))


def job(key: str, queue: str, created: datetime, **more: Any) -> Job:
    return Job.objects.create(
        key=key, kind="collect_shard", queue=queue, created_at=created, available_at=created, **more
    )


def client(**headers: str) -> Client:
    return Client(headers={"host": "localhost", **headers})


def test_who_may_read_it(settings: Any) -> None:
    """A site admin by session or by a token with scope admin; nobody else, unless this machine is let in."""
    admin = User.objects.create_superuser("root", password="x" * 12)
    plain = User.objects.create_user("plain", password="x" * 12)
    at = timezone.now()
    secrets = {
        (user, scope): issue_token(user, name="t", scopes=[scope], expires_at=None, at=at)[1]
        for user in (admin, plain)
        for scope in ("read", "admin")
    }
    refused = client().get("/metrics")
    assert refused.status_code == 401 and refused["WWW-Authenticate"].startswith("Bearer")
    assert b"workbench_jobs" not in refused.content
    for user, status in ((admin, 200), (plain, 403)):
        session = client()
        session.force_login(user)
        assert session.get("/metrics").status_code == status
    for (user, scope), secret in secrets.items():
        answer = client(authorization=f"Bearer {secret}").get("/metrics")
        assert answer.status_code == (200 if (user, scope) == (admin, "admin") else 403)
    assert client(authorization="Bearer wb_wrong").get("/metrics").status_code == 401
    assert client(authorization="Basic cm9vdDp4").get("/metrics").status_code == 401
    settings.METRICS_PUBLIC = True
    assert client().get("/metrics").status_code == 200
    assert client(**{"x-forwarded-for": "127.0.0.1"}).get("/metrics").status_code == 401
    assert client().get("/metrics", REMOTE_ADDR="10.0.0.7").status_code == 401
    assert client().post("/metrics").status_code == 405


@pytest.mark.parametrize(
    ("address", "header", "expected"),
    [
        ("127.0.0.1", None, True), ("127.9.9.9", None, True), ("::1", None, True), ("", None, False),
        ("10.0.0.1", None, False), ("127.0.0.1", "HTTP_FORWARDED", False), ("127.0.0.1", "HTTP_X_REAL_IP", False),
        ("127.0.0.1", "HTTP_VIA", False), ("localhost", None, False),
    ],
)  # fmt: skip
def test_what_counts_as_this_machine(address: str, header: str | None, expected: bool) -> None:
    request: HttpRequest = RequestFactory().get("/metrics", REMOTE_ADDR=address, **({header: "x"} if header else {}))
    assert is_on_this_machine(request) is expected


def test_an_empty_database_has_no_series_for_what_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """No workers: no idle share. No GPU driver: no GPU series. Unknown is absent, not 0."""
    monkeypatch.setattr(machine, "gpu_busy_shares", lambda: None)
    monkeypatch.setattr(machine, "_before", [])
    found = read()
    names = {name for name, _ in found}
    for absent in ("compute_idle_share", "gpu_busy_share", "cpu_busy_share", "job_startup_seconds", "jobs"):
        assert f"workbench_{absent}" not in names
    assert value(found, "receipts") == 0 and value(found, "job_startup_jobs") == 0
    assert value(found, "metrics_part_up", part="jobs") == 1
    assert ("workbench_build_info" in names) and value(found, "disk_free_bytes") > 2**20


def test_jobs_ages_leases_and_latency() -> None:
    """Two queued jobs 30 and 10 s old; two leased after 2 and 4 s: p50 is the first, p99 the second (nearest rank)."""
    at = timezone.now()
    for seconds in (30, 10):
        job(f"queued-{seconds}", "rollout", at - timedelta(seconds=seconds))
    for seconds in (2, 4):
        made = job(f"leased-{seconds}", "update", at - timedelta(seconds=100))
        assert jobs.claim(made.pk, owner="home/compute1.1/9", at=at - timedelta(seconds=100 - seconds))
    job("failed", "rollout", at, state="errored", error="RunnerDied: gone")
    job("other", "rollout", at, state="failed", error="/home/someone: private words")
    found = read()
    assert value(found, "jobs", queue="rollout", state="queued") == 2
    assert value(found, "jobs", queue="update", state="leased") == 2
    assert value(found, "job_attempts", queue="update") == 2
    assert value(found, "oldest_queued_job_seconds", queue="rollout") == pytest.approx(30, abs=3)
    assert value(found, "oldest_heartbeat_seconds", queue="update") == pytest.approx(98, abs=3)
    assert value(found, "leases_run_out", queue="update") == 2
    assert value(found, "job_startup_seconds", quantile="0.5") == pytest.approx(2)
    assert value(found, "job_startup_seconds", quantile="0.99") == pytest.approx(4)
    assert value(found, "job_failures", state="errored", kind="collect_shard", cause="RunnerDied") == 1
    assert value(found, "job_failures", state="failed", kind="collect_shard", cause="other") == 1
    assert "private words" not in metrics.exposition().decode()


def test_idle_share_from_leases() -> None:
    """One worker of two known owners: busy 60 s (ended) and 30 s (still leased) of 2 x 300 s: idle 1 - 90/600 = 0.85.

    A lease that began before the window counts from its start only; jobs of queue io do not count.
    """
    at = timezone.now()

    def back(seconds: float) -> datetime:
        return at - timedelta(seconds=seconds)

    done = job("done", "rollout", back(500))
    first = jobs.claim(done.pk, owner="h/compute1.1/1", at=back(360))
    assert first is not None
    jobs.finish(first, "succeeded", at=back(240))
    running = job("running", "update", back(40))
    assert jobs.claim(running.pk, owner="h/compute2.1/2", at=back(30))
    other = job("io", "io", back(300))
    assert jobs.claim(other.pk, owner="h/io.1/3", at=back(290))
    assert metrics.busy_seconds(at) == pytest.approx(90)
    assert metrics.compute_workers(at) == 2
    found = read()
    assert value(found, "compute_idle_share") == pytest.approx(0.85, abs=0.02)
    assert value(found, "compute_workers") == 2


def test_runs_receipts_and_store(lab: Lab) -> None:
    """Counts equal those of the rows; tombstoned bytes are told apart from held ones."""
    lab.drive(lab.start(**ALONE))
    found = read()
    assert value(found, "executions", state="closed") == 1 and value(found, "runs", state="completed") == 1
    assert value(found, "receipt_streams") > 0 and value(found, "receipts") > 0
    held = value(found, "blob_bytes", kind="held")
    assert held is not None and held > 0


def test_a_reading_is_kept_and_costs_a_fixed_number_of_queries(
    settings: Any, django_assert_max_num_queries: Any, django_assert_num_queries: Any, lab: Lab
) -> None:
    """More rows do not mean more queries, and scraping twice at once reads once."""
    with django_assert_max_num_queries(20):
        read()
    build_world(groups=3, updates=2)
    lab.drive(lab.start(**ALONE))
    with django_assert_max_num_queries(20):
        read()
    settings.METRICS_KEPT_SECONDS = 60.0
    read()
    with django_assert_num_queries(0):
        read()


def test_a_part_that_breaks_leaves_the_others(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.BLOB_ROOT = settings.BLOB_ROOT / "gone"
    found = read()
    assert value(found, "metrics_part_up", part="store") == 0 and value(found, "metrics_part_up", part="jobs") == 1


def test_requests_are_counted_by_route_and_status() -> None:
    """The route's name, never the address: a scanner's thousand addresses make one series."""

    def count(route: str, status: str) -> float:
        return value(read(), "http_requests_total", route=route, method="GET", status=status) or 0.0

    before, unknown = count("alive", "200"), count("unmatched", "404")
    for position in range(3):
        client().get("/healthz")
        client().get(f"/no-such-page-{position}.php")
    assert count("alive", "200") == before + 3 and count("unmatched", "404") == unknown + 3
    assert "no-such-page" not in metrics.exposition().decode()
    assert (value(read(), "http_request_seconds_count", route="alive") or 0) >= 3


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        ("engine process died: signal 9", "engine_died"), ("lease ran out; 3 of 3 attempts lost", "lease_ran_out"),
        ("RuntimeMismatch: got", "RuntimeMismatch"), ("ValueError: x", "ValueError"), ("", "other"),
        ("CUDA out of memory. Tried", "out_of_memory"), ("x" * 5000, "other"), ("DoctorWho: no", "other"),
    ],
)  # fmt: skip
def test_causes_are_few(error: str, cause: str) -> None:
    assert metrics.cause_of(error) == cause


def test_nearest_rank() -> None:
    """Of 1..100 the 99 % value is 99 and the median 50; of one value it is that one."""
    hundred = [float(i) for i in range(1, 101)]
    assert metrics.nearest_rank(hundred, 0.99) == 99 and metrics.nearest_rank(hundred, 0.5) == 50
    assert metrics.nearest_rank([7.0], 0.99) == 7.0 and metrics.nearest_rank([7.0], 0.5) == 7.0


def test_processor_share_between_two_readings(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """100 ticks pass, 30 of them idle: 0.7. Without the file: unknown."""
    file = tmp_path / "stat"
    monkeypatch.setattr(machine, "STAT", file)
    monkeypatch.setattr(machine, "_before", [])
    assert machine.cpu_busy_share() is None
    file.write_text("cpu  100 0 0 100 0 0 0 0 0 0\ncpu0 1\n")
    assert machine.cpu_busy_share() is None
    file.write_text("cpu  170 0 0 120 10 0 0 0 0 0\ncpu0 1\n")
    assert machine.cpu_busy_share() == pytest.approx(0.7)
