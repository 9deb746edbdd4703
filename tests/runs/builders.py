"""The small valid world of tests of rows, pages and jobs: the study that the attack suite builds too."""

from __future__ import annotations

from evidence.attacks.studies import (
    AT,
    World,
    add_group,
    add_update,
    bindings,
    build_world,
    collect,
    group_of,
    identities,
    latest_checkpoint,
    plan_document,
    task_identity,
    task_set_bytes,
    task_uid,
    update_of,
    update_result,
)

__all__ = [
    "AT", "World", "add_group", "add_update", "bindings", "build_world", "collect", "group_of", "identities",
    "latest_checkpoint", "plan_document", "task_identity", "task_set_bytes", "task_uid", "update_of", "update_result",
]  # fmt: skip
