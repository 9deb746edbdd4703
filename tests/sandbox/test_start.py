"""A program starts bounded, on the tree that it was given, and its start does not copy the caller."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from worker.sandbox import cgroups, gate, given
from worker.sandbox.base import Limits, Program, SandboxFault
from worker.sandbox.bubblewrap import Bubblewrap
from worker.sandbox.workspace import workspace

PYTHON = os.path.realpath(sys.executable)
LISTS = b"""
import os
for at, folders, names in sorted(os.walk("/w")):
    for name in sorted(names):
        place = os.path.join(at, name)
        link = os.readlink(place) if os.path.islink(place) else ""
        print(place, oct(os.lstat(place).st_mode & 0o777), link or len(open(place).read()))
    print(at, sorted(folders))
"""


@pytest.fixture(scope="module")
def sandbox() -> Bubblewrap:
    return Bubblewrap()


def lines(sandbox: Bubblewrap, folder: Path) -> list[str]:
    found = sandbox.run(folder, Program([PYTHON, "-I", "-S", "/w/a.py"]), Limits())
    assert found.exit_code == 0, found.stderr
    return found.stdout.decode().splitlines()


def test_both_ways_give_the_same_tree(sandbox: Bubblewrap, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written by bwrap, or copied where more files are in it than it is given: contents, modes, empty folders."""
    with workspace({"a.py": LISTS, "b/c/d.py": b"12345", "b/e.py": b""}) as folder:
        (folder / "b" / "empty").mkdir()
        (folder / "b" / "e.py").chmod(0o755)
        assert given.found_in(folder).is_plain
        written = lines(sandbox, folder)
        monkeypatch.setattr(given, "MOST_GIVEN", 2)
        assert not given.found_in(folder).is_plain
        assert lines(sandbox, folder) == written
    assert "/w/b/c/d.py 0o644 5" in written and "/w/b/e.py 0o755 0" in written and "/w/b ['c', 'empty']" in written


def test_a_tree_with_a_link_is_copied_as_it_is(sandbox: Bubblewrap, tmp_path: Path) -> None:
    """The link is no file of the tree: nothing of what it names is given."""
    (tmp_path / "secret").write_text("hidden")
    with workspace({"a.py": LISTS.replace(b"link or len(", b"link or (")}) as folder:
        os.symlink(tmp_path / "secret", folder / "link")
        found = given.found_in(folder)
        assert not found.is_plain
        with pytest.raises(OSError):
            given.opened(folder, found)
        said = lines(sandbox, folder)
    assert f"/w/link 0o777 {tmp_path / 'secret'}" in said and not any("hidden" in line for line in said)


def test_sizes_are_whole_pages(tmp_path: Path) -> None:
    """4,096 for the folder; a name and two pages for 4,097 bytes; a name for an empty folder."""
    (tmp_path / "a").write_bytes(b"x" * 4097)
    (tmp_path / "b").mkdir()
    found = given.found_in(tmp_path)
    assert found.size == 4096 + (4096 + 2 * 4096) + 4096
    assert [path for path, _ in found.files] == ["a"] and [path for path, _ in found.folders] == ["b"]


def test_the_start_copies_nothing_of_the_caller(sandbox: Bubblewrap, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function between fork and exec would copy the page tables of a process that holds a model."""
    asked: list[dict[str, Any]] = []
    real = subprocess.Popen

    def popen(*arguments: Any, **options: Any) -> Any:
        asked.append(options)
        return real(*arguments, **options)

    monkeypatch.setattr(subprocess, "Popen", popen)
    with workspace({"a": b"x"}) as folder:
        assert sandbox.run(folder, Program(["/bin/cat", "a"]), Limits()).stdout == b"x"
    assert len(asked) == 1 and asked[0].get("preexec_fn") is None


@pytest.mark.parametrize("is_first", [True, False])
def test_bounds_hold_from_the_first_instruction(sandbox: Bubblewrap, is_first: bool) -> None:
    limits = Limits(cpu_s=7, file_bytes=12_345_678, open_files=77)
    code = b"""
import resource as r
print(*[r.getrlimit(name) for name in (r.RLIMIT_CPU, r.RLIMIT_FSIZE, r.RLIMIT_CORE, r.RLIMIT_NOFILE)])
print(open("/proc/self/cgroup").read())
"""
    with workspace({"a.py": code}) as folder:
        found = sandbox.run(folder, Program([PYTHON, "-I", "-S", "a.py"], is_first=is_first), limits)
    first, rest = found.stdout.decode().split("\n", 1)
    assert first == "(7, 8) (12345678, 12345678) (0, 0) (77, 77)"
    assert rest.count(cgroups.PREFIX) == len(cgroups.places())


@pytest.mark.parametrize(
    ("error", "said"),
    [(errno.EACCES, "the program could not be bounded"), (errno.ESRCH, "^sandbox: ")],
    ids=["refused", "gone"],
)
def test_a_program_that_cannot_be_bounded_never_starts(
    sandbox: Bubblewrap, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: int, said: str
) -> None:
    """A fault of the sandbox, whether or not bwrap still waits."""
    opened: list[int] = []

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(gate, "bound", refuse)
    monkeypatch.setattr(gate.Gate, "open", lambda self: opened.append(1))
    with workspace({"a": b"x"}) as folder, pytest.raises(SandboxFault, match=said):
        sandbox.run(folder, Program(["/bin/cat", "a"]), Limits(wall_s=1.0))
    assert not opened


def test_a_gate_closes_all_that_it_opened() -> None:
    before = len(os.listdir("/proc/self/fd"))
    with gate.Gate() as start:
        assert len(os.listdir("/proc/self/fd")) == before + 4
        os.write(start.inherited[0], b'{ "child-pid": 41, "x": 1 }\n')
        assert start.child() == 41 and not start.is_open
        start.open()
        assert start.is_open and b"child-pid" in start.said()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_bwrap_that_ends_before_its_child_leaves_none() -> None:
    with gate.Gate() as start:
        assert start.child() is None and not start.is_open


V2, V1 = "memory.events", "memory.oom_control"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),  # nothing counts it
        ({V2: "low 0\nhigh 0\nmax 4\noom 0\noom_kill 0\n"}, None),
        ({V2: "max 4\noom 2\noom_kill 1\n"}, cgroups.BOUND),
        ({V2: "max 0\noom 0\noom_kill 1\n"}, cgroups.MACHINE),
        ({V1: "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n", "memory.failcnt": "7\n"}, None),
        ({V1: "under_oom 0\noom_kill 1\n", "memory.failcnt": "7\n"}, cgroups.BOUND),
        ({V1: "under_oom 0\noom_kill 1\n", "memory.failcnt": "0\n"}, cgroups.MACHINE),
        ({V1: "under_oom 0\n", "memory.failcnt": "7\n"}, None),  # a kernel that does not count
    ],
)
def test_whose_memory_ran_out(tmp_path: Path, files: dict[str, str], expected: str | None) -> None:
    """A process that was ended while its group never met its bound was ended for want of the machine's memory."""
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert cgroups.Groups({"memory": tmp_path}).ended_for_memory() == expected
    assert cgroups.Groups({"pids": tmp_path}).ended_for_memory() is None


def test_a_machine_without_memory_is_nobodys_verdict(sandbox: Bubblewrap, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program ended well, and something in it did not: what it said of that may be taken for its own failure."""
    program = Program([PYTHON, "-I", "-S", "-c", "print(1)"])
    with workspace({"a.py": b""}) as folder:
        assert sandbox.run(folder, program, Limits()).out_of_memory is False
        monkeypatch.setattr(cgroups.Groups, "ended_for_memory", lambda self: cgroups.BOUND)
        assert sandbox.run(folder, program, Limits()).out_of_memory is True
        monkeypatch.setattr(cgroups.Groups, "ended_for_memory", lambda self: cgroups.MACHINE)
        with pytest.raises(SandboxFault, match="the machine ran out of memory"):
            sandbox.run(folder, program, Limits())
