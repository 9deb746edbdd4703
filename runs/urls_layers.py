"""Addresses of the layer pages and of their data."""

from __future__ import annotations

from typing import Any

from django.urls import path

from runs.views.layers import data

urlpatterns: list[Any] = [
    path("runs/<uuid:uid>/layers/data.json", data.layer_json, name="layer_data"),
]
