"""Evaluation of a frozen plan as n of N, by checkpoint, condition and split."""

from __future__ import annotations

from typing import Any

from django.db.models import Avg, Count
from django.http import Http404
from rest_framework import serializers as s
from rest_framework.request import Request
from rest_framework.response import Response

from runs.access import get_visible
from runs.api.base import ApiView, check_parameters
from runs.api.plans import rows_of_plans
from runs.api.serializers import NumberOrNull
from runs.models import EvaluationItem, PlanVersion
from runs.presenters.evaluation import OUTCOMES, planned_items


class RateSerializer(s.Serializer[Any]):
    """n of N. ``of`` 0: no case to count, which is no 0 %."""

    n = s.IntegerField()
    of = s.IntegerField()


class CellSerializer(s.Serializer[Any]):
    """One checkpoint at one condition and split. ``run``, ``arm``, ``seed`` null: the parent."""

    checkpoint_sha256 = s.CharField()
    run = s.UUIDField(allow_null=True)
    arm = s.CharField(allow_null=True)
    seed = s.CharField(allow_null=True)
    condition = s.CharField()
    split = s.CharField()
    planned = s.IntegerField(help_text="items that the plan asks for")
    stored = s.IntegerField(help_text="items that exist")
    reward = NumberOrNull(allow_null=True, help_text="mean over items with a reward")
    tool_depth = NumberOrNull(allow_null=True)
    rates = s.DictField(child=RateSerializer())


class CellsSerializer(s.Serializer[Any]):
    """Every cell of a frozen version."""

    sha256 = s.CharField()
    cells = CellSerializer(many=True)


KEYS = {
    "checkpoint_sha256": "checkpoint__sha256",
    "run": "run__uid",
    "arm": "run__arm__key",
    "seed": "run__seed",
    "condition": "condition",
    "split": "split",
}


def cells_of_version(version: PlanVersion) -> list[dict[str, Any]]:
    """Counts of every evaluated checkpoint. One query."""
    measures: dict[str, Any] = {
        "stored": Count("pk"),
        "mean_reward": Avg("trajectory__reward_total"),
        "depth": Avg("trajectory__tool_depth"),
    }
    for key, _word, numerator, denominator in OUTCOMES:
        measures[f"n_{key}"] = Count("pk", filter=numerator & denominator)
        measures[f"of_{key}"] = Count("pk", filter=denominator) if denominator else Count("pk")
    rows = EvaluationItem.objects.filter(plan_version=version).values(*KEYS.values()).annotate(**measures)
    planned = planned_items(version)
    return [
        {
            **{name: row[column] for name, column in KEYS.items()},
            "planned": planned.get((row["condition"], row["split"]), 0),
            "stored": row["stored"],
            "reward": row["mean_reward"],
            "tool_depth": row["depth"],
            "rates": {key: {"n": row[f"n_{key}"], "of": row[f"of_{key}"]} for key, *_ in OUTCOMES},
        }
        for row in rows.order_by(*KEYS.values())
    ]


class Cells(ApiView):
    """Cells of a plan's frozen version."""

    tag, summary, serializer = "evaluations", "Evaluation of a plan as n of N", CellsSerializer

    def get(self, request: Request, **kwargs: Any) -> Response:
        """404 for a draft."""
        check_parameters(request, ())
        plan = get_visible(self.principal, rows_of_plans(), uid=kwargs["uid"])
        if plan.current_version is None:
            raise Http404("plan: it is a draft, which has no evaluation")
        found = {"sha256": plan.current_version.sha256, "cells": cells_of_version(plan.current_version)}
        return Response(CellsSerializer().to_representation(found))
