"""Bundled studies: read the plan, describe it through the engine, freeze it, start it, summarise it.

Used by ``manage.py study`` and by ``manage.py up``; the web process never loads torch.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from runs.actions.actors import service_actor
from runs.actions.closure import AGGREGATE, closure_of, endpoint_results
from runs.actions.execution import start_execution
from runs.actions.plans import ensure_study, freeze_plan, parse_plan_text, plan_body, save_draft
from runs.actions.tasks import store_task_set, task_identity
from runs.errors import DomainError
from runs.models import (
    Actor,
    Checkpoint,
    Document,
    EvaluationItem,
    Execution,
    Group,
    PlanVersion,
    Run,
    Study,
    TrajectoryCredit,
)
from runs.storage import blob_store, reference_blobs
from workbench.contracts.canonical import parse_canonical, sha256_hex
from workbench.contracts.jobs import DescribeResult, DescribeSpec
from workbench.contracts.spec import complete_plan
from workbench.contracts.wire import from_wire, to_wire
from worker.lifecycle import engine_client

STUDIES = Path(__file__).resolve().parent / "studies"
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


def describe(plan: dict[str, Any], *, on_progress: Progress | None = None) -> DescribeResult:
    """Ask the engine what the plan's model, environment and reward are; builds the warm start if need be."""
    policy = plan["policy"]
    spec = DescribeSpec(
        model=policy["model"],
        dtype=policy["dtype"],
        adaptation=policy["adaptation"],
        formatter=policy["formatter"],
        environment=plan["environment"]["id"],
        environment_config=plan["environment"]["config"],
    )
    client = engine_client(plan["runtime"]["threads"])
    try:
        return from_wire(DescribeResult, client.call("describe", to_wire(spec), on_progress=on_progress))
    finally:
        client.close()


def bindings_of(found: DescribeResult, plan: dict[str, Any]) -> dict[str, Any]:
    """The identities that freezing binds. Holds no time and nothing about this machine but its runtime identity."""
    data = blob_store().get(found.task_set_sha256)
    splits: dict[str, list[dict[str, str]]] = {}
    with transaction.atomic():
        task_set = store_task_set(data, environment=found.environment, version=found.environment_version)
        reference_blobs(
            {found.vocabulary_sha256: "vocabulary", found.parent_adapter_sha256: "adapter"}, store=blob_store()
        )
    value = parse_canonical(data)
    uids = dict(task_set.all_tasks().values_list("task_sha256", "uid"))
    for item in value["tasks"] if isinstance(value, dict) else value:
        sha = task_identity(item)
        entry = {"uid": str(uids[sha]), "sha256": sha, "family": item["family"]}
        splits.setdefault(item["split"], []).append(entry)
    lock = settings.BASE_DIR / "requirements.txt"
    return {
        "policy": {
            "base_model_sha256": found.base_model_sha256,
            "tokenizer_sha256": found.tokenizer_sha256,
            "parent_adapter_sha256": found.parent_adapter_sha256,
            "parent_adapter_bytes": found.parent_adapter_bytes,
            "vocabulary_sha256": found.vocabulary_sha256,
            "parameters": found.parameters,
            "trainable_parameters": found.trainable_parameters,
            "formatter": found.formatter,
        },
        "environment": {
            "id": found.environment,
            "version": found.environment_version,
            "code_sha256": found.environment_code_sha256,
            "success_definition": found.success_definition,
        },
        "reward": {**plan["reward"], "code_sha256": found.reward_code_sha256},
        "harness": found.harness_code_sha256,
        "runtime": found.runtime,
        "runtime_facts": found.runtime_facts,
        "task_set": {"sha256": found.task_set_sha256, "splits": splits},
        "dependency_lock": sha256_hex(lock.read_bytes()),
        "warm_start": {"recipe_sha256": found.warm_start.get("recipe_sha256")},
    }


def provenance() -> dict[str, Any]:
    """Repository commit and dirty difference, where there is a repository. Goes into a receipt."""

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", *arguments], cwd=settings.BASE_DIR, capture_output=True, text=True, timeout=20
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout if done.returncode == 0 else None

    commit, difference = git("rev-parse", "HEAD"), git("diff", "HEAD")
    return {
        "commit": commit.strip() if commit else None,
        "dirty": None if difference is None else bool(difference),
        "difference_sha256": sha256_hex(difference.encode()) if difference else None,
    }


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
        yield note
    finally:
        place.unlink(missing_ok=True)


def prepare(slug: str, scale: str, *, by: Actor, on_progress: Progress | None = None) -> PlanVersion:
    """The frozen plan of a bundled study at a scale, frozen now if it is not yet."""
    card, document = load_study(slug, scale)
    plan = complete_plan(document)
    study = ensure_study(
        slug, title=card["title"], summary=card["summary"], by=by, at=timezone.now(), visibility=Study.PUBLIC
    )
    existing = study.plans.filter(slug=plan["name"]).first()
    if existing is not None and existing.current_version is not None:
        return existing.current_version
    draft = save_draft(
        study, plan["name"], json.dumps(document, ensure_ascii=False, indent=1), by=by, at=timezone.now()
    )
    with _preparing(slug, scale, on_progress) as note:
        found = describe(complete_plan(parse_plan_text(draft.draft_text)), on_progress=note)
        bindings = bindings_of(found, plan)
    return freeze_plan(draft, bindings, by=by, at=timezone.now())  # the moment at which everything is bound


def start_study(slug: str, scale: str, *, by: Actor | None = None, on_progress: Progress | None = None) -> Execution:
    """Freeze (if need be) and start a bundled study; an execution that exists is returned as it is."""
    actor = by or service_actor("study")
    version = prepare(slug, scale, by=actor, on_progress=on_progress)
    return start_execution(version, by=actor, at=timezone.now(), provenance=provenance())


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
    """What ``manage.py study run --json`` prints."""
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
