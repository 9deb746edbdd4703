"""Bundled studies: read the plan, have a worker inspect it, freeze it, start it, summarise it.

Used by ``manage.py study`` and by ``manage.py up``; the web process never loads torch.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings
from django.utils import timezone

from runs.actions.actors import service_actor
from runs.actions.closure import AGGREGATE, closure_of, endpoint_results
from runs.actions.execution import start_execution
from runs.actions.inspection import OPEN, freeze_inspected, request_inspection
from runs.actions.plans import ensure_study, plan_body, save_draft
from runs.actions.provenance import provenance
from runs.dispatch import send
from runs.errors import DomainError
from runs.models import (
    Actor,
    Checkpoint,
    Document,
    EvaluationItem,
    Execution,
    Group,
    Plan,
    PlanVersion,
    Run,
    Study,
    TrajectoryCredit,
)
from workbench.contracts.canonical import canonical_bytes, parse_canonical
from workbench.contracts.spec import complete_plan
from worker.left import timed

STUDIES = Path(__file__).resolve().parent / "studies"
POLL_SECONDS = 0.1
Progress = Callable[[Any], None]


def _merge(base: Any, over: Any) -> Any:
    if isinstance(base, dict) and isinstance(over, dict):
        return {key: _merge(base.get(key), over[key]) if key in over else base[key] for key in base | over}
    return over


def bundled() -> list[str]:
    """Slugs of the bundled studies."""
    return sorted(path.stem for path in STUDIES.glob("*.yaml"))


def load_study(slug: str, scale: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """(study card, plan document) of a bundled study at a scale. Raises ``DomainError`` naming what exists."""
    if slug not in bundled():
        raise DomainError(f"study: got {slug!r}, expected one of {', '.join(bundled())}")
    content = yaml.safe_load((STUDIES / f"{slug}.yaml").read_text(encoding="utf-8"))
    if scale not in content["scales"]:
        raise DomainError(f"scale: got {scale!r}, expected one of {', '.join(content['scales'])}")
    return content["study"], _merge(content["plan"], content["scales"][scale])


@contextlib.contextmanager
def _preparing(slug: str, scale: str, on_progress: Progress | None) -> Iterator[Progress]:
    """Say on the pages what is being prepared, since no execution exists yet. Yields the progress callback."""
    place = settings.HOME.root / "run" / "preparing.json"
    place.parent.mkdir(parents=True, exist_ok=True)

    def note(value: Any) -> None:
        stage = value.get("stage") if isinstance(value, dict) else str(value)
        detail = value if isinstance(value, dict) else {}
        at = timezone.now().isoformat(timespec="seconds")
        draft = place.with_suffix(f".{os.getpid()}")
        draft.write_text(
            json.dumps({"study": slug, "scale": scale, "stage": stage, "detail": detail, "at": at, "pid": os.getpid()})
        )
        draft.replace(place)
        if on_progress is not None:
            on_progress(value)

    note({"stage": "describe"})
    try:
        yield timed(note)
    finally:
        place.unlink(missing_ok=True)


def prepare(slug: str, scale: str, *, by: Actor, on_progress: Progress | None = None) -> PlanVersion:
    """The frozen plan of a bundled study at a scale, frozen now if it is not yet."""
    card, document = load_study(slug, scale)
    with _preparing(slug, scale, on_progress) as note:
        return _frozen(document, card, by=by, visibility=Study.PUBLIC, note=note)


def freeze_document(document: dict[str, Any], *, by: Actor, on_progress: Progress | None = None) -> PlanVersion:
    """The frozen plan of a user's own document, frozen now if it is not yet.

    Its study is made where there is none of that name. Raises ``PlanInvalid`` for a document with
    faults, ``DomainError`` where what it names cannot be bound or where another plan was frozen under its name.
    """
    plan = complete_plan(document)
    card = {"title": plan["title"], "summary": plan["question"]}
    note: Progress = on_progress or (lambda value: None)
    version = _frozen(document, card, by=by, visibility=Study.PRIVATE, note=timed(note))
    if canonical_bytes(plan_body(version)["plan"]) != canonical_bytes(plan):
        raise DomainError(f"{plan['name']}: it was frozen with other content; give the changed document another name")
    return version


def _frozen(
    document: dict[str, Any], card: dict[str, Any], *, by: Actor, visibility: str, note: Progress
) -> PlanVersion:
    plan, at = complete_plan(document), timezone.now()
    study = ensure_study(
        plan["study"], title=card["title"], summary=card["summary"], by=by, at=at, visibility=visibility
    )
    existing = study.plans.filter(slug=plan["name"]).first()
    if existing is not None and existing.current_version is not None:
        return existing.current_version
    draft = save_draft(study, plan["name"], json.dumps(document, ensure_ascii=False, indent=1), by=by, at=at)
    _inspected(draft, by, note)
    return freeze_inspected(draft, by=by, at=timezone.now())  # the moment at which everything is bound


def _inspected(draft: Plan, by: Actor, note: Progress) -> None:
    """Wait until a worker has said what the draft would bind. Raises ``DomainError`` with the cause where it could not.

    A worker that is lost meanwhile costs an attempt, not the study: the job goes back to the queue.
    """
    job = request_inspection(draft, by=by, at=timezone.now())
    said: dict[str, Any] = {}
    while job.state in OPEN:
        time.sleep(POLL_SECONDS)
        job.refresh_from_db()
        if job.dispatched_at is None and job.state == "queued":
            send(job.pk, job.queue)  # the broker may have come up since
        if job.progress and job.progress != said:
            said = job.progress
            note(said)
    if job.state != "succeeded":
        raise DomainError(f"{draft.slug}: {job.error or job.state}")


def start_study(slug: str, scale: str, *, by: Actor | None = None, on_progress: Progress | None = None) -> Execution:
    """Freeze (if need be) and start a bundled study; an execution that exists is returned as it is."""
    actor = by or service_actor("study")
    return start_version(prepare(slug, scale, by=actor, on_progress=on_progress), by=actor)


def start_version(version: PlanVersion, *, by: Actor) -> Execution:
    """Start a frozen plan; an execution that exists is returned as it is."""
    return start_execution(version, by=by, at=timezone.now(), provenance=provenance())


def _run_summary(run: Run) -> dict[str, Any]:
    groups = Group.objects.filter(run=run, purpose="train")
    head = run.head
    masked = sum(TrajectoryCredit.objects.filter(update__run=run).values_list("masked_tokens", flat=True))
    return {
        "uid": str(run.uid),
        "arm": run.arm.key,
        "seed": run.seed,
        "state": head.state,
        "reason": head.reason,
        "groups": groups.count(),
        "eligible": groups.filter(eligible=True).count(),
        "with_signal": groups.filter(signal="signal").count(),
        "updates": head.steps,
        "batches": head.batch,
        "masked_tokens": masked,
        "adapter_sha256": head.checkpoint.sha256,
    }


def _evaluation_summary(execution: Execution) -> list[dict[str, Any]]:
    found = []
    checkpoints = Checkpoint.objects.filter(evaluation_items__plan_version=execution.plan_version).distinct()
    for checkpoint in checkpoints.select_related("run__arm").order_by("pk"):
        items = EvaluationItem.objects.filter(plan_version=execution.plan_version, checkpoint=checkpoint)
        for condition, split in items.values_list("condition", "split").distinct().order_by("condition", "split"):
            cell = items.filter(condition=condition, split=split)
            valid = cell.filter(trajectory__status="valid")
            totals = valid.values_list("trajectory__reward_total", flat=True)
            rewards = [value for value in totals if value is not None]
            found.append(
                {
                    "checkpoint_sha256": checkpoint.sha256,
                    "arm": checkpoint.run.arm.key if checkpoint.run else None,
                    "seed": checkpoint.run.seed if checkpoint.run else None,
                    "condition": condition,
                    "split": split,
                    "items": cell.count(),
                    "tasks": cell.values("task").distinct().count(),
                    "finish": [valid.filter(trajectory__finished=True).count(), cell.count()],
                    "success": [valid.filter(trajectory__success=True).count(), cell.count()],
                    "fatal": [valid.filter(trajectory__fatal_confirmed__isnull=False).count(), cell.count()],
                    "recovered": [valid.filter(trajectory__recovered=True).count(), cell.count()],
                    "reward_mean": sum(rewards) / len(rewards) if rewards else None,
                }
            )
    return found


def summary(execution: Execution, *, wall_s: float | None) -> dict[str, Any]:
    """What ``manage.py study run --json`` prints. ``wall_s``: from the command's start to the closed study."""
    execution.refresh_from_db()
    document = closure_of(execution)
    closure, endpoints = None, []
    if document is not None:
        closure = {**parse_canonical(bytes(document.bytes))["counts"], "manifest_sha256": document.sha256}
        aggregate = Document.objects.get(kind=AGGREGATE, subject_uid=execution.uid)
        endpoints = endpoint_results(parse_canonical(bytes(aggregate.bytes)))
    runs = (
        Run.objects.filter(execution=execution)
        .select_related("arm", "head__checkpoint")
        .order_by("arm__position", "seed")
    )
    body = plan_body(execution.plan_version)
    return {
        "study": body["plan"]["study"],
        "plan": body["plan"]["name"],
        "scale": body["plan"]["scale"],
        "plan_sha256": execution.plan_version.sha256,
        "execution": str(execution.uid),
        "state": execution.state,
        "reason": execution.reason,
        "runs": [_run_summary(run) for run in runs],
        "evaluation": _evaluation_summary(execution),
        "endpoints": endpoints,
        "closure": closure,
        "wall_s": wall_s,
    }
