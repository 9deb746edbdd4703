"""The study of edit credit end to end: two runs of one seed are equal; at ``small`` it closes, verifies and adds up."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.tiny import EDIT_CREDIT, Ran, differences, none_left, rows, run_tiny, verified
from tests.workbench.processes import environment
from workbench.contracts.trials import AVAILABLE, SELECTED, UNAVAILABLE
from workbench.settings import BASE_DIR

pytestmark = pytest.mark.gate
SMALL_SECONDS = 1500.0  # on a machine that others load too; it is meant to take 6 minutes of an idle one
NO_SANDBOX = """
import sys, django
import worker.sandbox.bubblewrap
worker.sandbox.bubblewrap.program_path = lambda: None
django.setup()
from django.core.management import call_command
call_command("verify", "--json")
"""


def test_two_runs_of_one_seed_are_equal(tmp_path: Path, cache: Path, tried: Ran) -> None:
    """Selections, differences, trials, adapters, updates and the closure, by value and by hash."""
    again = run_tiny(tmp_path / "home", cache, EDIT_CREDIT)
    for name in ("interventions", "trials", "tried", "credits", "adapters", "updates", "captures"):
        assert tried.facts[name] and again.facts[name] == tried.facts[name], name
    assert not differences(tried.facts, again.facts)
    assert again.summary["closure"] == tried.summary["closure"]
    assert any(not line.endswith(("|None", "|0.0")) for line in tried.facts["interventions"]), "no D to be equal"


def test_tiny_verifies(cache: Path, tried: Ran) -> None:
    verified(tried.home, cache)
    none_left(tried.home)


def test_verify_without_a_sandbox_says_what_it_could_not_check(cache: Path, tried: Ran) -> None:
    """Neither verified nor at fault: status 3, each trajectory named once for its tests and once for its verdict."""
    done = subprocess.run(
        [sys.executable, "-c", NO_SANDBOX], cwd=BASE_DIR, capture_output=True, text=True, timeout=300, check=False,
        env=environment(
            tried.home, WORKBENCH_CACHE_HOME=str(cache), DJANGO_SETTINGS_MODULE="workbench.settings",
            PYTHONPATH=str(BASE_DIR),
        ),
    )  # fmt: skip
    assert done.returncode == 3, done.stderr[-2000:]
    report = json.loads(done.stdout.rstrip("\n").rpartition("\n")[2])
    assert report["ok"] is False and {item["severity"] for item in report["problems"]} <= {"unavailable", "tombstoned"}
    gaps = [item for item in report["problems"] if item["severity"] == "unavailable"]
    assert gaps and {item["step"] for item in gaps} == {10} and all("got no bwrap" in item["got"] for item in gaps)
    trajectories = int(rows(tried.home, "SELECT count(*) FROM runs_trajectory WHERE status = 'valid'")[0][0])
    assert sum(item["column"] == "outcome" for item in gaps) == trajectories


def _edit(home: Path) -> list[tuple[str, dict[str, Any]]]:
    found = rows(
        home,
        "SELECT a.key, c.edit FROM runs_trajectorycredit c JOIN runs_updatebatch u ON u.id = c.update_id"
        " JOIN runs_run r ON r.id = u.run_id JOIN runs_arm a ON a.id = r.arm_id WHERE c.edit IS NOT NULL",
    )
    return [(arm, json.loads(edit)) for arm, edit in found]


@pytest.fixture(scope="module")
def small(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """The study at its small scale, run to its closure. Nobody may change its home."""
    home = tmp_path_factory.mktemp("small") / "home"
    return run_tiny(home, cache, EDIT_CREDIT, "small", timeout_s=SMALL_SECONDS)


def test_small_closes_and_every_arm_updates(small: Ran) -> None:
    """Four arms, one seed: ten batches of two epochs each."""
    assert small.summary["state"] == "closed", small.summary["reason"]
    runs = {run["arm"]: run for run in small.summary["runs"]}
    assert set(runs) == {"O", "B", "M", "E"}
    for arm, run in runs.items():
        assert (run["state"], run["batches"], run["groups"]) == ("completed", 10, 40), arm
        assert 0 < run["updates"] <= 20, arm
    assert len({run["adapter_sha256"] for run in runs.values()}) == 4
    none_left(small.home)


def test_small_funnel_adds_up(small: Ran) -> None:
    """Every trajectory of a tried group has one status; D stands exactly where it is available."""
    found = rows(
        small.home,
        "SELECT s.purpose, coalesce(a.key, ''), i.status, i.difference IS NULL FROM runs_intervention i"
        " JOIN runs_trialset s ON s.id = i.trial_set_id LEFT JOIN runs_run r ON r.id = s.run_id"
        " LEFT JOIN runs_arm a ON a.id = r.arm_id",
    )
    by_part = Counter((purpose, arm) for purpose, arm, *_ in found)
    assert by_part == {("preflight", ""): 64, ("train", "B"): 320, ("train", "M"): 320, ("train", "E"): 320}
    assert {status for _, _, status, _ in found} <= {AVAILABLE, SELECTED, *UNAVAILABLE}
    assert all((status == AVAILABLE) != bool(is_null) for _, _, status, is_null in found)
    assert {status for _, arm, status, _ in found if arm == "E"} & {SELECTED}
    assert not [arm for _, arm, status, _ in found if arm == "E" and status == AVAILABLE]
    executed = Counter(kind for (kind,) in rows(small.home, "SELECT kind FROM runs_trial"))
    available = sum(status in (AVAILABLE, "trial_incomplete") for _, _, status, _ in found)
    assert executed["intervention"] == available, "at most one extra trial a trajectory, and no fewer"
    (agree,) = rows(small.home, "SELECT sum(replays), sum(replays_agree), sum(repeats), sum(repeats_agree)"
                                " FROM runs_intervention")  # fmt: skip
    assert agree[0] == agree[1] > 0 and agree[2] == agree[3] > 0


def test_small_b_and_m_have_equal_masses_on_every_trajectory(small: Ran) -> None:
    """As they were stored: s * lambda * D * L, signed, and its absolute value, to 1e-9."""
    seen = Counter[str]()
    for arm, edit in _edit(small.home):
        assert edit["arm"] == arm
        if arm not in ("B", "M") or edit["difference"] is None:
            continue
        expected = edit["shrinkage"] * edit["difference"] * edit["tokens"]
        assert edit["signed_mass"] == pytest.approx(expected, abs=1e-9)
        assert edit["l1_mass"] == pytest.approx(abs(expected), abs=1e-9)
        seen[arm] += expected != 0
    assert seen["B"] > 0 and seen["M"] > 0


def test_small_verifies(small: Ran, cache: Path) -> None:
    verified(small.home, cache, timeout_s=SMALL_SECONDS)
