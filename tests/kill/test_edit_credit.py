"""kill -9 during trials and updates of the study of edit credit.

A disturbed run must end as the undisturbed one did: every trial, selection, D, credit, adapter and the closure by hash;
nothing twice, nothing lost; no process, mount, folder or control group of a sandbox left behind.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.e2e.tiny import EDIT_CREDIT, Ran, client, differences, facts, rows, verified
from tests.kill.conftest import COUNTS, Say
from tests.kill.harness import ROLES, UPDATE_POINTS, Kill, check_ledger, fire
from tests.servers import wait_until
from worker.sandbox.traces import groups_now, traces
from worker.sandbox.workspace import PREFIX

pytestmark = pytest.mark.kill
SWEEP_SECONDS = 90.0  # a folder waits 10 s, a group 30 s, and the reaper looks every few seconds
AT_RANDOM = 4


def drawn(seed: int) -> list[Kill]:
    """Each point of a trial while only the pilot's two trial jobs run, each again later; each point of an update once.

    The study has 24 jobs: 3 collect for training after the pilot's, 10 run trials, 4 apply updates.
    """
    draws = random.Random(seed)
    in_trial = ("trial", "sandbox", "blob_written", "receipt_append")
    kills = [Kill(point, 1, kind="collect_shard") for point in in_trial]  # the next to reach it is a trial's job
    for kind, points, last in (("run_trials", in_trial, 9), ("apply_update", UPDATE_POINTS, 3)):
        after = draws.sample(range(2 if kind == "run_trials" else 0, last), len(points))
        kills += [Kill(point, count, kind=kind) for point, count in zip(points, after, strict=True)]
    for _ in range(AT_RANDOM):
        kills.append(Kill(draws.choice(ROLES), draws.randrange(2, 18), round(draws.uniform(0.0, 1.0), 2)))
    return kills


@pytest.mark.parametrize("seed", [7, 17])
def test_kills_during_trials_and_updates_change_nothing(
    tmp_path: Path, cache: Path, say: Say, tried: Ran, seed: int
) -> None:
    home, scratch, before = tmp_path / "home", tmp_path / "scratch", groups_now()
    scratch.mkdir()
    kills = drawn(seed)
    say(f"seed {seed}: {', '.join(f'{kill.what}@{kill.after} {kill.kind}' for kill in kills)}")
    own = {"TMPDIR": str(scratch)}
    with (
        fire(home, cache, say, COUNTS, seed, **own) as burning,
        client(home, cache, tmp_path, EDIT_CREDIT, **own) as study,
    ):
        burning.run(kills)
        summary = study.finish(60)
        lost = check_ledger(home)
        say(f"attempts lost: {dict(lost)}")
        wait_until(lambda: not list(scratch.glob(f"{PREFIX}*")), "the sweep of folders", SWEEP_SECONDS)
        burning.stop()
    assert lost["run_trials"] >= 4 and lost["apply_update"] >= 3, "the kills hit something else: this has shown nothing"
    left = traces(scratch, groups_before=before)
    assert (left.processes, left.mounts) == (0, 0), left
    assert not differences(tried.facts, facts(lambda text: rows(home, text)))
    assert summary["closure"] == tried.summary["closure"]
    verified(home, cache)
