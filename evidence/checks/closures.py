"""Step 9: closure manifests built again from the rows that they bind."""

from __future__ import annotations

from typing import Any

from evidence.report import StepLog
from runs.actions.closure import (
    AGGREGATE,
    CLOSURE,
    EVALUATION_MANIFEST,
    RUN_MANIFEST,
    evaluation_manifests,
    item_facts,
    run_manifest,
    unchanged_runs,
)
from runs.actions.plans import plan_body
from runs.models import Document, Execution, Job, Run, Turn
from runs.statistics.aggregate import build_aggregate
from workbench.contracts.canonical import digest, parse_canonical


def check_closures(log: StepLog) -> None:
    """Every stored closure; every closed execution has one."""
    closed = set()
    for document in Document.objects.filter(kind=CLOSURE).order_by("id").iterator(chunk_size=20):
        closed.add(document.subject_uid)
        with log.reading("runs_document", f"{CLOSURE}:{document.subject_uid}"):
            execution = Execution.objects.select_related("plan_version").get(uid=document.subject_uid)
            _closure(log, execution, parse_canonical(bytes(document.bytes)))
    for execution in Execution.objects.filter(state="closed").exclude(uid__in=closed):
        log.problem("runs_execution", execution.uid, "state", expected="a closure manifest", got="closed without one")


def _same(log: StepLog, name: str, column: str, expected: Any, got: Any) -> None:
    log.count()
    if expected != got:
        log.problem("runs_document", name, column, expected=expected, got=got)


def _stored(kind: str, uid: str) -> str | None:
    return Document.objects.filter(kind=kind, subject_uid=uid).values_list("sha256", flat=True).first()


def _closure(log: StepLog, execution: Execution, closure: dict[str, Any]) -> None:
    name = f"{CLOSURE}:{execution.uid}"
    body = plan_body(execution.plan_version)
    _same(log, name, "plan_sha256", execution.plan_version.sha256, closure["plan_sha256"])
    _same(log, name, "execution_uid", str(execution.uid), closure["execution_uid"])
    runs = {str(run.uid): run for run in Run.objects.filter(execution=execution).select_related("arm", "plan_version")}
    _same(log, name, "runs", sorted(runs), sorted(item["uid"] for item in closure["runs"]))
    for item in closure["runs"]:
        rebuilt = digest(run_manifest(runs[item["uid"]]))
        _same(log, f"{RUN_MANIFEST}:{item['uid']}", "sha256", rebuilt, item["manifest_sha256"])
        _same(log, f"{RUN_MANIFEST}:{item['uid']}", "sha256", rebuilt, _stored(RUN_MANIFEST, item["uid"]))
    evaluations = {uid: manifest for uid, manifest in evaluation_manifests(execution)}
    _same(log, name, "evaluations", sorted(evaluations), sorted(item["uid"] for item in closure["evaluations"]))
    for item in closure["evaluations"]:
        label, manifest = f"{EVALUATION_MANIFEST}:{item['uid']}", evaluations[item["uid"]]
        rebuilt = digest(manifest)
        _same(log, label, "sha256", rebuilt, item["manifest_sha256"])
        _same(log, label, "sha256", rebuilt, _stored(EVALUATION_MANIFEST, item["uid"]))
        _same(log, label, "items", len(manifest["items"]), item["items"])
    aggregate = build_aggregate(
        plan_sha256=execution.plan_version.sha256, endpoints=body["plan"]["endpoints"],
        strict_pairs=body["plan"]["strict_pairs"], items=item_facts(execution), unchanged=unchanged_runs(execution),
        planned={arm["key"]: arm["seeds"] for arm in body["arms"]},
    )  # fmt: skip
    _same(log, f"{AGGREGATE}:{execution.uid}", "sha256", digest(aggregate), closure["aggregate_sha256"])
    _same(log, f"{AGGREGATE}:{execution.uid}", "sha256", digest(aggregate), _stored(AGGREGATE, str(execution.uid)))
    counts = {
        "jobs": Job.objects.filter(execution=execution).exclude(kind="close_execution").count(),
        "items": sum(len(manifest["items"]) for manifest in evaluations.values()),
        "captures": Turn.objects.filter(trajectory__group__plan_version=execution.plan_version).count(),
    }
    _same(log, name, "counts", counts, closure["counts"])
