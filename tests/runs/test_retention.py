"""Retention: what a plan keeps stays, blobs that another run needs stay, the rest has a tombstone."""

from __future__ import annotations

from typing import Any

import pytest

from runs.actions.retention import kept_blobs, retain
from runs.models import Checkpoint, Execution, Tombstone, UpdateBatch
from runs.storage import blob_store
from tests.runs.scripted import AT, Lab, head_of, run_of
from tests.runs.test_advance import ALONE, told
from workbench.contracts.canonical import sha256_hex

pytestmark = pytest.mark.django_db
LONG: dict[str, Any] = {**ALONE, "budget": {"batches": 5, "max_steps": 9}, "retention": {"checkpoint_every": 2}}


def adapters(execution: Execution, arm: str = "V") -> dict[int, str]:
    """Policy version -> adapter hash."""
    run = run_of(execution, arm)
    return dict(Checkpoint.objects.filter(run=run).values_list("policy_version", "sha256"))


def gone() -> set[str]:
    return set(Tombstone.objects.values_list("sha256", flat=True))


def test_every_second_the_final_and_the_evaluated_stay(lab: Lab, django_capture_on_commit_callbacks: Any) -> None:
    """Versions 1 to 5: 2 and 4 by the plan, 5 final and evaluated; 1, 3 and all optimizer states but the last go."""
    with django_capture_on_commit_callbacks(execute=True):
        execution = lab.start(**LONG)
        lab.drive(execution)
    versions, store = adapters(execution), blob_store()
    optimizers = list(UpdateBatch.objects.order_by("batch").values_list("optimizer_after", flat=True))
    assert gone() == {versions[1], versions[3], *optimizers[:4]}
    assert [store.exists(versions[i]) for i in range(1, 6)] == [False, True, False, True, True]
    assert [store.exists(item) for item in optimizers] == [False] * 4 + [True]
    assert store.exists(Checkpoint.objects.get(kind="parent").sha256)
    assert all(store.exists(item.old_logprobs_sha256) for item in UpdateBatch.objects.all())
    recipe = Tombstone.objects.get(sha256=versions[1]).recipe
    assert recipe["update_uid"] == str(UpdateBatch.objects.get(batch=0).uid)
    assert told("retention.applied") == [{"removed": 6}]
    assert retain(execution, actor=lab.actor, at=AT) == 0 and len(told("retention.applied")) == 1


def test_bytes_that_two_runs_share_stay_while_one_of_them_needs_them(lab: Lab) -> None:
    """Adapters depend on the batch alone: the final version of V is a middle version of W, which W does not keep."""
    arms = [
        {"key": "V", "role": "main", "title": {"en": "V"}, "overrides": {"budget": {"batches": 1}}},
        {"key": "W", "role": "main", "title": {"en": "W"}},
    ]
    lab.script.adapter = lambda spec: f"adapter {spec.batch}"
    execution = lab.start(**{**LONG, "arms": arms, "budget": {"batches": 3, "max_steps": 9},
                             "retention": {"checkpoint_every": 100}})  # fmt: skip
    lab.drive(execution)
    shared = sha256_hex(b"adapter 0")
    assert adapters(execution, "V") == {1: shared} and adapters(execution, "W")[1] == shared
    assert shared in kept_blobs() and shared not in gone()
    assert adapters(execution, "W")[2] in gone() and adapters(execution, "W")[3] not in gone()


def test_another_execution_that_is_still_open_keeps_its_bytes(lab: Lab) -> None:
    lab.script.adapter = lambda spec: f"adapter {spec.batch}"
    open_one = lab.start(**{**LONG, "name": "open"})
    lab.drive(open_one, only="collect:0")
    lab.drive(open_one, only="update:0")
    execution = lab.start(**{**LONG, "retention": {"checkpoint_every": 100}})
    lab.drive(execution)
    assert execution.state == "closed" and open_one.state == "running"
    assert sha256_hex(b"adapter 0") not in gone() and sha256_hex(b"adapter 1") in gone()
    assert head_of(open_one, "V").optimizer_sha256 not in gone()
    lab.drive(open_one)
    assert open_one.state == "closed"


def test_nothing_goes_while_the_execution_runs(lab: Lab) -> None:
    execution = lab.start(**LONG)
    for only in ("collect:0", "update:0", "collect:1", "update:1"):
        lab.drive(execution, only=only)
    assert retain(execution, actor=lab.actor, at=AT) == 0 and gone() == set()
    assert all(blob_store().exists(sha) for sha in adapters(execution).values())
