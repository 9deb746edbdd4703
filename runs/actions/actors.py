"""Actors: who a transition or receipt names."""

from __future__ import annotations

from runs.models import Actor, User
from workbench.contracts.canonical import derive_uid


def service_actor(name: str) -> Actor:
    """The actor of a part of the system (``worker``, ``scheduler``); made on first use."""
    actor, _ = Actor.objects.get_or_create(
        uid=derive_uid(None, f"actor:service:{name}"),
        defaults={"kind": Actor.SERVICE, "family": "workbench", "name": name},
    )
    return actor


def person_actor(user: User) -> Actor:
    """The actor of a login; made on first use. Raises ``ValueError`` for an anonymous user."""
    if user.pk is None:
        raise ValueError(f"user: got {user!r} without a row, expected a stored user")
    username = user.get_username()
    actor, _ = Actor.objects.get_or_create(
        uid=derive_uid(None, f"actor:person:{username}"),
        defaults={"kind": Actor.PERSON, "family": "person", "name": username, "user": user},
    )
    return actor
