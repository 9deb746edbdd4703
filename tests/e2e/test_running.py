"""The study against a running server, stopped, killed, paused and cancelled: it ends as it would have."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.e2e.tiny import (
    SLUG,
    TIMEOUT_S,
    Ran,
    client,
    closure_sha256,
    differences,
    facts,
    jobs_done,
    last_object,
    none_left,
    processes_of,
    rows,
    start,
    state_of,
    verified,
    wait_done,
    write_study,
)  # fmt: skip
from tests.servers import wait_until
from tests.workbench.processes import gone_soon, manage, up

pytestmark = pytest.mark.slow

EVIDENCE = (11, 12, 14, 15, 16, 17)  # steps of verify on what a closed study's notes rest on: a cancelled one has none


def control(home: Path, cache: Path, action: str) -> Any:
    """``manage.py study pause|resume|cancel`` with its JSON object."""
    done = manage(home, "study", action, SLUG, "--scale", "tiny", "--json", WORKBENCH_CACHE_HOME=str(cache))
    assert done.returncode == 0, done.stderr
    return last_object(done.stdout)


def leased(home: Path) -> int:
    """Jobs in flight."""
    return int(rows(home, "SELECT count(*) FROM runs_job WHERE state = 'leased'")[0][0])


def equal_to(undisturbed: Ran, home: Path) -> None:
    """Every fact of the undisturbed run, and nothing else."""
    assert not differences(undisturbed.facts, facts(lambda text: rows(home, text)))


def test_study_run_submits_to_the_running_server_and_survives_a_pause(
    tmp_path: Path, cache: Path, undisturbed: Ran
) -> None:
    """Another fresh home gives identical captures, adapters and closure; the client starts no workers of its own."""
    home = tmp_path / "home"
    with up(home, "--port", "0", WORKBENCH_CACHE_HOME=str(cache)) as server:
        server.wait_ready()
        with client(home, cache, tmp_path) as study:
            wait_done(home, 3)
            assert control(home, cache, "pause")["state"] == "paused"
            own = [found.cmdline() for found in psutil.Process(study.process.pid).children(recursive=True)]
            assert not [command for command in own if "up" in command or "celery" in command]
            second = manage(home, "up", "--port", "0")
            assert second.returncode == 1 and f"already running on {home}" in second.stderr
            wait_until(lambda: not leased(home), "the end of jobs in flight", 120)
            before = jobs_done(home)
            time.sleep(4)  # two rounds of the reaper: it must not send what is held
            assert (jobs_done(home), leased(home)) == (before, 0)
            again = manage(home, "study", "pause", SLUG, "--scale", "tiny", WORKBENCH_CACHE_HOME=str(cache))
            assert again.returncode == 1 and "Traceback" not in again.stderr, "it is paused already"
            assert control(home, cache, "resume")["state"] == "running"
            summary = study.finish()
        assert server.interrupt() == 0
    assert summary["closure"] == undisturbed.summary["closure"]
    equal_to(undisturbed, home)
    none_left(home)


def test_ctrl_c_of_up_in_mid_run_goes_on_at_the_next_start(tmp_path: Path, cache: Path, undisturbed: Ran) -> None:
    home = tmp_path / "home"
    extra = {"WORKBENCH_CACHE_HOME": str(cache)}
    with up(home, "--port", "0", "--study", SLUG, "--scale", "tiny", **extra) as first:
        wait_done(home, 5)
        family = first.family()
        assert first.interrupt() == 0
        gone_soon(family, 2)
    none_left(home)
    assert state_of(home) == "running" and jobs_done(home) < 22
    with up(home, "--no-web", **extra) as second:
        wait_until(lambda: state_of(home) == "closed", "closure", TIMEOUT_S)
        assert second.interrupt() == 0
    equal_to(undisturbed, home)
    verified(home, cache)


def test_killed_study_run_leaves_nothing_running_and_the_next_one_goes_on(
    tmp_path: Path, cache: Path, undisturbed: Ran
) -> None:
    """kill -9 first, Ctrl-C next, the third one finishes."""
    home = tmp_path / "home"
    with client(home, cache, tmp_path) as study:
        wait_done(home, 3)
        assert len(processes_of(home)) > 4
        study.process.kill()
        study.process.wait()
        none_left(home, 40)
    with client(home, cache, tmp_path) as study:
        wait_done(home, 6)
        os.kill(study.process.pid, signal.SIGINT)
        assert study.process.wait(60) != 0
        none_left(home, 10)
    assert state_of(home) == "running"
    with client(home, cache, tmp_path) as study:
        study.finish()
    equal_to(undisturbed, home)
    none_left(home)


def test_cancelled_study_ends_for_good_and_says_so(tmp_path: Path, cache: Path) -> None:
    home = tmp_path / "home"
    with client(home, cache, tmp_path) as study:
        wait_done(home, 4)
        assert control(home, cache, "cancel")["state"] == "cancelled"
        assert study.process.wait(120) == 1
        assert last_object(study.out.read_text())["state"] == "cancelled"
    none_left(home)
    assert {state for (state,) in rows(home, "SELECT state FROM runs_job")} <= {"succeeded", "cancelled"}
    assert {state for (state,) in rows(home, "SELECT state FROM runs_runhead")} <= {"cancelled", "refused"}
    for action in ("resume", "pause", "cancel"):
        done = manage(home, "study", action, SLUG, "--scale", "tiny", WORKBENCH_CACHE_HOME=str(cache))
        assert done.returncode == 1 and "Traceback" not in done.stderr and "cancelled" in done.stderr
    verified(home, cache, nothing_in=(9, *EVIDENCE))


def test_another_seed_gives_another_plan_and_another_closure(tmp_path: Path, cache: Path, undisturbed: Ran) -> None:
    home = tmp_path / "home"
    studies = write_study(tmp_path / "studies", lambda scale: scale.update(seeds=["18"]))
    with up(home, "--no-web", WORKBENCH_CACHE_HOME=str(cache)) as server:
        server.wait_ready()
        start(home, cache, studies)
        wait_until(lambda: state_of(home) == "closed", "closure", TIMEOUT_S)
        assert server.interrupt() == 0
    found = facts(lambda text: rows(home, text))
    assert found["plan"] != undisturbed.facts["plan"]
    assert closure_sha256(found) != closure_sha256(undisturbed.facts)
    assert not set(found["captures"]) & set(undisturbed.facts["captures"])
