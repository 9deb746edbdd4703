"""Actors: who a transition or receipt names."""

from __future__ import annotations

from runs.models import Actor, User
from workbench.contracts.canonical import derive_uid

SERVICE_FAMILY = "workbench"
OWN_FAMILY = "person"  # nobody said of which family the person is: they are one of their own


def service_actor(name: str) -> Actor:
    """The actor of a part of the system (``worker``, ``scheduler``); made on first use."""
    actor, _ = Actor.objects.get_or_create(
        uid=derive_uid(None, f"actor:service:{name}"),
        defaults={"kind": Actor.SERVICE, "family": SERVICE_FAMILY, "name": name},
    )
    return actor


def person_actor(user: User, family: str = OWN_FAMILY) -> Actor:
    """The actor of a login; made on first use, with its family for good. Raises ``ValueError`` for an anonymous user.

    ``family``: people of one family are not independent of each other in a review.
    """
    if user.pk is None:
        raise ValueError(f"user: got {user!r} without a row, expected a stored user")
    username = user.get_username()
    actor, _ = Actor.objects.get_or_create(
        uid=derive_uid(None, f"actor:person:{username}"),
        defaults={"kind": Actor.PERSON, "family": family, "name": username, "user": user},
    )
    return actor
