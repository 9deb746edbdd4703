"""Trials over the API: what a run's interventions and executions look like, filters, hidden studies, 404s."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from django.db import transaction
from pytest_django import DjangoDbBlocker

from runs.models import Group, Trajectory, TrialSet
from tests.api.calls import Api, fields
from tests.api.conftest import Caller
from tests.pages.state import World
from tests.people.rights_trials import BLOCK, OTHER, TREE, add_tried


@dataclass
class Tried:
    group: Group
    trajectory: Trajectory
    row: TrialSet


@pytest.fixture(scope="module")
def tried(world: World, django_db_blocker: DjangoDbBlocker) -> Iterator[Tried]:
    with django_db_blocker.unblock(), transaction.atomic():
        group = Group.objects.filter(run=world.runs["e3-s17"], purpose="train").order_by("pk")[0]
        trajectory = group.trajectories.order_by("slot")[0]
        yield Tried(group, trajectory, add_tried(group, trajectory))
        transaction.set_rollback(True)


def test_interventions_of_a_run_with_blocks_and_trials(tried: Tried, mara: Api) -> None:
    run = str(tried.group.run.uid)  # type: ignore[union-attr]
    (item,) = mara.read(f"interventions?run={run}")["items"]
    assert (item["trajectory"], item["group"], item["run"]) == (str(tried.trajectory.uid), str(tried.group.uid), run)
    assert (item["status"], item["difference"], item["original_utility"], item["without_utility"]) == (
        "available", 0.5, 0.5, 0,
    )  # fmt: skip
    assert (item["selected"], item["policy_tokens"], item["selected_tokens"]) == (0, 12, 3) and "blocks" not in item
    whole = mara.read(f"trajectories/{tried.trajectory.uid}/intervention")
    assert whole["blocks"] == [BLOCK] and whole["final_tree_sha256"] == TREE and whole["without_tree_sha256"] == OTHER
    assert [trial["kind"] for trial in whole["trials"]] == ["intervention", "original"]


def test_trials_of_a_run_with_their_timings_and_null_where_nothing_ran(tried: Tried, mara: Api) -> None:
    found = {item["kind"]: item for item in mara.read(f"trials?group={tried.group.uid}")["items"]}
    assert found["intervention"]["service_s"] == 0.5 and found["original"]["service_s"] is None
    assert found["original"]["queue_s"] is None  # not measured, which is no zero
    whole = mara.read(f"trials/{found['intervention']['uid']}")
    assert whole["observed"] == [{"test": "f1", "status": "FAILED", "cause": "exit", "detail": ""}]
    assert whole["level"] == {} and whole["exit_code"] is None


def test_tried_groups(tried: Tried, mara: Api) -> None:
    (item,) = mara.read("trial-sets")["items"]
    assert (item["uid"], item["mode"], item["verifier"]) == (str(tried.row.uid), "execute", "hand/1")
    assert mara.read(f"trial-sets/{item['uid']}") == item
    assert item["fail_to_pass"] == ["f1", "f2"] and item["unavailable"] is None


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("interventions?status=available", 1), ("interventions?status=format_error", 0),
        ("interventions?min_difference=0.5", 1), ("interventions?min_difference=0.6", 0),
        ("interventions?max_difference=0.4", 0), ("interventions?purpose=preflight", 0),
        ("trials?kind=original", 1), ("trials?kind=factual_replay", 0), ("trials?complete=true", 2),
        ("trials?complete=false", 0), ("trial-sets?mode=select", 0), ("trial-sets?purpose=train", 1),
    ],
)  # fmt: skip
def test_filters(tried: Tried, mara: Api, query: str, count: int) -> None:
    assert len(mara.read(query)["items"]) == count


def test_words_that_are_none_are_refused_and_hidden_rows_do_not_exist(
    tried: Tried, mara: Api, caller: Caller, world: World
) -> None:
    assert fields(mara.get("interventions?status=unheard")) == ["status"]
    assert fields(mara.get("trials?kind=unheard")) == ["kind"]
    other = tried.group.trajectories.order_by("slot")[1]
    assert mara.get(f"trajectories/{other.uid}/intervention").status_code == 404  # its slot has no row here
    world.study.visibility = "private"
    world.study.save()
    stranger = caller("stranger-to-trials")
    for path in ("trials", "interventions", "trial-sets"):
        assert stranger.read(path)["items"] == []
    assert stranger.get(f"trajectories/{tried.trajectory.uid}/intervention").status_code == 404
    assert stranger.get(f"trial-sets/{tried.row.uid}").status_code == 404
