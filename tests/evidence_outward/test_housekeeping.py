"""What the scheduler does: once a minute, one failure apart from the others."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction

from evidence.models import JournalDay, SignedHead
from evidence.outward import housekeeping
from runs.actions.actors import service_actor
from runs.actions.receipts import anchor_heads, append_receipt
from runs.models import Anchor, StreamHead
from tests.evidence_outward.conftest import World
from tests.evidence_outward.world import AT
from workbench.contracts.canonical import parse_canonical

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
    later = anchor_heads()  # unsigned, as by a process that died
    housekeeping.tick(LATER, clock=lambda: 159.0)
    assert not SignedHead.objects.filter(anchor=later).exists()
    housekeeping.tick(LATER, clock=lambda: 160.0)
    assert SignedHead.objects.filter(anchor=later).count() == 1


def test_it_anchors_what_has_grown_and_nothing_else(world: World) -> None:
    """A receipt that is in no anchor is anchored and signed by the next tick; a tick without one adds none."""
    for now in (0.0, 60.0):  # what the first tick itself wrote is anchored by the second at the latest
        housekeeping.tick(LATER, clock=lambda now=now: now)
    before = Anchor.objects.count()
    housekeeping.tick(LATER, clock=lambda: 160.0)
    assert Anchor.objects.count() == before
    with transaction.atomic():
        append_receipt("people", "actor.family", None, {"family": "house"}, actor=service_actor("evidence"), at=LATER)
    housekeeping.tick(LATER, clock=lambda: 220.0)
    last = Anchor.objects.order_by("-seq").first()
    assert last is not None and Anchor.objects.count() == before + 1
    assert SignedHead.objects.filter(anchor=last).count() == 1
    head = StreamHead.objects.get(stream="people")
    assert ["people", head.seq, head.sha256] in parse_canonical(bytes(last.bytes))["heads"]


def test_a_failure_does_not_hold_up_the_rest(world: World, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    def fail(**_: Any) -> int:
        raise RuntimeError("no signature today")

    monkeypatch.setattr(housekeeping, "anchor_now", fail)
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
