"""Addresses of comparison pages: pairs, runs side by side, lineage, discarded work."""

from __future__ import annotations

from typing import Any

from django.urls import path

from runs.views.compare import discarded, divergence, lineage, pairs, runs

_PLAN = "studies/<slug:study>/plans/<slug:plan>"

urlpatterns: list[Any] = [
    path(f"{_PLAN}/pairs/<str:a>/<str:b>/", pairs.pair, name="pair"),
    path(f"{_PLAN}/discarded/", discarded.of_plan, name="plan_discarded"),
    path("runs/<uuid:uid>/discarded/", discarded.of_run, name="run_discarded"),
    path("compare/", runs.compare, name="compare"),
    path("compare/series/<slug:key>.json", runs.series, name="compare_series"),
    path(f"{_PLAN}/lineage/", lineage.of_plan, name="lineage"),
    path("checkpoints/<uuid:uid>/", lineage.checkpoint, name="checkpoint"),
    path("trajectories/<uuid:uid>/against/<uuid:other>/", divergence.divergence, name="divergence"),
]
