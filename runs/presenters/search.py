"""What the search finds. A prefix of at least four hexadecimal digits is looked up as a hash and as a uid."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from typing import Any

from django.db.models import Model, Q, QuerySet
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from runs.access import Principal, visible, visible_jobs
from runs.models import Checkpoint, Group, Job, Plan, PlanVersion, Receipt, Run, Task, Trajectory, Turn
from runs.visibility import visible_checkpoints, visible_receipts

LIMIT = 10
_HEX = re.compile(r"^[0-9a-f-]{4,64}$")


@dataclass(frozen=True)
class Hit:
    """One result: of what kind, its name, the full id or hash that matched, where it opens."""

    kind: Any
    name: str
    identity: str
    url: str


def _uid_range(prefix: str) -> Q | None:
    """Uids that begin with a prefix, as a range that the index serves."""
    digits = prefix.replace("-", "")
    if not 4 <= len(digits) <= 32:
        return None
    return Q(uid__gte=uuid.UUID(digits.ljust(32, "0")), uid__lte=uuid.UUID(digits.ljust(32, "f")))


def find(principal: Principal, query: str) -> list[Hit]:
    """At most ``LIMIT`` hits of each kind, out of what the principal may see."""
    if len(query) < 2:
        return []
    found = _by_name(principal, query)
    prefix = query.lower()
    if _HEX.match(prefix):
        found += _by_uid(principal, prefix) + _by_hash(principal, prefix)
    return found


def run_name(run: Run) -> str:
    """A run's name with its plan's: two plans may hold runs of one name."""
    return run.name if run.plan_version is None else f"{run.name} · {run.plan_version.plan.slug}"


def _by_name(principal: Principal, query: str) -> list[Hit]:
    hits = [
        Hit(_("run"), run_name(r), str(r.uid), reverse("runs:run", args=[r.uid]))
        for r in visible(principal, Run.objects.filter(name__icontains=query)).select_related("plan_version__plan")[
            :LIMIT
        ]
    ]
    hits += [
        Hit(_("plan"), p.slug, str(p.uid), reverse("runs:plan", args=[p.study.slug, p.slug]))
        for p in visible(
            principal, Plan.objects.filter(Q(slug__icontains=query) | Q(study__slug__icontains=query))
        ).select_related("study")[:LIMIT]
    ]
    for task in Task.objects.filter(Q(key__icontains=query) | Q(prompt__icontains=query))[:LIMIT]:
        group = visible(principal, Group.objects.filter(task=task)).order_by("-pk").first()
        if group is not None:
            hits.append(
                Hit(
                    _("task, newest group"),
                    f"{task.key} ({task.split})",
                    task.task_sha256,
                    reverse("runs:group", args=[group.uid]),
                )
            )
    return hits


def _by_uid(principal: Principal, prefix: str) -> list[Hit]:
    where = _uid_range(prefix)
    if where is None:
        return []
    hits: list[Hit] = []
    models: list[tuple[Any, type[Model], str]] = [
        (_("run"), Run, "runs:run"),
        (_("group"), Group, "runs:group"),
        (_("trajectory"), Trajectory, "runs:trajectory"),
        (_("job"), Job, "runs:job"),
    ]
    for kind, model, name in models:
        rows: QuerySet[Any] = model._default_manager.filter(where)
        rows = visible_jobs(principal, rows) if model is Job else visible(principal, rows)
        if model is Run:
            rows = rows.select_related("plan_version__plan")  # type: ignore[misc]
        hits += [
            Hit(kind, run_name(row) if isinstance(row, Run) else str(row), str(row.uid), reverse(name, args=[row.uid]))
            for row in rows[:LIMIT]
        ]
    return hits


def _by_hash(principal: Principal, prefix: str) -> list[Hit]:
    if "-" in prefix:
        return []
    hits = [
        Hit(_("receipt"), r.kind, r.sha256, reverse("runs:receipt", args=[r.sha256]))
        for r in visible_receipts(principal, Receipt.objects.filter(sha256__startswith=prefix))[:LIMIT]
    ]
    hits += [
        Hit(_("plan"), v.plan.slug, v.sha256, reverse("runs:plan", args=[v.plan.study.slug, v.plan.slug]))
        for v in visible(principal, PlanVersion.objects.filter(sha256__startswith=prefix)).select_related(
            "plan__study"
        )[:LIMIT]
    ]
    hits += [
        Hit(
            _("capture"),
            f"d{t.decision}",
            t.capture_sha256 or "",
            reverse("runs:trajectory", args=[t.trajectory.uid]) + f"#d{t.decision}",
        )
        for t in visible(principal, Turn.objects.filter(capture_sha256__startswith=prefix)).select_related(
            "trajectory"
        )[:LIMIT]
    ]
    hits += [
        Hit(
            _("checkpoint"),
            f"v{c.policy_version}",
            c.sha256,
            reverse("runs:run", args=[c.run.uid]) if c.run else reverse("runs:checkpoints"),
        )
        for c in visible_checkpoints(principal, Checkpoint.objects.filter(sha256__startswith=prefix)).select_related(
            "run"
        )[:LIMIT]
    ]
    hits += [
        Hit(_("group record"), str(g.ordinal), g.record_sha256, reverse("runs:group", args=[g.uid]))
        for g in visible(principal, Group.objects.filter(record_sha256__startswith=prefix))[:LIMIT]
    ]
    return hits
