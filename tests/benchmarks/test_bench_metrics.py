"""The benchmark of logging: contents are equal and repeatable; the whole command runs at a small size."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from workbench.benchmarks.metrics import GOALS, compared
from workbench.benchmarks.seeding import SPIKE, contents

ROOT = Path(__file__).resolve().parents[2]


def test_contents_repeat_and_hold_one_spike_within() -> None:
    first, again = contents(5, 1000, 7), contents(5, 1000, 7)
    assert np.array_equal(first.values, again.values) and np.array_equal(first.last, again.last)
    assert np.flatnonzero(first.values == SPIKE).tolist() == [first.spike] and 0 < first.spike < 999
    assert contents(5, 1000, 8).spike != first.spike or not np.array_equal(contents(5, 1000, 8).last, first.last)


def test_a_ratio_is_taken_within_each_round() -> None:
    """Rounds 1 s and 10 s, 2 s and 10 s, 4 s and 100 s: ratios 10, 5, 25, whose median is 10."""
    found = compared([1.0, 2.0, 4.0], [10.0, 10.0, 100.0])
    assert (found["ours"], found["mlflow"], found["ratio"]) == (2.0, 10.0, 10.0)
    alone = compared([1.0], [])
    assert (alone["ours"], alone["mlflow"], alone["ratio"]) == (1.0, None, None)


@pytest.mark.slow
def test_the_command_measures_ours_and_says_what_is_missing(tmp_path: Path) -> None:
    command = ["bench", "metrics", "--json", "--no-mlflow", "--repeats", "1", "--points", "5000", "--runs", "200"]
    done = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *command],
        env={**os.environ, "WORKBENCH_HOME": str(tmp_path / "home")},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.strip().splitlines()[-1])
    for name in GOALS:
        assert found[name]["ours"] >= 0 and found[name]["mlflow"] is None and found[name]["ratio"] is None
    assert found["chart_1m"]["spike_kept"] is True and found["machine"]["mlflow_missing"] == "not asked for"
    assert found["search_10k"]["parts"]["first_100"]["found"] == 100


def test_no_size_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    from django.core.management import CommandError, call_command

    for wrong in (["--repeats", "0"], ["--points", "10"], ["--runs", "0"]):
        with pytest.raises(CommandError, match="expected at least"):
            call_command("bench", "metrics", *wrong)
