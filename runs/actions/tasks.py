"""Task sets: store the tasks that an environment version brings."""

from __future__ import annotations

import uuid
from typing import Any

from runs.actions.documents import AlreadyRecorded
from runs.models import Task, TaskSet, TaskSetEntry
from runs.storage import blob_store, reference_blobs
from workbench.blobs import BlobStore
from workbench.contracts.canonical import derive_uid, digest, parse_canonical, sha256_hex
from workbench.contracts.errors import RecordError

FIELDS = ("key", "split", "family", "prompt", "initial_state", "hidden", "tools")


def task_identity(item: dict[str, Any]) -> str:
    """``task_sha256``: hash of prompt, initial state, hidden reference and tools; not of key or split."""
    return digest({name: item[name] for name in ("prompt", "initial_state", "hidden", "tools")})


def task_set_name(environment: str, version: str) -> str:
    """Name under which task uids are derived."""
    return f"{environment}/{version}"


def task_uid(environment: str, version: str, task_sha256: str) -> uuid.UUID:
    """Uid of a task of an environment version."""
    return derive_uid(None, f"task:{task_set_name(environment, version)}:{task_sha256}")


def task_items(data: bytes) -> list[dict[str, Any]]:
    """The tasks of canonical task-set bytes: a list, or an object with the list under ``tasks``.

    A task has exactly the fields of ``FIELDS``; ``uid`` may stand beside them. Raises ``RecordError``.
    """
    value = parse_canonical(data)
    items = value.get("tasks") if isinstance(value, dict) else value
    if not isinstance(items, list) or not items:
        raise RecordError(f"tasks: got {type(items).__name__}, expected a list of at least one task")
    for position, item in enumerate(items):
        names = set(item) - {"uid"} if isinstance(item, dict) else set()
        if names != set(FIELDS):
            raise RecordError(f"tasks[{position}]: got fields {sorted(names)}, expected {sorted(FIELDS)}")
    return items


def store_task_set(data: bytes, *, environment: str, version: str, store: BlobStore | None = None) -> TaskSet:
    """The task set with these canonical bytes, stored on first sight. Call inside ``transaction.atomic()``.

    Tasks that an earlier set of the same environment version brought are shared. Raises
    ``RecordError`` for a malformed task or a wrong uid, ``AlreadyRecorded`` where a shared task
    stands under another key, split or family: one content never lies in two splits.
    """
    sha256 = sha256_hex(data)
    found = TaskSet.objects.filter(sha256=sha256).first()
    if found is not None:
        return found
    items = task_items(data)
    store = store or blob_store()
    blob = store.put(data)
    reference_blobs({blob: "task_set"}, store=store)
    task_set = TaskSet.objects.create(
        uid=derive_uid(None, f"task_set:{task_set_name(environment, version)}:{sha256}"),
        environment=environment, version=version, sha256=sha256, blob_sha256=blob, count=len(items),
    )  # fmt: skip
    rows = [_task_row(task_set, position, item) for position, item in enumerate(items)]
    known = {task.uid: task for task in Task.objects.filter(uid__in=[row.uid for row in rows])}
    for row in rows:
        shared = known.get(row.uid)
        if shared and (shared.key, shared.split, shared.family) != (row.key, row.split, row.family):
            raise AlreadyRecorded(
                f"task {row.key}: got split {row.split}, family {row.family}; expected {shared.key}, {shared.split},"
                f" {shared.family}, under which the same content is stored"
            )
    Task.objects.bulk_create([row for row in rows if row.uid not in known], batch_size=200)
    stored = {task.uid: task.pk for task in Task.objects.filter(uid__in=[row.uid for row in rows]).only("uid")}
    TaskSetEntry.objects.bulk_create(
        (TaskSetEntry(task_set=task_set, task_id=stored[row.uid], position=i) for i, row in enumerate(rows)),
        batch_size=500,
    )
    return task_set


def _task_row(task_set: TaskSet, position: int, item: dict[str, Any]) -> Task:
    identity = task_identity(item)
    uid = task_uid(task_set.environment, task_set.version, identity)
    if "uid" in item and item["uid"] != str(uid):
        raise RecordError(f"tasks[{position}].uid: got {item['uid']}, expected {uid}")
    return Task(
        uid=uid, task_set=task_set, key=item["key"], split=item["split"], family=item["family"], prompt=item["prompt"],
        task_sha256=identity, hidden=item["hidden"], initial_state=item["initial_state"], tools=item["tools"],
    )  # fmt: skip
