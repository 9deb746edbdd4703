"""The real web server against slow clients and long headers."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers import bound_to_us, free_port, wait_until
from tests.workbench.processes import environment
from workbench.settings import BASE_DIR

START = """
import sys
from workbench.operations import server
server.HEAD_SECONDS, server.BODY_SECONDS, server.LOOK_EVERY = 1.0, 1.5, 0.1
from gunicorn.app.wsgiapp import run
sys.argv = ["gunicorn", "--config", "python:workbench.web", "--threads", "2", "--bind", sys.argv[1],
            "--no-control-socket", "tests.operations.echo:application"]
run()
"""


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """A server with two threads, short deadlines, and an application that reads the body."""
    number = free_port()
    process = subprocess.Popen(
        bound_to_us([sys.executable, "-c", START, f"127.0.0.1:{number}"]), cwd=BASE_DIR, env=environment(tmp_path)
    )
    try:
        wait_until(lambda: _answers(number), "the server")
        yield number
    finally:
        process.terminate()
        process.wait(10)


def _answers(port: int) -> bool:
    try:
        return b"200 OK" in talk(port, b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    except OSError:
        return False


def talk(port: int, data: bytes, seconds: float = 8.0) -> bytes:
    """Send, then read until the server closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        connection.sendall(data)
        return received(connection)


def received(connection: socket.socket) -> bytes:
    parts = []
    try:
        while data := connection.recv(65_536):
            parts.append(data)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def test_slow_heads_and_bodies_free_their_threads(port: int) -> None:
    """Four clients hold two threads with half a head and half a body; a fifth is served soon after the deadline."""
    slow = []
    for start in (
        b"GET / HTTP/1.1\r\nHost: lo",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf",
    ):
        for _ in range(2):
            connection = socket.create_connection(("127.0.0.1", port), timeout=10)
            connection.sendall(start)
            slow.append(connection)
    started = time.monotonic()
    answer = talk(port, b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", seconds=15)
    assert b"200 OK" in answer and time.monotonic() - started < 10
    for connection in slow:
        received(connection)  # ended by the server
        connection.close()


def test_a_whole_body_and_a_long_answer_are_untouched(port: int) -> None:
    """Working longer than every deadline after the request has arrived is no slow client."""
    head = b"POST /slow HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbody"
    assert talk(port, head).endswith(b"\r\n1\r\n4\r\n0\r\n\r\n")
    chunked = b"POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert talk(port, chunked + b"3\r\nabc\r\n0\r\n\r\n").endswith(b"\r\n1\r\n3\r\n0\r\n\r\n")


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"a" * 9000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"".join(b"X-%d: 1\r\n" % i for i in range(100)) + b"\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
    ids=["line", "field", "fields", "smuggling"],
)
def test_heads_without_measure_are_refused(port: int, head: bytes) -> None:
    """Each is answered 4xx, and the server lives on."""
    assert talk(port, head).startswith(b"HTTP/1.1 4")
    assert _answers(port)
