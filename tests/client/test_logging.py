"""A training program logs through the client: outages, replays, refusals; what was logged is read back equal."""

from __future__ import annotations

import json
import math
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from runs.models import ApiToken, Membership, MetricBatch, MetricChunk, Study, TrackedRun, User
from tests.client.conftest import Connect
from tests.mlflow.conftest import make_study
from workbench.client import Workbench, WorkbenchError
from workbench.client.errors import Forbidden, NotFound
from workbench.client.logger import RunLogger
from workbench.client.spool import Spool, spools


class Gate(httpx.BaseTransport):
    """A connection that can be cut, or answer with a status, before the real application sees the request."""

    def __init__(self, inner: httpx.BaseTransport):
        self.inner, self.answer, self.after = inner, "", ""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if self.answer == "cut":
            raise httpx.ConnectError("the line is cut")
        if self.answer:
            return httpx.Response(int(self.answer), json={"status": int(self.answer), "detail": "no", "title": "no"})
        response = self.inner.handle_request(request)
        if self.after == "cut":
            raise httpx.ReadError("the answer was lost")
        return response


@pytest.fixture
def study(db: None) -> Study:
    return make_study()


@pytest.fixture
def wired(connect: Connect, study: Study, monkeypatch: pytest.MonkeyPatch) -> tuple[Workbench, Gate]:
    """A client of a researcher with the scope log, and the gate on its line; no waiting between attempts."""
    wb = connect("mara")
    ApiToken.objects.update(scopes=["read", "log"])
    gate = Gate(wb._http._transport)
    wb._http._transport = gate
    wb._transport.sleep = lambda seconds: None
    return wb, gate


def begin(wb: Workbench, folder: Path, **more: Any) -> RunLogger:
    return wb.log_run("logs", "one", framework="trl", folder=folder, every=None, **more)


def test_what_is_logged_is_read_back_equal(wired: tuple[Workbench, Gate], tmp_path: Path) -> None:
    wb, _ = wired
    with begin(wb, tmp_path, tags={"note": "a"}) as run:
        run.parameters({"lr": 0.1})
        run.tag("other", "b")
        for step in range(1500):
            run.log({"loss": step / 2, "odd": math.nan if step == 3 else math.inf}, step, time_ms=step)
        assert run.flush()
    assert run.uid is not None and list(tmp_path.iterdir()) == []
    found = wb.logged_run(run.uid)
    assert (found.name, found.framework, found.status, found.study) == ("one", "trl", "finished", "logs")
    assert found.parameters == {"lr": "0.1"} and found.tags == {"note": "a", "other": "b"}
    history = found.history("loss")
    assert history.step == list(range(1500)) and history.value == [step / 2 for step in range(1500)]
    odd = found.history("odd", start=2, stop=4).value
    assert odd[0] == math.inf and math.isnan(odd[1]) and odd[2] == math.inf
    table = found.arrow("odd").to_pydict()
    assert table["value"] == [None] * 1500 and table["nonfinite"][2:5] == ["inf", "nan", "inf"]
    assert found.arrow().num_rows == 3000 and found.arrow("loss")["value"].to_pylist() == history.value
    assert {(item.name, item.step) for item in found.metrics()} == {("loss", 1499), ("odd", 1499)}
    assert [item.uid for item in wb.logged_runs(study="logs", where="metrics.loss > 700 and params.lr = '0.1'")] == [
        run.uid
    ]
    assert not list(wb.logged_runs(study="logs", where="metrics.loss > 800"))
    assert MetricChunk.objects.exists()


@pytest.mark.parametrize("fault", ["cut", "429", "503", "502", "401", "403", "404"])
def test_an_outage_keeps_everything_for_later(wired: tuple[Workbench, Gate], tmp_path: Path, fault: str) -> None:
    wb, gate = wired
    run = begin(wb, tmp_path)
    run.log({"loss": 1.0}, 0)
    assert run.flush()
    gate.answer = fault
    run.log({"loss": 2.0}, 1)
    assert not run.flush()
    run.log({"loss": 3.0}, 2)
    assert not run.finish(timeout=0.1)
    gate.answer = ""
    assert wb.replay(tmp_path) == {run.spool.path: True} and list(tmp_path.iterdir()) == []
    assert run.uid is not None
    found = wb.logged_run(run.uid)
    assert found.history("loss").value == [1.0, 2.0, 3.0] and found.status == "finished" and found.segment == 0


@pytest.mark.parametrize(("study", "status", "words"), [("my-study", "", "my-study"), ("logs", "403", "logs")])
def test_a_refusal_at_the_beginning_is_raised_once(
    wired: tuple[Workbench, Gate], tmp_path: Path, study: str, status: str, words: str
) -> None:
    """A study that is not there, or a token that may not; the study is named, and the page that founds one."""
    wb, gate = wired
    gate.answer = status
    with pytest.raises(Forbidden if status else NotFound, match=f"study '{words}'") as caught:
        wb.log_run(study, "one", folder=tmp_path)
    assert status or ("http://server/studies/new/" in str(caught.value) and "create_study" in str(caught.value))
    assert list(tmp_path.iterdir()) == [] and not TrackedRun.objects.exists()


def test_a_later_refusal_for_good_is_said_once(
    wired: tuple[Workbench, Gate], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The server is away when the run begins and then knows no such study: one line, no waiting, all is kept."""
    wb, gate = wired
    gate.answer = "cut"
    run = wb.log_run("my-study", "one", folder=tmp_path, every=None)
    run.log({"loss": 1.0}, 0)
    gate.answer = ""
    slept: list[float] = []
    run._transport.sleep = slept.append
    assert not run.flush() and not run.flush() and not run.finish(timeout=60) and slept == []
    said = [record for record in caplog.records if record.levelname == "ERROR"]
    assert len(said) == 1 and "study 'my-study'" in said[0].getMessage() and str(run.spool.path) in said[0].getMessage()
    make_study("my-study")
    connected = User.objects.get(username="mara")
    Membership.objects.create(study=Study.objects.get(slug="my-study"), user=connected, role=Membership.RESEARCHER)
    assert wb.replay(tmp_path) == {run.spool.path: True}
    (found,) = wb.logged_runs(study="my-study")
    assert found.history("loss").value == [1.0] and found.status == "finished"


def test_a_server_that_is_away_from_the_start(wired: tuple[Workbench, Gate], tmp_path: Path) -> None:
    wb, gate = wired
    gate.answer = "cut"
    run = begin(wb, tmp_path)
    run.log({"loss": 1.0}, 0)
    assert not run.finish(timeout=0.1) and run.uid is None
    assert wb.replay(tmp_path) == {run.spool.path: False}
    gate.answer = ""
    assert wb.replay(tmp_path) == {run.spool.path: True}
    (found,) = wb.logged_runs(study="logs")
    assert found.history("loss").value == [1.0]


def test_a_lost_answer_stores_nothing_twice(wired: tuple[Workbench, Gate], tmp_path: Path) -> None:
    wb, gate = wired
    run = begin(wb, tmp_path)
    gate.after = "cut"
    run.log({"loss": 1.0}, 0)
    for _ in range(3):
        assert not run.flush()
    gate.after = ""
    assert run.flush()
    gate.after = "cut"
    run.log({"loss": 2.0}, 1)
    assert not run.flush()
    gate.after = ""
    assert run.finish()
    assert TrackedRun.objects.count() == 1 and MetricBatch.objects.count() == 2
    assert run.uid is not None and wb.logged_run(run.uid).history("loss").value == [1.0, 2.0]


def test_a_value_that_is_no_number_is_left_out(wired: tuple[Workbench, Gate], tmp_path: Path) -> None:
    wb, _ = wired
    run = begin(wb, tmp_path)
    run.log({"a": "1", "b": None, "c": 1, "d": [2], "e": True}, 0)  # type: ignore[dict-item]
    assert run.finish() and run.dropped == 3
    assert run.uid is not None and {item.name for item in wb.logged_run(run.uid).metrics()} == {"c", "e"}


def test_a_refused_batch_is_passed_over_and_kept(wired: tuple[Workbench, Gate], tmp_path: Path) -> None:
    wb, _ = wired
    run = begin(wb, tmp_path)
    run.parameters({"lr": 1})
    assert run.flush()
    run.parameters({"lr": 2})
    run.log({"loss": 1.0}, 0)
    run.flush()
    run.log({"loss": 2.0}, 1)
    assert run.finish() and run.refused == 1 and run.spool.path.exists()
    assert run.uid is not None
    found = wb.logged_run(run.uid)
    assert found.parameters == {"lr": "1"} and found.history("loss").value == [2.0] and found.status == "finished"


def test_an_error_in_the_block_ends_the_run_as_failed(wired: tuple[Workbench, Gate], tmp_path: Path) -> None:
    wb, _ = wired
    with pytest.raises(ZeroDivisionError), begin(wb, tmp_path) as run:
        raise ZeroDivisionError
    assert run.uid is not None and wb.logged_run(run.uid).status == "failed"


def test_a_torn_last_line_is_left_out(wired: tuple[Workbench, Gate], tmp_path: Path) -> None:
    """As a killed process leaves it."""
    wb, gate = wired
    gate.answer = "cut"
    run = begin(wb, tmp_path)
    run.log({"loss": 1.0}, 0)
    run.flush()
    with run.spool.path.open("ab") as file:
        file.write(b'{"kind":"log","points":[{"na')
    gate.answer = ""
    (spool,) = spools(tmp_path)
    assert [line["kind"] for line, _ in spool.waiting()] == ["open", "log"]
    wb.replay(tmp_path)
    (found,) = wb.logged_runs(study="logs")
    assert found.history("loss").value == [1.0]


def test_a_spoilt_spool_says_where(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    path.write_bytes(b'{"kind":"open"}\nnothing\n')
    with pytest.raises(WorkbenchError, match="no JSON"):
        list(Spool(path).waiting())


def test_the_thread_sends_by_itself(tmp_path: Path) -> None:
    """Against a scripted server: two batches, then an outage, then the rest; nothing is raised."""
    got: list[Any] = []
    away = threading.Event()

    def answer(request: httpx.Request) -> httpx.Response:
        if away.is_set():
            raise httpx.ConnectError("away")
        got.append((request.url.path.rsplit("/", 1)[-1], json.loads(request.content)))
        return httpx.Response(200, json={"uid": "u"})

    wb = Workbench("http://server", "wb_x", http=httpx.Client(transport=httpx.MockTransport(answer)))
    run = wb.log_run("logs", folder=tmp_path, every=0.02)
    run.log({"a": 1.0}, 0)
    for _ in range(200):
        if len(got) == 2:
            break
        threading.Event().wait(0.02)
    assert [name for name, _ in got] == ["logged-runs", "log"]
    away.set()
    run.log({"a": 2.0}, 1)
    threading.Event().wait(0.1)
    away.clear()
    assert run.finish(timeout=20)
    assert [body["points"][0]["value"] for name, body in got if name == "log"] == [1.0, 2.0]
    assert got[-1][0] == "status" and got[-1][1]["status"] == "finished"
    wb.close()
