"""The everyday one: the tiny study on SQLite runs to its closure, prints its summary, and verifies."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.tiny import Ran, closure_sha256, none_left, rows, verified

PAIR = ("V", "F")


def test_tiny_study_closes_and_its_summary_says_what_is_stored(undisturbed: Ran) -> None:
    """Three arms of two batches with two epochs each, four steps; the fourth is run or refused by its gate."""
    summary = undisturbed.summary
    assert (summary["study"], summary["scale"], summary["state"]) == ("fatal-mask-pair", "tiny", "closed")
    assert undisturbed.facts["plan"] == [summary["plan_sha256"]]
    assert closure_sha256(undisturbed.facts) == summary["closure"]["manifest_sha256"]
    assert summary["closure"]["captures"] == len(undisturbed.facts["captures"]) > 0
    assert summary["closure"]["items"] == len(undisturbed.facts["items"]) > 0
    jobs = [job for job in undisturbed.facts["jobs"] if "|inspect_plan|" not in job]  # asked for before the freeze
    assert len(jobs) == len(undisturbed.facts["jobs"]) - 1
    assert summary["closure"]["jobs"] == len(jobs) - 1  # all but the closing one
    runs = {run["arm"]: run for run in summary["runs"]}
    assert list(runs) == ["C", "V", "F", "K"]
    for arm in ("C", *PAIR):
        assert (runs[arm]["state"], runs[arm]["batches"], runs[arm]["groups"]) == ("completed", 2, 4)
        assert runs[arm]["updates"] == 4 and runs[arm]["with_signal"] > 0
    assert runs["K"]["state"] in ("completed", "refused") and (runs["K"]["state"] == "completed" or runs["K"]["reason"])
    assert all(cell["finish"][1] == cell["items"] == 8 for cell in summary["evaluation"])
    assert summary["wall_s"] > 0
    none_left(undisturbed.home)


def test_pair_masks_fatal_tokens_and_its_adapters_differ(undisturbed: Ran) -> None:
    runs = {run["arm"]: run for run in undisturbed.summary["runs"]}
    assert runs["V"]["masked_tokens"] == 0 < runs["F"]["masked_tokens"]
    assert len({runs[arm]["adapter_sha256"] for arm in ("C", *PAIR)}) == 3


def test_both_arms_of_the_pair_face_the_same_tasks_seeds_and_failures(undisturbed: Ran) -> None:
    """Shown by the frozen bytes and by the stored rows of both runs; the context arm has other failures."""
    (body,) = rows(undisturbed.home, "SELECT bytes FROM runs_planversion")[0]
    arms = {arm["key"]: arm for arm in json.loads(body)["arms"]}
    assert arms["V"]["seeds"] == arms["F"]["seeds"]
    faced = {}
    for arm in ("C", *PAIR):
        faced[arm] = rows(
            undisturbed.home,
            "SELECT g.ordinal, k.task_sha256, g.failure_profile, t.slot, t.seed, t.initial_state_sha256"
            " FROM runs_trajectory t JOIN runs_group g ON g.id = t.group_id JOIN runs_task k ON k.id = g.task_id"
            " JOIN runs_run r ON r.id = g.run_id JOIN runs_arm a ON a.id = r.arm_id"
            f" WHERE g.purpose = 'train' AND a.key = '{arm}' ORDER BY g.ordinal, t.slot",
        )
    assert faced["V"] == faced["F"] and len(faced["V"]) == 16
    assert [row[2] for row in faced["C"]] != [row[2] for row in faced["V"]]


def test_closed_tiny_home_verifies(undisturbed: Ran, cache: Path) -> None:
    verified(undisturbed.home, cache)
