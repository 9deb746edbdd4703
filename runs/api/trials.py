"""Counterfactual trials: sets of groups, interventions of trajectories, executions with their timings."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from rest_framework.request import Request

from runs.access import get_visible, visible
from runs.api.base import DetailView, Filter, ListView, OfPlan
from runs.api.trial_serializers import (
    InterventionDetail,
    InterventionSerializer,
    TrialDetail,
    TrialSerializer,
    TrialSetSerializer,
)
from runs.models import Intervention, Trial, TrialSet
from workbench.contracts.trials import EXECUTE, KINDS, SELECT, STATUSES

PURPOSES, MODES = ("preflight", "train"), (EXECUTE, SELECT)


def trial_sets() -> QuerySet[TrialSet]:
    """Sets with what their representation reads."""
    return TrialSet.objects.select_related("group", "run")


def interventions() -> QuerySet[Intervention]:
    """Interventions with what their representation reads."""
    return Intervention.objects.select_related("trajectory", "trial_set__group", "trial_set__run")


def trials() -> QuerySet[Trial]:
    """Trials with what their representation reads."""
    return Trial.objects.select_related("trajectory", "trial_set__group", "trial_set__run")


class TrialSets(ListView):
    """Tried groups of visible studies."""

    tag, summary, serializer = "trials", "List tried groups", TrialSetSerializer
    filters = (
        Filter("run", "run__uid", "uuid"),
        OfPlan("plan", "plan_version__in", "uuid"),
        Filter("group", "group__uid", "uuid"),
        Filter("purpose", "purpose", choices=PURPOSES),
        Filter("mode", "mode", choices=MODES),
    )

    def rows(self, request: Request, **kwargs: Any) -> QuerySet[Any]:
        return visible(self.principal, trial_sets())


class OneTrialSet(DetailView):
    """One tried group."""

    tag, summary, serializer = "trials", "Read a tried group", TrialSetSerializer

    def find(self, request: Request, **kwargs: Any) -> Any:
        return get_visible(self.principal, trial_sets(), uid=kwargs["uid"])


class Interventions(ListView):
    """Interventions of visible studies, unavailable ones included."""

    tag, summary, serializer = "trials", "List interventions", InterventionSerializer
    filters = (
        Filter("run", "trial_set__run__uid", "uuid"),
        OfPlan("plan", "trial_set__plan_version__in", "uuid"),
        Filter("group", "trial_set__group__uid", "uuid"),
        Filter("purpose", "trial_set__purpose", choices=PURPOSES),
        Filter("status", "status", choices=STATUSES),
        Filter("min_difference", "difference__gte", "number"),
        Filter("max_difference", "difference__lte", "number"),
    )

    def rows(self, request: Request, **kwargs: Any) -> QuerySet[Any]:
        return visible(self.principal, interventions())


class OneIntervention(DetailView):
    """The intervention of a trajectory with its blocks and trials; 404 where its group was not tried."""

    tag, summary, serializer = "trials", "Read the intervention of a trajectory", InterventionDetail

    def find(self, request: Request, **kwargs: Any) -> Any:
        return get_visible(self.principal, interventions(), trajectory__uid=kwargs["uid"])


class Trials(ListView):
    """Trials of visible studies with their timings."""

    tag, summary, serializer = "trials", "List trials", TrialSerializer
    filters = (
        Filter("run", "trial_set__run__uid", "uuid"),
        OfPlan("plan", "trial_set__plan_version__in", "uuid"),
        Filter("group", "trial_set__group__uid", "uuid"),
        Filter("trajectory", "trajectory__uid", "uuid"),
        Filter("kind", "kind", choices=KINDS),
        Filter("complete", "complete", "boolean"),
    )

    def rows(self, request: Request, **kwargs: Any) -> QuerySet[Any]:
        return visible(self.principal, trials())


class OneTrial(DetailView):
    """One trial with its observations."""

    tag, summary, serializer = "trials", "Read a trial", TrialDetail

    def find(self, request: Request, **kwargs: Any) -> Any:
        return get_visible(self.principal, trials(), uid=kwargs["uid"])
