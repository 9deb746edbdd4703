"""Unchanged clients log over HTTP: MLflow's fluent, client and asynchronous API, the transformers callback, TRL."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.mlflow import programs
from tests.mlflow.served import Served, serve
from workbench.client import Workbench
from workbench.client.errors import NotFound
from workbench.client.logged import LoggedRun

pytestmark = pytest.mark.gate  # the endpoint under our own requests stands beside this in the everyday suite


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve(tmp_path_factory.mktemp("served")) as found:
        yield found


@pytest.fixture
def ours(served: Served) -> Iterator[Workbench]:
    """Our own client as mara."""
    with Workbench(served.url, served.mara) as found:
        yield found


def logged(ours: Workbench, run: str) -> LoggedRun:
    (found,) = [item for item in ours.logged_runs() if item.id == run]
    return found.refresh()


def series(found: LoggedRun, name: str) -> list[list[Any]]:
    history = found.history(name)
    return [[step, value] for step, value in zip(history.step, history.value, strict=True)]


def test_what_the_fluent_client_logs_both_clients_read(served: Served, ours: Workbench) -> None:
    told = served.run(programs.FLUENT)
    found = logged(ours, told["run"])
    history = found.history("loss")
    assert [list(row) for row in zip(history.step, history.time_ms, history.value, strict=True)] == told["loss"]
    assert [row[0] for row in told["loss"]] == [*range(30), 100] and told["loss"][-1][2] == 9.0
    assert told["batch"] == [[0, 1000, 0.0], [1, 1001, 1.0], [2, 1002, 2.0]]
    assert found.parameters == told["params"] and len(told["params"]["long"]) == 5000
    assert {key: value for key, value in (found.tags or {}).items() if not key.startswith("workbench.")} == told["tags"]
    assert told["tags"]["k"] == "v" and "gone" not in told["tags"]
    assert (found.segment, found.status, found.name) == (1, "finished", "first")


def test_the_asynchronous_logger_loses_nothing(served: Served, ours: Workbench) -> None:
    told = served.run(programs.ASYNCHRONOUS)
    expected = [[step, float(step)] for step in range(200)]
    assert told["a"] == expected and told["params"] == 250
    assert series(logged(ours, told["run"]), "a") == expected


def test_two_writers_of_one_run_lose_nothing(served: Served, ours: Workbench) -> None:
    """Equal batches of both are stored once; what differs is kept of both."""
    run = served.run(programs.BEGIN)
    faults: list[BaseException] = []

    def write(who: str) -> None:
        try:
            served.run(programs.TWO_WRITERS, run, who)
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=write, args=(who,)) for who in ("1", "2")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    found = logged(ours, run)
    alone = [[step, float(step)] for step in range(40)]
    assert series(found, "shared") == series(found, "1") == series(found, "2") == alone
    assert sorted(series(found, "both")) == sorted([step, float(who)] for step in range(40) for who in (1, 2))


def test_another_person_sees_nothing_of_it(served: Served, ours: Workbench) -> None:
    run = served.run(programs.BEGIN)
    uid = logged(ours, run).uid
    with Workbench(served.url, served.ada) as other:
        assert not list(other.logged_runs())
        with pytest.raises(NotFound):
            other.logged_run(uid)


@pytest.mark.slow
def test_the_transformers_callback(served: Served, ours: Workbench) -> None:
    told = served.run(programs.TRAINER, timeout=300, MLFLOW_EXPERIMENT_NAME="tiny trainer")
    found = logged(ours, told["run"])
    assert len(told["logged"]) == 4 and told["loss"] == told["logged"] == series(found, "loss")
    assert told["params"] > 100 and found.parameters is not None and len(found.parameters) == told["params"]
    assert {"learning_rate", "grad_norm"} <= {item.name for item in found.metrics()}


@pytest.mark.slow
def test_trl_reports_to_mlflow(served: Served, ours: Workbench) -> None:
    told = served.run(programs.GRPO, timeout=400, MLFLOW_EXPERIMENT_NAME="tiny grpo")
    found = logged(ours, told["run"])
    for name, rows in told["logged"].items():
        assert len(rows) == 3 and told["read"][name] == rows == series(found, name), name
    assert found.study == "tiny-grpo" or found.study.startswith("tiny-grpo-")


def test_everything_that_was_logged_verifies(served: Served) -> None:
    """After the other tests of this file: what the clients left in the home."""
    import os

    from tests.mlflow.served import ROOT

    done = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "verify", "--no-replay"],
        env={**os.environ, "WORKBENCH_HOME": str(served.home)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-1000:]
    assert "verified" in done.stdout
