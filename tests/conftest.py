"""Fixtures shared by all tests: an isolated data directory, and real PostgreSQL and Redis servers."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import django
import pytest
from django.conf import settings
from django.utils import translation
from pytest_django import DjangoDbBlocker

# Before Django reads its settings: no test may touch the user's data directory or services.
_home = tempfile.mkdtemp(prefix="workbench-tests-")
os.environ["WORKBENCH_HOME"] = _home
os.environ.setdefault("WORKBENCH_TEST_TEMPLATES", f"{_home}/templates")
os.environ["DJANGO_SETTINGS_MODULE"] = "workbench.settings"
os.environ.setdefault("OMP_NUM_THREADS", "1")
for _name in ("WORKBENCH_BROKER_URL", "REDIS_URL", "DATABASE_URL", "WORKBENCH_SECRET_KEY", "WORKBENCH_DEBUG"):
    os.environ.pop(_name, None)

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # of a shell that began it in its background
    signal.signal(signal.SIGINT, signal.default_int_handler)

django.setup()  # pytest-django looked for the settings before this file could choose the data directory

# Accounts are made by the hundred: a quick hash first, the real ones behind it for passwords of real servers.
settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher", *settings.PASSWORD_HASHERS]

# No test outlives a loss of power: commits need not wait for the disk (9.6 ms each). Servers of their own keep FULL.
_options = settings.DATABASES["default"]["OPTIONS"]
_options["init_command"] = _options["init_command"].replace("synchronous=FULL", "synchronous=OFF")

from tests import servers, template  # noqa: E402  (after the environment is set)

SKIPS_FAIL = os.environ.get("WORKBENCH_TEST_NO_SKIPS") == "1"


def pytest_collection_finish() -> None:
    """What collecting made stays to the end: looking through it for garbage takes a tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)


def pytest_xdist_setupnodes() -> None:
    """Workers inherit this environment, and would read their settings before they chose a directory of their own."""
    os.environ.pop("DJANGO_SETTINGS_MODULE", None)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the data directory of this test run."""
    shutil.rmtree(Path(_home), ignore_errors=True)


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip into a failure that keeps its reason."""
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    report.outcome = "failed"
    report.longrepr = f"skips are refused here (WORKBENCH_TEST_NO_SKIPS=1): {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Where skips are refused, only a missing CUDA device may skip a test."""
    report = yield
    if SKIPS_FAIL and report.skipped and not hasattr(report, "wasxfail") and item.get_closest_marker("gpu") is None:
        _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Iterator[None]:
    """The same for whole modules that skip themselves."""
    report = yield
    if SKIPS_FAIL and report.skipped:
        _refuse_skip(report)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many tests did not run here."""
    skipped = len(terminalreporter.stats.get("skipped", []))
    if skipped:
        terminalreporter.write_line(f"{skipped} tests were skipped on this machine; their reasons stand above")


@pytest.fixture(autouse=True)
def language() -> Iterator[None]:
    """Every test begins in the default language, whatever a page of the test before it was answered in."""
    translation.deactivate()
    yield
    translation.deactivate()


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """The test database is a copy of the migrated template: it is there already, and nothing is left to migrate."""
    return True


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_blocker: DjangoDbBlocker) -> None:
    """Put the copy in its place before the database is set up."""
    file = Path(settings.DATABASES["default"]["TEST"]["NAME"])
    with django_db_blocker.unblock():
        shutil.copy(template.migrated_file(), file)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[servers.Postgres]:
    """A PostgreSQL server in a temporary folder; skips where its programs are absent."""
    programs = servers.postgres_programs()
    if programs is None:
        pytest.skip("PostgreSQL's initdb and postgres are not installed (Debian: apt-get install postgresql)")
    with servers.postgres(programs) as server:
        yield server


@pytest.fixture(scope="session")
def postgres_url(postgres_server: servers.Postgres) -> str:
    """Address of one database for the whole test run."""
    return postgres_server.create("workbench")


@pytest.fixture
def fresh_postgres_url(postgres_server: servers.Postgres) -> Iterator[str]:
    """Address of an empty database that only this test uses."""
    name = f"fresh_{os.urandom(4).hex()}"
    yield postgres_server.create(name)
    postgres_server.drop(name)


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """Address of a Redis or Valkey server of the system; skips where there is none."""
    program = servers.redis_program()
    if program is None:
        pytest.skip("no redis-server or valkey-server on PATH (Debian: apt-get install redis-server)")
    with servers.redis(program) as url:
        yield url


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Real-browser tests come last: their driver keeps an event loop running, which Django and asyncio refuse."""
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)
