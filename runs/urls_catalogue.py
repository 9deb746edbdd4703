"""Addresses of the plan editor and of the catalogue: task sets, environments, models."""

from __future__ import annotations

from typing import Any

from django.urls import path

from runs.views import controls
from runs.views.catalogue import editor, freeze, registry, tasks

_PLAN = "studies/<slug:study>/plans/<slug:plan>"

urlpatterns: list[Any] = [
    path("studies/<slug:study>/plans/new/", editor.new, name="plan_new"),
    path(f"{_PLAN}/edit/", editor.edit, name="plan_edit"),
    path(f"{_PLAN}/difference/", editor.difference, name="plan_difference"),
    path(f"{_PLAN}/freeze/", freeze.freeze, name="plan_freeze"),
    path(f"{_PLAN}/freeze/live/", freeze.freeze_live, name="plan_freeze_live"),
    path(f"{_PLAN}/freeze/inspect/", freeze.inspect, name="plan_inspect"),
    path(f"{_PLAN}/freeze/now/", freeze.do_freeze, name="plan_do_freeze"),
    path(f"{_PLAN}/start/", freeze.start, name="plan_start"),
    path(f"{_PLAN}/supersede/", freeze.supersede, name="plan_supersede"),
    path("task-sets/", tasks.task_sets, name="task_sets"),
    path("task-sets/<str:sha256>/", tasks.task_set, name="task_set"),
    path("tasks/<uuid:uid>/", tasks.task, name="task"),
    path("environments/", registry.environments, name="environments"),
    path("models/", registry.models, name="models"),
    path("controls/", controls.controls, name="controls"),
    path("controls/<uuid:uid>/", controls.one_controls, name="one_controls"),
]
