"""Where no attempt is left, the loss is recorded as ours and the run still ends honestly.

The plan allows one attempt a job, so each kill costs a job: a shard becomes infrastructure-invalid
without any reward, an update ends its run as ``partial_invalid`` with what it had committed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.tiny import client, none_left, rows, start, verified, write_study
from tests.kill.conftest import COUNTS, Say
from tests.kill.harness import Fire, Kill, check_ledger, fire

pytestmark = pytest.mark.kill


def one_attempt(scale: dict[str, Any]) -> None:
    """One attempt a job; the error gate stays out of the way."""
    scale["budget"]["max_attempts"] = 1
    scale["error_gate"] = {"max_invalid_share": 1.0, "minimum_trajectories": 16}


def perish(tmp_path: Path, cache: Path, say: Say, kills: list[Kill], *, ends: str = "closed") -> tuple[Path, Fire]:
    """Run the study with one attempt a job under ``kills``; checks that hold however it ends."""
    home, studies = tmp_path / "home", write_study(tmp_path / "studies", one_attempt)
    with fire(home, cache, say, COUNTS, 1) as burning:
        early = kills if ends == "stopped" else []  # the only shard of a preflight may be over before one looks
        for kill in early:
            burning.arm(kill)
        start(home, cache, studies)
        burning.run([kill for kill in kills if kill not in early], ends=ends)
        lost = check_ledger(home)
        say(f"jobs lost for good: {dict(lost)}")
        burning.stop()
    assert lost.total() == sum(kill.what != "dispatch" for kill in kills), "a kill of a job is a lost job, here"
    verified(home, cache, nothing_in=() if ends == "closed" else (6, 7, 8, 9, 16))
    return home, burning


def test_lost_shards_are_infrastructure_invalid_and_earn_nothing(tmp_path: Path, cache: Path, say: Say) -> None:
    """Killed while sampling, between blob and row, and inside the commit; N still counts every item."""
    # after the inspection and the preflight: a lost preflight stops the study, which is another test
    kills = [Kill("collect", 2), Kill("blob_written", 5), Kill("receipt_append", 8), Kill("dispatch", 3)]
    home, _ = perish(tmp_path, cache, say, kills)
    errored = rows(home, "SELECT kind, error FROM runs_job WHERE state = 'errored'")
    assert len(errored) == 3 and all("1 of 1 attempts lost" in error for _, error in errored)
    others = sum(kind in ("apply_update", "probe_shard") for kind, _ in errored)  # whose commit may be the one hit
    receipts = rows(home, "SELECT count(*) FROM runs_receipt WHERE kind = 'shard.lost'")
    assert receipts == [(3 - others,)]
    invalid = rows(
        home,
        "SELECT invalid_reason, reward_total, advantage, success FROM runs_trajectory"
        " WHERE status = 'infrastructure_invalid'",
    )
    assert len(invalid) == 8 * (3 - others)
    assert all(reason.startswith("worker_lost: ") for reason, *_ in invalid)
    assert {tuple(values) for _, *values in invalid} == {(None, None, None)}
    items = rows(home, "SELECT condition, count(*) FROM runs_evaluationitem GROUP BY checkpoint_id, condition")
    assert items and {count for _, count in items} == {8}
    trained = rows(
        home,
        "SELECT count(*) FROM runs_trajectorycredit c JOIN runs_trajectory t ON t.id = c.trajectory_id"
        " WHERE t.status = 'infrastructure_invalid'",
    )
    assert trained == [(0,)]


def test_lost_updates_end_their_runs_as_partial_invalid(tmp_path: Path, cache: Path, say: Say) -> None:
    """The first update of each of the three arms is killed at another point; the gated arm is refused; it closes."""
    points = ("old_logprobs", "backward", "adapter_written")
    kills = [Kill(point, after, kind="apply_update") for after, point in enumerate(points)]
    home, _ = perish(tmp_path, cache, say, kills)
    heads = rows(
        home,
        "SELECT r.name, h.state, h.batch, h.steps, h.reason FROM runs_runhead h JOIN runs_run r ON r.id = h.run_id"
        " ORDER BY r.name",
    )
    broken = [row for row in heads if row[1] == "partial_invalid"]
    assert 1 <= len(broken) <= 3
    assert all("apply_update: " in row[4] and "1 of 1 attempts lost" in row[4] for row in broken)
    assert rows(home, "SELECT count(*) FROM runs_job WHERE kind = 'apply_update' AND state = 'errored'") == [(3,)]
    assert len(broken) == 3, heads
    assert [row[1] for row in heads if row[0].startswith("K")] == ["refused"]
    kept = rows(home, "SELECT sum(steps) FROM runs_runhead")[0][0]
    assert kept == rows(home, "SELECT count(*) FROM runs_updatestep")[0][0]


def test_lost_preflight_stops_the_study_with_its_reason(tmp_path: Path, cache: Path, say: Say) -> None:
    """No eligible probe group: nothing is trained, nothing evaluated; ``study run`` says so with status 1."""
    home, _ = perish(tmp_path, cache, say, [Kill("collect", 0)], ends="stopped")
    assert rows(home, "SELECT state, reason FROM runs_execution") == [("stopped", "preflight: no eligible probe group")]
    assert {state for (state,) in rows(home, "SELECT state FROM runs_runhead")} == {"stopped"}
    assert rows(home, "SELECT count(*) FROM runs_updatebatch") == [(0,)]
    with client(home, cache, tmp_path) as study:
        assert study.process.wait(120) == 1
        assert '"state": "stopped"' in study.out.read_text()
    none_left(home)
