"""The runner and its client with a real process."""

from __future__ import annotations

import errno
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.servers import wait_until
from worker import frames, runner, runner_client
from worker.runner_client import RunnerCancelled, RunnerClient, RunnerDied, RunnerFailed

SERVICE = "tests.worker.runner_service"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[RunnerClient]:
    """A client of the test service."""
    made = RunnerClient(
        {**os.environ, "MARK": "one"}, store=tmp_path / "blobs", cache_dir=tmp_path / "cache", service=SERVICE
    )
    yield made
    made.close()


def gone(pid: int) -> bool:
    """No such process, or only its entry."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_jobs_follow_one_another_in_one_process(client: RunnerClient, tmp_path: Path) -> None:
    """Two calls, one pid, the second sees what the first left; progress in order; logs are no frames."""
    seen: list[Any] = []
    first = client.call("echo", {"a": [1, "ü", None]}, on_progress=seen.append)
    second = client.call("echo", {})
    assert first["spec"] == {"a": [1, "ü", None]} and first["cache"] == str(tmp_path / "cache")
    assert seen == [{"done": 1, "of": 2}, {"done": 2, "of": 2}]
    assert (first["calls"], second["calls"]) == (1, 2)
    assert first["pid"] == second["pid"] == client.pid != os.getpid()
    assert os.getpgid(first["pid"]) == os.getsid(first["pid"]) == first["pid"]


def test_store_and_environment_reach_the_job(client: RunnerClient, tmp_path: Path) -> None:
    """SHA-256 of ``abc`` is ba7816bf...; the blob lies in the store that the client names."""
    name = client.call("store", {"text": "abc"})["sha256"]
    assert name.startswith("ba7816bf")
    assert (tmp_path / "blobs" / name[:2] / name[2:4] / name).read_bytes() == b"abc"
    assert client.call("environment", {"name": "MARK"}) == {"value": "one"}


def test_frames_larger_than_a_pipe(client: RunnerClient) -> None:
    answer = client.call("large", {"size": 3_000_000, "padding": "y" * 2_000_000})
    assert len(answer["text"]) == 3_000_000 and answer["got"] == 2_000_000


@pytest.mark.parametrize(
    ("op", "class_name", "boundary", "message"),
    [
        ("fault", "EnvironmentFault", "EnvironmentFault", "the backend broke"),
        ("bug", "KeyError", None, "missing"),
        ("nonfinite", "FrameError", None, "expected finite JSON values"),
    ],
)
def test_errors_name_their_boundary(
    client: RunnerClient, op: str, class_name: str, boundary: str | None, message: str
) -> None:
    before = client.call("echo", {})["pid"]
    with pytest.raises(RunnerFailed, match=message) as caught:
        client.call(op, {})
    assert (caught.value.class_name, caught.value.boundary) == (class_name, boundary)
    assert "Traceback" in caught.value.trace
    after = client.call("echo", {})
    assert after["pid"] != before and after["calls"] == 1, "what a failed job left is not used again"


def test_the_engine_process_says_that_it_had_no_room(client: RunnerClient) -> None:
    """Across the pipe, and for what was raised from the real cause; another error has no number."""
    with pytest.raises(RunnerFailed, match="writing the adapter") as caught:
        client.call("full", {})
    assert caught.value.no_room == errno.ENOSPC and caught.value.boundary is None
    with pytest.raises(RunnerFailed) as caught:
        client.call("bug", {})
    assert caught.value.no_room is None


def test_death_inside_a_job_is_told_and_the_next_call_starts_afresh(client: RunnerClient) -> None:
    with pytest.raises(RunnerDied, match="exit status -9") as caught:
        client.call("die", {})
    assert caught.value.returncode == -signal.SIGKILL
    assert client.call("echo", {})["calls"] == 1


def test_death_between_jobs_is_no_error(client: RunnerClient) -> None:
    pid = client.call("echo", {})["pid"]
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: client.pid is None, "the runner's end")
    assert client.call("echo", {})["pid"] != pid


def test_cancel_kills_the_whole_group(client: RunnerClient) -> None:
    """The job and the helper that it started are gone within a second of the cancellation."""
    seen: list[dict[str, int]] = []
    with pytest.raises(RunnerCancelled, match="hang: cancelled"):
        client.call("hang", {}, on_progress=seen.append, should_cancel=lambda: bool(seen), poll_s=0.05)
    pids = seen[0]
    wait_until(lambda: gone(pids["pid"]) and gone(pids["helper"]), "the group's end", 2)
    assert client.pid is None
    assert client.call("echo", {})["calls"] == 1


def test_what_the_caller_raises_ends_the_job(client: RunnerClient) -> None:
    """A heartbeat that finds its lease lost raises; the job must not go on behind its back."""
    pids: list[int] = []

    def lost(value: dict[str, int]) -> None:
        pids.append(value["pid"])
        raise LookupError("lease lost")

    with pytest.raises(LookupError, match="lease lost"):
        client.call("hang", {}, on_progress=lost)
    wait_until(lambda: gone(pids[0]), "the runner's end", 2)


def test_runner_ends_with_its_parent_also_inside_a_job(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, sys\n"
        "from worker.runner_client import RunnerClient\n"
        f"client = RunnerClient(dict(os.environ), store='.', cache_dir='.', service='{SERVICE}')\n"
        f"client.call('hang', {{}}, on_progress=lambda v: pathlib.Path('{tmp_path}/pid').write_text(str(v['pid'])))"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[2])
    found = tmp_path / "pid"
    wait_until(lambda: found.exists() and found.read_text() != "", "the job", 20)
    pid = int(found.read_text())
    group = psutil.Process(pid).children(recursive=True)
    parent.kill()
    parent.wait()
    wait_until(lambda: gone(pid), "the runner's end", 5)
    for process in group:  # its helper belongs to this test alone: no client is left to end the group
        process.kill()


def test_runner_ends_with_its_pipe(client: RunnerClient) -> None:
    pid = client.call("echo", {})["pid"]
    started = time.monotonic()
    client.close()
    assert gone(pid) and time.monotonic() - started < 1.5


def test_warm_loads_the_service_and_ping_does_not() -> None:
    sent: list[dict[str, Any]] = []
    assert runner.answer({"op": "ping"}, sent.append, "does.not.exist")["kind"] == "result"
    assert runner.answer({"op": "warm"}, sent.append, SERVICE)["value"]["pid"] == os.getpid()
    failed = runner.answer({"op": "warm"}, sent.append, "does.not.exist")
    assert (failed["class"], failed["boundary"]) == ("ModuleNotFoundError", None)
    assert runner.answer({}, sent.append, SERVICE)["class"] == "KeyError"


def test_resident_client_is_kept_until_its_arguments_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner_client, "_resident", None)
    first = runner_client.resident({"A": "1"}, store=tmp_path, cache_dir=tmp_path)
    assert runner_client.resident({"A": "1"}, store=tmp_path, cache_dir=tmp_path) is first
    assert runner_client.resident({"A": "2"}, store=tmp_path, cache_dir=tmp_path) is not first


def test_client_and_frames_load_neither_torch_nor_django() -> None:
    code = "import sys, worker.runner_client, worker.runner; print({'torch', 'django'} & {*sys.modules})"
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "set()"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.lists(st.dictionaries(st.text(), json_values, max_size=4), max_size=4))
def test_frames_are_read_as_they_were_packed(values: list[dict[str, Any]]) -> None:
    stream = io.BytesIO(b"".join(frames.pack(value) for value in values))
    assert [frames.read_frame(stream) for _ in values] == values
    assert frames.read_frame(stream) is None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x00\x00", "got 2 bytes of a length, expected 4"),
        (b"\x00\x00\x00\x05{}", "got 2 bytes, expected 5"),
        (b"\xff\xff\xff\xff", "expected at most"),
        (b"\x00\x00\x00\x02[]", "got list, expected an object"),
        (b"\x00\x00\x00\x02{x", "expected JSON"),
    ],
)
def test_torn_frames_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(frames.FrameError, match=message):
        frames.read_frame(io.BytesIO(data))
