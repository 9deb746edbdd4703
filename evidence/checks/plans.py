"""Step 2: plan versions, their arms and failure schedules, task sets, and what was run of them."""

from __future__ import annotations

import json
from typing import Any

from evidence.checks.design import check_design
from evidence.checks.ownership import check_plan_rows
from evidence.report import StepLog
from runs.actions.execution import bound_runtimes
from runs.actions.tasks import task_identity, task_items, task_uid
from runs.models import Arm, Execution, FailureSchedule, Group, PlanVersion, Receipt, Task, TaskSet
from workbench.blobs import BlobError, BlobStore
from workbench.contracts.canonical import canonical_bytes, derive_uid, digest, parse_canonical, sha256_hex
from workbench.contracts.plan_schema import LATER
from workbench.contracts.spec import freeze_body


def check_plans(log: StepLog, store: BlobStore) -> None:
    """Stored bytes are canonical, hash to their name, and resolve to the stored arms and pairs."""
    for version in PlanVersion.objects.select_related("plan").iterator(chunk_size=50):
        log.count()
        data = bytes(version.bytes)
        with log.reading("runs_planversion", version.uid):
            sha256 = sha256_hex(data)
            expected = {"sha256": sha256, "uid": derive_uid(version.plan.uid, f"version:{sha256}")}
            log.compare("runs_planversion", version.uid, expected, version)
            _version(log, version, parse_canonical(data))
            _order(log, version)
            _runtimes(log, version)
    for task_set in TaskSet.objects.iterator(chunk_size=50):
        log.count()
        with log.reading("runs_taskset", task_set.uid, "blob_sha256"):
            _task_set(log, task_set, store)
    check_plan_rows(log)
    check_design(log)


def _version(log: StepLog, version: PlanVersion, body: dict[str, Any]) -> None:
    rebuilt = without_later(freeze_body(body["plan"], body["bindings"]), body)
    for name in sorted(body.keys() | rebuilt.keys()):
        if name not in body or name not in rebuilt or digest(body[name]) != digest(rebuilt[name]):
            want, got = json.dumps(rebuilt.get(name)), json.dumps(body.get(name))
            log.problem("runs_planversion", version.uid, f"bytes.{name}", expected=want, got=got)
    log.compare("runs_planversion", version.uid, {"strict_pairs": body["pairs"]}, version)
    arms = {arm.key: arm for arm in Arm.objects.filter(plan_version=version)}
    for arm in body["arms"]:
        log.count()
        row = arms.pop(arm["key"], None)
        if row is None:
            log.problem("runs_arm", arm["key"], "key", expected=arm["key"], got=None)
            continue
        config = canonical_bytes(arm["config"])
        expected = {
            "uid": derive_uid(version.uid, f"arm:{arm['key']}"), "title_en": arm["title"]["en"],
            "title_zh": arm["title"]["zh"], "position": arm["position"], "gate": arm["gate"], "seeds": arm["seeds"],
            "config_sha256": sha256_hex(config),
        }  # fmt: skip
        log.compare("runs_arm", row.uid, expected, row)
        if bytes(row.config_bytes) != config:
            log.problem("runs_arm", row.uid, "config_bytes", expected=config.decode(), got=bytes(row.config_bytes))
    for key in arms:
        log.problem("runs_arm", key, "key", expected=None, got=key)
    schedule = canonical_bytes(body["failure_schedule"])
    rows = list(FailureSchedule.objects.filter(plan_version=version))
    if len(rows) != 1:
        log.problem("runs_failureschedule", version.uid, "bytes", expected=schedule.decode(), got=f"{len(rows)} rows")
    for found in rows:
        if bytes(found.bytes) != schedule:
            got = bytes(found.bytes).decode(errors="backslashreplace")
            log.problem("runs_failureschedule", found.uid, "bytes", expected=schedule.decode(), got=got)
        sha256 = sha256_hex(schedule)
        columns = {"sha256": sha256, "uid": derive_uid(version.uid, "failure_schedule")}
        log.compare("runs_failureschedule", found.uid, columns, found)


def without_later(rebuilt: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """``rebuilt`` without the fields that the schema gained after ``body`` was frozen and that have no effect in it.

    A body that holds such a field is compared with it, and one that was altered has another hash.
    """
    for path, value in LATER.items():
        *sections, name = path.split(".")
        if name in _inside(body["plan"], sections) or _inside(rebuilt["plan"], sections).get(name) != value:
            continue
        del _inside(rebuilt["plan"], sections)[name]
        for arm in rebuilt["arms"]:
            _inside(arm["config"], sections).pop(name, None)
            arm["config_sha256"] = digest(arm["config"])
        for pair in rebuilt["pairs"]:
            pair["equal"] = [item for item in pair["equal"] if item[0] != path]
    return rebuilt


def _inside(value: dict[str, Any], sections: list[str]) -> dict[str, Any]:
    for section in sections:
        value = value.get(section, {})
    return value


def _order(log: StepLog, version: PlanVersion) -> None:
    """A plan is frozen before anything of it was collected, by the times of row and receipt."""
    first = (
        Group.objects.filter(plan_version=version).order_by("created_at").values_list("created_at", flat=True).first()
    )
    receipt = Receipt.objects.filter(kind="plan.frozen", subject_uid=version.uid).order_by("seq").first()
    for name, at in (("created_at", version.created_at), ("receipt", receipt.at if receipt else None)):
        if at is not None and first is not None and at > first:
            log.problem("runs_planversion", version.uid, name, expected=f"before {first}", got=at)


def _runtimes(log: StepLog, version: PlanVersion) -> None:
    """Everything collected names a runtime that the plan or a recorded recovery plan binds."""
    execution = Execution.objects.filter(plan_version=version).first()
    if execution is None:
        return
    bound = bound_runtimes(execution)
    for found in set(Group.objects.filter(plan_version=version).values_list("identities__runtime", flat=True)):
        if found not in bound:
            log.problem("runs_planversion", version.uid, "runtime", expected=" or ".join(bound), got=found)


def _task_set(log: StepLog, task_set: TaskSet, store: BlobStore) -> None:
    try:
        data = store.get(task_set.blob_sha256)
    except BlobError:
        return  # step 5 names it
    items = task_items(data)
    sha256 = sha256_hex(data)
    uid = derive_uid(None, f"task_set:{task_set.environment}/{task_set.version}:{sha256}")
    log.compare("runs_taskset", task_set.uid, {"sha256": sha256, "count": len(items), "uid": uid}, task_set)
    entries = list(Task.objects.filter(entries__task_set=task_set).order_by("entries__position"))
    if len(entries) != len(items):
        log.problem("runs_tasksetentry", task_set.uid, "position", expected=len(items), got=len(entries))
    for item, task in zip(items, entries, strict=False):
        log.count()
        identity = task_identity(item)
        expected = {
            "uid": task_uid(task_set.environment, task_set.version, identity), "key": item["key"],
            "split": item["split"], "family": item["family"],
            "prompt": item["prompt"], "task_sha256": identity, "hidden": item["hidden"],
            "initial_state": item["initial_state"], "tools": item["tools"],
        }  # fmt: skip
        log.compare("runs_task", task.uid, expected, task)
