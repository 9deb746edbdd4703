"""Addresses of the layer pages and of their data."""

from __future__ import annotations

from typing import Any

from django.urls import path

from runs.views.layers import data, page

urlpatterns: list[Any] = [
    path("runs/<uuid:uid>/layers/", page.layers, name="layers"),
    path("runs/<uuid:uid>/layers/data.json", data.layer_json, name="layer_data"),
    path("runs/<uuid:uid>/layers/judge/", page.judge, name="reading_judge"),
    path("behind/<uuid:uid>/", page.behind, name="behind"),
    path("updates/<uuid:uid>/", page.update, name="update"),
]
