"""A tiny study under fire: ``manage.py up``, a client, and kills at drawn instants of its progress.

A kill is due when so many jobs have ended; a drawn delay then moves it somewhere into the next job.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.e2e.tiny import ENDED, jobs_done, none_left, rows, state_of
from tests.servers import wait_until
from tests.workbench.processes import Up, gone_soon
from workbench.faults import POINTS, TRIAL_POINTS

UPDATE_POINTS = ("old_logprobs", "backward", "adapter_written")
ROLES = ("worker main", "pool process", "runner")
CHILDREN = ("web", "broker", "supervisor")
DEADLINE_S = 600.0


def _workers_below(main: psutil.Process) -> list[psutil.Process]:
    """Processes below a worker, without sandboxes and what runs in them: a killed trial is unknown."""
    found: list[psutil.Process] = []
    for process in main.children():
        try:
            if process.name() != "bwrap":
                found += [process, *_workers_below(process)]
        except psutil.Error:
            continue
    return found


@dataclass(frozen=True)
class Kill:
    """``what``: a fault point, a role of a worker's processes, or a child of the supervisor.

    Due when ``after`` jobs have ended (of ``kind``, where given), ``delay`` seconds later.
    """

    what: str
    after: int
    delay: float = 0.0
    kind: str | None = None


def draw(seed: int, *, at_random: int) -> list[Kill]:
    """Every fault point once and ``at_random`` kills of worker processes, spread over the study's jobs.

    The tiny study has 22 jobs, six of them updates: a point of the update is armed by finished
    updates, the others by finished jobs.
    """
    drawn = random.Random(seed)
    kills = [
        Kill(point, after, kind="apply_update")
        for point, after in zip(UPDATE_POINTS, drawn.sample(range(5), 3), strict=True)
    ]
    others = [point for point in POINTS if point not in UPDATE_POINTS]
    kills += [Kill(point, after) for point, after in zip(others, drawn.sample(range(1, 15), 4), strict=True)]
    for _ in range(at_random):
        kills.append(Kill(drawn.choice(ROLES), drawn.randrange(0, 15), round(drawn.uniform(0.0, 1.5), 2)))
    return kills


@dataclass
class Fire:
    """One home under fire. ``log``: every kill, as printed."""

    home: Path
    faults: Path
    up: Up
    restart: Callable[[], Up]
    say: Callable[[str], None]
    counts: Counter[str]
    drawn: random.Random
    started: float = field(default_factory=time.monotonic)
    log: list[str] = field(default_factory=list)
    _claimed: set[str] = field(default_factory=set)
    _due: dict[Kill, float] = field(default_factory=dict)

    def run(self, kills: list[Kill], *, ends: str = "closed") -> None:
        """Kill as planned until the execution has ended as ``ends``. Every kill must have happened by then."""
        waiting, end = list(kills), time.monotonic() + DEADLINE_S
        while (state := state_of(self.home)) not in ENDED:
            if time.monotonic() > end:
                raise TimeoutError(
                    f"{state} after {DEADLINE_S:.0f} s, {jobs_done(self.home)} jobs:\n{self.up.text[-6000:]}"
                )
            for kill in [item for item in waiting if self._is_due(item)]:
                self._do(kill)
                waiting.remove(kill)
            self._look()
            time.sleep(0.05)
        self._look()
        assert state == ends, f"the execution ended as {state}\n{self.up.text[-6000:]}"
        armed = sorted(path.name for path in self.faults.iterdir() if not path.name.startswith("done-"))
        assert not waiting and not armed, f"never reached: {waiting} {armed}"

    def _is_due(self, kill: Kill) -> bool:
        if kill not in self._due:
            if not state_of(self.home) or jobs_done(self.home, kill.kind) < kill.after:
                return False
            self._due[kill] = time.monotonic() + kill.delay
        return time.monotonic() >= self._due[kill]

    def _do(self, kill: Kill) -> None:
        if kill.what in (*POINTS, *TRIAL_POINTS):
            self.arm(kill)
        elif kill.what == "supervisor":
            self._kill_supervisor()
        elif kill.what in CHILDREN:
            pid = self._pid_of(kill.what)
            self._note(kill.what, pid, self._leased())
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: self.up.pid_of(kill.what) not in (None, pid), f"{kill.what} again", 60)
        else:
            self._kill_role(kill.what)

    def arm(self, kill: Kill) -> None:
        """The next process that reaches the point is killed there."""
        (self.faults / f"{kill.what}.{kill.after}.{len(self._claimed)}").touch()

    def _pid_of(self, name: str) -> int:
        wait_until(lambda: self.up.pid_of(name) is not None, f"{name} up", 60)
        pid = self.up.pid_of(name)
        assert pid is not None
        return pid

    def _kill_role(self, role: str) -> None:
        """SIGKILL to one process of this role, as soon as there is one."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            found = self._candidates().get(role, [])
            if found:
                process = self.drawn.choice(found)
                leased = self._leased()
                try:
                    process.kill()
                except psutil.NoSuchProcess:
                    continue
                self._note(f"random {role}", process.pid, leased)
                return
            time.sleep(0.05)
        raise TimeoutError(f"no {role} within 60 s")

    def _candidates(self) -> dict[str, list[psutil.Process]]:
        found: dict[str, list[psutil.Process]] = {role: [] for role in ROLES}
        processes = self.up.state().get("processes", {})
        assert isinstance(processes, dict)
        for name in sorted(processes):
            pid = processes[name]["pid"]
            if pid is None or name in ("web", "broker"):
                continue
            try:
                main = psutil.Process(pid)
                below = _workers_below(main)
            except psutil.NoSuchProcess:
                continue
            found["worker main"].append(main)
            for process in below:
                try:
                    is_runner = "worker.runner" in process.cmdline()
                except psutil.Error:
                    continue
                found["runner" if is_runner else "pool process"].append(process)
        return found

    def _kill_supervisor(self) -> None:
        wait_until(lambda: self._leased() != "nothing", "a job under way", 60)  # else the kill hits nothing
        family, pid = self.up.family(), self.up.process.pid
        self._note("supervisor", pid, self._leased())
        self.up.process.kill()
        self.up.process.wait()
        gone_soon(family)
        close_output(self.up)
        self.up = self.restart()

    def _look(self) -> None:
        """Note the faults that have killed since the last look."""
        for path in sorted(self.faults.glob("done-*")):
            if path.name not in self._claimed:
                self._claimed.add(path.name)
                name, pid = path.name.removeprefix("done-").rsplit("-", 1)
                self._note(f"point {name.partition('.')[0]}", int(pid), self._leased())

    def _leased(self) -> str:
        found = rows(
            self.home,
            "SELECT j.kind, j.attempt, r.name FROM runs_job j LEFT JOIN runs_run r ON r.id = j.run_id"
            " WHERE j.state = 'leased' ORDER BY j.id",
        )
        return ", ".join(f"{kind}#{attempt} {run or 'parent'}" for kind, attempt, run in found) or "nothing"

    def _note(self, what: str, pid: int, leased: str) -> None:
        text = f"{time.monotonic() - self.started:6.1f} s  {what:<22} pid {pid:<7} during {leased}"
        self.log.append(text)
        self.counts[what] += 1
        self.say(text)

    def stop(self) -> None:
        """Ctrl-C: exit status 0, and nothing of this home is left."""
        family = self.up.family()
        assert self.up.interrupt() == 0
        gone_soon(family, 2)
        none_left(self.home)


def close_output(ended: Up) -> None:
    """Read the rest of its output and close the pipe."""
    ended._reader.join(5)
    assert ended.process.stdout is not None
    ended.process.stdout.close()


@contextmanager
def fire(
    home: Path, cache: Path, say: Callable[[str], None], counts: Counter[str], seed: int, *arguments: str, **more: str
) -> Iterator[Fire]:
    """``up`` with web on a port of the system's choice and a folder of faults; at the end nothing is left."""
    faults = home.parent / "faults"
    faults.mkdir(parents=True)
    extra = {"WORKBENCH_CACHE_HOME": str(cache), "WORKBENCH_FAULT_DIR": str(faults), **more}

    def start() -> Up:
        started = Up(home, "--port", "0", *arguments, **extra)
        wait_until(lambda: bool(started.state().get("ready")) or started.process.poll() is not None, "up", 120)
        assert started.process.poll() is None, started.text
        return started

    burning = Fire(home, faults, start(), start, say, counts, random.Random(seed))
    try:
        yield burning
    finally:
        if burning.up.process.poll() is None:
            family = burning.up.family()
            burning.up.process.kill()
            burning.up.process.wait()
            gone_soon(family)
        close_output(burning.up)


def check_ledger(home: Path) -> Counter[str]:
    """Every job's log is complete: attempts 1 to n, all but the last lost, the last one ended once.

    Each lost attempt of an execution has its receipt, each collected shard and applied update exactly
    one. Returns how many attempts of each kind of job were lost.
    """
    logs: dict[str, list[tuple[str, str, int]]] = {}
    kinds: dict[str, str] = {}
    for key, kind, state, attempt, old, new, number in rows(
        home,
        "SELECT j.key, j.kind, j.state, j.attempt, t.from_state, t.to_state, t.attempt FROM runs_job j"
        " LEFT JOIN runs_jobtransition t ON t.job_id = j.id ORDER BY j.id, t.id",
    ):
        assert state in ("succeeded", "errored", "cancelled"), f"{key} is {state}"
        logs.setdefault(f"{key} {state} {attempt}", []).append((old, new, number))
        kinds[f"{key} {state} {attempt}"] = kind
    lost: Counter[str] = Counter()
    for name, log in logs.items():
        _, state, attempts = name.rsplit(" ", 2)
        expected = []
        for number in range(1, int(attempts) + 1):
            expected += [("queued", "leased", number), ("leased", "queued", number)]
        if state == "cancelled":
            assert log[-1][1] == "cancelled", f"{name}: {log}"
            continue
        expected[-1:] = [("leased", state, int(attempts))]
        assert log == expected, f"{name}: {log}"
        lost[kinds[name]] += int(attempts) - 1 + (state == "errored")
    receipts = Counter(kind for (kind,) in rows(home, "SELECT kind FROM runs_receipt"))
    assert receipts["attempt.lost"] == lost.total(), f"{receipts} {lost}"
    ended = Counter(f"{kind} {state}" for kind, state in rows(home, "SELECT kind, state FROM runs_job"))
    assert receipts["shard.collected"] == ended["collect_shard succeeded"] + ended["evaluate_shard succeeded"]
    assert receipts["trials.recorded"] == ended["run_trials succeeded"]
    assert receipts["trials.unavailable"] == ended["run_trials errored"]
    assert receipts["probe.recorded"] == ended["probe_shard succeeded"]
    assert receipts["probe.unavailable"] == ended["probe_shard errored"]
    assert receipts["update.applied"] + receipts["update.skipped"] == ended["apply_update succeeded"]
    assert not rows(home, "SELECT group_id FROM runs_consumedgroup GROUP BY group_id HAVING count(*) > 1")
    return lost
