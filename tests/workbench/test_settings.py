"""Settings: defaults, each variable, and a plain refusal that names it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as configured
from django.core.exceptions import ImproperlyConfigured
from django.db.utils import ConnectionHandler

from workbench import settings
from workbench.paths import SOCKET_PATH_LIMIT, Home, private_directory


def start(home: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Load the settings in a fresh process and print what they chose."""
    code = (
        "from workbench import settings as s; print(s.HOME.root, s.DATABASES['default']['ENGINE'], s.CELERY_BROKER_URL)"
    )
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "WORKBENCH_HOME": str(home / "data"), **variables}
    return subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
    )


def test_defaults_need_no_variable(tmp_path: Path) -> None:
    result = start(tmp_path)
    home, engine, broker = result.stdout.split()
    assert (home, engine) == (str(tmp_path / "data"), "django.db.backends.sqlite3")
    assert broker == f"redis+socket://{tmp_path}/data/run/broker.sock?virtual_host=0"


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("DATABASE_URL", "mysql://u@h/d", "expected postgres or postgresql"),
        ("DATABASE_URL", "postgres://u@h:port/d", "expected a port number"),
        ("DATABASE_URL", "postgres://u@h/", "expected one name after the host"),
        ("REDIS_URL", "amqp://h", "expected redis, rediss or redis+socket"),
        ("WORKBENCH_BROKER_URL", "sqla+sqlite:///x", "lose a message"),
        ("WORKBENCH_DEBUG", "yes", "expected 0 or 1"),
        ("WORKBENCH_LOG_LEVEL", "loud", "expected DEBUG, INFO, WARNING or ERROR"),
        ("WORKBENCH_SECRET_KEY", "short", "expected at least 40"),
        ("WORKBENCH_HOME", __file__, "is no folder"),
    ],
)
def test_wrong_value_stops_the_start_and_names_its_variable(
    tmp_path: Path, variable: str, value: str, expected: str
) -> None:
    result = start(tmp_path, **{variable: value})
    assert result.returncode != 0
    last = result.stderr.strip().splitlines()[-1]
    assert variable in last and expected in last


def test_broker_variables_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings.broker_from_environment() is None
    monkeypatch.setenv("REDIS_URL", "redis://second/0")
    assert settings.broker_from_environment() == "redis://second/0"
    monkeypatch.setenv("WORKBENCH_BROKER_URL", "rediss://first/1")
    assert settings.broker_from_environment() == "rediss://first/1"


def test_database_url_parts_are_unquoted() -> None:
    """``p%40ss`` is ``p@ss``; the query's host wins over the authority; the rest are driver options."""
    found = settings.postgres_database("postgresql://me:p%40ss@server:5433/work%20bench?sslmode=require")
    assert (found["USER"], found["PASSWORD"], found["HOST"], found["PORT"]) == ("me", "p@ss", "server", "5433")
    assert (found["NAME"], found["OPTIONS"]) == ("work bench", {"sslmode": "require"})
    socket = settings.postgres_database("postgres://me@/db?host=/run/pg&port=6000")
    assert (socket["HOST"], socket["PORT"], socket["OPTIONS"]) == ("/run/pg", "6000", {})


@pytest.mark.django_db
def test_sqlite_pragmas_hold_on_a_real_connection(tmp_path: Path) -> None:
    """Journal wal, synchronous 2 (FULL), keys and recursive triggers 1, 256 MiB map, 64 MiB cache (-65536 KiB)."""
    expected = {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "recursive_triggers": 1,
        "mmap_size": 268435456,
        "cache_size": -65536,
        "busy_timeout": 20000,
    }
    product = settings.sqlite_database(Home(tmp_path))  # the tests' own connection does not wait for the disk
    own = ConnectionHandler({"default": product})["default"]
    try:
        with own.cursor() as cursor:
            found = {name: cursor.execute(f"PRAGMA {name}").fetchone()[0] for name in expected}
        assert found == expected
        assert own.transaction_mode == "IMMEDIATE"
    finally:
        own.close()
    assert configured.DATABASES["default"]["CONN_MAX_AGE"] is None


@pytest.mark.postgres
def test_postgres_url_reaches_a_real_server(postgres_url: str, django_db_blocker: Any) -> None:
    from django.db.backends.postgresql.base import DatabaseWrapper

    values = settings.postgres_database(postgres_url)
    defaults = {"TIME_ZONE": None, "ATOMIC_REQUESTS": False, "AUTOCOMMIT": True, "CONN_MAX_AGE": 0, "TEST": {}}
    wrapper = DatabaseWrapper({**defaults, **values}, "other")
    try:
        with django_db_blocker.unblock(), wrapper.cursor() as cursor:
            cursor.execute("SELECT current_database()")
            assert cursor.fetchone() == ("workbench",)
    finally:
        wrapper.close()


def test_secret_key_is_private_and_the_same_for_processes_that_start_together(tmp_path: Path) -> None:
    homes = [Home(tmp_path / "home") for _ in range(16)]
    with ThreadPoolExecutor(16) as pool:
        keys = set(pool.map(lambda home: home.ensure_secret_key(), homes))
    assert len(keys) == 1
    assert stat.S_IMODE(homes[0].secret_key.stat().st_mode) == 0o600
    assert stat.S_IMODE(homes[0].root.stat().st_mode) == 0o700
    assert [path.name for path in homes[0].root.iterdir()] == ["secret_key"]


def test_truncated_secret_key_is_refused(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.secret_key.write_text("abc")
    with pytest.raises(ValueError, match="got 3 characters, expected at least 40"):
        home.ensure_secret_key()


def test_socket_moves_to_a_short_folder_when_the_home_is_deep(tmp_path: Path) -> None:
    deep = Home(tmp_path / ("x" * 100))
    assert len(os.fsencode(deep.broker_socket)) <= SOCKET_PATH_LIMIT
    assert deep.broker_socket.parent.name == f"workbench-{os.getuid()}-{deep.digest}"
    assert Home(Path("/short")).broker_socket == Path("/short/run/broker.sock")


def test_private_folder_refuses_a_link_and_tightens_its_mode(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir(mode=0o755)
    private_directory(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    link = tmp_path / "link"
    link.symlink_to(folder)
    with pytest.raises(PermissionError, match="expected a folder of uid"):
        private_directory(link)


def test_lower_case_helper_gives_a_complete_child_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONE", "1")
    assert settings.child_environment({"TWO": "2"}).items() >= {"ONE": "1", "TWO": "2"}.items()


def test_flag_default_and_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings.read_flag("WORKBENCH_ABSENT", default=True) is True
    monkeypatch.setenv("WORKBENCH_ABSENT", "0")
    assert settings.read_flag("WORKBENCH_ABSENT", default=True) is False
    monkeypatch.setenv("WORKBENCH_ABSENT", "")
    with pytest.raises(ImproperlyConfigured, match="WORKBENCH_ABSENT: got ''"):
        settings.read_flag("WORKBENCH_ABSENT", default=True)


def test_responses_carry_the_content_security_policy() -> None:
    from django.test import Client

    response = Client().get("/healthz")
    policy = dict(part.split(" ", 1) for part in response.headers["Content-Security-Policy"].split("; "))
    assert policy["script-src"] == policy["style-src"] == "'self'"
    assert "unsafe" not in response.headers["Content-Security-Policy"]
    assert response.headers["X-Frame-Options"] == "DENY"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert Client().post("/healthz").status_code == 405
    assert Client(headers={"host": "evil.example"}).get("/healthz").status_code == 400
