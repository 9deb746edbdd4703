"""Addresses of the pages of figures."""

from __future__ import annotations

from django.urls import URLPattern, path

from evidence.views import figures

urlpatterns: list[URLPattern] = [
    path("figures/", figures.listing, name="figures"),
    path("figures/new/", figures.new, name="figure_new"),
    path("figures/search.json", figures.search, name="figure_search"),
    path("figures/check.json", figures.check, name="figure_check"),
    path("figures/<uuid:uid>/", figures.one, name="figure"),
    path("figures/<uuid:uid>/card/", figures.card, name="figure_card"),
    path("figures/<uuid:uid>/recompute/", figures.recompute_now, name="figure_recompute"),
]
