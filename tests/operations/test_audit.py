"""The audit of packages: what it says and with which status; and doctor's look at bubblewrap."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import audit
from workbench import examination

CLEAN = {"name": "a", "version": "1", "vulns": []}
LOCAL = {"name": "torch", "version": "2+cpu", "skip_reason": "not found on PyPI: torch (2.0+cpu)"}
ABSENT = {"name": "b", "version": "1", "skip_reason": "not found on PyPI: b (1)"}
BAD = {"name": "c", "version": "1", "vulns": [{"id": "PYSEC-1", "fix_versions": ["1.1"]}]}


@pytest.mark.parametrize(
    ("packages", "status", "line"),
    [
        ([CLEAN], 0, "1 packages, no known vulnerability"),
        ([CLEAN, LOCAL], 0, "looked up nowhere: torch"),
        ([CLEAN, ABSENT], 3, "COULD NOT RUN for 1 of 2 packages"),
        ([CLEAN, ABSENT, BAD], 1, "c 1: PYSEC-1, mended in 1.1"),
        ([], 3, "COULD NOT RUN"),
        (None, 3, "COULD NOT RUN (no network)"),
    ],
)
def test_each_outcome_has_its_status(packages: Any, status: int, line: str) -> None:
    """A vulnerability outweighs what could not be looked up; what could not be looked up is no pass."""
    said: list[str] = []
    report = None if packages is None else {"dependencies": packages}
    assert audit.judge(report, "no network", said.append) == status
    assert line in "\n".join(said)


def test_without_a_network_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real program against addresses that nobody answers."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    report, complaint = audit.look_up()
    said: list[str] = []
    assert audit.judge(report, complaint, said.append) == 3 and "COULD NOT RUN" in said[-1]


def sandbox() -> examination.Finding:
    return next(iter(examination.check_sandbox()))


def test_bubblewrap_is_tried(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Absent, broken, refused by the kernel, in order; never required."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert (sandbox().state, sandbox().mend) == ("missing", "apt-get install bubblewrap")
    program = tmp_path / "bwrap"
    program.write_text("no program")
    program.chmod(0o755)
    assert sandbox().state == "broken" and "does not run" in sandbox().value
    program.write_text('#!/bin/sh\n[ "$1" = --version ] && echo bubblewrap 9 && exit 0\necho "no rights" >&2\nexit 1\n')
    assert sandbox().state == "broken" and "no rights" in sandbox().value and sandbox().mend
    program.write_text("#!/bin/sh\necho bubblewrap 9\n")
    assert sandbox().state == "ok" and "bubblewrap 9" in sandbox().value
    assert not sandbox().is_required
    monkeypatch.setattr("sys.platform", "darwin")
    assert sandbox().state == "note"


def test_the_switch_that_stands_against_namespaces_is_named(tmp_path: Path) -> None:
    assert "configured" in examination.namespaces(tmp_path)
    (tmp_path / "kernel").mkdir()
    (tmp_path / "kernel/unprivileged_userns_clone").write_text("0\n")
    assert examination.namespaces(tmp_path) == "sysctl -w kernel.unprivileged_userns_clone=1"
    (tmp_path / "kernel/apparmor_restrict_unprivileged_userns").write_text("1\n")
    assert examination.namespaces(tmp_path) == "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
    (tmp_path / "kernel/apparmor_restrict_unprivileged_userns").write_text("0\n")
    (tmp_path / "kernel/unprivileged_userns_clone").write_text("1\n")
    assert "configured" in examination.namespaces(tmp_path)


def test_make_tells_an_audit_that_could_not_run_from_one_that_failed() -> None:
    """The recipe's own shell line: 3 passes with its message, 1 does not."""
    recipe = (Path(__file__).resolve().parents[2] / "Makefile").read_text()
    assert "-m tests.audit || [ $$? -eq 3 ] || exit 1" in recipe
    for status, expected in ((0, 0), (1, 1), (3, 0), (2, 1)):
        shell = f"sh -c 'exit {status}' || [ $? -eq 3 ] || exit 1"
        assert subprocess.run(["sh", "-c", shell], check=False).returncode == expected
