"""Step 2, design: what was run is what the frozen plan asks for, item by item.

Runs (arm, seed, parent), groups (task, failure profile, seeds, sampling, injections) and updates (objective,
optimizer) are built again from the plan's bytes alone. A record may be intact and still be of something else.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

from evidence.report import StepLog
from runs.actions.plans import plan_body
from runs.actions.record_group import GROUP, parse_group
from runs.actions.record_update import UPDATE, parse_update
from runs.models import Document, Group, PlanVersion, Run, UpdateBatch
from workbench.contracts import layout
from workbench.contracts.jobs import GroupSpec
from workbench.contracts.records import EVALUATE, PREFLIGHT, TRAIN, VALID, GroupRecord

CHUNK = 50


def check_design(log: StepLog) -> None:
    """Every native run, group and update of every plan version."""
    for version in PlanVersion.objects.order_by("pk").iterator(chunk_size=CHUNK):
        with log.reading("runs_planversion", version.uid):
            design = _Design(version)
            _runs(log, design)
            for kind, check in ((GROUP, _group), (UPDATE, _update)):
                for document in _documents(version, kind):
                    with log.reading("runs_document", f"{kind}:{document.subject_uid}"):
                        log.count()
                        check(log, design, document)


class _Design:
    """The frozen body of one version, and the groups that it lays out, built once each."""

    def __init__(self, version: PlanVersion) -> None:
        self.version, self.body = version, plan_body(version)
        rows = Run.objects.filter(plan_version=version, origin="native").order_by("pk")
        self.rows = list(rows.select_related("arm", "execution", "parent_checkpoint"))
        self.arms = {arm["key"] for arm in self.body["arms"]}
        self.runs = {
            layout.run_uid(str(version.uid), arm["key"], seed): (arm["key"], seed)
            for arm in self.body["arms"]
            for seed in arm["seeds"]
        }
        self._built: dict[tuple[Any, ...], dict[str, GroupSpec]] = {}

    def config(self, run_uid: str) -> dict[str, Any]:
        """Resolved configuration of a run's arm; ``KeyError`` for a run that the plan does not ask for."""
        found: dict[str, Any] = layout.arm_of(self.body, self.runs[run_uid][0])["config"]
        return found

    def specs(self, record: GroupRecord, checkpoint_uid: str) -> dict[str, GroupSpec]:
        """Groups of the record's batch, preflight or evaluation cell, by uid."""
        sha = self.version.sha256
        if record.purpose == TRAIN:
            batch = record.ordinal // self.config(record.run_uid)["rollout"]["groups_per_batch"]
            key: tuple[Any, ...] = (TRAIN, record.run_uid, batch)
        elif record.purpose == PREFLIGHT:
            key = (PREFLIGHT,)
        else:
            key = (EVALUATE, checkpoint_uid, record.condition, record.split)
        if key not in self._built:
            self._built.clear()  # documents come in order: one batch or cell at a time
            if key[0] == TRAIN:
                arm, seed = self.runs[record.run_uid]
                groups = layout.training_groups(self.body, sha, record.run_uid, arm, seed, key[2])
            elif key[0] == PREFLIGHT:
                execution = layout.execution_uid(str(self.version.uid))
                groups = tuple(g for shard in layout.preflight_shards(self.body, sha, execution) for g in shard)
            else:
                shards = layout.evaluation_shards(self.body, sha, checkpoint_uid, record.condition, record.split)
                groups = tuple(group for shard in shards for group in shard)
            self._built[key] = {group.group_uid: group for group in groups}
        return self._built[key]

    def sampling(self, record: GroupRecord) -> dict[str, Any]:
        """Sampling parameters that the plan gives a group of this purpose."""
        if record.purpose == TRAIN:
            return dict(self.config(record.run_uid)["rollout"]["sampling"])
        plan = self.body["plan"]
        own = {"temperature": plan["evaluation"]["temperature"]} if record.purpose == EVALUATE else {}
        return {**plan["rollout"]["sampling"], **own}


def _documents(version: PlanVersion, kind: str) -> Iterator[Document]:
    """Documents of one version in the order of their subjects' coordinates."""
    if kind == GROUP:
        owners = Group.objects.filter(plan_version=version, purpose__in=(TRAIN, PREFLIGHT, EVALUATE))
        order = ("purpose", "run_id", "checkpoint_id", "condition", "split", "ordinal")
        uids = list(owners.order_by(*order).values_list("uid", flat=True))
    else:
        runs = Run.objects.filter(plan_version=version)
        uids = list(UpdateBatch.objects.filter(run__in=runs).order_by("run_id", "batch").values_list("uid", flat=True))
    for start in range(0, len(uids), CHUNK):
        part = uids[start : start + CHUNK]
        found = {row.subject_uid: row for row in Document.objects.filter(kind=kind, subject_uid__in=part)}
        yield from (found[uid] for uid in part if uid in found)  # step 4 names the missing


def _runs(log: StepLog, design: _Design) -> None:
    version = design.version
    parent = uuid.UUID(layout.parent_checkpoint_uid(str(version.uid)))
    for row in design.rows:
        log.count()
        known = design.runs.get(str(row.uid))
        if known is None:
            log.problem("runs_run", row.uid, "uid", expected="a run that the plan asks for", got=row.name)
            continue
        arm, seed = known
        expected = {
            "arm__key": arm, "arm__plan_version_id": version.pk, "seed": seed, "name": f"{arm}-s{seed}",
            "execution__plan_version_id": version.pk, "parent_checkpoint__uid": parent,
        }  # fmt: skip
        log.compare("runs_run", row.uid, expected, row)


def _group(log: StepLog, design: _Design, document: Document) -> None:
    record = parse_group(bytes(document.bytes))
    checkpoint = Group.objects.values_list("checkpoint__uid", flat=True).get(uid=record.uid)
    spec = design.specs(record, str(checkpoint)).get(record.uid)
    if spec is None:
        log.problem("runs_group", record.uid, "uid", expected="a group that the plan asks for", got=record.ordinal)
        return
    slots = [(slot.trajectory_uid, slot.slot, slot.seed) for slot in spec.slots]
    pairs = (
        ("ordinal", spec.ordinal, record.ordinal),
        ("task", spec.task_uid, record.task_uid),
        ("failure_profile", spec.failure_profile, record.failure_profile),
        ("seeds", slots, [(item.uid, item.slot, item.seed) for item in record.trajectories]),
        ("sampling", design.sampling(record), record.sampling),
    )
    for column, expected, got in pairs:
        if expected != got:
            log.problem("runs_group", record.uid, column, expected=expected, got=got)
    for item in record.trajectories:
        if item.status != VALID:
            continue  # it may have ended before its schedule was read
        ordinals = [entry.ordinal for entry in item.injections]
        if item.failure_profile != spec.failure_profile or ordinals != list(spec.injected_ordinals):
            got = f"{item.failure_profile} {ordinals}"
            wanted = f"{spec.failure_profile} {list(spec.injected_ordinals)}"
            log.problem("runs_trajectory", item.uid, "injections", expected=wanted, got=got)


def _update(log: StepLog, design: _Design, document: Document) -> None:
    record = parse_update(bytes(document.bytes))
    config = design.config(record.run_uid)
    for column in ("objective", "optimizer"):
        if config[column] != getattr(record, column):
            log.problem("runs_updatebatch", record.uid, column, expected=config[column], got=getattr(record, column))
