"""A world for the layer pages: ``python -m tests.pages.browser.layers_world serve PORT [big]`` or ``append FROM TO``.

``serve`` builds a native run with points of groups and updates, and a logged run, and answers until ended.
``append`` stores points of later steps into the same data directory, as a worker does beside the server.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
from datetime import UTC, datetime
from typing import Any

import numpy as np

AT = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
METRICS, STEPS, SPIKE = 200, 10_000, 7_321  # of the big run; its spike is one point of its first metric


def setup() -> None:
    """Django on the data directory of the environment."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "workbench.settings"
    import django

    django.setup()


def loss(step: Any) -> Any:
    """Loss of the logged run at a step."""
    return 2.0 / (1.0 + np.asarray(step)) ** 0.5


def norm(step: int) -> float:
    """Gradient norm of the native run at a step."""
    return 1.0 + 0.01 * (step % 3)


def log(run: Any, names: list[str], steps: np.ndarray, values: np.ndarray) -> None:
    """Points of several names at the same steps; ``values``[name][step]."""
    from runs.actions.actors import service_actor
    from runs.metrics import codec
    from runs.metrics.store import log_rows

    rows = np.zeros(values.size, codec.LANDING)
    rows["series"] = np.repeat(np.arange(len(names)), len(steps))
    rows["step"] = np.tile(steps, len(names))
    rows["time_ms"] = int(AT.timestamp() * 1000) + 1000 * rows["step"]
    rows["value"] = values.ravel()
    log_rows(run, names, rows, source="api", actor=service_actor("tests"), at=AT)


def tracked(study: Any, name: str) -> Any:
    """A run that a trainer logs into."""
    from runs.models import Run, TrackedRun

    run = Run.objects.create(uid=uuid.uuid4(), origin=Run.TRACKED, name=name, seed="0", created_at=AT)
    TrackedRun.objects.create(
        run=run, study=study, external_id=run.uid.hex, name=name, started_at=AT, updated_at=AT, framework="trl"
    )
    return run


def norms(run: Any, steps: range) -> None:
    """Gradient norms of the native run, each with its update behind it."""
    from runs.actions.record_metrics import write_points
    from runs.models import UpdateBatch
    from workbench.contracts.records import MetricRecord

    updates = list(UpdateBatch.objects.filter(run=run).order_by("batch"))
    records = [
        MetricRecord(
            "l1.grad_norm/1", "train", "train", {}, norm(step), 16, step, step, 16 * step, 400 * step,
            str(updates[step % len(updates)].uid),
        )
        for step in steps
    ]  # fmt: skip
    write_points(run, records, segment="", at=AT, wall_seconds=1.0, source=f"norms {steps}")


def rewards(run: Any) -> None:
    """Reward of shards and of one group beside each."""
    from runs.actions.record_metrics import write_points
    from runs.models import Group
    from workbench.contracts.records import MetricRecord

    group = str(Group.objects.filter(run=run, purpose="train").earliest("pk").uid)
    records = [
        MetricRecord("l3.reward_mean/1", "train", "train", {}, value, 16, step, step, 16 * step, 400 * step, subject)
        for step in range(6)
        for value, subject in ((0.5 + 0.01 * step, None), (0.2 + 0.1 * step, group))
    ]
    write_points(run, records, segment="", at=AT, wall_seconds=1.0, source="rewards")


def build(big: bool) -> dict[str, str]:
    """The runs; addresses by name."""

    from runs.models import Group, Study, UpdateBatch
    from tests.template import copy_to_home

    copy_to_home()
    if big:
        from runs.actions.actors import service_actor

        study = Study.objects.create(
            uid=uuid.uuid4(), slug="logs", title_en="Logs", created_at=AT, created_by=service_actor("tests"),
            visibility=Study.PUBLIC,
        )  # fmt: skip
        run, steps, random = tracked(study, "big"), np.arange(STEPS), np.random.default_rng(7)
        names = [f"train/metric_{number:03d}" for number in range(METRICS)]
        for start in range(0, STEPS, 500):
            values = random.normal(size=(METRICS, 500)).cumsum(1)
            if start <= SPIKE < start + 500:
                values[0, SPIKE - start] = 1e6
            log(run, names, steps[start : start + 500], values)
        return {"big": f"/runs/{run.uid}/layers/"}
    from tests.pages.world import build as build_world

    world = build_world(batches=2)
    native, logged = world.runs["e3-s17"], tracked(world.study, "logged")
    norms(native, range(12))
    rewards(native)
    log(logged, ["train/loss"], np.arange(5000), loss(np.arange(5000))[None, :])
    update = UpdateBatch.objects.filter(run=native).earliest("batch")
    group = Group.objects.filter(run=native, purpose="train").earliest("pk")
    return {
        "native": f"/runs/{native.uid}/layers/", "logged": f"/runs/{logged.uid}/layers/",
        "update": f"/updates/{update.uid}/", "group": f"/groups/{group.uid}/",
    }  # fmt: skip


def append(first: int, last: int) -> None:
    """Later steps of both runs."""
    from runs.models import Run

    norms(Run.objects.get(name="e3-s17"), range(first, last))
    steps = np.arange(5000 + first, 5000 + last)
    log(Run.objects.get(name="logged"), ["train/loss"], steps, loss(steps)[None, :])


def main(command: str, *rest: str) -> None:
    """Serve or append."""
    setup()
    if command == "append":
        append(int(rest[0]), int(rest[1]))
        return
    from django.core.management import call_command

    if command == "build":
        print(json.dumps(build("big" in rest)), flush=True)
        return
    call_command("runserver", f"127.0.0.1:{rest[0]}", use_reloader=False, skip_checks=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
