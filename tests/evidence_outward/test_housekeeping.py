"""What the scheduler does: once a minute, one failure apart from the others."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from evidence.models import JournalDay, SignedHead
from evidence.outward import housekeeping
from runs.actions.receipts import anchor_heads
from runs.models import Anchor
from tests.evidence_outward.conftest import World
from tests.evidence_outward.world import AT

LATER = AT + timedelta(days=1)
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def started_now() -> Iterator[None]:
    housekeeping.forget()
    yield
    housekeeping.forget()


def test_it_signs_and_drafts_once_a_minute(world: World) -> None:
    anchor_heads()
    housekeeping.tick(LATER, clock=lambda: 100.0)
    assert not Anchor.objects.filter(signatures__isnull=True).exists()
    assert JournalDay.objects.filter(day=AT.date()).count() == 1
    later = anchor_heads()
    housekeeping.tick(LATER, clock=lambda: 159.0)
    assert not SignedHead.objects.filter(anchor=later).exists()
    housekeeping.tick(LATER, clock=lambda: 160.0)
    assert SignedHead.objects.filter(anchor=later).count() == 1


def test_a_failure_does_not_hold_up_the_rest(world: World, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    def fail(**_: Any) -> int:
        raise RuntimeError("no signature today")

    monkeypatch.setattr(housekeeping, "sign_missing", fail)
    housekeeping.tick(LATER, clock=lambda: 100.0)
    assert JournalDay.objects.exists() and "no signature today" in caplog.text


def test_a_server_that_refuses_is_asked_again_ten_minutes_later(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    asked = []

    def refuse(**_: Any) -> None:
        asked.append(1)
        raise housekeeping.StampRefused("time stamp server: got no answer, expected one")

    monkeypatch.setattr(housekeeping, "stamp_newest", refuse)
    for now in (0.0, 60.0, 599.0, 600.0, 661.0):
        housekeeping.tick(LATER, clock=lambda now=now: now)
    assert len(asked) == 2
