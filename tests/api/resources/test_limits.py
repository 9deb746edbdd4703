"""Rate limits: what is left is said, who is refused is told when to come again, reads and changes apart."""

from __future__ import annotations

import pytest

from runs.api.throttling import ReadThrottle, take
from tests.api.calls import Api
from tests.pages.state import World


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that stands still until a test moves it."""
    now = [1_000.0]
    monkeypatch.setattr("runs.api.throttling.Throttle.clock", staticmethod(lambda: now[0]))
    return now


def test_a_bucket_fills_steadily(clock: list[float]) -> None:
    """60 a minute: one each second. 60 at once, then none, then one after a second."""
    assert all(take("k", 60, 0.0)[0] for _ in range(60))
    allowed, left, wait = take("k", 60, 0.0)
    assert not allowed and left == 0 and wait == 1.0
    assert take("k", 60, 1.0) == (True, 0.0, 1.0)
    assert not take("k", 60, 1.5)[0] and take("k", 60, 2.0)[0]
    assert take("k", 60, 1_000.0)[1] == 59.0  # never more than a minute's


def test_answers_say_what_is_left(world: World, mara: Api, clock: list[float], settings: object) -> None:
    settings.API_RATES = {"read": 3, "change": 2}  # type: ignore[attr-defined]
    first = mara.get("runs")
    assert first["RateLimit-Policy"] == '"read";q=3;w=60' and first["RateLimit"] == '"read";r=2;t=20'
    mara.get("runs"), mara.get("me")
    refused = mara.get("runs")
    assert (
        refused.status_code == 429 and refused["Retry-After"] == "20" and refused["RateLimit"].startswith('"read";r=0')
    )
    changed = mara.post(f"plans/{world.plan.uid}/validate", {"text": "a: 1"})
    assert changed.status_code == 200 and changed["RateLimit"] == '"change";r=1;t=30'
    clock[0] += 20.0
    assert mara.get("runs").status_code == 200


def test_callers_have_buckets_of_their_own(
    world: World, mara: Api, caller: object, clock: list[float], settings: object
) -> None:
    settings.API_RATES = {"read": 1, "change": 1}  # type: ignore[attr-defined]
    assert mara.get("runs").status_code == 200 and mara.get("runs").status_code == 429
    assert caller("ivo").get("runs").status_code == 200  # type: ignore[operator]
    assert caller().get("runs").status_code == 200 and caller().get("runs").status_code == 429  # type: ignore[operator]


def test_a_refused_change_changes_nothing(world: World, mara: Api, clock: list[float], settings: object) -> None:
    settings.API_RATES = {"read": 9, "change": 1}  # type: ignore[attr-defined]
    body = {"slug": "limited-study", "title_en": "Limited"}
    assert mara.post(f"plans/{world.plan.uid}/validate", {"text": "a: 1"}).status_code == 200
    assert mara.post("studies", body, Idempotency_Key="k").status_code == 429
    clock[0] += 60.0
    assert mara.post("studies", body, Idempotency_Key="k").status_code == 201
    assert ReadThrottle.scope == "read"
