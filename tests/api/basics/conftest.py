"""A world with one public study, a private one beside it, and callers with every kind of right."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from runs.actions.plans import ensure_study
from runs.actions.tokens import issue_token
from runs.models import Membership, Study, User
from tests.pages.world import World

AT = datetime(2026, 11, 1, tzinfo=UTC)


class Caller:
    """An HTTP client with a token; ``call`` gives (status, value, response)."""

    def __init__(self, user: User | None, scopes: tuple[str, ...] = ("read", "write")) -> None:
        self.client, self.headers = Client(), {}
        if user is not None:
            _, secret = issue_token(user, name="test", scopes=scopes, expires_at=None, at=timezone.now())
            self.headers["Authorization"] = f"Bearer {secret}"

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any, Any]:
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        given = {**self.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        response = self.client.generic(method, f"/api/v1/{path}", data, content_type="application/json", headers=given)
        content = b"".join(response.streaming_content) if response.streaming else response.content
        kind = response.headers.get("Content-Type", "")
        return response.status_code, json.loads(content) if "json" in kind else content, response

    def get(self, path: str, **headers: str) -> Any:
        status, value, _ = self.call("GET", path, **headers)
        assert status == 200, (path, status, value)
        return value


@pytest.fixture
def people(world: World, db: None) -> dict[str, User]:
    """A member of each role in the public study; ``stranger`` has none; ``site`` administers the site."""
    found = {}
    for role in ("viewer", "researcher", "reviewer", "worker", "admin"):
        found[role] = User.objects.create(username=role)
        Membership.objects.create(study=world.study, user=found[role], role=role)
    found["stranger"] = User.objects.create(username="stranger")
    found["site"] = User.objects.create(username="site", is_superuser=True)
    return found


@pytest.fixture
def callers(people: dict[str, User]) -> dict[str, Caller]:
    scopes = ("read", "write", "log", "review", "admin")
    return {"nobody": Caller(None), **{name: Caller(user, scopes) for name, user in people.items()}}


@pytest.fixture
def hidden(world: World) -> Study:
    """Make the world's study private."""
    Study.objects.filter(pk=world.study.pk).update(visibility=Study.PRIVATE)
    return world.study


@pytest.fixture
def other(world: World) -> Study:
    """A study that only its admin sees."""
    return ensure_study("other", title={"en": "Other"}, summary={"en": ""}, by=world.plan.study.created_by, at=AT)
