"""The cost of isolation, and the acceptance of trials: many in a row leave nothing and say the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from worker.benchmarks.sandbox import Subject, bundled_subject, free_port, quantile, trials_in_a_row
from worker.sandbox.choose import get_sandbox
from worker.sandbox.traces import Traces, groups_now, traces
from worker.verifiers.trial import HiddenTest

STICKY = """
import os, socket, time
def listen(port):
    server = socket.create_server(("127.0.0.1", port))
    if os.fork() == 0:  # a child with a session of its own keeps port and files
        os.setsid()
        for number in set(range(64)) - {server.fileno()}:  # the answer's pipe too: else the driver waits for its end
            try: os.close(number)
            except OSError: pass
        if os.fork() == 0:
            held = open("/tmp/held", "w")
            time.sleep(60)
        os._exit(0)
    return server.getsockname()[1]
def write(count):
    os.makedirs("/w/a/b")
    for number in range(count):
        open(f"/w/a/b/{number}", "w").write("x" * 1000)
    os.chmod("/w/a/b", 0)
    os.chmod("/w/a", 0)
    return sorted(os.listdir("/w"))
"""


def sticky(port: int) -> Subject:
    """An artefact that keeps what it can: a port, a child in another session, open files, folders without rights."""
    return Subject(
        {"sticky.py": STICKY.encode()},
        (
            HiddenTest("listens", "sticky.py", "listen", (port,), port),
            HiddenTest("writes", "sticky.py", "write", (20,), ["a", "sticky.py"]),
            HiddenTest("is_wrong", "sticky.py", "write", (1,), []),
        ),
    )


def accept(trials: int) -> None:
    """All complete, one report, nothing left: no process, mount, file, port or control group."""
    port = free_port()
    row = trials_in_a_row(get_sandbox(), sticky(port), trials, (port,))
    assert len(row.reports) == trials and all(item.complete for item in row.reports) and row.different == 1
    assert row.reports[0].status == {"listens": "PASSED", "writes": "PASSED", "is_wrong": "FAILED"}
    assert row.left.is_clean, row.left
    assert row.reports[0].level["unisolated"] is False


def test_twenty_trials_leave_nothing_and_agree() -> None:
    accept(20)


@pytest.mark.slow
def test_two_hundred_trials_leave_nothing_and_agree() -> None:
    accept(200)


def test_what_is_left_would_be_seen(tmp_path: Path) -> None:
    """A file and a listening port of this process are counted, and nothing else is."""
    import socket

    before = groups_now()
    assert traces(tmp_path, groups_before=before) == Traces(0, 0, 0, 0, 0)
    (tmp_path / "left").write_bytes(b"")
    with socket.create_server(("127.0.0.1", 0)) as server:
        found = traces(tmp_path, (server.getsockname()[1],), before)
    assert found == Traces(0, 0, 1, 1, 0) and not found.is_clean


def test_a_process_that_is_left_would_be_seen(tmp_path: Path) -> None:
    import subprocess

    (tmp_path / "sleeper").symlink_to("/bin/sleep")
    process = subprocess.Popen([str(tmp_path / "sleeper"), "30"])
    try:
        assert traces(tmp_path).processes == 1
    finally:
        process.kill()
        process.wait()


def test_quantiles_are_nearest_ranks() -> None:
    """Of 1..20 the median is the tenth and the 95th percentile the nineteenth; of one value it is that value."""
    values = [float(number) for number in range(20, 0, -1)]
    assert (quantile(values, 0.5), quantile(values, 0.95), quantile(values, 1.0)) == (10.0, 19.0, 20.0)
    assert quantile([7.0], 0.5) == quantile([7.0], 0.95) == 7.0


def test_the_bundled_artefact_passes_some_and_fails_some() -> None:
    """Else the sandbox could be measured on a driver that does nothing."""
    subject = bundled_subject()
    assert subject == bundled_subject() and len(subject.tests) >= 8 and len(subject.files) >= 2


def test_the_command_says_what_isolation_costs(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("bench", "sandbox", "--json", "--trials", "3")
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["trials"] == 3 and found["level"]["backend"] == "bubblewrap"
    assert found["overhead_median_ms"] <= found["overhead_p95_ms"] < 10_000
    assert found["bare_median_ms"] > 0 and found["trial_median_ms"] > 0 and found["goal"]["met"] in (True, False)
    call_command("bench", "sandbox", "--trials", "2")
    assert "isolated" in capsys.readouterr().out


def test_no_trial_is_refused() -> None:
    with pytest.raises(CommandError, match="trials: got 0, expected at least 1"):
        call_command("bench", "sandbox", "--trials", "0")
