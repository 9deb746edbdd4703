"""Inspection: a worker loads what a draft names and says which identities a freeze would bind.

The web process never loads a model: it asks for a job, shows its progress, and freezes with the
answer. An inspection belongs to one revision of the draft; a later revision needs another one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction

from runs.actions.admission import check_admission
from runs.actions.drafts import StaleDraft
from runs.actions.jobs import ensure_job, finish
from runs.actions.plans import freeze_plan, parse_plan_text
from runs.actions.tasks import store_task_set, task_identity
from runs.errors import AlreadyFrozen, DomainError
from runs.models import Actor, Job, Plan, PlanVersion, TaskSet
from runs.storage import blob_store, reference_blobs
from workbench.contracts.canonical import parse_canonical, sha256_hex
from workbench.contracts.jobs import DescribeResult, DescribeSpec
from workbench.contracts.spec import complete_plan, freeze_body
from workbench.contracts.wire import from_wire, to_wire

KIND = "inspect_plan"
QUEUE = "rollout"
ATTEMPTS = 3
OPEN = ("queued", "leased")


def describe_spec(plan: dict[str, Any]) -> DescribeSpec:
    """What the engine is asked about a completed plan document."""
    policy = plan["policy"]
    return DescribeSpec(
        model=policy["model"],
        dtype=policy["dtype"],
        adaptation=policy["adaptation"],
        formatter=policy["formatter"],
        environment=plan["environment"]["id"],
        environment_config=plan["environment"]["config"],
        reward=plan["reward"],
    )


def _of_revision(plan: Plan) -> str:
    return f"inspect:{plan.uid}:r{plan.draft_revision}:"


def inspection_of(plan: Plan) -> Job | None:
    """The newest inspection of the current draft revision; None where none was asked for."""
    return Job.objects.filter(kind=KIND, study=plan.study, key__startswith=_of_revision(plan)).order_by("-pk").first()


@dataclass(frozen=True)
class ReadDraft:
    """A revision of a draft, parsed, with its defaults."""

    revision: int
    document: dict[str, Any]


def read_draft(plan: Plan) -> ReadDraft:
    """The draft as it stands now. Takes seconds for a large text: call it where no lock is held.

    Raises ``PlanInvalid`` where the draft itself is wrong, ``AlreadyFrozen`` where it is no draft.
    """
    current = Plan.objects.get(pk=plan.pk)
    if current.state != "draft":
        raise AlreadyFrozen(f"plan {plan.slug}: it is {current.state}, expected a draft")
    return ReadDraft(current.draft_revision, complete_plan(parse_plan_text(current.draft_text)))


def request_inspection(plan: Plan, *, by: Actor, at: datetime, draft: ReadDraft | None = None) -> Job:
    """Ask a worker what a freeze of the current draft would bind; an inspection under way is returned as it is.

    ``draft`` None: read here, before the transaction. Raises as ``read_draft``, and ``StaleDraft`` where
    another writer saved since it was read.
    """
    draft = draft or read_draft(plan)
    with transaction.atomic():
        current = Plan.objects.select_for_update().select_related("study").get(pk=plan.pk)
        if current.state != "draft":
            raise AlreadyFrozen(f"plan {plan.slug}: it is {current.state}, expected a draft")
        if current.draft_revision != draft.revision:
            raise StaleDraft(current, draft.revision)
        newest = inspection_of(current)
        if newest is not None and newest.state in OPEN:
            return newest
        tried = Job.objects.filter(kind=KIND, study=current.study, key__startswith=_of_revision(current)).count()
        return ensure_job(
            key=f"{_of_revision(current)}{tried + 1}",
            kind=KIND,
            queue=QUEUE,
            execution=None,
            run=None,
            study=current.study,
            spec={
                "plan": str(current.uid),
                "revision": current.draft_revision,
                "threads": draft.document["runtime"]["threads"],
                "describe": to_wire(describe_spec(draft.document)),
                "requested_by": str(by.uid),
            },
            max_attempts=ATTEMPTS,
            at=at,
        )


def inspected_bindings(job: Job) -> dict[str, Any]:
    """The identities that a succeeded inspection found. Raises ``DomainError`` for any other."""
    if job.state != "succeeded" or job.result is None:
        why = f": {job.error}" if job.error else ""
        raise DomainError(f"inspection: it is {job.state}{why}, expected succeeded")
    plan = Plan.objects.get(uid=job.spec["plan"])
    if plan.draft_revision != job.spec["revision"]:
        raise DomainError(
            f"inspection: got revision {job.spec['revision']}, expected {plan.draft_revision}, the newest"
        )
    document = complete_plan(parse_plan_text(plan.draft_text))
    return bindings_of(from_wire(DescribeResult, job.result), document)


def freeze_preview(plan: Plan, bindings: dict[str, Any]) -> dict[str, Any]:
    """The body that a freeze would store: plan, arms, failure schedule, pairs, bindings. Stores nothing.

    Raises ``PlanInvalid`` as the freeze itself would, for instance where a strict pair differs in more
    than its treatment, or where the controls of a task failed.
    """
    body = freeze_body(parse_plan_text(plan.draft_text), bindings)
    check_admission(body, plan.study)
    return body


def freeze_inspected(plan: Plan, *, by: Actor, at: datetime) -> PlanVersion:
    """Freeze the draft with what its inspection found. Raises ``DomainError`` where there is no succeeded one."""
    if plan.state != "draft":
        raise AlreadyFrozen(f"plan {plan.slug}: it is {plan.state}, expected a draft")
    job = inspection_of(plan)
    if job is None:
        raise DomainError(f"inspection: got none for revision {plan.draft_revision} of {plan.slug}, expected one")
    return freeze_plan(plan, inspected_bindings(job), by=by, at=at)


def record_answer(job: Job, result: dict[str, Any], *, at: datetime) -> None:
    """End the inspection with what the worker found, and store the task set that it names; nothing later does.

    Raises ``StaleLease`` where the lease is lost, ``ContractError`` or ``DomainError`` for an answer whose
    tasks cannot be stored.
    """
    found = from_wire(DescribeResult, result)
    with transaction.atomic():
        finish(job, "succeeded", at=at, result=result)
        store_answer(found)


def store_answer(found: DescribeResult) -> None:
    """Store the task set of an answer and refer to its blobs. Call inside ``transaction.atomic()``."""
    store = blob_store()
    data = store.get(found.task_set_sha256)
    store_task_set(data, environment=found.environment, version=found.environment_version, store=store)
    reference_blobs({found.vocabulary_sha256: "vocabulary", found.parent_adapter_sha256: "adapter"}, store=store)


def bindings_of(found: DescribeResult, plan: dict[str, Any]) -> dict[str, Any]:
    """The identities that freezing binds. Holds no time and nothing about this machine but its runtime identity.

    Changes nothing. Raises ``DomainError`` where the answer's task set is not stored.
    """
    task_set = TaskSet.objects.filter(sha256=found.task_set_sha256).first()
    if task_set is None:
        raise DomainError(
            f"task set: got none stored with hash {found.task_set_sha256}, expected the one of the inspection;"
            " have a worker look again"
        )
    splits: dict[str, list[dict[str, str]]] = {}
    value = parse_canonical(blob_store().get(found.task_set_sha256))
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
            **({"profile": found.code["profile"]} if found.code.get("profile") else {}),
        },
        "environment": {
            "id": found.environment,
            "version": found.environment_version,
            "code_sha256": found.environment_code_sha256,
            "success_definition": found.success_definition,
            "code": _owner_and_files(found.code.get("environment")),
            **({"verifier": found.verifier} if found.verifier else {}),
        },
        "reward": {
            **plan["reward"],
            "code_sha256": found.reward_code_sha256,
            "code": _owner_and_files(found.code.get("reward")),
        },
        "harness": found.harness_code_sha256,
        "runtime": found.runtime,
        "runtime_facts": found.runtime_facts,
        "task_set": {"sha256": found.task_set_sha256, "splits": splits},
        "dependency_lock": sha256_hex(lock.read_bytes()),
        "warm_start": {"recipe_sha256": found.warm_start.get("recipe_sha256")},
    }


def _owner_and_files(code: dict[str, Any] | None) -> dict[str, Any]:
    """Distribution, version and file hashes of code that a plan binds; nothing where the engine named none."""
    return {} if code is None else {name: code[name] for name in ("distribution", "version", "files")}
