"""Addresses of the REST API of figures, under /api/v1/. No trailing slash."""

from __future__ import annotations

from django.urls import URLPattern, path

from evidence.api import figures

urlpatterns: list[URLPattern] = [
    path("excerpts", figures.Excerpts.as_view(), name="excerpts"),
    path("excerpts/<uuid:uid>", figures.OneExcerpt.as_view(), name="excerpt"),
    path("studies/<slug:slug>/excerpts", figures.CreateExcerpt.as_view(), name="excerpt_create"),
    path("figures", figures.Figures.as_view(), name="figures"),
    path("figures/<uuid:uid>", figures.OneFigure.as_view(), name="figure"),
    path("figures/<uuid:uid>/recompute", figures.Recompute.as_view(), name="figure_recompute"),
    path("studies/<slug:slug>/figures", figures.BindFigure.as_view(), name="figure_bind"),
    path("studies/<slug:slug>/figures/check", figures.CheckBinding.as_view(), name="figure_check"),
    path("studies/<slug:slug>/derivations/check", figures.CheckDerivation.as_view(), name="derivation_check"),
]
