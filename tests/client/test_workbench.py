"""The client against the real application: every object, every change, following, tables, chains."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from runs.models import Execution, Receipt, Turn
from runs.storage import blob_store
from tests.client.conftest import Connect
from tests.runs.scripted import Lab
from tests.runs.scripted_plan import document
from tests.worker.test_inspection import found
from workbench.client import Workbench, errors, receipts
from workbench.client.tables import to_arrow, to_pandas
from workbench.contracts.canonical import sha256_hex
from worker import lifecycle

TEXT = json.dumps({**document(), "name": "mine"})


def test_importing_the_client_needs_neither_django_nor_torch_nor_tables() -> None:
    code = (
        "import sys; from workbench.client import Workbench; w = Workbench('http://x', 'wb_secret');"
        "print([m for m in ('django', 'celery', 'torch', 'numpy', 'pandas', 'pyarrow', 'tqdm') if m in sys.modules], w)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] Workbench('http://x')"  # the token is never shown


def test_address_and_token_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_URL", "https://host:1/")
    monkeypatch.setenv("WORKBENCH_TOKEN", "wb_x")
    made = Workbench()
    assert made.url == "https://host:1" and made._http.headers["Authorization"] == "Bearer wb_x"
    with pytest.raises(errors.WorkbenchError, match="expected http://host"):
        Workbench("ftp://host")


def test_every_object_of_a_closed_execution(closed: Execution, connect: Connect) -> None:
    wb = connect()
    execution = wb.execution(str(closed.uid))
    assert (execution.state, execution.is_ended, execution.study) == ("closed", True, "scripted")
    assert execution.progress().done == execution.progress().expected > 0
    assert all(job.state == "succeeded" for job in execution.jobs())
    run = execution.runs().one()
    assert run == wb.run(run.uid) and run.is_ended and run.batches == 2
    assert wb.study("scripted").visibility == "public" and wb.studies(visibility="public").one().slug == "scripted"
    groups = list(run.groups(purpose="train", limit=1))
    assert len(groups) == 2 and wb.group(groups[0].uid) == groups[0] and groups[0].sigma is not None
    some = wb.trajectories(group=groups[0].uid).first()
    assert some is not None
    whole = wb.trajectory(some.uid)
    assert whole.turns[0].finish == {"answer": "a", "citations": []}
    assert [part.name for part in whole.reward_components] == ["evidence"] and whole.reward == some.reward
    assert {item.key for item in wb.tasks(split="test")} >= {item.task_key for item in wb.evaluations()}
    assert wb.task_sets().one().environment == "evidence_search"
    plan = wb.plans(state="frozen").one()
    assert sha256_hex(plan.bytes()) == plan.sha256 and plan.execution == execution.uid
    cells = plan.cells()
    assert cells and all(cell.stored == cell.planned for cell in cells)
    assert cells[0].rates["success"].of == cells[0].stored
    assert {item.key for item in run.series_list()} and len(run.series("reward").x) == len(run.series("reward").y)
    assert list(run.iter_trajectories(success=True, purpose="train"))


def test_captures_arrive_with_their_hash(closed: Execution, connect: Connect) -> None:
    wb = connect()
    row = wb.captures(limit=3).first()
    assert row is not None
    data = wb.capture_bytes(row.capture_sha256)
    assert sha256_hex(data) == row.capture_sha256
    capture = wb.capture(row.capture_sha256)
    assert len(capture.generated_ids) == row.generated_tokens and capture.trajectory_uid == row.trajectory
    table = wb.tokens(row.trajectory)
    assert table.num_rows == row.prompt_tokens + row.generated_tokens
    assert table.column("token").to_pylist() == [*capture.prompt_ids, *capture.generated_ids]
    assert Turn.objects.filter(capture_sha256__isnull=False).count() == sum(1 for _ in wb.captures(limit=2))


def test_a_checkpoint_is_downloaded_resumed_and_checked(closed: Execution, connect: Connect, part: Path) -> None:
    wb = connect()
    checkpoint = next(item for item in wb.checkpoints() if item.held)
    to = checkpoint.download(part / "adapter")
    assert sha256_hex(to.read_bytes()) == checkpoint.sha256
    half = part / f"again.{checkpoint.sha256[:12]}.part"
    half.write_bytes(to.read_bytes()[:3])
    said: list[tuple[int, int | None]] = []
    again = checkpoint.download(part / "again", progress=lambda *at: said.append(at))
    assert again.read_bytes() == to.read_bytes() and said[-1] == (checkpoint.bytes, checkpoint.bytes)
    with pytest.raises(errors.IntegrityError):
        replace(checkpoint, sha256="0" * 64).download(part / "wrong")
    assert sorted(path.name for path in part.iterdir()) == ["adapter", "again"]


def test_bytes_that_retention_removed_are_gone(closed: Execution, connect: Connect, part: Path) -> None:
    wb = connect()
    (gone,) = [item for item in wb.checkpoints() if item.tombstone is not None]
    blob_store().path(gone.sha256).unlink()  # the removal itself waits for a commit
    assert not gone.refresh().held
    with pytest.raises(errors.Gone, match="recipe"):
        gone.download(part / "adapter")
    assert not part.exists() or not list(part.iterdir())


def test_tables(closed: Execution, connect: Connect) -> None:
    wb = connect()
    rows = wb.evaluations(limit=1)
    frame, table = rows.to_pandas(), rows.to_arrow()
    assert len(frame) == table.num_rows == len(list(rows)) > 1
    assert str(frame["reward"].dtype) == "Float64" and str(frame["success"].dtype) == "boolean"
    assert table.column("run").null_count == sum(item.run is None for item in rows) > 0  # the parent's
    groups = wb.groups().to_arrow()
    assert json.loads(groups.column("identities")[0].as_py())["runtime"] == "runtime-test"
    empty = wb.evaluations(split="anchor")
    assert list(empty.to_pandas().columns) == list(frame.columns) and empty.to_arrow().num_rows == 0
    assert empty.first() is None
    with pytest.raises(errors.WorkbenchError, match="got none, expected one"):
        empty.one()
    with pytest.raises(errors.WorkbenchError, match="got more than one"):
        rows.one()
    assert to_arrow([]).num_rows == 0 and len(to_pandas([])) == 0


def test_a_receipt_chain_is_verified_here(closed: Execution, connect: Connect) -> None:
    """Equal to the server's own bytes; each change of a member, a missing and a foreign link are named."""
    wb, name = connect(), f"execution:{closed.uid}"
    rows = list(wb.receipts(stream=name, order="oldest"))
    assert rows[0].prev == sha256(b"workbench.receipt.genesis/1\x00" + name.encode()).hexdigest()
    stored = {item.sha256: bytes(item.bytes) for item in Receipt.objects.filter(stream=name)}
    assert all(receipts.receipt_bytes(item) == stored[item.sha256] for item in rows) and len(rows) > 1
    report = wb.verify_chain(name)
    assert report.ok and report.checked == len(rows) and report.head == rows[-1].sha256
    for changed in (
        replace(rows[1], body={**rows[1].body, "x": 1}), replace(rows[1], kind="other"),
        replace(rows[1], actor=replace(rows[1].actor, uid=rows[0].uid if hasattr(rows[0], "uid") else "0")),
    ):  # fmt: skip
        broken = receipts.verify_chain(name, [rows[0], changed, *rows[2:]])
        assert not broken.ok and broken.checked == 1 and "#2: got" in str(broken.fault)
    assert "expected to follow" in str(receipts.verify_chain(name, rows[1:]).fault)
    assert "expected to follow" in str(receipts.verify_chain("run:other", rows).fault)
    short = receipts.verify_chain(name, rows[:-1], rows[-1].sha256)
    assert short.fault is not None and short.fault.startswith("head: got")


def drive_while_waiting(wb: Workbench, lab: Lab, execution: Execution, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every pause of the client does one job."""
    monkeypatch.setattr(wb._transport, "sleep", lambda seconds: lab.step(execution))


def test_follow_ends_with_the_execution_and_tells_every_receipt_once(
    lab: Lab, started: Execution, connect: Connect, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    wb = connect()
    drive_while_waiting(wb, lab, started, monkeypatch)
    seen: list[tuple[str, int]] = []
    ended = wb.execution(str(started.uid)).follow(on_event=lambda item: seen.append((item.stream, item.seq)))
    assert ended.state == "closed" and "closed" in capsys.readouterr().err
    streams = {f"execution:{started.uid}", *(f"run:{run.uid}" for run in started.runs.all())}
    expected = set(Receipt.objects.filter(stream__in=streams).values_list("stream", "seq"))
    assert len(seen) == len(set(seen)) and set(seen) == expected


def test_a_run_is_waited_for(
    lab: Lab, started: Execution, connect: Connect, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    wb = connect()
    drive_while_waiting(wb, lab, started, monkeypatch)
    run = wb.runs().one().wait()
    assert (run.state, run.batches) == ("completed", 2) and not capsys.readouterr().err


def test_waiting_has_an_end(started: Execution, connect: Connect) -> None:
    wb = connect()
    with pytest.raises(errors.WaitTimeout, match="it goes on"):
        wb.execution(str(started.uid)).wait(timeout=0.01)
    assert next(wb.events(execution=str(started.uid))).kind == "execution.started"


def test_pause_resume_and_cancel(started: Execution, connect: Connect) -> None:
    execution = connect("mara").execution(str(started.uid))
    assert execution.pause().state == "paused" and execution.refresh().resume().state == "running"
    assert execution.cancel().is_ended
    with pytest.raises(errors.ProblemError, match="cancelled"):
        execution.resume()
    with pytest.raises(errors.Unauthorized):
        connect().execution(str(started.uid)).pause()
    with pytest.raises(errors.Forbidden):
        connect("vera", "viewer").execution(str(started.uid)).pause()
    with pytest.raises(errors.NotFound):
        connect().run("00000000-0000-4000-8000-000000000000")
    with pytest.raises(errors.Invalid, match="colour"):
        list(connect().runs(colour="red"))


def test_a_plan_from_draft_to_start(
    lab: Lab, connect: Connect, monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path
) -> None:
    """Create, validate, save, inspect, preview, freeze, start, supersede; refusals on the way."""
    lab.draft()
    wb = connect("mara")
    assert wb.me().user == "mara" and "plan.freeze" in wb.me().studies["scripted"]
    text = TEXT
    plan = wb.create_plan("scripted", "mine", text)
    assert (plan.state, plan.revision, plan.sha256) == ("draft", 1, None) and plan.validate().valid
    value = json.loads(text)
    checked = plan.validate(json.dumps({**value, "rollout": {**value["rollout"], "group_size": 1}}))
    assert not checked.valid and checked.problems[0].field == "rollout.group_size"
    saved = plan.save(text + "\n")
    assert saved.revision == 2 and saved.draft_text == text + "\n"
    assert plan.save(text + "\n") == saved  # the same save again: its answer had been lost
    with pytest.raises(errors.PreconditionFailed, match="got revision 1, expected 2"):
        plan.save(text + "\n\n")
    with pytest.raises(errors.Conflict, match="inspection"):
        saved.freeze()
    assert saved.difference(saved).equal
    answer = found(settings, tmp_path)
    engine = type("Engine", (), {"call": lambda self, op, spec, **_: answer})
    with monkeypatch.context() as patch:
        patch.setattr(lifecycle, "engine_client", lambda threads: engine())
        patch.setattr(wb._transport, "sleep", lambda seconds: lifecycle.execute(lab.sent.pop()))
        lab.sent.clear()
        with_queue(lab)
        assert saved.inspect().state == "succeeded"
    preview = saved.preview()
    frozen = saved.freeze()
    assert (frozen.state, frozen.sha256) == ("frozen", preview.sha256)
    assert frozen.bytes() and frozen.difference(str(frozen.sha256)[:12]).equal
    execution = frozen.start()
    assert frozen.start() == execution and execution.state == "running"
    assert frozen.supersede("a better one").state == "superseded"
    with pytest.raises(errors.Conflict, match=r"frozen|superseded"):
        frozen.save(text)


def with_queue(lab: Lab) -> None:
    """Jobs are claimed by their key in the database; the scripted broker only notes them."""
    from runs.models import Job

    class Sent(list):  # type: ignore[type-arg]
        def pop(self, index: int = -1) -> int:  # type: ignore[override]
            return int(Job.objects.filter(state="queued").values_list("pk", flat=True)[0])

    lab.sent = Sent()


def test_an_inspection_that_fails_says_why(lab: Lab, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    from worker.runner_client import RunnerFailed

    lab.draft()
    wb = connect("mara")
    fault = RunnerFailed("no such class", boundary="EnvironmentFault", class_name="EnvironmentFault", trace="")
    engine = type("Engine", (), {"call": lambda self, op, spec, **_: (_ for _ in ()).throw(fault)})
    monkeypatch.setattr(lifecycle, "engine_client", lambda threads: engine())
    with_queue(lab)
    monkeypatch.setattr(wb._transport, "sleep", lambda seconds: lifecycle.execute(lab.sent.pop()))
    with pytest.raises(errors.WorkbenchError, match=r"the inspection failed: .*no such class"):
        wb.create_plan("scripted", "mine", TEXT).inspect()


def test_a_study_is_founded_once(connect: Connect) -> None:
    wb = connect("mara")
    made = wb.create_study("my-study", "Mine")
    assert wb.study("my-study") == made and made.visibility == "private"
    with pytest.raises(errors.Conflict):
        wb.create_study("my-study", "Mine")
    with pytest.raises(errors.NotFound):
        connect().study("my-study")
