"""Addresses of the lists that stand beside the sections, of the query language's help and of saved filters."""

from __future__ import annotations

from typing import Any

from django.urls import path

from runs.views import filters, lists

urlpatterns: list[Any] = [
    path("groups/", lists.groups, name="groups"),
    path("trajectories/", lists.trajectories, name="trajectories"),
    path("tasks/", lists.tasks, name="tasks"),
    path("query-language/", lists.language, name="query_language"),
    path("filters/save/", filters.save, name="filter_save"),
    path("filters/<int:pk>/", filters.apply, name="filter_apply"),
    path("filters/<int:pk>/delete/", filters.delete, name="filter_delete"),
]
