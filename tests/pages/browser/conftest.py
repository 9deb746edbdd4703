"""A real server on a world of its own, and a real browser in front of it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from django.conf import settings
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass
class Site:
    """Where the server answers, and addresses of pages by name."""

    base: str
    addresses: dict[str, str]

    def url(self, name: str) -> str:
        """Full address of a page, by name or by path."""
        return self.base + self.addresses.get(name, name)


@contextlib.contextmanager
def served(module: str, folders: pytest.TempPathFactory) -> Iterator[Site]:
    """The server of ``module`` (``python -m MODULE PORT``) in a process and a home of its own, until the block ends.

    Once it is ready, it prints one line: what the tests must know, as a JSON object.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    home, log = folders.mktemp("browser-home"), folders.mktemp("browser-log") / "server.log"
    with log.open("wb") as errors:
        server = subprocess.Popen(
            [sys.executable, "-m", module, str(port)],
            cwd=settings.BASE_DIR,
            env={**os.environ, "WORKBENCH_HOME": str(home), "WORKBENCH_LOG_LEVEL": "ERROR"},
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        try:
            assert server.stdout is not None
            line = server.stdout.readline()
            assert line.startswith(b"{"), log.read_text()
            _await(f"http://127.0.0.1:{port}/healthz", server, log)
            yield Site(f"http://127.0.0.1:{port}", json.loads(line))
        finally:
            server.terminate()
            server.wait(20)
            assert server.stdout is not None
            server.stdout.close()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The pages' server, for the whole session."""
    with served("tests.pages.browser.serve", tmp_path_factory) as found:
        yield found


def _await(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(200):
        assert server.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"no answer from {url}: {log.read_text()}")


BROWSER = pytest.StashKey[Browser]()


@pytest.fixture(scope="session")
def browser(request: pytest.FixtureRequest, django_db_setup: None) -> Iterator[Browser]:
    """The system's chromium; skips where there is none. One for the whole run: folders share this fixture by import,
    and a second driver would find the first one's event loop running. It ends before the test database does, which
    cannot be removed while that loop runs: hence ``django_db_setup``."""
    kept = request.config.stash.get(BROWSER, None)
    if kept is not None:
        yield kept
        return
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("chromium is not on PATH (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=program, args=FLAGS)
        request.config.stash[BROWSER] = found
        yield found
        del request.config.stash[BROWSER]
        found.close()


@dataclass
class Watched:
    """A page with everything that it complained about."""

    page: Page
    complaints: list[str] = field(default_factory=list)


@pytest.fixture
def context(browser: Browser, request: pytest.FixtureRequest) -> Iterator[BrowserContext]:
    """A fresh profile; a test may set ``options`` by an indirect parameter."""
    options = {"viewport": {"width": 1440, "height": 900}, "color_scheme": "light", **getattr(request, "param", {})}
    found = browser.new_context(**options)
    yield found
    found.close()


@pytest.fixture
def watched(context: BrowserContext) -> Watched:
    """A page whose console errors, exceptions and policy violations are collected."""
    page = context.new_page()
    found = Watched(page)
    page.on("console", lambda m: found.complaints.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: found.complaints.append(str(error)))
    page.add_init_script(
        "addEventListener('securitypolicyviolation',"
        " e => console.error('CSP ' + e.violatedDirective + ' ' + e.blockedURI))"
    )
    return found


def eventually(page: Page, expression: str, argument: object = None, seconds: float = 15.0) -> None:
    """Wait until a script expression holds. Asked from outside, since the page's policy forbids evaluation inside."""
    end = time.monotonic() + seconds
    while not page.evaluate(expression, argument):
        assert time.monotonic() < end, f"did not come true: {expression}"
        page.wait_for_timeout(100)


def sign_in(page: Page, site: Site, name: str, password: str = "correct horse battery") -> None:
    """Through the sign-in page, as a person does."""
    page.goto(site.url("/accounts/login/?next=/plans/"))
    page.locator("#id_username").fill(name)
    page.locator("#id_password").fill(password)
    page.locator("#id_password").press("Enter")
    page.wait_for_url("**/plans/")
