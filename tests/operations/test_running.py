"""A real server: ready, measured, backed up while it runs, restored elsewhere by the commands."""

from __future__ import annotations

import http.client
import json
import shutil
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.servers import wait_until
from tests.workbench.processes import Up, manage, up
from workbench.paths import Home


def ask(server: Up, path: str, **headers: str) -> tuple[int, str]:
    """Status and body of a GET."""
    connection = http.client.HTTPConnection(urlsplit(str(server.state()["address"])).netloc, timeout=20)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_a_running_server_is_ready_measured_and_backed_up(tmp_path: Path, sqlite_template: Path) -> None:
    """Ready with its embedded broker; its metrics count these requests; what is restored elsewhere verifies."""
    home, other = tmp_path / "home", tmp_path / "other"
    home.mkdir()
    shutil.copy(sqlite_template, Home(home).database)
    with up(home, "--port", "0", "--workers", "0", WORKBENCH_METRICS_PUBLIC="1", WORKBENCH_LOG_FORMAT="json") as server:
        server.wait_ready()
        try:
            wait_until(lambda: ask(server, "/readyz")[0] == 200, "ready")
        except TimeoutError as error:
            raise AssertionError(ask(server, "/readyz")) from error
        status, text = ask(server, "/metrics")
        assert status == 200 and 'workbench_http_requests_total{method="GET",route="ready",status="200"}' in text
        assert ask(server, "/metrics", **{"X-Forwarded-For": "203.0.113.9"})[0] == 401

        made = manage(home, "backup", str(tmp_path / "x.tar.zst"), "--json")
        assert made.returncode == 0, made.stderr
        told = json.loads(made.stdout.splitlines()[-1])
        refused = manage(home, "restore", str(tmp_path / "x.tar.zst"))
        assert refused.returncode == 1 and "Workbench is running on it" in refused.stderr

        assert ask(server, "/runs/00000000-0000-0000-0000-000000000000/")[0] in (302, 404)
    restored = manage(other, "restore", str(tmp_path / "x.tar.zst"), "--manifest", told["manifest_sha256"], "--json")
    assert restored.returncode == 0, restored.stderr
    result = json.loads(restored.stdout.splitlines()[-1])
    assert result["verified"] and result["rows"] == told["rows"] and result["home"] == str(other)
    again = manage(other, "restore", str(tmp_path / "x.tar.zst"))
    assert again.returncode == 1 and "nothing was restored" in again.stderr and "got tables" in again.stderr


@pytest.mark.gate
def test_an_oversized_body_is_refused_by_the_real_server(tmp_path: Path) -> None:
    """413 for a stated length although nothing of it is sent, and for chunks as soon as they are too many."""
    with up(tmp_path / "home", "--port", "0", "--workers", "0") as server:
        server.wait_ready()
        address = urlsplit(str(server.state()["address"])).netloc
        wait_until(lambda: ask(server, "/healthz")[0] == 200, "alive")
        connection = http.client.HTTPConnection(address, timeout=20)
        started = time.monotonic()
        connection.putrequest("POST", "/api/v1/plans")
        connection.putheader("Content-Length", str(10**12))
        connection.endheaders()
        answer = connection.getresponse()
        assert answer.status == 413 and json.loads(answer.read())["status"] == 413
        connection.close()
        assert time.monotonic() - started < 10

        connection = http.client.HTTPConnection(address, timeout=20)
        status = None
        try:
            connection.request("POST", "/api/v1/plans", body=iter([b"x" * 65_536] * 100), encode_chunked=True,
                               headers={"Transfer-Encoding": "chunked"})  # fmt: skip
            status = connection.getresponse().status
        except (BrokenPipeError, ConnectionResetError):
            pass  # the server answered and closed while we were still sending
        connection.close()
        assert status in (413, None)
        assert ask(server, "/healthz")[0] == 200
