"""The app of evidence: verification of everything stored."""

from __future__ import annotations

from django.apps import AppConfig


class EvidenceConfig(AppConfig):
    """Reads what ``runs`` has stored and rebuilds it from hashed bytes."""

    name = "evidence"
    default_auto_field = "django.db.models.BigAutoField"
