"""The app of evidence: what pages rest on, and verification of everything stored."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.db import transaction


class EvidenceConfig(AppConfig):
    """Reads what ``runs`` has stored and rebuilds it from hashed bytes; signs each anchor once it has committed."""

    name = "evidence"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Join the frame's counts and the search, sign each anchor, and make the key at the set-up of a home."""
        from django.db.models.signals import post_migrate, post_save

        from evidence.finding import find
        from evidence.frame import asks, counts
        from runs.models import Anchor
        from runs.presenters.frame import register_counts
        from runs.presenters.now import register_asks
        from runs.presenters.search import register_finder

        register_counts("evidence", counts)
        register_asks("evidence", asks)
        register_finder("evidence", find)
        post_save.connect(sign_on_commit, sender=Anchor, dispatch_uid="evidence.sign_anchor")
        post_migrate.connect(make_key, sender=self, dispatch_uid="evidence.signing_key")


def sign_on_commit(instance: Any, created: bool, **_: Any) -> None:
    """Sign a new anchor after its transaction; what fails here is signed by the next round of the scheduler."""
    if created:
        transaction.on_commit(lambda: _sign(instance), robust=True)


def _sign(anchor: Any) -> None:
    from django.utils import timezone

    from evidence.actions.signing import sign_anchor

    sign_anchor(anchor, at=timezone.now())


def make_key(**_: Any) -> None:
    """The key of this home, at its set-up."""
    from django.conf import settings

    from evidence.outward.keys import signing_key

    signing_key(settings.HOME)
