"""``manage.py up`` with its real processes: first start, crashes, refusals, clean stop, no orphans."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sqlite3
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.servers import free_port, wait_until
from tests.workbench.processes import Up, gone_soon, manage, up
from workbench.home import file_lock, running_supervisor
from workbench.paths import Home

PASSWORD = re.compile(r"first user: admin, password (\S{16}) ")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """A fresh home under ``up`` with web and one compute worker, shared by the tests of this file."""
    home = tmp_path_factory.mktemp("up") / "home"
    with up(home, "--port", str(free_port()), "--workers", "1") as started:
        started.wait_ready()
        yield started


def kill(started: Up, name: str) -> int:
    """kill -9 a child; returns when another one has taken its place, with the new id."""
    before = started.pid_of(name)
    assert before is not None
    os.kill(before, signal.SIGKILL)
    wait_until(lambda: started.pid_of(name) not in (None, before), f"{name} again", 20)
    after = started.pid_of(name)
    assert after is not None
    return after


def test_fresh_home_gets_a_database_and_a_first_user_whose_password_works(running: Up) -> None:
    from django.contrib.auth.hashers import check_password

    found = PASSWORD.findall(running.text)
    assert len(found) == 1, running.text
    with sqlite3.connect(running.home.database) as database:
        (stored,) = database.execute("SELECT password FROM runs_user WHERE username = 'admin'").fetchone()
        triggers = database.execute("SELECT count(*) FROM sqlite_master WHERE type = 'trigger'").fetchone()[0]
    assert check_password(found[0], stored)
    assert triggers > 10
    assert all(found[0] not in path.read_text() for path in running.home.logs.iterdir())


def test_address_is_printed_once_the_page_answers(running: Up) -> None:
    address = running.state()["address"]
    assert f"open {address}" in running.text
    with urllib.request.urlopen(f"{address}healthz", timeout=10) as response:
        assert response.status == 200


def test_processes_are_the_announced_ones_and_pinned_to_one_thread(running: Up) -> None:
    processes = running.state()["processes"]
    assert isinstance(processes, dict)
    assert set(processes) - {"records"} == {"broker", "web", "io", "compute1"}  # records: at a first start
    pid = running.pid_of("compute1")
    environment = psutil.Process(pid).environ()
    assert environment["OMP_NUM_THREADS"] == environment["MKL_NUM_THREADS"] == "1"
    assert environment["WORKBENCH_PROCESS"].endswith("/compute1.1")
    wait_until(lambda: "compute1@" in running.text and "ready." in running.text, "a ready worker")


@pytest.mark.parametrize("name", ["compute1", "broker", "web"])
def test_killed_process_is_started_again(running: Up, name: str) -> None:
    kill(running, name)
    assert f"{name:<9} | was killed by SIGKILL" in running.text
    if name == "web":
        with urllib.request.urlopen(f"{running.state()['address']}healthz", timeout=10) as response:
            assert response.status == 200  # the socket was kept, so this waited instead of being refused


def test_leases_of_a_killed_worker_end_at_once(running: Up) -> None:
    """A job leased for an hour by ``io``: its worker dies, and the supervisor gives the lease up within seconds."""
    pid = running.pid_of("io")
    owner = f"{psutil.Process(pid).environ()['WORKBENCH_PROCESS']}/{pid}"
    columns = {
        "uid": os.urandom(16).hex(),
        "key": f"test:{os.urandom(4).hex()}",
        "kind": "test",
        "queue": "io",
        "spec": "{}",
        "state": "leased",
        "attempt": 1,
        "max_attempts": 1,
        "owner": owner,
        "lease_until": "2999-01-01 00:00:00",
        "progress": "{}",
        "error": "",
        "created_at": "2026-01-01 00:00:00",
    }
    with sqlite3.connect(running.home.database, timeout=20) as database:
        names = ", ".join(f'"{name}"' for name in columns)
        database.execute(
            f"INSERT INTO runs_job ({names}) VALUES ({', '.join('?' * len(columns))})", tuple(columns.values())
        )
    kill(running, "io")
    running.wait_line(f"1 unfinished job of {owner.rpartition('/')[0]} will run again")


def test_second_copy_on_the_same_home_is_refused(running: Up) -> None:
    result = manage(running.home.root, "up", "--port", str(free_port()))
    assert result.returncode == 1
    assert f"already running on {running.home.root}" in result.stderr
    assert f"(process {running.process.pid})" in result.stderr and str(running.state()["address"]) in result.stderr
    assert "Traceback" not in result.stderr


def test_taken_port_is_refused_in_plain_words(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        result = manage(tmp_path / "home", "up", "--port", str(port))
    assert result.returncode == 1
    assert f"Port {port} on 127.0.0.1 cannot be used: Address already in use" in result.stderr
    assert f"make run PORT={port + 1}" in result.stderr and "Traceback" not in result.stderr
    assert not Home(tmp_path / "home").database.exists(), "nothing was set up"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--port", "eighty"), "expected a port from 0 to 65535"),
        (("--workers", "-1"), "expected a number from 0 to 256"),
        (("--host", "nowhere.invalid"), "Host 'nowhere.invalid' is unknown"),
    ],
)
def test_wrong_arguments_are_refused(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    result = manage(tmp_path, "up", *arguments)
    assert result.returncode != 0 and message in result.stderr and "Traceback" not in result.stderr


def test_configured_broker_that_does_not_answer_is_refused(tmp_path: Path) -> None:
    result = manage(tmp_path, "up", "--no-web", REDIS_URL="redis://127.0.0.1:1/0")
    assert result.returncode == 1
    assert "got no answer from redis://127.0.0.1/0" in result.stderr and "Traceback" not in result.stderr


def test_ctrl_c_stops_everything_in_order(running: Up) -> None:
    """Last but one in this file: workers, web, broker; exit status 0; nothing stays; the home can be taken again."""
    # broker, web and its process, two workers with a pool process each
    wait_until(lambda: len(running.family()) >= 6, "every process")
    family = running.family()
    assert running.interrupt() == 0
    gone_soon(family, 1)
    assert running.lines[-1] == "workbench | stopped"
    state = json.loads(running.home.supervisor_state.read_text())
    assert state["ready"] is False and {found["pid"] for found in state["processes"].values()} == {None}


def test_kill_of_the_supervisor_leaves_no_orphan_and_the_home_starts_again(running: Up) -> None:
    with up(running.home.root, "--no-web", "--workers", "1") as second:
        second.wait_ready()
        assert "first user" not in second.text
        wait_until(lambda: second.text.count(" ready.") == 2, "both workers with their pool processes")
        family = second.family()
        assert len(family) >= 5
        second.process.kill()
        second.process.wait()
        gone_soon(family)
    assert second.home.supervisor_state.exists(), "it says ready; nobody may believe it"
    assert running_supervisor(second.home) is None
    with up(running.home.root, "--no-web", "--workers", "0") as third:
        third.wait_ready()
        assert third.interrupt() == 0


def waits_for_a_lock(pid: int) -> bool:
    """Whether the process sleeps in the kernel's flock, at a lock of another."""
    try:
        return "flock" in Path(f"/proc/{pid}/wchan").read_text() or any(
            "->" in line and str(pid) in line.split() for line in Path("/proc/locks").read_text().splitlines()
        )
    except OSError:  # a kernel that does not tell: a process that uses no processor waits
        return psutil.Process(pid).cpu_percent(1.0) < 1.0


def test_ctrl_c_before_the_first_child_is_no_traceback(tmp_path: Path) -> None:
    """Another process initialises the same home, so this one waits; nothing has been started."""
    home = Home(tmp_path / "home")
    with file_lock(home.initialise_lock), up(home.root, "--no-web") as started:
        wait_until(lambda: home.supervisor_lock.exists() and home.broker_socket.parent.exists(), "the start")
        wait_until(lambda: waits_for_a_lock(started.process.pid), "the wait")
        assert started.interrupt() == 130
        assert started.text.splitlines()[-1] == "stopped before the start" and "Traceback" not in started.text


@pytest.mark.gate
@pytest.mark.postgres
def test_postgres_and_redis_by_environment_variables_alone(
    tmp_path: Path, fresh_postgres_url: str, redis_url: str
) -> None:
    """No SQLite file, no embedded broker, and the reaper's task runs through the configured ones."""
    variables = {"DATABASE_URL": fresh_postgres_url, "REDIS_URL": redis_url}
    with up(tmp_path / "home", "--no-web", "--workers", "0", **variables) as started:
        started.wait_ready()
        assert set(started.state()["processes"]) == {"io"}  # type: ignore[call-overload]
        assert "first user: admin" in started.text
        started.wait_line("io@")
        assert not started.home.database.exists()
        assert started.interrupt() == 0
