"""A client that speaks to the real application in this process, over a scripted study; waiting does the work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.conf import settings as django_settings
from django.core.cache import cache
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_finished, request_started
from django.db import close_old_connections

from runs.actions.tokens import issue_token
from runs.models import Execution, Membership, Study, User
from tests.runs.scripted import AT, Lab
from tests.runs.scripted import lab as lab
from tests.runs.test_advance import ALONE
from workbench.client import Workbench, following

Connect = Callable[..., Workbench]


@pytest.fixture
def connect(db: None, monkeypatch: pytest.MonkeyPatch, settings: Any) -> Iterator[Connect]:
    """``connect("mara", "researcher")``: a client of a member of the study; without a name: nobody's."""
    cache.clear()
    settings.ALLOWED_HOSTS = [*django_settings.ALLOWED_HOSTS, "server"]
    monkeypatch.setattr(following, "WAIT_SECONDS", 0)
    made: list[Workbench] = []
    for signal in (request_started, request_finished):  # they would close the test's own transaction
        signal.disconnect(close_old_connections)

    def make(name: str = "", role: str = Membership.RESEARCHER) -> Workbench:
        secret = ""
        if name:
            user, _ = User.objects.get_or_create(username=name)
            for study in Study.objects.all():
                Membership.objects.get_or_create(study=study, user=user, role=role)
            secret = issue_token(user, name="test", scopes=("read", "write"), expires_at=None, at=AT)[1]
        http = httpx.Client(transport=httpx.WSGITransport(app=WSGIHandler(), raise_app_exceptions=True))
        client = Workbench("http://server", secret, http=http)
        made.append(client)
        return client

    yield make
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)
    for client in made:
        client.close()


@pytest.fixture
def started(db: None, lab: Lab) -> Execution:
    """An execution that has done nothing yet: one arm, no probe groups."""
    return lab.start(**ALONE)


@pytest.fixture
def closed(lab: Lab, started: Execution) -> Execution:
    """The same at its end."""
    lab.drive(started)
    assert started.state == "closed"
    return started


@pytest.fixture
def part(tmp_path: Path) -> Path:
    """A folder for downloads."""
    return tmp_path / "downloads"
