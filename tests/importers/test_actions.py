"""Imports in the database: whole, partial, twice, stopped and resumed, two at once."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import TestCase

from runs.actions import imports
from runs.actions.import_batch import rollout_body
from runs.actions.imports import SourceChanged, begin_import, resend_stale, run_import
from runs.errors import DomainError, StaleTransition
from runs.metrics.read import load, series_of
from runs.models import (
    Actor,
    AuditEntry,
    ImportedRollout,
    LogImport,
    MetricBatch,
    Receipt,
    RunParameter,
    Study,
    TrackedRun,
)
from tests.importers import samples
from tests.importers.conftest import AT
from tests.importers.samples import SOURCES, write_lines
from workbench.contracts.errors import RecordError
from workbench.importers import MetricItem, ParameterItem, RolloutItem, open_import


def imported(study: Study, path: Path, by: Actor, **options: Any) -> LogImport:
    """Begun and read to its end."""
    begun = begin_import(study, path, by=by, at=AT, **options)
    return run_import(begun.pk, clock=lambda: AT)


def points_of(log_import: LogImport) -> dict[str, list[tuple[int, int, float, int]]]:
    """Stored points by name."""
    series = series_of(log_import.run)
    found = load(log_import.run, series)
    return {
        item.name: list(
            zip(
                found[item.pk].step.tolist(), found[item.pk].time_ms.tolist(), found[item.pk].value.tolist(),
                found[item.pk].flag.tolist(), strict=True,
            )
        )
        for item in series
    }  # fmt: skip


def everything(log_import: LogImport) -> tuple[Any, ...]:
    """All that an import stored, without times of writing."""
    rollouts = log_import.rollouts.order_by("position").values_list("uid", "position", "sha256", "grade", "reward")
    settings = RunParameter.objects.filter(run=log_import.run).order_by("key").values_list("key", "value")
    return points_of(log_import), list(rollouts), list(settings), log_import.problems


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_every_format_is_stored_item_by_item(name: str, study: Study, by: Actor, tmp_path: Path) -> None:
    source = SOURCES[name](tmp_path)
    items = list(open_import(source, name))
    ended = imported(study, source, by)
    assert (ended.state, ended.format, ended.error) == (LogImport.DONE, name, "")
    rollouts = [item for item in items if isinstance(item, RolloutItem)]
    rows = list(ended.rollouts.order_by("position"))
    assert len(rows) == len(rollouts) == ended.counts.get("rollouts", 0)
    for row, item in zip(rows, rollouts, strict=True):
        body = rollout_body(row)
        assert (row.step, row.group_key, row.sample_key, row.grade) == (
            item.step, item.group_key, item.sample_key, item.grade,
        )  # fmt: skip
        assert body["token_ids"] == item.token_ids and body["completion"] == item.completion
        assert body["place"]["file"] == item.cursor.file and body["reward"] == item.reward == row.reward
    metrics = [item for item in items if isinstance(item, MetricItem)]
    assert sum(len(points) for points in points_of(ended).values()) == len(metrics) == ended.counts.get("metrics", 0)
    settings = {item.name for item in items if isinstance(item, ParameterItem)}
    assert set(RunParameter.objects.filter(run=ended.run).values_list("key", flat=True)) == settings
    tracked = TrackedRun.objects.get(run=ended.run)
    assert (tracked.run.origin, tracked.partial, tracked.status) == ("imported", False, "finished")
    assert ended.cursor.get("source") is None and ended.counts["bytes_done"] == ended.counts["bytes"]


def test_values_that_are_not_finite_and_points_without_steps(study: Study, by: Actor, tmp_path: Path) -> None:
    """prime-rl: the system's line has no step; its label says so. nan and infinity keep their flag."""
    found = points_of(imported(study, samples.prime_rl(tmp_path), by))
    assert [step for step, *_ in found["loss/mean [producer=trainer]"]] == [0, 1, 2, 3, 4]
    ((step, time_ms, _, flag),) = found["gpu [producer=system,step=none]"]
    assert (step, time_ms, flag) == (0, 1_700_000_009_000, 2)
    events = points_of(imported(study, samples.tensorboard(tmp_path), by))["train/kl"]
    assert [flag for *_, flag in events[3:6]] == [1, 2, 0] and events[5][2] == 0.5


def test_a_rollout_with_nan_keeps_it_in_its_body(study: Study, by: Actor, tmp_path: Path) -> None:
    row = {"input": "a", "output": "b", "score": math.nan, "step": 1, "big": 1 << 60}
    ended = imported(study, write_lines(tmp_path / "1.jsonl", [row]), by)
    stored = ended.rollouts.get()
    assert stored.reward is None and rollout_body(stored)["reward"] == {"nonfinite": "nan"}
    assert rollout_body(stored)["rewards"] == {"big": float(1 << 60)}


def test_the_same_source_twice_changes_nothing(study: Study, by: Actor, tmp_path: Path) -> None:
    """Also under another name and place: the bytes are the source."""
    source = samples.prime_rl(tmp_path)
    first = imported(study, source, by)
    before = everything(first), Receipt.objects.count(), MetricBatch.objects.count(), ImportedRollout.objects.count()
    source.rename(tmp_path / "moved")
    second = imported(study, tmp_path / "moved", by, name="another name")
    assert second.pk == first.pk and TrackedRun.objects.count() == 1
    assert before == (
        everything(second), Receipt.objects.count(), MetricBatch.objects.count(), ImportedRollout.objects.count(),
    )  # fmt: skip


def test_another_study_imports_it_anew(study: Study, by: Actor, tmp_path: Path) -> None:
    source = samples.verl(tmp_path)
    other = Study.objects.create(uid=samples_uid(), slug="other", title_en="Other", created_at=AT, created_by=by)
    assert imported(study, source, by).pk != imported(other, source, by).pk
    assert ImportedRollout.objects.count() == 16


def samples_uid() -> Any:
    """A fresh uid."""
    import uuid

    return uuid.uuid4()


def test_several_sources_make_one_run(study: Study, by: Actor, tmp_path: Path) -> None:
    """TensorBoard and completions of one training under one name; the framework is guessed from the names."""
    first = imported(study, samples.tensorboard(tmp_path), by, name="training")
    second = imported(study, samples.trl(tmp_path), by, name="training")
    assert first.run == second.run and second.counts["rollouts"] == 40 and second.counts.get("metrics", 0) == 0
    writer = samples.SummaryWriter(str(tmp_path / "named"))
    for name in ("train/reward", "train/completions/mean_length", "train/frac_reward_zero_std"):
        writer.add_scalar(name, 1.0, 1, walltime=1.0)
    writer.close()
    guessed = imported(study, tmp_path / "named", by)
    assert TrackedRun.objects.get(run=guessed.run).framework == "trl"


class Stopped(BaseException):
    """As abrupt as a signal: nothing is cleaned up by the code under test."""


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_stopped_after_every_batch_and_resumed(
    name: str, study: Study, by: Actor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches of two items or one rollout; the process ends after each. Afterwards all is as in one go."""
    monkeypatch.setattr(imports, "BATCH_ITEMS", 2)
    monkeypatch.setattr(imports, "BATCH_ROLLOUTS", 1)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    source = SOURCES[name](tmp_path / "a")
    whole = imported(study, source, by, name="whole")
    other = Study.objects.create(uid=samples_uid(), slug="other", title_en="Other", created_at=AT, created_by=by)
    begun = begin_import(other, source, by=by, at=AT, name="parts")

    def stop(_: LogImport) -> None:
        raise Stopped

    for _ in range(400):
        try:
            ended = run_import(begun.pk, clock=lambda: AT, progress=stop)
            break
        except Stopped:
            assert LogImport.objects.get(pk=begun.pk).state == LogImport.RUNNING
    points, rollouts, settings, problems = everything(ended)
    whole_points, whole_rollouts, whole_settings, whole_problems = everything(whole)
    assert repr(points) == repr(whole_points) and settings == whole_settings and problems == whole_problems
    assert [row[1:] for row in rollouts] == [row[1:] for row in whole_rollouts]
    assert ended.counts == whole.counts and ended.state == LogImport.DONE


def test_partial_says_what_is_lost_and_where(study: Study, by: Actor, tmp_path: Path) -> None:
    source = samples.verl(tmp_path)
    path = source / "10.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"{broken\n" + lines[1] + lines[2][:20])
    ended = imported(study, source, by)
    assert ended.state == LogImport.PARTIAL and TrackedRun.objects.get(run=ended.run).partial
    assert ended.counts["rollouts"] == 6 and ended.counts["problems"] == {"malformed": 1, "truncated": 1}
    found = [(row["kind"], row["file"], row["number"], row["offset"]) for row in ended.problems]
    assert found == [
        ("malformed", "10.jsonl", 2, len(lines[0])), ("truncated", "10.jsonl", 4, len(lines[0] + lines[1]) + 8),
    ]  # fmt: skip
    receipt = Receipt.objects.get(kind="import.ended")
    assert b'"state":"partial"' in bytes(receipt.bytes) and ended.source_sha256.encode() in bytes(receipt.bytes)


def test_what_is_left_out_is_no_loss_and_one_line(study: Study, by: Actor, tmp_path: Path) -> None:
    writer = samples.SummaryWriter(str(tmp_path / "run"))
    for step in range(5):
        writer.add_histogram("weights", [1.0, 2.0], step, walltime=1.0)
    writer.add_scalar("loss", 1.0, 0, walltime=1.0)
    writer.close()
    ended = imported(study, tmp_path / "run", by)
    assert ended.state == LogImport.DONE and ended.counts["problems"] == {"not_imported": 5}
    assert [(row["what"], row["count"]) for row in ended.problems] == [("value of 'weights'", 5)]


def test_problems_without_end_are_counted_and_some_are_listed(study: Study, by: Actor, tmp_path: Path) -> None:
    path = tmp_path / "1.jsonl"
    good = {"input": "a", "output": "b", "score": 1.0, "step": 1}
    path.write_text(json.dumps(good) + "\n" + "broken\n" * 600)
    ended = imported(study, path, by)
    assert ended.counts["problems"] == {"malformed": 600} and len(ended.problems) == 500


def test_a_source_that_changed_is_refused_and_can_be_put_back(study: Study, by: Actor, tmp_path: Path) -> None:
    source = samples.tinker(tmp_path)
    begun = begin_import(study, source, by=by, at=AT)
    full = source.read_bytes()
    source.write_bytes(full + b"\n")
    with pytest.raises(SourceChanged, match="source: got SHA-256"):
        run_import(begun.pk, clock=lambda: AT)
    failed = LogImport.objects.get(pk=begun.pk)
    assert failed.state == LogImport.FAILED and "source: got SHA-256" in failed.error
    source.write_bytes(full)
    assert run_import(begun.pk, clock=lambda: AT).counts["grades"] == {"A": 3, "B": 1}


def test_a_source_that_changes_while_it_is_read(study: Study, by: Actor, tmp_path: Path) -> None:
    source = samples.tinker(tmp_path)
    begun = begin_import(study, source, by=by, at=AT)
    with pytest.raises(SourceChanged, match="changed while it was read"):
        run_import(
            begun.pk, clock=lambda: AT, progress=lambda _: source.write_bytes(source.read_bytes() + b"\n") and None
        )
    assert LogImport.objects.get(pk=begun.pk).state == LogImport.FAILED


def test_equal_file_names_make_two_runs(study: Study, by: Actor, tmp_path: Path) -> None:
    """Only a name that was asked for joins sources."""
    first, second = tmp_path / "a", tmp_path / "b"
    runs = [
        imported(study, write_lines(folder / "rows.jsonl", [samples.tinker_row(place)]), by).run
        for place, folder in enumerate((first, second))
    ]
    assert runs[0] != runs[1] and runs[0].name == runs[1].name == "rows.jsonl"


def test_two_processes_at_one_import(study: Study, by: Actor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one reads, another takes the import to its end: the first stores nothing more and says so."""
    monkeypatch.setattr(imports, "BATCH_ROLLOUTS", 1)
    begun = begin_import(study, samples.tinker(tmp_path), by=by, at=AT)
    fired: list[int] = []

    def interfere(_: LogImport) -> None:
        if not fired:
            fired.append(1)
            run_import(begun.pk, clock=lambda: AT)

    with pytest.raises(StaleTransition, match="another process"):
        run_import(begun.pk, clock=lambda: AT, progress=interfere)
    ended = LogImport.objects.get(pk=begun.pk)
    assert ended.state == LogImport.DONE and ended.rollouts.count() == 4


def test_refusals(study: Study, by: Actor, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    cases: tuple[tuple[Callable[[], Any], str], ...] = (
        (lambda: begin_import(study, tmp_path / "none", by=by, at=AT), "path: got 'none'"),
        (lambda: begin_import(study, tmp_path / "notes.txt", by=by, at=AT), "of no known format"),
        (lambda: begin_import(study, tmp_path / "notes.txt", by=by, at=AT, format="wandb"), "format: got 'wandb'"),
        (
            lambda: begin_import(study, tmp_path / "notes.txt", by=by, at=AT, format="tinker", name="a\x00b"),
            "name: got",
        ),
    )
    for call, message in cases:
        with pytest.raises(DomainError, match=message):
            call()
    assert not LogImport.objects.exists() and not TrackedRun.objects.exists()


def test_a_source_without_the_format_fails_and_stores_nothing(study: Study, by: Actor, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    begun = begin_import(study, tmp_path / "notes.txt", by=by, at=AT, format="verl-rollouts")
    with pytest.raises(DomainError, match="without a file of verl-rollouts"):
        run_import(begun.pk, clock=lambda: AT)
    assert LogImport.objects.get(pk=begun.pk).state == LogImport.FAILED


def test_a_changed_body_is_found(study: Study, by: Actor, tmp_path: Path) -> None:
    row = imported(study, samples.tinker(tmp_path), by).rollouts.order_by("position").first()
    assert row is not None and rollout_body(row)["reward"] == 0.0
    row.sha256 = "0" * 64
    with pytest.raises(RecordError, match="sha256 of rollout"):
        rollout_body(row)
    row.body = b"nothing"
    with pytest.raises(RecordError, match="expected zstd"):
        rollout_body(row)


def test_a_lost_message_is_sent_again(study: Study, by: Actor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[list[int]] = []
    monkeypatch.setattr(imports.app, "send_task", lambda name, args, **_: sent.append(args))
    begun = begin_import(study, samples.tinker(tmp_path), by=by, at=AT)
    assert resend_stale(AT) == 0
    assert resend_stale(AT + 2 * imports.STALE) == 1 and sent == [[begun.pk]]
    assert resend_stale(AT + 2 * imports.STALE) == 0
    run_import(begun.pk, clock=lambda: AT)
    assert resend_stale(AT + 9 * imports.STALE) == 0


def test_a_worker_reads_in_slices(study: Study, by: Actor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With no time at all a slice is one batch of one rollout: four slices, a fifth that ends it, four messages."""
    from worker.tasks import import_log

    sent: list[list[int]] = []
    monkeypatch.setattr(imports.app, "send_task", lambda name, args, **_: sent.append(args))
    monkeypatch.setattr(imports, "BATCH_ROLLOUTS", 1)
    monkeypatch.setattr(imports.continue_import, "__kwdefaults__", {"seconds": 0.0})
    begun = begin_import(study, samples.tinker(tmp_path), by=by, at=AT)
    for slices in range(1, 5):
        with TestCase.captureOnCommitCallbacks(execute=True):
            import_log(begun.pk)
        assert LogImport.objects.get(pk=begun.pk).counts["rollouts"] == slices
    with TestCase.captureOnCommitCallbacks(execute=True):
        import_log(begun.pk)
    assert LogImport.objects.get(pk=begun.pk).state == LogImport.DONE and sent == [[begun.pk]] * 4


def test_the_command(study: Study, by: Actor, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = samples.tinker(tmp_path)
    call_command("import", str(source), study="foreign", run="wire", json=True)
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["state"] == "done" and found["counts"]["grades"] == {"A": 3, "B": 1} and not found["problems"]
    assert TrackedRun.objects.get().name == "wire"
    source.write_bytes(source.read_bytes()[:-30])
    with pytest.raises(CommandError, match="the import is partial") as raised:
        call_command("import", str(source), study="foreign", run="cut")
    assert raised.value.returncode == 3
    shown = capsys.readouterr()
    assert "truncated: wire_rows.jsonl, line 4" in shown.err and "partial: tinker" in shown.out
    with pytest.raises(CommandError, match="--study: got 'none'"):
        call_command("import", str(source), study="none")
    with pytest.raises(CommandError, match="does not exist"):
        call_command("import", str(tmp_path / "missing"), study="foreign")
    lines = AuditEntry.objects.filter(method="command", route="manage.py import").order_by("pk")
    assert list(lines.values_list("status", "study__slug", "subject")) == [
        (0, "foreign", "wire_rows.jsonl"), (0, "foreign", "wire_rows.jsonl"), (1, "foreign", "missing"),
    ]  # fmt: skip
