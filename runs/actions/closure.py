"""Close an execution: run manifests, evaluation manifests, aggregate, closure manifest. No new statistics.

Every manifest is a document of canonical bytes; the closure binds them by hash with counts. Nothing
in them holds a time, a host or a database id, so two equal executions have equal closures.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from datetime import datetime
from typing import Any

from django.db import transaction

from runs.actions.advance import lock_execution
from runs.actions.documents import store_document
from runs.actions.plans import plan_body
from runs.actions.receipts import anchor_heads, append_receipt
from runs.actions.transitions import move_execution
from runs.models import (
    Actor,
    Document,
    EvaluationItem,
    Execution,
    Group,
    Job,
    Run,
    RunHead,
    TrialSet,
    Turn,
    UpdateBatch,
)
from runs.statistics.aggregate import build_aggregate
from runs.statistics.items import ItemFacts
from workbench.contracts.canonical import canonical_bytes, derive_uid, digest, parse_canonical
from workbench.contracts.records import VALID, OutcomeFacts

STATED = ("completed", "refused", "stopped", "cancelled")  # states whose reason is the plan's or a person's
RUN_MANIFEST, EVALUATION_MANIFEST, AGGREGATE, CLOSURE = "run_manifest", "evaluation_manifest", "aggregate", "closure"


def run_manifest(run: Run) -> dict[str, Any]:
    """Everything that one run committed, by hash, in order."""
    head = RunHead.objects.select_related("checkpoint").get(run=run)
    groups = Group.objects.filter(run=run, purpose="train").order_by("ordinal")
    updates = UpdateBatch.objects.filter(run=run).select_related("checkpoint_after").order_by("batch")
    trials = [
        {"uid": str(item.uid), "ordinal": item.ordinal, "record_sha256": item.record_sha256}
        for item in TrialSet.objects.filter(run=run).order_by("ordinal")
    ]
    return {
        **({"trials": trials} if trials else {}),  # absent where nothing was tried, as before there were trials
        "schema": "workbench.run-manifest/1",
        "plan_sha256": run.plan_version.sha256,
        "run_uid": str(run.uid),
        "arm": run.arm.key,
        "seed": run.seed,
        "state": head.state,
        "batches": head.batch,
        "steps": head.steps,
        "final_adapter_sha256": head.checkpoint.sha256,
        "groups": [
            {
                "uid": str(g.uid),
                "ordinal": g.ordinal,
                "record_sha256": g.record_sha256,
                "captures": g.capture_blob_sha256,
            }
            for g in groups
        ],
        "updates": [
            {
                "uid": str(u.uid),
                "batch": u.batch,
                "record_sha256": u.record_sha256,
                "adapter": u.checkpoint_after.sha256,
            }
            for u in updates
        ],
    }


def item_manifest(item: EvaluationItem) -> dict[str, Any]:
    """One evaluation item: which trajectory of which record it is. Needs ``trajectory__group`` loaded."""
    group = item.trajectory.group
    return {
        "uid": str(item.uid),
        "split": item.split,
        "task_uid": str(item.task.uid),
        "repeat": item.repeat,
        "trajectory_uid": str(item.trajectory.uid),
        "record_sha256": group.record_sha256,
        "captures": group.capture_blob_sha256,
    }


def _items(execution: Execution) -> Any:
    return (
        EvaluationItem.objects.filter(plan_version=execution.plan_version)
        .select_related("trajectory__group", "task", "checkpoint", "run__arm")
        .order_by("checkpoint__uid", "condition", "split", "task__uid", "repeat")
    )


def evaluation_manifests(execution: Execution) -> Iterator[tuple[str, dict[str, Any]]]:
    """One manifest per checkpoint and condition, with the hash of each of its items."""
    cells: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for item in _items(execution).iterator(chunk_size=2000):
        key = (str(item.checkpoint.uid), item.checkpoint.sha256, item.condition)
        manifest = item_manifest(item)
        cells.setdefault(key, []).append({**manifest, "sha256": digest(manifest)})
    for (uid, sha, condition), items in cells.items():
        yield (
            str(derive_uid(uid, f"manifest:{condition}")),
            {
                "schema": "workbench.evaluation-manifest/1",
                "plan_sha256": execution.plan_version.sha256,
                "checkpoint_uid": uid,
                "checkpoint_sha256": sha,
                "condition": condition,
                "items": items,
            },
        )


def item_facts(execution: Execution, **where: Any) -> Iterator[ItemFacts]:
    """The evaluation items as the statistics read them. ``where``: columns of the items that narrow them."""
    names = [field.name for field in fields(OutcomeFacts)]
    final = dict(RunHead.objects.filter(run__execution=execution).values_list("run_id", "checkpoint_id"))
    for item in _items(execution).filter(**where).iterator(chunk_size=2000):
        t = item.trajectory
        valid = t.status == VALID
        yield ItemFacts(
            checkpoint_uid=str(item.checkpoint.uid),
            checkpoint_sha256=item.checkpoint.sha256,
            arm=item.run.arm.key if item.run is not None else None,
            run_seed=item.run.seed if item.run is not None else None,
            condition=item.condition,
            split=item.split,
            task_key=item.task.key,
            task_uid=str(item.task.uid),
            family=item.task.family,
            repeat=item.repeat,
            status=t.status,
            reward=t.reward_total if valid else None,
            success=t.success if valid else None,
            facts=OutcomeFacts(**{name: getattr(t, name) for name in names}) if valid else None,
            terminal=t.terminal if valid else None,
            is_final=item.run is None or final.get(item.run_id) == item.checkpoint_id,
            verifier=f"{t.success_definition} {t.reward_version}",
        )


def _store(kind: str, uid: str, value: dict[str, Any]) -> Document:
    return store_document(kind, uid, canonical_bytes(value))


def unchanged_runs(execution: Execution) -> list[tuple[str, str]]:
    """(arm, seed) of completed runs that committed no step: their final checkpoint is their parent."""
    query = Run.objects.filter(execution=execution).select_related("arm", "head").order_by("arm__position", "seed")
    return [
        (run.arm.key, run.seed)
        for run in query
        if run.head.state == "completed" and run.head.checkpoint_id == run.parent_checkpoint_id
    ]


def build_closure(execution: Execution) -> dict[str, Any]:
    """Store every manifest and the aggregate; return the closure manifest that binds them."""
    body = plan_body(execution.plan_version)
    runs = []
    query = Run.objects.filter(execution=execution).select_related("arm", "plan_version", "head")
    for run in query.order_by("arm__position", "seed"):
        document = _store(RUN_MANIFEST, str(run.uid), run_manifest(run))
        entry = {"uid": str(run.uid), "arm": run.arm.key, "seed": run.seed, "state": run.head.state}
        reason = run.head.reason if run.head.state in STATED else None  # an error's text may name a machine
        runs.append({**entry, "reason": reason, "manifest_sha256": document.sha256})
    evaluations, items = [], 0
    for uid, manifest in evaluation_manifests(execution):
        document = _store(EVALUATION_MANIFEST, uid, manifest)
        items += len(manifest["items"])
        evaluations.append(
            {
                "uid": uid,
                "checkpoint_uid": manifest["checkpoint_uid"],
                "condition": manifest["condition"],
                "items": len(manifest["items"]),
                "manifest_sha256": document.sha256,
            }
        )
    aggregate = build_aggregate(
        plan_sha256=execution.plan_version.sha256,
        endpoints=body["plan"]["endpoints"],
        strict_pairs=body["plan"]["strict_pairs"],
        items=item_facts(execution),
        unchanged=unchanged_runs(execution),
        planned={arm["key"]: arm["seeds"] for arm in body["arms"]},
    )
    aggregate_document = _store(AGGREGATE, str(execution.uid), aggregate)
    return {
        "schema": "workbench.closure/1",
        "plan_sha256": execution.plan_version.sha256,
        "execution_uid": str(execution.uid),
        "runs": runs,
        "evaluations": evaluations,
        "aggregate_sha256": aggregate_document.sha256,
        "counts": {
            "jobs": Job.objects.filter(execution=execution).exclude(kind="close_execution").count(),
            "items": items,
            "captures": Turn.objects.filter(trajectory__group__plan_version=execution.plan_version).count(),
        },
    }


def endpoint_results(aggregate: dict[str, Any]) -> list[dict[str, Any]]:
    """Every registered endpoint with its paired difference, interval and state, whichever way it goes.

    ``difference`` is run minus parent, or second arm minus first, over tasks; None where pending.
    """
    found = []
    for item in aggregate["endpoints"]:
        for result in item["results"]:
            over = (result.get("contrast") or {}).get("over_seeds") or {}
            interval = over.get("interval") or {}
            found.append(
                {
                    "id": item["endpoint"]["id"],
                    "metric": item["endpoint"]["metric"],
                    "condition": item["endpoint"]["condition"],
                    "split": item["endpoint"]["split"],
                    "compare": item["endpoint"]["compare"]["kind"],
                    "arms": result["arms"],
                    "state": result["state"],
                    "difference": (over.get("task_difference") or {}).get("value"),
                    "low": interval.get("low"),
                    "high": interval.get("high"),
                    "level": interval.get("level"),
                    "tasks": interval.get("tasks"),
                    "seeds": (over.get("spread") or {}).get("n"),
                    "seed_mean": (over.get("spread") or {}).get("mean"),
                    "seed_sd": (over.get("spread") or {}).get("sd"),
                    "distinguished": over.get("distinguished"),
                }
            )
    return found


def close_execution(execution: Execution, *, actor: Actor, at: datetime) -> Document:
    """Bind everything and end the execution. Refused (``StaleTransition``) unless it is running."""
    with transaction.atomic():
        execution = lock_execution(execution)
        closure = build_closure(execution)
        document = _store(CLOSURE, str(execution.uid), closure)
        aggregate = parse_canonical(bytes(Document.objects.get(kind=AGGREGATE, subject_uid=execution.uid).bytes))
        for result in endpoint_results(aggregate):
            append_receipt(
                f"execution:{execution.uid}", "endpoint.measured", str(execution.uid), result, actor=actor, at=at
            )
        append_receipt(
            f"execution:{execution.uid}",
            "execution.closed",
            str(execution.uid),
            {"manifest_sha256": document.sha256, "counts": closure["counts"]},
            actor=actor,
            at=at,
        )
        move_execution(
            execution, "closed", reason="every run ended, every item evaluated", actor=actor, at=at, phase="done"
        )
        anchor_heads()
    return document


def closure_of(execution: Execution) -> Document | None:
    """The stored closure manifest, if the execution is closed."""
    return Document.objects.filter(kind=CLOSURE, subject_uid=execution.uid).first()
