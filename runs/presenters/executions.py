"""What a study is doing as a whole: being prepared, probed, trained, closed, paused or interrupted."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from runs.access import Principal, visible, visible_jobs
from runs.actions.plans import plan_body
from runs.models import Execution, Group, Job, Plan
from runs.models.plan import heavy
from runs.templatetags.ui import duration
from runs.visibility import INSPECTION

PREPARING_STALE = timedelta(minutes=15)
OPEN_STATES = ("running", "paused", "interrupted", "pending")
BUNDLED_SCALES = ("tiny", "small", "full")
LISTED = 12


@dataclass(frozen=True)
class Preparing:
    """A study whose plan is being described and frozen; no execution exists yet."""

    study: str
    scale: str
    stage: str
    done: str
    at: datetime


def read_preparing(place: Path, now: datetime) -> Preparing | None:
    """The note that preparation leaves; None where there is none, it cannot be read, or it is too old."""
    try:
        value = json.loads(place.read_text())
        found = Preparing(
            str(value["study"])[:100],
            str(value["scale"])[:20],
            str(value["stage"])[:100],
            _counted(value.get("detail")),
            datetime.fromisoformat(value["at"]),
        )
        fresh = timedelta(0) - PREPARING_STALE < now - found.at <= PREPARING_STALE
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if fresh else None


def part_left(detail: Any) -> float | None:
    """Seconds left of the part that a note names; None where it does not say."""
    left = detail.get("left_s") if isinstance(detail, dict) else None
    return float(left) if isinstance(left, int | float) and not isinstance(left, bool) and 0 < left < 1e8 else None


def _counted(detail: Any) -> str:
    """Part, "done/total" and time left of a stage, as far as its note has them."""
    if not isinstance(detail, dict):
        return ""
    found = [str(detail["part"])[:40].replace("_", " ")] if detail.get("part") else []
    if isinstance(detail.get("done"), int) and isinstance(detail.get("total"), int):
        found.append(f"{detail['done']}/{detail['total']}")
    left = part_left(detail)
    if left is not None:
        return _("%(part)s, about %(left)s left of this part") % {"part": " ".join(found), "left": duration(left)}
    return " ".join(found)


def stage_word(stage: str) -> str:
    """A stage of preparation in words; one that is not listed by its own name."""
    words = {
        "describe": _("loading the model and describing the plan"),
        "base_model": _("training the base model"),
        "warm_start": _("training the warm start"),
        "freeze": _("freezing the plan"),
    }
    return words.get(stage, stage.replace("_", " "))


@dataclass(frozen=True)
class Inspecting:
    """An inspection that goes on or waits: its job, its plan, and what it does now."""

    job: Job
    plan: Plan
    stage: str
    done: str
    share: float | None

    @property
    def doing(self) -> str:
        """Stage, part and count in one line."""
        return ", ".join(part for part in (self.stage, self.done) if part)


def inspections(principal: Principal, limit: int = LISTED) -> list[Inspecting]:
    """Visible inspections that have not ended, the newest ``limit``; a cold one trains a warm start for minutes."""
    jobs = visible_jobs(principal, Job.objects.filter(kind=INSPECTION, state__in=("leased", "queued")))
    rows = list(jobs.order_by("-pk")[:limit])
    uids = {str(job.spec.get("plan")) for job in rows}
    plans = {str(p.uid): p for p in Plan.objects.filter(uid__in=uids).select_related("study")} if uids else {}
    return [_inspecting(job, plans[job.spec["plan"]]) for job in rows if job.spec.get("plan") in plans]


def _inspecting(job: Job, plan: Plan) -> Inspecting:
    note = job.progress or {}
    if job.state == "queued":
        return Inspecting(job, plan, _("waits for a free worker"), "", None)
    done, total = note.get("done"), note.get("total")
    share = None
    if isinstance(done, int) and isinstance(total, int) and 0 <= done <= total and total > 0:
        share = 100.0 * done / total
    return Inspecting(job, plan, stage_word(str(note.get("stage") or "describe")[:60]), _counted(note), share)


@dataclass(frozen=True)
class ExecutionLine:
    """An open execution: its state, what it does now, and the command that continues it ("" where none is needed)."""

    execution: Execution
    study: str
    plan: str
    doing: str
    command: str

    @property
    def pill(self) -> str:
        """Key of the state's pill."""
        return self.execution.state


def open_executions(principal: Principal) -> QuerySet[Execution]:
    """Visible executions that have not ended, by study and plan; without the plans' bytes."""
    return (
        visible(principal, Execution.objects.filter(state__in=OPEN_STATES))
        .select_related("plan_version__plan__study")
        .defer(*heavy("plan_version__"))
        .order_by("plan_version__plan__study__slug", "plan_version__plan__slug")
    )


def execution_lines(principal: Principal, limit: int = LISTED) -> list[ExecutionLine]:
    """The open executions that changed last, at most ``limit``, by study and plan."""
    newest = list(open_executions(principal).order_by("-updated_at", "-pk").values_list("pk", flat=True)[:limit])
    return [_line(row) for row in open_executions(principal).filter(pk__in=newest)]


def _line(execution: Execution) -> ExecutionLine:
    plan = execution.plan_version.plan
    return ExecutionLine(execution, plan.study.slug, plan.slug, _doing(execution), resume_command(execution))


def resume_command(execution: Execution) -> str:
    """The command that continues a paused or interrupted bundled study."""
    document = plan_body(execution.plan_version)["plan"]
    if execution.state not in ("paused", "interrupted") or document["scale"] not in BUNDLED_SCALES:
        return ""
    verb, tail = ("resume", "") if execution.state == "paused" else ("recover", " --plan FILE")
    return f"manage.py study {verb} {execution.plan_version.plan.study.slug} --scale {document['scale']}{tail}"


def _doing(execution: Execution) -> str:
    if execution.state == "interrupted":
        return _("interrupted: %(reason)s. A recorded recovery plan comes before it goes on.") % {
            "reason": execution.reason
        }
    if execution.state == "paused":
        if execution.reason != "paused":
            return _("paused: %(reason)s. Resume it once that is mended; nothing was lost.") % {
                "reason": execution.reason
            }
        return _("paused by a person; jobs in flight end, and no other starts")
    if execution.state == "pending":
        return _("not started yet")
    if execution.phase == "preflight":
        return _preflight(execution)
    if execution.phase == "close":
        return _("closing: every run has ended; manifest and aggregate are being stored")
    return _("training and evaluating its runs")


def _preflight(execution: Execution) -> str:
    wanted: dict[str, Any] = plan_body(execution.plan_version)["plan"]["preflight"] or {"groups": 0}
    done = Group.objects.filter(plan_version=execution.plan_version, purpose="preflight").count()
    return _("preflight: probing the parent's signal before any run starts, %(n)d of %(of)d groups") % {
        "n": done,
        "of": wanted["groups"],
    }
