"""The app of studies, plans, runs and their records."""

from __future__ import annotations

from django.apps import AppConfig
from django.core import checks
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate


class RunsConfig(AppConfig):
    """Installs the append-only guards for every app."""

    name = "runs"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from workbench import db  # its model base needs the loaded registry

        connection_created.connect(db.on_connection_created, dispatch_uid="workbench.recursive_triggers")
        post_migrate.connect(db.on_post_migrate, dispatch_uid="workbench.append_only_triggers")
        checks.register(db.check_triggers, checks.Tags.database)
        checks.register(db.check_protect, checks.Tags.models)
