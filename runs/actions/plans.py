"""Plans: draft, freeze, supersede. Freezing stores the exact canonical bytes; they never change."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import yaml
from django.db import transaction

from runs.actions.admission import check_admission
from runs.actions.receipts import append_receipt
from runs.actions.transitions import move_plan
from runs.errors import AlreadyFrozen, DomainError, StaleTransition
from runs.models import Actor, Arm, FailureSchedule, Plan, PlanVersion, Study
from runs.parsed import Parsed
from runs.statistics.verdicts import check_endpoint
from workbench.contracts.canonical import canonical_bytes, derive_uid, digest, sha256_hex
from workbench.contracts.errors import PlanInvalid, Problem
from workbench.contracts.spec import freeze_body

MAX_TEXT = 1_000_000  # characters of a plan document
MAX_NODES = 20_000  # keys and values of a plan document: reading takes about 0.1 ms each
MAX_DIGITS = 4_000  # of a whole number; Python refuses to write one of more than 4,300 in a message


class _StrictLoader(yaml.SafeLoader):
    """Safe YAML that refuses a key given twice and an alias, reads no dates, and reads every JSON number as one."""

    nodes = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        mark = self.peek_event().start_mark
        if self.check_event(yaml.AliasEvent):  # a short text with aliases of aliases unfolds to gigabytes
            raise yaml.MarkedYAMLError(problem="got an alias", problem_mark=mark)
        self.nodes += 1
        if self.nodes > MAX_NODES:
            problem = f"got more than {MAX_NODES} keys and values, expected at most so many"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=mark)
        return super().compose_node(parent, index)


def _mapping(loader: _StrictLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    loader.flatten_mapping(node)
    found: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str):
            raise PlanInvalid([Problem(f"line {key_node.start_mark.line + 1}", repr(key), "a text key")])
        if key in found:
            raise PlanInvalid(
                [Problem(f"line {key_node.start_mark.line + 1}", f"the key {key!r} twice", "each key once")]
            )
        found[key] = loader.construct_object(value_node, deep=True)
    return found


def _integer(loader: _StrictLoader, node: yaml.ScalarNode) -> int:
    value: int = loader.construct_yaml_int(node)
    if value.bit_length() > MAX_DIGITS * 3:  # 3 bits a digit: below the limit of digits
        where = f"line {node.start_mark.line + 1}"
        raise PlanInvalid([Problem(where, "a number of thousands of digits", f"at most {MAX_DIGITS} digits")])
    return value


_StrictLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)
_StrictLoader.add_constructor("tag:yaml.org,2002:int", _integer)
_StrictLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
# YAML 1.1 reads 1e-06, which JSON writes for 0.000001, as text.
_StrictLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)[eE][-+]?[0-9]+$"),
    list("-+.0123456789"),
)


def parse_plan_text(text: str) -> dict[str, Any]:
    """A plan document from YAML or JSON text. Raises ``PlanInvalid`` naming line and fault."""
    if len(text) > MAX_TEXT:
        raise PlanInvalid([Problem("$", f"{len(text)} characters", f"at most {MAX_TEXT}")])
    try:
        document = yaml.load(text, Loader=_StrictLoader)
    except PlanInvalid:
        raise
    except (LookupError, AttributeError) as error:  # what the library raises for !!bool maybe
        raise PlanInvalid([Problem("$", "a tag (!!) whose text does not fit it", "YAML or JSON text")]) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:  # ValueError: an impossible date or number
        raise PlanInvalid([Problem("$", " ".join(str(error).split())[:200], "YAML or JSON text")]) from error
    if not isinstance(document, dict):
        raise PlanInvalid([Problem("$", type(document).__name__, "an object")])
    return document


def ensure_study(
    slug: str,
    *,
    title: dict[str, str],
    summary: dict[str, str],
    by: Actor,
    at: datetime,
    visibility: str = Study.PRIVATE,
) -> Study:
    """The study with this slug, created when it does not exist yet."""
    study, _ = Study.objects.get_or_create(
        slug=slug,
        defaults={
            "uid": derive_uid(None, f"study:{slug}"),
            "title_en": title["en"],
            "title_zh": title.get("zh", ""),
            "summary_en": summary["en"],
            "summary_zh": summary.get("zh", ""),
            "visibility": visibility,
            "created_at": at,
            "created_by": by,
        },
    )
    return study


def save_draft(study: Study, slug: str, text: str, *, by: Actor, at: datetime) -> Plan:
    """Create or replace a draft. Raises ``AlreadyFrozen`` for a plan that is no draft any more."""
    with transaction.atomic():
        plan, created = Plan.objects.get_or_create(
            study=study,
            slug=slug,
            defaults={
                "uid": derive_uid(study.uid, f"plan:{slug}"),
                "state": "draft",
                "draft_text": text,
                "draft_revision": 1,
            },
        )
        if created:
            return plan
        changed = Plan.objects.filter(pk=plan.pk, state="draft", draft_revision=plan.draft_revision).update(
            draft_text=text, draft_revision=plan.draft_revision + 1
        )
        if changed != 1:
            plan.refresh_from_db()
            if plan.state == "draft":
                raise StaleTransition(f"plan {slug}: another writer saved revision {plan.draft_revision} first")
            raise AlreadyFrozen(f"plan {slug}: it is {plan.state}; its bytes never change. Save under another name.")
        plan.refresh_from_db()
    return plan


def freeze_plan(plan: Plan, bindings: dict[str, Any], *, by: Actor, at: datetime) -> PlanVersion:
    """Freeze the draft with the identities that the engine described.

    Stores the canonical body, its arms and its failure schedule, checks every strict pair field by
    field (``PlanInvalid`` if more than the declared treatment differs, or where the controls of a task
    failed: see ``admission``) and writes a receipt. Raises
    ``AlreadyFrozen``, or ``StaleTransition`` where the draft was saved again after ``plan`` was read.
    """
    if plan.state != "draft":
        raise AlreadyFrozen(f"plan {plan.slug}: it is {plan.state}, expected a draft")
    body = freeze_body(parse_plan_text(plan.draft_text), bindings)
    arms = frozenset(arm["key"] for arm in body["arms"])
    problems = [problem for endpoint in body["plan"]["endpoints"] for problem in check_endpoint(endpoint, arms)]
    if problems:
        raise PlanInvalid(problems)
    check_admission(body, plan.study)
    data = canonical_bytes(body)
    sha = sha256_hex(data)
    with transaction.atomic():
        current = Plan.objects.select_for_update().get(pk=plan.pk)
        if current.state != "draft":
            raise AlreadyFrozen(f"plan {plan.slug}: it is {current.state}, expected a draft")
        if current.draft_revision != plan.draft_revision:
            raise StaleTransition(
                f"plan {plan.slug}: got revision {plan.draft_revision}, expected {current.draft_revision}, the newest"
            )
        version = PlanVersion.objects.create(
            uid=derive_uid(plan.uid, f"version:{sha}"),
            plan=plan,
            number=1,
            sha256=sha,
            bytes=data,
            strict_pairs=body["pairs"],
            created_at=at,
            created_by=by,
        )
        project_arms(version, body)
        move_plan(plan, "frozen", version=version, reason="frozen", actor=by, at=at)
        append_receipt(
            f"plan:{plan.uid}",
            "plan.frozen",
            str(version.uid),
            {"plan_sha256": sha, "bytes": len(data), "pairs": len(body["pairs"])},
            actor=by,
            at=at,
        )
    return version


def project_arms(version: PlanVersion, body: dict[str, Any]) -> None:
    """Write the rows that pages read: arms and failure schedule, each a projection of the frozen bytes."""
    for arm in body["arms"]:
        config = canonical_bytes(arm["config"])
        Arm.objects.create(
            uid=derive_uid(version.uid, f"arm:{arm['key']}"),
            plan_version=version,
            key=arm["key"],
            title_en=arm["title"]["en"],
            title_zh=arm["title"]["zh"],
            position=arm["position"],
            config_bytes=config,
            config_sha256=arm["config_sha256"],
            gate=arm["gate"],
            seeds=arm["seeds"],
        )
    schedule = canonical_bytes(body["failure_schedule"])
    FailureSchedule.objects.create(
        uid=derive_uid(version.uid, "failure_schedule"),
        plan_version=version,
        sha256=digest(body["failure_schedule"]),
        bytes=schedule,
    )


_BODIES = Parsed("plan", most=32)


def plan_body(version: PlanVersion) -> dict[str, Any]:
    """The frozen body, parsed from its stored bytes, whose hash is checked. Treat it as read-only.

    A row that was read without its bytes, as lists do, is answered by its hash where this process has parsed that body.
    """
    if "bytes" not in version.get_deferred_fields() and sha256_hex(bytes(version.bytes)) != version.sha256:
        found = sha256_hex(bytes(version.bytes))
        raise DomainError(f"plan {version.uid}: its bytes hash to {found}, expected {version.sha256}")
    return _BODIES.get(version.sha256, lambda: bytes(version.bytes))


def supersede_plan(plan: Plan, *, reason: str, by: Actor, at: datetime) -> None:
    """Mark a frozen plan as superseded; its bytes and results stay readable."""
    with transaction.atomic():
        move_plan(plan, "superseded", version=None, reason=reason, actor=by, at=at)
        append_receipt(f"plan:{plan.uid}", "plan.superseded", str(plan.uid), {"reason": reason}, actor=by, at=at)
