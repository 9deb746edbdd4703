"""The bundled study at its tiny scale, run by real processes, and what it leaves behind as comparable facts."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import psutil
import yaml

from tests.servers import wait_until
from tests.workbench.processes import environment, gone_soon, manage
from workbench.settings import BASE_DIR
from worker.study import STUDIES

SLUG = "fatal-mask-pair"
EDIT_CREDIT = "edit-credit-pilot"
PLAN = f"{SLUG}-tiny"
ENDED = ("closed", "stopped", "cancelled", "interrupted")
TIMEOUT_S = 600.0  # of one study on a busy machine; an idle one needs 20 s
Rows = list[tuple[Any, ...]]
SUBMIT = """
import sys, pathlib, django
django.setup()
from workbench.home import initialise
from django.conf import settings
initialise(settings.HOME)
import worker.study
worker.study.STUDIES = pathlib.Path(sys.argv[1])
print(worker.study.start_study(sys.argv[2], "tiny").uid)
"""


def rows(home: Path, statement: str) -> Rows:
    """Answer of the SQLite database of ``home``."""
    with closing(sqlite3.connect(f"file:{home}/db.sqlite3?mode=ro", uri=True, timeout=20)) as database:
        return database.execute(statement).fetchall()


def postgres_rows(url: str, statement: str) -> Rows:
    """Answer of a PostgreSQL database; UUIDs as SQLite stores them."""
    import psycopg

    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    with psycopg.connect(dbname=unquote(parts.path[1:]), user=parts.username, host=options["host"]) as connection:
        return connection.execute(statement).fetchall()  # type: ignore[call-overload]


STATEMENTS = {
    "plan": "SELECT sha256 FROM runs_planversion",
    "schedule": "SELECT sha256 FROM runs_failureschedule",
    "documents": "SELECT kind, subject_uid, sha256 FROM runs_document",
    "adapters": "SELECT uid, sha256, policy_version, kind FROM runs_checkpoint",
    "groups": "SELECT uid, record_sha256, capture_blob_sha256 FROM runs_group",
    "captures": "SELECT t.uid, u.decision, u.capture_sha256 FROM runs_turn u JOIN runs_trajectory t"
    " ON t.id = u.trajectory_id",
    "updates": "SELECT r.uid, u.batch, u.record_sha256, u.old_logprobs_sha256, u.trace_blob_sha256"
    " FROM runs_updatebatch u JOIN runs_run r ON r.id = u.run_id",
    "consumed": "SELECT g.uid, u.uid FROM runs_consumedgroup c JOIN runs_group g ON g.id = c.group_id"
    " JOIN runs_updatebatch u ON u.id = c.update_id",
    "items": "SELECT i.uid, t.uid FROM runs_evaluationitem i JOIN runs_trajectory t ON t.id = i.trajectory_id",
    "heads": "SELECT r.uid, h.state, h.batch, h.steps, h.trajectories, h.generated_tokens"
    " FROM runs_runhead h JOIN runs_run r ON r.id = h.run_id",
    # sources and notes of a closed study quote its receipts, which say when and after how many attempts
    "blobs": "SELECT sha256, bytes, kind FROM runs_blobref WHERE kind NOT IN ('source', 'notes')",
    "tombstones": "SELECT sha256 FROM runs_tombstone",
    "jobs": "SELECT key, kind, state FROM runs_job",
    "trials": "SELECT uid, kind, tree_sha256, utility, unknown, stdout_sha256 FROM runs_trial",
    "tried": "SELECT uid, mode, snapshots_sha256, record_sha256, unavailable FROM runs_trialset",
    "interventions": "SELECT t.uid, i.status, i.selected, i.difference FROM runs_intervention i"
    " JOIN runs_trajectory t ON t.id = i.trajectory_id",
    "credits": "SELECT u.uid, t.uid, c.advantage, c.trained_tokens FROM runs_trajectorycredit c"
    " JOIN runs_updatebatch u ON u.id = c.update_id JOIN runs_trajectory t ON t.id = c.trajectory_id",
    "metrics": "SELECT s.uid, p.position, p.value FROM runs_metricpoint p JOIN runs_metricseries s"
    " ON s.id = p.series_id",
}


def facts(ask: Callable[[str], Rows]) -> dict[str, list[str]]:
    """Everything of an execution that time, place and luck must not change, sorted, by name."""
    found = {}
    for name, statement in STATEMENTS.items():
        found[name] = sorted("|".join(str(value).replace("-", "") for value in row) for row in ask(statement))
    return found


def differences(expected: dict[str, list[str]], got: dict[str, list[str]]) -> list[str]:
    """Lines that say where two executions differ; empty where they are equal."""
    lines = []
    for name, wanted in expected.items():
        missing, extra = sorted(set(wanted) - set(got[name])), sorted(set(got[name]) - set(wanted))
        if wanted != got[name]:
            lines.append(
                f"{name}: {len(got[name])} rows, expected {len(wanted)}; not there {missing[:2]}, new {extra[:2]}"
            )
    return lines


def closure_sha256(found: dict[str, list[str]]) -> str:
    """Hash of the one closure manifest."""
    (line,) = [item for item in found["documents"] if item.startswith("closure|")]
    return line.rpartition("|")[2]


def last_object(text: str) -> dict[str, Any]:
    """The JSON object on the last line."""
    value = json.loads(text.rstrip("\n").rpartition("\n")[2])
    assert isinstance(value, dict)
    return value


@dataclass(frozen=True)
class Ran:
    """A study that ended: its home, its printed summary, its facts."""

    home: Path
    summary: dict[str, Any]
    facts: dict[str, list[str]]


def run_tiny(
    home: Path, cache: Path, slug: str = SLUG, scale: str = "tiny", *, timeout_s: float = TIMEOUT_S, **extra: str
) -> Ran:
    """``manage.py study run`` on a home without a server, to its closure."""
    done = manage(
        home, "study", "run", slug, "--scale", scale, "--json", timeout_s=timeout_s,
        WORKBENCH_CACHE_HOME=str(cache), **extra,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    ask = (lambda text: postgres_rows(extra["DATABASE_URL"], text)) if "DATABASE_URL" in extra else None
    return Ran(home, last_object(done.stdout), facts(ask or (lambda text: rows(home, text))))


NO_EXCERPTS = 13  # the bundled study binds receipts and endpoints; it quotes nothing


def verified(
    home: Path, cache: Path, *, nothing_in: tuple[int, ...] = (), timeout_s: float = 300, **extra: str
) -> dict[str, Any]:
    """``manage.py verify`` finds no problem, with something to check in every step but ``nothing_in``; its report."""
    done = manage(home, "verify", "--json", timeout_s=timeout_s, WORKBENCH_CACHE_HOME=str(cache), **extra)
    assert done.returncode == 0, f"{done.stdout[-3000:]}{done.stderr[-3000:]}"
    report = last_object(done.stdout)
    assert report["ok"] is True and [step["step"] for step in report["steps"]] == list(range(1, 18))
    idle = [step["step"] for step in report["steps"] if not step["checked"]]
    assert set(idle) <= {*nothing_in, NO_EXCERPTS}, f"steps {idle} had nothing to check"
    return report


class Client:
    """``manage.py study run`` in the background, with its output in files."""

    def __init__(self, home: Path, cache: Path, folder: Path, slug: str = SLUG, **extra: str) -> None:
        self.home, self.out, self.err = home, folder / "study.out", folder / "study.err"
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "study", "run", slug, "--scale", "tiny", "--json"],
                env=environment(home, WORKBENCH_CACHE_HOME=str(cache), **extra),
                cwd=BASE_DIR,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    def finish(self, seconds: float = TIMEOUT_S) -> dict[str, Any]:
        """Wait for its end and return its summary."""
        status = self.process.wait(seconds)
        assert status == 0, self.err.read_text()[-4000:]
        return last_object(self.out.read_text())


@contextmanager
def client(home: Path, cache: Path, folder: Path, slug: str = SLUG, **extra: str) -> Iterator[Client]:
    """Start ``study run``; whatever the test did, nothing of it is left."""
    started = Client(home, cache, folder, slug, **extra)
    try:
        yield started
    finally:
        if started.process.poll() is None:
            family = psutil.Process(started.process.pid).children(recursive=True)
            started.process.kill()
            started.process.wait()
            gone_soon(family, 40)


def processes_of(home: Path) -> list[psutil.Process]:
    """Every process whose data directory is ``home``."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("WORKBENCH_HOME") == str(home) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def none_left(home: Path, seconds: float = 10) -> None:
    """No process of ``home`` is alive, soon. Raises ``TimeoutError`` naming those that stay."""
    wait_until(lambda: not processes_of(home), f"the end of {processes_of(home)}", seconds)


def jobs_done(home: Path, kind: str | None = None) -> int:
    """Jobs that ended, of one kind or of all; 0 before the database exists."""
    where = f" AND kind = '{kind}'" if kind else ""
    try:
        return int(rows(home, f"SELECT count(*) FROM runs_job WHERE state NOT IN ('queued', 'leased'){where}")[0][0])
    except sqlite3.OperationalError:
        return 0


def state_of(home: Path) -> str:
    """State of the one execution; empty before there is one."""
    try:
        found = rows(home, "SELECT state FROM runs_execution")
    except sqlite3.OperationalError:
        return ""
    return str(found[0][0]) if found else ""


def wait_done(home: Path, count: int, seconds: float = TIMEOUT_S) -> None:
    """Until ``count`` jobs have ended."""
    wait_until(lambda: jobs_done(home) >= count, f"{count} jobs of {home}", seconds)


def write_study(folder: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """A folder with the bundled study after ``change`` on its tiny scale; for ``start``."""
    content = yaml.safe_load((STUDIES / f"{SLUG}.yaml").read_text(encoding="utf-8"))
    change(content["scales"]["tiny"])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{SLUG}.yaml").write_text(yaml.safe_dump(content, allow_unicode=True), encoding="utf-8")
    return folder


def start(home: Path, cache: Path, studies: Path, **extra: str) -> None:
    """Freeze and start the study of another folder; whoever holds the home's queues runs it."""
    done = subprocess.run(
        [sys.executable, "-c", SUBMIT, str(studies), SLUG],
        env=environment(
            home, WORKBENCH_CACHE_HOME=str(cache), DJANGO_SETTINGS_MODULE="workbench.settings",
            PYTHONPATH=str(BASE_DIR), **extra,
        ),
        cwd=BASE_DIR, capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]


def shared_cache(configured: Path) -> Path:
    """Folder of the warm start: ``WORKBENCH_CACHE_HOME`` where it is set, else one that outlives the test run."""
    given = os.environ.get("WORKBENCH_CACHE_HOME", "").strip()
    return Path(given) if given else configured
