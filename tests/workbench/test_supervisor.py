"""The supervisor's machinery with small children: restart, back-off, order of stopping, log files."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from workbench import child, supervisor
from workbench.logs import LogFile, prefix
from workbench.supervisor import ChildSpec, Output, Supervisor, describe_exit

SLEEP = ("sleep", "60")


def spec(name: str, command: tuple[str, ...] = SLEEP, stage: int = 1, **values: object) -> ChildSpec:
    """A child with this process's environment."""
    return ChildSpec(name, command, lambda generation: {**os.environ, "GENERATION": str(generation)}, stage, **values)  # type: ignore[arg-type]


def python(code: str) -> tuple[str, ...]:
    """Command that runs ``code``."""
    return (sys.executable, "-c", code)


def run(tmp_path: Path, scenario: Callable[[Supervisor], Awaitable[None]]) -> str:
    """Run a scenario, stop everything, return what was printed."""
    stream = io.StringIO()

    async def main() -> None:
        keeper = Supervisor(output=Output(stream, colour=False), logs=tmp_path / "logs", cwd=tmp_path)
        try:
            await asyncio.wait_for(scenario(keeper), 30)
        finally:
            await keeper.stop_all()

    asyncio.run(main())
    return stream.getvalue()


async def until(probe: Callable[[], bool]) -> None:
    """Poll inside the event loop."""
    while not probe():
        await asyncio.sleep(0.02)


def alive(pid: int) -> bool:
    """Whether a process of that id runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_killed_child_is_started_again_and_its_end_is_reported(tmp_path: Path) -> None:
    """First start, kill -9, second start under generation 2; the hook learns that generation 1 is dead."""
    dead: list[int] = []

    async def after_exit(generation: int) -> None:
        dead.append(generation)

    async def scenario(keeper: Supervisor) -> None:
        found = keeper.start(spec("one", after_exit=after_exit))
        await until(lambda: found.pid is not None)
        first = found.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        await until(lambda: found.generation == 2 and found.pid is not None)
        assert found.pid != first and dead == [1]
        assert keeper.processes() == {"one": {"pid": found.pid, "starts": 2}}

    printed = run(tmp_path, scenario)
    assert "one       | was killed by SIGKILL after" in printed
    assert dead == [1, 2]


def test_back_off_doubles_up_to_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """First delay 0.01 s, limit 0.04 s: the delays are 0.01, 0.02, 0.04, 0.04, ..."""
    monkeypatch.setattr(supervisor, "FIRST_DELAY_S", 0.01)
    monkeypatch.setattr(supervisor, "LONGEST_DELAY_S", 0.04)
    delays: list[float] = []

    async def scenario(keeper: Supervisor) -> None:
        found = keeper.start(spec("one", ("false",)))
        original = found._pause

        async def pause(seconds: float) -> None:
            delays.append(seconds)
            await original(seconds)

        found._pause = pause  # type: ignore[method-assign]
        await until(lambda: len(delays) == 5)
        assert found.failures == 5

    run(tmp_path, scenario)
    assert delays[:5] == [0.01, 0.02, 0.04, 0.04, 0.04]


def test_a_steady_child_starts_its_back_off_afresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "STEADY_AFTER_S", 0.0)
    monkeypatch.setattr(supervisor, "FIRST_DELAY_S", 0.01)

    async def scenario(keeper: Supervisor) -> None:
        found = keeper.start(spec("one", ("false",)))
        await until(lambda: found.generation == 4)
        assert found.quick_deaths == found.failures == 0

    run(tmp_path, scenario)


def test_program_that_does_not_exist_is_reported(tmp_path: Path) -> None:
    async def scenario(keeper: Supervisor) -> None:
        found = keeper.start(spec("one", ("/nonexistent/program",), once=True))
        assert await found.finished() == 127

    assert "/nonexistent/program: No such file or directory" in run(tmp_path, scenario)


def test_child_that_runs_once_is_not_started_again(tmp_path: Path) -> None:
    async def scenario(keeper: Supervisor) -> None:
        found = keeper.start(spec("one", python("print('done'); raise SystemExit(3)"), once=True))
        assert await found.finished() == 3
        await asyncio.sleep(0.3)
        assert found.generation == 1

    assert run(tmp_path, scenario) == "one       | done\n"


def test_stages_stop_in_order(tmp_path: Path) -> None:
    """Stage 1 ends before stage 2 is asked to."""
    code = (
        "import signal, sys, time\n"
        "def end(*_):\n    print('ended', flush=True); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end); print('up', flush=True); time.sleep(60)"
    )

    async def scenario(keeper: Supervisor) -> None:
        for name, stage in (("broker", 3), ("web", 2), ("io", 1)):
            keeper.start(spec(name, python(code), stage))
        await until(lambda: keeper.output.stream.getvalue().count("up") == 3)  # type: ignore[attr-defined]

    printed = run(tmp_path, scenario)
    assert [line.split()[0] for line in printed.splitlines() if "ended" in line] == ["io", "web", "broker"]


def test_stubborn_child_and_its_own_child_are_killed(tmp_path: Path) -> None:
    """SIGTERM is ignored: after 0.2 s the whole group goes. The pid file names the grandchild."""
    code = (
        "import pathlib, signal, subprocess, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "p = subprocess.Popen(['sleep', '60']); pathlib.Path('pid').write_text(str(p.pid))\n"
        "print('up', flush=True); time.sleep(60)"
    )
    started = 0.0

    async def scenario(keeper: Supervisor) -> None:
        nonlocal started
        keeper.start(spec("one", python(code), stop=((signal.SIGTERM, 0.2),)))
        await until(lambda: "up" in keeper.output.stream.getvalue())  # type: ignore[attr-defined]
        started = time.monotonic()

    run(tmp_path, scenario)
    assert 0.2 <= time.monotonic() - started < 5
    grandchild = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 5
    while alive(grandchild) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive(grandchild)


def test_logs_are_prefixed_split_and_kept(tmp_path: Path) -> None:
    code = "import sys; sys.stdout.buffer.write(b'a\\r\\nb' + b'x' * 40000 + b'\\nno end \\xff'); sys.stderr.write('')"

    async def scenario(keeper: Supervisor) -> None:
        await keeper.start(spec("one", python(code), once=True)).finished()

    lines = run(tmp_path, scenario).splitlines()
    assert lines[0] == "one       | a"
    assert sum(line.count("x") for line in lines) == 40000
    assert lines[-1].endswith("no end �") and all(line.startswith("one       | ") for line in lines)
    kept = (tmp_path / "logs" / "one.log").read_text().splitlines()
    assert len(kept) == len(lines) and kept[0].endswith("Z a")


def test_log_file_never_grows_beyond_twice_its_limit(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "one.log", limit=1000)
    for number in range(200):
        log.write(f"line {number}")
    log.close()
    sizes = [path.stat().st_size for path in tmp_path.iterdir()]
    assert len(sizes) == 2 and max(sizes) < 1100
    assert (tmp_path / "one.log").read_text().rstrip().endswith("line 199")


def test_a_full_disk_stops_the_log_and_nothing_else() -> None:
    """Neither a line nor the end raises; what did not fit is lost."""
    log = LogFile(Path("/dev/full"))
    log.write("a")
    log.write("b")
    log.close()
    log.close()


def test_reader_that_went_away_is_no_error() -> None:
    stream = io.StringIO()
    stream.close()
    Output(stream, colour=False).line("one", "text")


@pytest.mark.parametrize(("ignored", "stops"), [(False, True), (True, False)])
def test_closed_terminal_stops_it_unless_nohup_said_otherwise(tmp_path: Path, ignored: bool, stops: bool) -> None:
    """SIGHUP is ignored before the start exactly when ``nohup`` started it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)

    async def scenario(keeper: Supervisor) -> None:
        keeper.handle_signals()
        os.kill(os.getpid(), signal.SIGHUP)
        await asyncio.sleep(0.05)
        assert keeper.stop.is_set() is stops

    try:
        run(tmp_path, scenario)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_prefix_columns_and_colours() -> None:
    assert prefix("web", colour=False) == "web       | "
    assert prefix("web", colour=True) == "\033[36mweb       | \033[0m"


@pytest.mark.parametrize(
    ("status", "text"),
    [(0, "exited with status 0"), (-9, "was killed by SIGKILL"), (-99, "was killed by signal 99")],
)
def test_exit_in_words(status: int, text: str) -> None:
    assert describe_exit(status) == text


def test_child_program_refuses_wrong_arguments_and_a_wrong_parent(capsys: pytest.CaptureFixture[str]) -> None:
    assert child.main(["7", "sleep"]) == 2
    assert "usage:" in capsys.readouterr().err
    pid = os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, child.__file__, "1", "--", "sleep", "60"])
    assert os.waitpid(pid, 0)[1] == 1 << 8, "a parent that is not ours counts as gone"


def test_watching_takes_the_program_along_where_the_kernel_does_not() -> None:
    """The fallback of other systems: the parent that is watched is not ours, so the program is killed at once."""
    assert child.watch(["sleep", "60"], parent=-1) == 128 + signal.SIGKILL
    assert child.watch(["sh", "-c", "exit 7"], parent=os.getppid()) == 7
