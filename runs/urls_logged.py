"""Addresses of runs from elsewhere, of the table of metrics, of comparisons over layers and of exports."""

from __future__ import annotations

from typing import Any

from django.urls import path

from runs.views.layers import compare, export
from runs.views.logged import definitions, rollouts, run

urlpatterns: list[Any] = [
    path("logged/", run.logged, name="logged"),
    path("logged/<uuid:uid>/", run.logged_run, name="logged_run"),
    path("logged/<uuid:uid>/files/<path:file>", run.logged_file, name="logged_file"),
    path("logged/<uuid:uid>/rollouts/<uuid:rollout>/", rollouts.rollout, name="logged_rollout"),
    path("metrics-table/", definitions.metrics_table, name="metrics_table"),
    path("layers/compare/", compare.layers_compare, name="layers_compare"),
    path("layers/compare/<slug:key>/card/", compare.compare_card, name="layers_compare_card"),
    path("layers/compare/<slug:key>.<slug:kind>", export.compare_export, name="layers_compare_export"),
    path("runs/<uuid:uid>/layers/export/<slug:key>.<slug:kind>", export.card_export, name="card_export"),
]
