"""Where trials are to be found: for the pages that lead to them. Nothing is shown where there are none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from runs.actions.plans import plan_body
from runs.models import Group, Job, PlanVersion, Receipt, Run, Study, TrialSet
from runs.presenters.trials.words import STATUS
from workbench.contracts import layout
from workbench.contracts.plan_schema import EDIT_CREDITS

RECORDED = ("trials.recorded", "trials.unavailable")


def asks_for_trials(version: PlanVersion | None) -> bool:
    """Whether the frozen plan asks for trials at all. No query: its body is kept parsed."""
    return version is not None and plan_body(version)["plan"].get("trials") is not None


def trial_sets(version: PlanVersion) -> QuerySet[TrialSet]:
    """Recorded trials of a plan version, the pilot's included."""
    return TrialSet.objects.filter(plan_version=version)


def may_be_tried(version: PlanVersion) -> bool:
    """Whether the plan asks for trials, or some are recorded all the same."""
    return asks_for_trials(version) or trial_sets(version).exists()


def has_trials(version: PlanVersion | None) -> bool:
    """Whether some trials are recorded. One query, and only where the plan asks for them."""
    return version is not None and asks_for_trials(version) and trial_sets(version).exists()


def receipt_of(made: TrialSet) -> Receipt | None:
    """The receipt that says when and how the trials of a group were recorded; its subject is their job. Two queries."""
    owner = layout.execution_uid(str(made.plan_version.uid)) if made.run is None else str(made.run.uid)
    job = Job.objects.filter(key=layout.trials_key(owner, made.purpose, made.ordinal)).values_list("uid", flat=True)
    uid = job.first()
    return Receipt.objects.filter(kind__in=RECORDED, subject_uid=str(uid)).first() if uid is not None else None


def tried_plans(study: Study) -> list[str]:
    """Slugs of the study's plans with recorded trials. One query."""
    rows = TrialSet.objects.filter(plan_version__plan__study=study).order_by()
    return sorted(rows.values_list("plan_version__plan__slug", flat=True).distinct())


@dataclass(frozen=True)
class Difference:
    """What a page about a group says of one slot. ``difference`` None: ``word`` says why."""

    status: str
    word: Any
    difference: float | None


def interventions_of(group: Group) -> dict[int, Difference]:
    """By slot; empty where the group was not tried, without a query there. Needs ``trial_set`` selected."""
    made = getattr(group, "trial_set", None)
    if made is None:
        return {}
    rows = made.interventions.values_list("slot", "status", "difference")
    return {slot: Difference(status, STATUS[status][0], difference) for slot, status, difference in rows}


def credits_edits(run: Run) -> bool:
    """Whether the run's arm adds credit from edits. No query: the plan's body is kept parsed."""
    if run.plan_version is None or run.arm is None:
        return False
    config = layout.arm_of(plan_body(run.plan_version), run.arm.key)["config"]
    return config["objective"]["credit"] in EDIT_CREDITS
