"""Real servers for tests, in temporary folders, ended with the test process whatever happens to it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from workbench import child

NOBODY = 65534
USER = "workbench"


def bound_to_us(command: Sequence[str]) -> list[str]:
    """``command``, killed when this process ends."""
    return [sys.executable, child.__file__, str(os.getpid()), "--", *command]


def unprivileged(command: Sequence[str]) -> list[str]:
    """``command`` for a program that refuses root. A changed uid clears the parent-death signal, so it is set again."""
    if os.getuid() != 0:
        return bound_to_us(command)
    identity = (f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--pdeathsig=KILL")
    return ["setpriv", *identity, *command]


def wait_until(probe: Callable[[], bool], what: str, seconds: float = 20.0) -> None:
    """Poll until ``probe`` is true. Raises ``TimeoutError`` naming ``what``."""
    end = time.monotonic() + seconds
    while not probe():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {seconds:.0f} s")
        time.sleep(0.03)


def free_port() -> int:
    """A TCP port that is free on the loopback now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def postgres_programs() -> Path | None:
    """Folder of initdb and postgres, the newest version first; None where they are absent or unusable."""
    if os.getuid() == 0 and shutil.which("setpriv") is None:
        return None
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: -float(folder.parent.name))
    on_path = shutil.which("initdb")
    if on_path:
        folders.append(Path(on_path).resolve().parent)
    return next((folder for folder in folders if (folder / "initdb").exists() and (folder / "postgres").exists()), None)


@dataclass(frozen=True)
class Postgres:
    """A running server, reached over a unix socket in ``folder``."""

    folder: Path

    def url(self, name: str) -> str:
        """Address of a database."""
        return f"postgres://{USER}@/{name}?host={self.folder}"

    def execute(self, statement: str) -> None:
        """Run one statement outside a transaction."""
        import psycopg

        with psycopg.connect(host=str(self.folder), user=USER, dbname="postgres", autocommit=True) as connection:
            connection.execute(statement)  # type: ignore[call-overload]

    def has(self, name: str) -> bool:
        """Whether there is a database of this name."""
        import psycopg

        with psycopg.connect(host=str(self.folder), user=USER, dbname="postgres") as connection:
            return connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone() is not None

    def create(self, name: str) -> str:
        """Make an empty database and return its address."""
        self.execute(f'CREATE DATABASE "{name}"')
        return self.url(name)

    def drop(self, name: str) -> None:
        """Remove a database with whoever is connected to it."""
        self.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@contextmanager
def postgres(programs: Path) -> Iterator[Postgres]:
    """Initialise and run a server; durability is off, since nothing outlives the tests."""
    folder = Path(tempfile.mkdtemp(prefix="wbpg-", dir="/tmp"))  # a socket's path must be short
    if os.getuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    data = folder / "data"
    initialise = (str(programs / "initdb"), "-D", str(data), "-U", USER, "-A", "trust", "--no-sync", "-E", "UTF8")
    process = None
    try:
        subprocess.run(
            unprivileged([*initialise, "--locale=C"]), check=True, capture_output=True, text=True, cwd="/", timeout=120
        )
        quick = ("-c", "fsync=off", "-c", "full_page_writes=off", "-c", "shared_buffers=64MB")
        with (folder / "log").open("w") as log:
            process = subprocess.Popen(
                unprivileged([str(programs / "postgres"), "-D", str(data), "-k", str(folder), "-h", "", *quick]),
                stdout=log,
                stderr=log,
                cwd="/",
            )
        server = Postgres(folder)
        wait_until(lambda: _answers(server, process), f"PostgreSQL in {folder}")
        yield server
    finally:
        if process is not None:
            process.send_signal(signal.SIGINT)
            _wait_or_kill(process)
        shutil.rmtree(folder, ignore_errors=True)


def _answers(server: Postgres, process: subprocess.Popen[bytes]) -> bool:
    import psycopg

    if process.poll() is not None:
        raise RuntimeError(f"PostgreSQL ended with {process.returncode}: {(server.folder / 'log').read_text()[-2000:]}")
    try:
        server.execute("SELECT 1")
    except psycopg.OperationalError:
        return False
    return True


def _wait_or_kill(process: subprocess.Popen[bytes], seconds: float = 10.0) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def redis_program() -> str | None:
    """A server on PATH."""
    return shutil.which("redis-server") or shutil.which("valkey-server")


@contextmanager
def redis(program: str) -> Iterator[str]:
    """Run a server on a free loopback port; yields its address."""
    from workbench import broker

    folder = tempfile.mkdtemp(prefix="wbredis-")
    port = free_port()
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", folder]
    process = subprocess.Popen(bound_to_us(command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url = f"redis://127.0.0.1:{port}/0"
        broker.wait_ready(url)
        yield url
    finally:
        process.terminate()
        _wait_or_kill(process)
        shutil.rmtree(folder, ignore_errors=True)
