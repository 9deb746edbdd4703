"""Runs the controls of an environment that leaves artefacts: trees of each task, one fresh trial of each.

A task says of its hidden part what the trees are made of, as patches ``{path: text, or null where the file goes}``:
``gold``, and ``controls`` by kind where it has them. ``no_op`` and ``empty`` need nothing of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from workbench.contracts.canonical import canonical_bytes, sha256_hex
from workbench.contracts.controls import KINDS, ControlSlot, SlotTiming, raw_verdict
from workbench.contracts.errors import EnvironmentFault
from workbench.contracts.trials import TestObservation

from .base import Artefacts, Environment, Task, artefacts_of

Progress = Callable[[dict[str, Any]], None]
Tree = dict[str, bytes]


def patched(files: Mapping[str, str], patch: Mapping[str, str | None]) -> Tree:
    """A tree with a patch on it; None removes a file. Raises ``EnvironmentFault`` for a file that is not there."""
    tree = dict(files)
    for path, text in patch.items():
        if text is not None:
            tree[path] = text
        elif tree.pop(path, None) is None:
            raise EnvironmentFault(f"patch: got the removal of {path!r}, expected a file of the tree")
    return {path: text.encode() for path, text in sorted(tree.items())}


def control_trees(task: Task) -> dict[str, Tree]:
    """Trees by kind, in the order of ``KINDS``. Raises ``EnvironmentFault`` for a task without files or gold patch."""
    files, gold = task.initial_state.get("files"), task.hidden.get("gold")
    if not isinstance(files, dict) or not files or not isinstance(gold, dict) or not gold:
        raise EnvironmentFault(f"task {task.key}: got no files or no gold patch, expected both: controls need them")
    patches = task.hidden.get("controls", {})
    unknown = sorted(set(patches) - set(KINDS))
    if unknown:
        raise EnvironmentFault(f"task {task.key}: got controls {unknown}, expected some of {list(KINDS)}")
    made = {
        **{kind: patched(files, patch) for kind, patch in patches.items()},
        "gold": patched(files, gold),
        "empty": dict.fromkeys(sorted(files), b""),
        "no_op": patched(files, {}),
    }
    return {kind: made[kind] for kind in KINDS if kind in made}


def planned(environment: Environment, splits: Sequence[str]) -> list[Task]:
    """Tasks of the splits, all without one. Raises ``EnvironmentFault`` for a split of no task."""
    tasks = list(environment.tasks())
    known = {task.split for task in tasks}
    missing = sorted(set(splits) - known)
    if missing:
        raise EnvironmentFault(f"splits: got {missing}, expected some of {sorted(known)}")
    return [task for task in tasks if not splits or task.split in splits]


def run_controls(
    environment: Environment, task_set: str, splits: Sequence[str] = (), *, progress: Progress | None = None
) -> Iterator[tuple[ControlSlot, SlotTiming]]:
    """Every slot, task by task. ``task_set``: the name that task uids are derived under.

    Raises ``EnvironmentFault`` for an environment without artefacts. What an artefact does is a verdict, and a fault
    of the sandbox an unknown one: neither raises.
    """
    artefacts = artefacts_of(environment)
    if artefacts is None:
        raise EnvironmentFault(f"environment {environment.id}: got no artefacts, expected a verifier of trees")
    tasks = planned(environment, splits)
    for number, task in enumerate(tasks, start=1):
        for kind, tree in control_trees(task).items():
            yield _slot(artefacts, task, task_set, kind, tree)
        if progress is not None:
            progress({"stage": "controls", "done": number, "total": len(tasks)})


def _slot(artefacts: Artefacts, task: Task, task_set: str, kind: str, tree: Tree) -> tuple[ControlSlot, SlotTiming]:
    lists = [name for part in artefacts.lists(task) for name in part]
    identity = sha256_hex(canonical_bytes({path: sha256_hex(data) for path, data in tree.items()}))
    began = time.perf_counter()
    try:
        report, trouble = artefacts.trial(task, tree), None
    except EnvironmentFault as error:
        report, trouble = None, f"EnvironmentFault: {error}"[:300]
    service = time.perf_counter() - began
    if report is None:
        slot = ControlSlot(
            task.uid(task_set), task.key, task.split, kind, KINDS[kind], len(lists), identity, False, False, trouble,
            (), None, None, None, None, {},
        )  # fmt: skip
        return slot, SlotTiming(0.0, 0.0, 0.0, service)
    observed = tuple(
        TestObservation(item.test, item.status, item.cause, "") for item in report.observed if item.test in lists
    )
    complete = report.complete and len(observed) == len(lists)
    unknown = None if complete else report.unknown or "a test of the lists without an observation"
    passed = raw_verdict((item.status for item in observed), len(lists))
    slot = ControlSlot(
        task.uid(task_set), task.key, task.split, kind, KINDS[kind], len(lists), report.tree_sha256, complete, passed,
        unknown, observed, report.exit_code, report.signal, report.stdout_sha256, report.stderr_sha256,
        dict(report.level),
    )  # fmt: skip
    return slot, SlotTiming(report.setup_s, report.run_s, report.cleanup_s, service)
