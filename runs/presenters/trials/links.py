"""Where trials are to be found: for the pages that lead to them. Nothing is shown where there are none."""

from __future__ import annotations

from django.db.models import QuerySet

from runs.actions.plans import plan_body
from runs.models import Job, PlanVersion, Receipt, TrialSet
from workbench.contracts import layout

RECORDED = ("trials.recorded", "trials.unavailable")


def asks_for_trials(version: PlanVersion | None) -> bool:
    """Whether the frozen plan asks for trials at all. No query: its body is kept parsed."""
    return version is not None and plan_body(version)["plan"].get("trials") is not None


def trial_sets(version: PlanVersion) -> QuerySet[TrialSet]:
    """Recorded trials of a plan version, the pilot's included."""
    return TrialSet.objects.filter(plan_version=version)


def has_trials(version: PlanVersion | None) -> bool:
    """Whether some trials are recorded. One query, and only where the plan asks for them."""
    return version is not None and asks_for_trials(version) and trial_sets(version).exists()


def receipt_of(made: TrialSet) -> Receipt | None:
    """The receipt that says when and how the trials of a group were recorded; its subject is their job. Two queries."""
    owner = layout.execution_uid(str(made.plan_version.uid)) if made.run is None else str(made.run.uid)
    job = Job.objects.filter(key=layout.trials_key(owner, made.purpose, made.ordinal)).values_list("uid", flat=True)
    uid = job.first()
    return Receipt.objects.filter(kind__in=RECORDED, subject_uid=str(uid)).first() if uid is not None else None
