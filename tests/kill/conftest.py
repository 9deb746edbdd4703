"""Fixtures of the kill suite, and its table: one line for each kill while it runs, counts at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from tests.e2e.fixtures import cache as cache
from tests.e2e.fixtures import tried as tried
from tests.e2e.fixtures import undisturbed as undisturbed

COUNTS: Counter[str] = Counter()
Say = Callable[[str], None]


@pytest.fixture(scope="session")
def say(request: pytest.FixtureRequest) -> Say:
    """Write a line to the terminal at once, past the capture."""
    plugins = request.config.pluginmanager
    terminal, capture = plugins.getplugin("terminalreporter"), plugins.getplugin("capturemanager")

    def line(text: str) -> None:
        if terminal is None or capture is None:
            return
        with capture.global_and_fixture_disabled():
            terminal.ensure_newline()
            terminal.write_line(text)
            terminal.flush()

    return line


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How often what was killed."""
    if COUNTS:
        terminalreporter.section("kills")
        for what, count in sorted(COUNTS.items()):
            terminalreporter.write_line(f"{count:4d}  {what}")
