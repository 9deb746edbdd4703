# ruff: noqa: E501
"""A large database by bulk SQL: runs, groups, trajectories, turns, jobs, receipts. Every value follows from its number.

Shares at full size: 10,000 runs in 100 plans of 20 studies, 25,000 groups of 4, 10 turns a trajectory. One run
in each hundred is deep. SQLite only. Triggers that guard history stand aside while rows are written.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection, models, transaction

from runs import models as m
from runs.actions.actors import service_actor
from runs.actions.plans import ensure_study, freeze_plan, save_draft
from runs.actions.tasks import store_task_set
from tests.controls.rows import controls_on
from tests.load.tried import SECTION, VERIFIER, add_tried, edit_of
from tests.pages.world import plan_document
from workbench.contracts.canonical import canonical_bytes
from workbench.db import drop_triggers, install_triggers

START = datetime(2026, 10, 1, tzinfo=UTC)
PRIVATE = "study-10"  # a study that the public and most people do not see: lists are narrowed to the others
ENVIRONMENT = {"id": "evidence_search", "version": "2", "code_sha256": "e" * 64, "verifier": VERIFIER}


@dataclass(frozen=True)
class Size:
    """How much is written. ``deep`` groups go to the first run, the others are dealt out."""

    plans: int = 100
    studies: int = 20
    runs: int = 10_000
    groups: int = 25_000
    slots: int = 4
    turns: int = 10
    deep: int = 1_000
    tasks: int = 500
    jobs: int = 30_000
    receipts: int = 50_000


FULL = Size()
SMALL = Size(plans=4, studies=4, runs=100, groups=250, deep=10, tasks=20, jobs=300, receipts=500)


def sha(kind: str, n: int) -> str:
    """Hash number ``n`` of a kind."""
    return hashlib.sha256(f"{kind}:{n}".encode()).hexdigest()


def uid(kind: str, n: int) -> str:
    """Uid number ``n`` of a kind, as SQLite stores it."""
    return hashlib.md5(f"{kind}:{n}".encode(), usedforsecurity=False).hexdigest()


def at(n: float) -> str:
    """A time ``n`` minutes after the start, as SQLite stores it."""
    return (START + timedelta(minutes=n)).strftime("%Y-%m-%d %H:%M:%S")


def insert(model: type[models.Model], columns: str, rows: Iterable[tuple[Any, ...]]) -> None:
    """Rows straight into the table; columns that are not named must have no value to miss."""
    names = columns.split()
    table = connection.ops.quote_name(model._meta.db_table)
    marks = ", ".join(["%s"] * len(names))
    quoted = ", ".join(f'"{name}"' for name in names)
    with connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {table} ({quoted}) VALUES ({marks})", rows)


def _versions(size: Size) -> list[m.PlanVersion]:
    actor = service_actor("scheduler")
    tasks = [
        {
            "key": f"task-{i:04d}", "split": "train" if i % 2 else "test", "family": f"family-{i % 7}",
            "prompt": f"Find document {i}.", "initial_state": {"n": i}, "hidden": {"doc": i}, "tools": ["search"],
        }
        for i in range(size.tasks)
    ]  # fmt: skip
    task_set = store_task_set(canonical_bytes(tasks), environment="evidence_search", version="2")
    controls_on(task_set, START, most=size.tasks)
    rows = list(task_set.all_tasks())
    splits = {
        s: [{"uid": str(t.uid), "sha256": t.task_sha256, "family": t.family} for t in rows if t.split == s]
        for s in ("train", "test")
    }
    policy = {"parent_adapter_bytes": 4096, "parameters": 550_000, "trainable_parameters": 36_000}
    policy |= {name: sha(name, 0) for name in ("base_model_sha256", "tokenizer_sha256", "parent_adapter_sha256")}  # type: ignore[arg-type]
    bindings = {
        "policy": policy, "environment": ENVIRONMENT, "reward": {"code_sha256": sha("reward", 0)},
        "harness": sha("harness", 0), "formatter": "compact", "runtime": "cpu",
        "task_set": {"sha256": task_set.sha256, "splits": splits},
    }  # fmt: skip
    found = []
    for n in range(size.plans):
        study = ensure_study(
            f"study-{n % size.studies}", title={"en": f"Study {n}", "zh": f"研究 {n}"}, summary={"en": "", "zh": ""},
            by=actor, at=START, visibility="public",
        )  # fmt: skip
        document = plan_document(2, ["17", "7", "42"]) | {"study": study.slug, "name": f"plan-{n}"}
        document |= {"trials": SECTION} if n == 0 else {}
        plan = save_draft(study, f"plan-{n}", json.dumps(document), by=actor, at=START)
        found.append(freeze_plan(plan, bindings, by=actor, at=START))
    return found


def add_draft() -> None:
    """A plan that is not frozen, in a study that everybody sees."""
    study = m.Study.objects.get(slug="study-0")
    document = plan_document(2, ["17", "7", "42"]) | {"study": study.slug, "name": "draft"}
    save_draft(study, "draft", json.dumps(document), by=service_actor("scheduler"), at=START)


@transaction.atomic
def generate(size: Size) -> None:
    """Fill the database of this process."""
    assert connection.vendor == "sqlite", "the generator writes SQLite's forms of values"
    versions = _versions(size)
    add_draft()
    drop_triggers(connection)
    _heads(size, versions)
    _rollouts(size)
    add_tried(insert, uid, at, deep=size.deep, slots=size.slots, version=versions[0].pk)
    _work(size)
    install_triggers(connection)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def _heads(size: Size, versions: list[m.PlanVersion]) -> None:
    insert(
        m.Execution, "id uid plan_version_id state phase reason counters updated_at",
        ((i + 1, uid("execution", i), v.pk, "running", "train", "", "{}", at(i)) for i, v in enumerate(versions)),
    )  # fmt: skip
    arms = [list(v.arms.order_by("position").values_list("pk", "key")) for v in versions]
    checkpoint = "id uid run_id parent_id sha256 policy_version kind base_model_sha256 tokenizer_sha256 adaptation blob_bytes created_at"
    insert(
        m.Checkpoint, checkpoint,
        [(1, uid("checkpoint", 0), None, None, sha("parent_adapter_sha256", 0), 0, "parent", sha("base", 0), sha("tok", 0),
          '{"kind": "lora", "rank": 8}', 4096, at(0))],
    )  # fmt: skip

    def runs() -> Iterator[tuple[Any, ...]]:
        for i in range(size.runs):
            p = i % size.plans
            pk, key = arms[p][i // size.plans % len(arms[p])]
            yield i + 1, uid("run", i), p + 1, versions[p].pk, pk, str(i), "native", f"{key}-s{i}", 1, at(i)

    insert(m.Run, "id uid execution_id plan_version_id arm_id seed origin name parent_checkpoint_id created_at", runs())
    insert(
        m.Checkpoint, checkpoint,
        ((i + 2, uid("checkpoint", i + 1), i + 1, 1, sha("adapter", i), 1, "update", sha("base", 0), sha("tok", 0),
          '{"kind": "lora", "rank": 8}', 4096, at(i + 30)) for i in range(size.runs)),
    )  # fmt: skip
    states = ("completed", "completed", "completed", "running", "interrupted", "pending", "refused", "cancelled")
    insert(
        m.RunHead, "id run_id state phase policy_version checkpoint_id batch steps reason runtime trajectories"
        " generated_tokens updated_at",
        ((i + 1, i + 1, states[i % 8], "train", 1, i + 2, 2, 4, "", "cpu", 40, 4000, at(i + 60)) for i in range(size.runs)),
    )  # fmt: skip


def _rollouts(size: Size) -> None:
    tasks = list(m.Task.objects.order_by("pk").values_list("pk", flat=True))
    versions = list(m.PlanVersion.objects.order_by("pk").values_list("pk", flat=True))

    def owner(g: int) -> int:
        return 0 if g < size.deep else g % size.runs

    def groups() -> Iterator[tuple[Any, ...]]:
        for g in range(size.groups):
            r = owner(g)
            evaluate = g >= size.deep and g % 2 == 0
            purpose, condition, split = (
                ("evaluate", ("standard", "stress")[g // 2 % 2], "test") if evaluate else ("train",) * 3
            )
            yield (
                g + 1, uid("group", g), versions[r % size.plans], r + 1, r + 2, purpose, condition, split,
                g if g < size.deep else g // size.runs, tasks[g % len(tasks)], "control", "{}", 1, g % 23 != 0,
                None if g % 23 else "slot 3: timeout", "signal" if g % 3 else "zero_all_wrong", (g % 100) / 100, (g % 7) / 10,
                sha("group", g), sha("captures", g), 1000, at(g / 2),
            )  # fmt: skip

    insert(
        m.Group, "id uid plan_version_id run_id checkpoint_id purpose condition split ordinal task_id failure_profile"
        " identities policy_version eligible ineligible_reason signal mean sigma record_sha256 capture_blob_sha256"
        " capture_blob_bytes created_at", groups(),
    )  # fmt: skip

    def slots() -> Iterator[tuple[Any, ...]]:
        for t in range(size.groups * size.slots):
            fatal = 2 if t % 17 == 0 else None
            yield (
                t + 1, uid("trajectory", t), t // size.slots + 1, t % size.slots, str(t), "valid",
                ("finish", "policy_error", "budget_exhausted")[t % 3], t % 3 == 0, "def/1", (t % 997) / 997,
                (t % 401) / 200 - 1, "2.1", 1.0, t % 3 == 0, True, False, t % 6, 0, 1, t % 2, t % 2 == 1, t % 4 == 1,
                fatal, fatal, fatal is not None, False, "[]", "[]", t % 400, t % 300, 900, sha("state", t), sha("state", t + 1), "A",
            )  # fmt: skip

    insert(
        m.Trajectory, "id uid group_id slot seed status terminal success success_definition reward_total advantage"
        " reward_version gate finished parser_valid premature_finish tool_depth repeat_calls productive_calls failures_seen"
        " exposed recovered fatal_start fatal_confirmed continued_after_fatal unmatched_final_action injections invariants"
        " generated_tokens policy_tokens prompt_tokens initial_state_sha256 final_state_sha256 grade", slots(),
    )  # fmt: skip

    def turns() -> Iterator[tuple[Any, ...]]:
        for n in range(size.groups * size.slots * size.turns):
            d = n % size.turns
            yield (
                n + 1, n // size.turns + 1, d, "main", None, sha("capture", n), 0, 100, 90, 40, 30, "tool", None,
                "search(x)", sha("state", d), sha("state", d + 1), 1,
            )  # fmt: skip

    insert(
        m.Turn, "id trajectory_id decision branch parent_decision capture_sha256 offset length prompt_tokens"
        " generated_tokens policy_tokens action_kind think_text action_text state_before state_after policy_version", turns(),
    )  # fmt: skip
    evaluated = [g for g in range(size.deep, size.groups) if g % 2 == 0]
    insert(
        m.EvaluationItem, "id uid plan_version_id checkpoint_id run_id condition split task_id repeat trajectory_id",
        ((n + 1, uid("item", n), versions[owner(g) % size.plans], owner(g) + 2, owner(g) + 1,
          ("standard", "stress")[g // 2 % 2], "test", tasks[g % len(tasks)], g // size.runs * size.slots + s, g * size.slots + s + 1)
         for n, (g, s) in enumerate((g, s) for g in evaluated for s in range(size.slots))),
    )  # fmt: skip
    trained = [g for g in range(size.groups) if g < size.deep or g % 2]
    insert(
        m.UpdateBatch, "id uid run_id batch policy_version checkpoint_before_id checkpoint_after_id capture_digest"
        " clipping_inert record_sha256",
        ((g + 1, uid("update", g), owner(g) + 1, g, 1, 1, owner(g) + 2, sha("digest", g), False, sha("record", g)) for g in trained),
    )  # fmt: skip
    insert(m.ConsumedGroup, "id group_id update_id", ((g + 1, g + 1, g + 1) for g in trained))
    insert(
        m.TrajectoryCredit, "id update_id trajectory_id advantage policy_tokens trained_tokens masked_tokens"
        " clamp_actionable nonfinite edit",
        ((t + 1, g + 1, t + 1, 0.5, 100, 0 if t % 17 == 0 else 80, 100 if t % 17 == 0 else 0, False, "{}",
          edit_of(t) if g < size.deep else None)
         for g in trained for t in range(g * size.slots, (g + 1) * size.slots)),
    )  # fmt: skip


def _work(size: Size) -> None:
    states = ("succeeded",) * 7 + ("queued", "errored", "cancelled")
    insert(
        m.Job, "id uid key kind queue execution_id run_id spec state attempt max_attempts owner progress error created_at"
        " finished_at",
        ((j + 1, uid("job", j), f"job:{j}", ("collect_shard", "apply_update", "evaluate_shard")[j % 3], "rollout",
          j % size.runs % size.plans + 1, j % size.runs + 1, "{}", states[j % 10], 1, 3, "", "{}", "", at(j / 3),
          None if states[j % 10] == "queued" else at(j / 3 + 5)) for j in range(size.jobs)),
    )  # fmt: skip
    actor = service_actor("scheduler").pk
    last = m.Receipt.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    streams = [f"run:{uuid.UUID(uid('run', r))}" for r in range(size.runs)]
    studies = m.Run.objects.order_by("pk").values_list("plan_version__plan__study", flat=True)
    insert(
        m.Receipt, "id stream seq prev sha256 bytes kind subject_uid actor_id at",
        ((last + n + 1, streams[n % size.runs], n // size.runs + 1, sha("receipt", n - size.runs), sha("receipt", n), b"{}",
          ("run.started", "update.applied")[n // size.runs % 2], uid("run", n % size.runs), actor, at(n / 5))
         for n in range(size.receipts)),
    )  # fmt: skip
    insert(
        m.StreamHead, "stream study_id seq sha256",
        ((s, study, size.receipts // size.runs, sha("receipt", size.receipts - size.runs + r))
         for r, (s, study) in enumerate(zip(streams, studies, strict=True))),
    )  # fmt: skip
