"""Every property that ``worker.sandbox.base`` says is covered, attacked from inside; and the same where it is not."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from worker.sandbox import cgroups
from worker.sandbox.base import MEBIBYTE, Limits, Outcome, Program, SandboxFault
from worker.sandbox.bubblewrap import Bubblewrap
from worker.sandbox.traces import groups_now, traces
from worker.sandbox.workspace import TreeRefused, read_tree, workspace

PYTHON = os.path.realpath(sys.executable)


@pytest.fixture(scope="module")
def sandbox() -> Bubblewrap:
    return Bubblewrap()


def attack(sandbox: Bubblewrap, code: str, limits: Limits | None = None, **files: bytes) -> Outcome:
    """Run Python code as the artefact."""
    with workspace({"attack.py": code.encode(), **files}) as folder:
        return sandbox.run(folder, Program([PYTHON, "-I", "-S", "attack.py"]), limits or Limits())


def said(outcome: Outcome) -> str:
    return outcome.stdout.decode()


def test_an_honest_program_runs(sandbox: Bubblewrap) -> None:
    found = attack(sandbox, "import sys; print(open('data').read(), len(sys.argv)); sys.exit(3)", data=b"seen")
    assert (found.exit_code, found.signal, found.timed_out, said(found)) == (3, None, False, "seen 1\n")
    assert found.level.backend == "bubblewrap" and not found.level.unisolated
    assert found.setup_s >= 0 and 0 < found.run_s < 10 and found.cleanup_s >= 0


def test_the_network_is_not_there(sandbox: Bubblewrap) -> None:
    """Not the host's loopback, where something listens, nor any address outside, nor a name."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"""
import socket
for address in (("127.0.0.1", {port}), ("8.8.8.8", 53)):
    try:
        socket.create_connection(address, timeout=1); print("connected")
    except OSError as error: print(type(error).__name__)
"""
        found = attack(sandbox, code)
        with socket.create_connection(("127.0.0.1", port), timeout=2):
            pass  # the server was there all the time
    assert "connected" not in said(found) and len(said(found).split()) == 2


def test_unix_sockets_of_the_host_are_not_there(sandbox: Bubblewrap, tmp_path: Path) -> None:
    place = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(place))
        server.listen()
        code = f"import socket; s = socket.socket(socket.AF_UNIX); print(s.connect_ex({str(place)!r}))"
        assert said(attack(sandbox, code)).strip() == "2"  # no such file


def test_no_process_outside_is_seen_or_signalled(sandbox: Bubblewrap) -> None:
    victim = subprocess.Popen(["/bin/sleep", "30"])
    try:
        code = f"""
import os, signal
print(sorted(int(name) for name in os.listdir("/proc") if name.isdigit()))
for pid in ({victim.pid}, {os.getpid()}):
    try: os.kill(pid, signal.SIGKILL); print("signalled")
    except OSError as error: print(type(error).__name__)
"""
        found = attack(sandbox, code)
        pids = said(found).splitlines()[0]
        assert len(pids.split(",")) <= 4 and "signalled" not in said(found)
        assert victim.poll() is None
    finally:
        victim.kill()
        victim.wait()


def test_its_parent_cannot_be_ended_from_inside(sandbox: Bubblewrap) -> None:
    """Killing process 1 of its own space and its own group ends the program, and nothing else."""
    found = attack(sandbox, "import os, signal; os.kill(1, signal.SIGKILL); os.killpg(0, signal.SIGTERM)")
    assert found.exit_code != 0
    assert said(attack(sandbox, "print('next')")) == "next\n"


def test_a_fork_bomb_is_bounded_and_leaves_nothing(sandbox: Bubblewrap) -> None:
    code = """
import os, time
made = 0
while True:
    try:
        if os.fork() == 0: time.sleep(60); os._exit(0)
        made += 1
    except OSError: break
print(made, flush=True)
"""
    found = attack(sandbox, code, Limits(processes=16))
    assert 0 < int(said(found)) <= 16
    assert _left_over() == 0


def _left_over() -> int:
    """Processes that sleep as the attacks' children do, once the kernel has had a moment to end their space."""
    end = time.monotonic() + 3
    while (count := _running()) and time.monotonic() < end:
        time.sleep(0.05)
    return count


def _running() -> int:
    return sum(
        1
        for place in Path("/proc").glob("[0-9]*/cmdline")
        if b"attack.py" in _bytes_of(place) and place.parent.name != str(os.getpid())
    )


def _bytes_of(place: Path) -> bytes:
    try:
        return place.read_bytes()
    except OSError:
        return b""


def test_children_do_not_survive_the_program(sandbox: Bubblewrap) -> None:
    """Two forks and a session of its own: what hides from a process group."""
    code = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for descriptor in range(3): os.close(descriptor)
        time.sleep(60)
    os._exit(0)
print("parent is done")
"""
    began = time.monotonic()
    found = attack(sandbox, code)
    assert found.exit_code == 0 and time.monotonic() - began < 8
    assert _left_over() == 0


def test_a_program_that_never_ends_is_ended(sandbox: Bubblewrap) -> None:
    began = time.monotonic()
    found = attack(sandbox, "import time; time.sleep(60)", Limits(wall_s=0.7))
    assert found.timed_out and time.monotonic() - began < 5 and _left_over() == 0


def test_cpu_time_is_bounded(sandbox: Bubblewrap) -> None:
    found = attack(sandbox, "while True: pass", Limits(cpu_s=1, wall_s=20))
    assert not found.timed_out and found.exit_code != 0
    assert found.run_s < 10


def test_memory_is_bounded(sandbox: Bubblewrap) -> None:
    """1 GiB that is written to does not fit into 128 MiB."""
    code = "held = bytearray(1 << 30)\nfor place in range(0, 1 << 30, 4096): held[place] = 1\nprint('held')"
    found = attack(sandbox, code, Limits(memory_bytes=128 * MEBIBYTE, scratch_bytes=8 * MEBIBYTE))
    assert "held" not in said(found) and found.exit_code != 0


def test_files_and_scratch_space_are_bounded(sandbox: Bubblewrap) -> None:
    """One file stops at its bound; many files in /tmp stop at the size of /tmp."""
    one = attack(
        sandbox, "f = open('/w/big', 'wb')\nwhile True: f.write(b'x' * 65536)", Limits(file_bytes=4 * MEBIBYTE)
    )
    assert one.exit_code != 0
    many = """
number = 0
try:
    while True:
        with open(f"/tmp/{number}", "wb") as f: f.write(b"x" * 1000000)
        number += 1
except OSError: print(number)
"""
    found = attack(sandbox, many, Limits(scratch_bytes=8 * MEBIBYTE))
    assert 0 < int(said(found)) <= 8


def test_the_workspace_cannot_fill_the_disk(sandbox: Bubblewrap) -> None:
    """Many files of permitted size: the program's own copy is full at its bound, and the folder has nothing of it."""
    code = """
number = 0
try:
    while True:
        with open(f"/w/{number}", "wb") as f: f.write(b"x" * 1000000)
        number += 1
except OSError as error: print(number, error.errno)
"""
    with workspace({"attack.py": code.encode()}) as folder:
        program = Program([PYTHON, "-I", "-S", "attack.py"])
        found = sandbox.run(folder, program, Limits(scratch_bytes=8 * MEBIBYTE))
        assert sorted(read_tree(folder)) == ["attack.py"]
    number, reason = map(int, said(found).split())
    assert 0 < number <= 8 and reason == errno.ENOSPC


def test_the_workspace_folder_is_read_and_never_written(sandbox: Bubblewrap) -> None:
    """The original is shown read-only; changes of the copy, deletions too, end with the run."""
    code = """
import os
os.unlink("data"); os.unlink("attack.py"); open("new", "w").write("x")
for place in ("/in/data", "/in/new"):
    try: open(place, "w"); print("wrote")
    except OSError as error: print(type(error).__name__)
print(sorted(os.listdir("/w")), open("/in/data").read())
"""
    with workspace({"attack.py": code.encode(), "data": b"whole"}) as folder:
        found = sandbox.run(folder, Program([PYTHON, "-I", "-S", "attack.py"]), Limits())
        assert read_tree(folder)["data"] == b"whole" and sorted(read_tree(folder)) == ["attack.py", "data"]
    assert said(found).splitlines() == ["OSError", "OSError", "['new'] whole"]


def test_a_tree_larger_than_the_scratch_bound_fits(sandbox: Bubblewrap) -> None:
    """The bound is on what is written, not on what was given: 3 MiB in 60 files under a bound of 1 MiB."""
    files = {f"folder/{number}": b"x" * 52_429 for number in range(60)}
    with workspace({**files, "attack.py": b"import os; print(len(os.listdir('folder')))"}) as folder:
        program = Program([PYTHON, "-I", "-S", "attack.py"])
        found = sandbox.run(folder, program, Limits(scratch_bytes=MEBIBYTE))
    assert said(found) == "60\n"


def test_no_descriptor_of_the_host_is_passed_on(sandbox: Bubblewrap) -> None:
    """Three streams, and the folder that is being listed."""
    with open(__file__, "rb") as file:
        os.set_inheritable(file.fileno(), True)
        found = attack(sandbox, "import os; print(sorted(map(int, os.listdir('/proc/self/fd'))))")
    assert eval(said(found)) == [0, 1, 2, 3]


def test_open_files_are_bounded(sandbox: Bubblewrap) -> None:
    code = "held = []\ntry:\n    while True: held.append(open('attack.py'))\nexcept OSError: print(len(held))"
    assert 0 < int(said(attack(sandbox, code, Limits(open_files=40)))) <= 40


def test_a_program_that_speaks_as_bwrap_is_an_outcome(sandbox: Bubblewrap) -> None:
    """What makes a fault of the sandbox cannot be printed: else an artefact could make its failures unknown."""
    found = attack(sandbox, "import sys; sys.stderr.write('bwrap: setting up failed'); sys.exit(1)")
    assert found.exit_code == 1 and found.stderr.startswith(b"bwrap: ")


def test_a_sandbox_that_cannot_be_set_up_is_a_fault(sandbox: Bubblewrap, tmp_path: Path) -> None:
    program = Program(["/bin/true"], shown={"/h": tmp_path / "nothing"})
    with workspace({}) as folder, pytest.raises(SandboxFault, match="bwrap"):
        sandbox.run(folder, program, Limits())


def test_nothing_outside_can_be_written(sandbox: Bubblewrap, tmp_path: Path) -> None:
    code = f"""
for place in (
    "/etc/x", "/usr/x", "/x", "/dev/x", {str(tmp_path / "x")!r}, "/root/x", "/home/x", "/proc/sys/kernel/hostname",
    "/in/x", "/h/x", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/1/oom_score_adj", "/proc/irq/x",
):
    try: open(place, "w").write("x"); print("wrote", place)
    except OSError as error: print(type(error).__name__)
"""
    pattern = Path("/proc/sys/kernel/core_pattern").read_text()
    found = attack(sandbox, code)
    assert "wrote" not in said(found).replace("wrote /proc/1/oom_score_adj", ""), said(found)
    assert Path("/proc/sys/kernel/core_pattern").read_text() == pattern
    assert list(tmp_path.iterdir()) == []


def test_files_of_the_host_are_not_seen(sandbox: Bubblewrap, tmp_path: Path) -> None:
    """Hidden tests, the home's secret key, this repository, passwords: none has a path inside."""
    secret = tmp_path / "hidden_tests.py"
    secret.write_text("assert order(1, 2) == 1")
    here = Path(__file__).resolve()
    code = f"""
import os
for place in ({str(secret)!r}, {str(here)!r}, "/etc/shadow", "/root/.ssh", "/proc/1/root{secret}"):
    try: open(place).read(); print("read", place)
    except OSError as error: print(type(error).__name__)
print(sorted(os.listdir("/")))
"""
    found = attack(sandbox, code)
    assert "read" not in said(found), said(found)
    shown = set(eval(said(found).splitlines()[-1]))  # our own print of a list of names
    assert not shown & {"home", "var", "opt", "srv", "mnt", "boot"}


def test_the_environment_is_what_was_given(sandbox: Bubblewrap, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_SECRET", "hidden")
    with workspace({"attack.py": b"import os; print(sorted(os.environ))"}) as folder:
        program = Program([PYTHON, "-I", "-S", "attack.py"], {"GIVEN": "1"})
        found = sandbox.run(folder, program, Limits())
    assert set(eval(said(found))) <= {"GIVEN", "HOME", "LANG", "LC_CTYPE", "PATH", "PWD"}


def test_a_link_out_of_the_workspace_shows_nothing_and_is_not_taken_back(sandbox: Bubblewrap, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hidden")
    code = f"""
import os
os.symlink({str(secret)!r}, "/w/link")
try: print(open("/w/link").read())
except OSError as error: print(type(error).__name__)
"""
    with workspace({"attack.py": code.encode()}) as folder:
        found = sandbox.run(folder, Program([PYTHON, "-I", "-S", "attack.py"]), Limits())
        assert not os.path.lexists(folder / "link")
        os.symlink(secret, folder / "link")
        with pytest.raises(TreeRefused, match="link: got no regular file"):
            read_tree(folder)
    assert said(found).strip() == "FileNotFoundError"
    assert secret.read_text() == "hidden"


def test_no_namespace_and_no_mount_from_inside(sandbox: Bubblewrap) -> None:
    code = """
import ctypes, os
library = ctypes.CDLL(None, use_errno=True)
print(library.unshare(0x10000000), library.mount(b"none", b"/tmp", b"tmpfs", 0, None), os.geteuid())
"""
    assert said(attack(sandbox, code)).split() == ["-1", "-1", "65534"]


def test_output_is_counted_and_dropped_beyond_its_bound(sandbox: Bubblewrap) -> None:
    found = attack(sandbox, "import sys; sys.stdout.write('x' * 5_000_000)", Limits(output_bytes=1000))
    assert (len(found.stdout), found.stdout_bytes, found.exit_code) == (1000, 5_000_000, 0)


@pytest.mark.gate  # twenty in a row stand in the everyday suite: tests/benchmarks/test_bench_sandbox.py
def test_nothing_is_left_after_a_hundred_runs(
    sandbox: Bubblewrap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No process, mount, folder or control group, with four threads at once; runs of others are not counted."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = groups_now()

    def several() -> None:
        for _ in range(25):
            assert attack(sandbox, "import os; os.makedirs('a/b'); os.chmod('a', 0)").exit_code == 0

    threads = [threading.Thread(target=several) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    left = traces(tmp_path, groups_before=before)
    assert left.is_clean, left


def test_groups_that_a_killed_process_left_are_swept() -> None:
    """Old and empty ones: the folder's time says how old."""
    if not cgroups.places():
        assert cgroups.sweep() == 0
        return
    groups = cgroups.make({"pids": 5, "memory": MEBIBYTE})
    try:
        fresh = set(groups.folders.values())
        cgroups.sweep()
        assert all(folder.is_dir() for folder in fresh)
        for folder in fresh:
            os.utime(folder, (0, 0))
        assert cgroups.sweep() >= len(fresh) and not any(folder.is_dir() for folder in fresh)
    finally:
        for folder in groups.folders.values():
            if folder.is_dir():
                folder.rmdir()
