"""Addresses of the pages of figures."""

from __future__ import annotations

from django.urls import URLPattern, path

from evidence.views import figures

urlpatterns: list[URLPattern] = [
    path("figures/<uuid:uid>/", figures.one, name="figure"),
    path("figures/<uuid:uid>/card/", figures.card, name="figure_card"),
]
