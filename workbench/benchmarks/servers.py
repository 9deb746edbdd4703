"""The two servers that are compared: ours as it runs in the product, MLflow's in a virtual environment."""

from __future__ import annotations

import http.client
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import psutil

from workbench import child

MLFLOW_VERSION = "3.17.2"
START_SECONDS = 120.0
ROOT = Path(__file__).resolve().parents[2]
Say = Callable[[str], None]


class BenchmarkError(RuntimeError):
    """A server that does not start, or an answer that is no success."""


@dataclass
class Server:
    """A running server: requests over one kept connection, and the CPU seconds of all its processes."""

    name: str
    port: int
    process: subprocess.Popen[bytes]
    token: str = ""
    _connection: http.client.HTTPConnection | None = field(default=None, repr=False)

    def cpu_seconds(self) -> float:
        """User and system time of the process tree so far."""
        total = 0.0
        root = psutil.Process(self.process.pid)
        for item in [root, *root.children(recursive=True)]:
            try:
                times = item.cpu_times()
            except psutil.NoSuchProcess:
                continue
            total += times.user + times.system
        return total

    def call(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """The body of a successful answer. Raises ``BenchmarkError``."""
        try:
            return self._once(method, path, body)
        except (BrokenPipeError, ConnectionResetError, http.client.RemoteDisconnected):
            return self._once(method, path, body)  # the server closed a connection that nobody used for a while

    def _once(self, method: str, path: str, body: bytes | None) -> bytes:
        if self._connection is None:
            self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        try:
            self._connection.request(method, path, body, headers)
            answer = self._connection.getresponse()
            data = answer.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            self._connection = None
            raise
        if answer.status >= 300:
            raise BenchmarkError(f"{self.name} {method} {path[:120]}: got {answer.status} {data[:300]!r}")
        return data

    def post(self, path: str, body: Any) -> Any:
        """JSON out, JSON back."""
        return orjson.loads(self.call("POST", path, orjson.dumps(body)) or b"{}")

    def get(self, path: str) -> Any:
        """JSON back."""
        return orjson.loads(self.call("GET", path))


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def _running(name: str, command: list[str], port: int, environment: dict[str, str], log: Path) -> Iterator[Server]:
    bound = [sys.executable, child.__file__, str(os.getpid()), "--", *command]
    with log.open("ab") as out:
        process = subprocess.Popen(bound, cwd=ROOT, env={**os.environ, **environment}, stdout=out, stderr=out)
    server = Server(name, port, process)
    try:
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                server.call("GET", "/health")
                break
            except (OSError, http.client.HTTPException) as error:
                if process.poll() is not None or time.monotonic() > end:
                    shown = log.read_text(errors="replace")[-1500:]
                    raise BenchmarkError(f"{name}: it did not start: {error}; its log ends with: {shown}") from error
                time.sleep(0.2)
        yield server
    finally:
        tree = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
        process.terminate()
        _gone, alive = psutil.wait_procs(tree, timeout=15)
        for item in alive:
            item.kill()
        process.wait()


@contextmanager
def our_server(home: Path, token: str) -> Iterator[Server]:
    """The product's web server over a home that is migrated."""
    port = _free_port()
    command = [sys.executable, "-m", "gunicorn", "-c", str(ROOT / "workbench" / "web.py"), "-b", f"127.0.0.1:{port}"]
    environment = {"WORKBENCH_HOME": str(home), "DJANGO_SETTINGS_MODULE": "workbench.settings"}
    with _running("workbench", command, port, environment, home / "bench.log") as server:
        server.token = token
        yield server


def manage(home: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    """Run ``manage.py`` over a home of the benchmark. Raises ``BenchmarkError``."""
    environment = {**os.environ, "WORKBENCH_HOME": str(home), "WORKBENCH_SECRET_KEY": secrets.token_urlsafe(48)}
    environment.pop("DATABASE_URL", None)
    done = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *arguments],
        cwd=ROOT,
        env=environment,
        input=stdin,
        capture_output=True,
    )
    if done.returncode != 0:
        raise BenchmarkError(f"manage.py {arguments[0]}: {done.stderr.decode(errors='replace')[-1500:]}")
    return done.stdout


def mlflow_python(cache: Path, say: Say) -> Path:
    """Python of MLflow's virtual environment, made on first use (a download). Raises ``BenchmarkError``."""
    folder = cache / f"mlflow-{MLFLOW_VERSION}"
    python, ready = folder / "bin" / "python", folder / "ready"
    if ready.exists() and python.exists():
        return python
    say(f"making a virtual environment with mlflow {MLFLOW_VERSION} in {folder}")
    steps = (
        [sys.executable, "-m", "venv", "--clear", str(folder)],
        [str(python), "-m", "pip", "install", "--quiet", f"mlflow=={MLFLOW_VERSION}"],
    )
    for step in steps:
        done = subprocess.run(step, capture_output=True)
        if done.returncode != 0:
            shown = done.stderr.decode(errors="replace")[-800:]
            raise BenchmarkError(f"mlflow {MLFLOW_VERSION} could not be installed: {shown}")
    ready.touch()
    return python


@contextmanager
def mlflow_server(python: Path, folder: Path) -> Iterator[Server]:
    """A real ``mlflow server`` with SQLite and one worker."""
    port = _free_port()
    command = [
        str(python), "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1",
        "--backend-store-uri", f"sqlite:///{folder / 'mlflow.db'}", "--artifacts-destination", str(folder / "files"),
    ]  # fmt: skip
    environment = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    with _running("mlflow", command, port, environment, folder / "bench.log") as server:
        yield server
