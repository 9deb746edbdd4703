"""The embedded broker, with real servers."""

from __future__ import annotations

import shutil
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.servers import bound_to_us
from workbench import broker
from workbench.paths import Home


@contextmanager
def running(home: Home, program: broker.BrokerProgram) -> Iterator[subprocess.Popen[bytes]]:
    """A server of this home; killed at the end, as a crash would."""
    broker.prepare(home, program)
    process = subprocess.Popen(bound_to_us(broker.command(home, program)), stdout=subprocess.DEVNULL)
    try:
        broker.wait_ready(broker.embedded_url(home))
        yield process
    finally:
        process.kill()
        process.wait()


def wheel() -> broker.BrokerProgram:
    """The server of the wheel: nothing lies on the search path."""
    return broker.find_server(search_path="/nonexistent")


def test_search_path_wins_over_the_wheel(tmp_path: Path) -> None:
    program = tmp_path / "valkey-server"
    program.symlink_to(wheel().path)
    assert broker.find_server(str(tmp_path)) == broker.BrokerProgram(program, "path", wheel().family)
    assert wheel().origin == "wheel"
    assert wheel().family.startswith("valkey-")


def test_a_program_that_does_not_run_is_passed_over(tmp_path: Path) -> None:
    broken = tmp_path / "redis-server"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    assert broker.find_server(str(tmp_path)).origin == "wheel"


def test_no_program_names_what_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker, "_wheel_server", lambda: None)
    with pytest.raises(broker.BrokerUnavailable, match="set REDIS_URL"):
        broker.find_server(search_path="/nonexistent")


def test_server_of_the_wheel_keeps_messages_over_a_kill(tmp_path: Path) -> None:
    """One message in, kill -9 after the append-only file was synced, one message out; socket private, no TCP port."""
    import redis

    home, program = Home(tmp_path / "with space and ü%20"), wheel()
    url = broker.embedded_url(home)
    with running(home, program):
        assert stat.S_IMODE(home.broker_socket.stat().st_mode) == 0o700
        assert stat.S_IMODE(home.broker_socket.parent.stat().st_mode) == 0o700
        assert broker.ping(url).startswith("valkey 9.")
        with redis.Redis(unix_socket_path=str(home.broker_socket)) as client:
            client.lpush("queue", "look at job 7")
            facts = client.config_get("*")
            assert (facts["port"], facts["appendonly"], facts["appendfsync"]) == ("0", "yes", "everysec")
            assert (facts["maxmemory-policy"], facts["save"]) == ("noeviction", "")
            assert client.execute_command("WAITAOF", 1, 0, 3000)[0] == 1
    assert home.broker_socket.exists(), "a killed server leaves its socket, which the next start removes"
    with pytest.raises(broker.BrokerUnavailable, match="expected a running server"):
        broker.ping(url)
    with running(home, program), redis.Redis(unix_socket_path=str(home.broker_socket)) as client:
        assert client.lrange("queue", 0, -1) == [b"look at job 7"]


def test_celery_reaches_the_socket(tmp_path: Path) -> None:
    """The address goes through kombu with a folder name that needs quoting."""
    from kombu import Connection

    home = Home(tmp_path / "a b")
    with running(home, wheel()), Connection(broker.embedded_url(home)) as connection:
        queue = connection.SimpleQueue("io")
        queue.put({"job": 7}, serializer="json")
        message = queue.get(timeout=2)
        assert message.payload == {"job": 7}
        message.ack()
        queue.close()


def test_unreadable_data_is_set_aside(tmp_path: Path) -> None:
    home, program = Home(tmp_path), wheel()
    assert broker.set_aside(home, program, "1") is None
    broker.prepare(home, program)
    (broker.data_folder(home, program) / "appendonly.aof").write_text("torn")
    kept = broker.set_aside(home, program, "2")
    assert kept is not None and (kept / "appendonly.aof").read_text() == "torn"
    assert not broker.data_folder(home, program).exists()


def test_password_is_never_shown() -> None:
    with pytest.raises(broker.BrokerUnavailable) as caught:
        broker.ping("redis://user:hunter2@127.0.0.1:1/0", timeout_s=0.2)
    assert "hunter2" not in str(caught.value) and "127.0.0.1" in str(caught.value)


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="no redis-server on PATH")
def test_server_of_the_system(tmp_path: Path) -> None:
    home, program = Home(tmp_path), broker.find_server()
    assert program.origin == "path"
    with running(home, program):
        assert broker.ping(broker.embedded_url(home)).startswith("redis ")


def test_redis_url_of_a_real_server(redis_url: str) -> None:
    assert broker.ping(redis_url).split()[0] in ("redis", "valkey")
