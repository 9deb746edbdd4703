"""Addresses of the pages about counterfactual trials."""

from __future__ import annotations

from typing import Any

from django.urls import path

from runs.views.trials import blocks, coefficients, log, study

_PLAN = "studies/<slug:study>/plans/<slug:plan>"

urlpatterns: list[Any] = [
    path(f"{_PLAN}/edit-credit/", study.edit_credit, name="edit_credit"),
    path(f"{_PLAN}/trials/", log.trials, name="trials"),
    path("trajectories/<uuid:uid>/edits/", blocks.edits, name="edits"),
    path("updates/<uuid:uid>/edit-credit/", coefficients.coefficients, name="coefficients"),
]
