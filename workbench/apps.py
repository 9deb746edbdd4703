"""The project's own app: commands, templates' tags and translations."""

from __future__ import annotations

from django.apps import AppConfig


class WorkbenchConfig(AppConfig):
    name = "workbench"
    verbose_name = "Workbench"
