"""Events: none lost and none twice while others append, cursors, scopes, waiting."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.actions.actors import service_actor
from runs.actions.receipts import append_receipt
from runs.actions.tokens import revoke_token
from runs.api import events
from runs.api.events import Stream, decode, encode
from runs.api.problems import ApiProblem
from runs.models import ApiToken, Membership, Receipt, Study
from tests.api.calls import Api, fields
from tests.pages.state import World

Caller = Any


def follow(api: Api, scope: str, limit: int = 100) -> list[tuple[str, int]]:
    """(stream, seq) of all that is there."""
    seen: list[tuple[str, int]] = []
    cursor = ""
    while True:
        page = api.read(f"events?{scope}&limit={limit}{cursor}")
        seen += [(item["stream"], item["seq"]) for item in page["items"]]
        cursor = f"&cursor={page['cursor']}"
        if not page["more"]:
            return seen


@pytest.mark.parametrize("limit", [1, 2, 500])
def test_every_event_of_a_study_comes_once_and_in_its_streams_order(world: World, mara: Api, limit: int) -> None:
    seen = follow(mara, f"study={world.study.slug}", limit)
    streams = {item.name for item in events.streams_of(world.study)}
    rows = set(Receipt.objects.filter(stream__in=streams).values_list("stream", "seq"))
    assert set(seen) == rows and len(seen) == len(rows) > 5
    for stream in streams:
        assert [seq for name, seq in seen if name == stream] == sorted(seq for name, seq in rows if name == stream)


def test_scopes_nest(world: World, mara: Api) -> None:
    run = world.runs["e3-s17"]
    of_run = set(follow(mara, f"run={run.uid}"))
    of_execution = set(follow(mara, f"execution={world.execution.uid}"))
    of_plan = set(follow(mara, f"plan={world.plan.uid}"))
    assert of_run and of_run < of_execution < of_plan <= set(follow(mara, f"study={world.study.slug}"))


def test_from_now_skips_what_is_there_and_sees_what_comes(world: World, mara: Api) -> None:
    run = world.runs["e3-s17"]
    first = mara.read(f"events?run={run.uid}&from=now")
    assert first["items"] == [] and not first["more"]
    append_receipt(f"run:{run.uid}", "test", str(run.uid), {}, actor=service_actor("scheduler"), at=world.tick())
    after = mara.read(f"events?run={run.uid}&cursor={first['cursor']}")
    assert [item["kind"] for item in after["items"]] == ["test"]


def test_a_stream_that_begins_later_is_seen_from_its_first_event(world: World, mara: Api) -> None:
    quiet = world.runs["e3-s7"]
    cursor = mara.read(f"events?study={world.study.slug}&from=now")["cursor"]
    append_receipt(f"run:{quiet.uid}", "test", str(quiet.uid), {}, actor=service_actor("scheduler"), at=world.tick())
    found = mara.read(f"events?study={world.study.slug}&cursor={cursor}")["items"]
    assert [(item["stream"], item["seq"]) for item in found] == [(f"run:{quiet.uid}", 1)]


@pytest.mark.parametrize("cursor", ["x", "eA", "%00", "AAAA", "e30", "-" * 4000, "eJyrVspOrVSyUqpWKkvMKU0FAB3eBKU"])
def test_a_cursor_that_was_never_given_out_is_refused(world: World, mara: Api, cursor: str) -> None:
    response = mara.get(f"events?run={world.runs['e3-s17'].uid}&cursor={cursor}")
    assert response.status_code == 400 and fields(response) == ["cursor"]


@pytest.mark.parametrize(
    ("query", "field"),
    [("", "scope"), ("run={run}&study=fatal-mask-pair", "scope"), ("run=1", "run"), ("run={run}&wait=31", "wait"),
     ("run={run}&wait=-1", "wait"), ("run={run}&wait=1e9", "wait"), ("run={run}&limit=0", "limit"),
     ("run={run}&from=then", "from"), ("run={run}&since=1", "since")],
)  # fmt: skip
def test_wrong_parameters_are_named(world: World, mara: Api, query: str, field: str) -> None:
    response = mara.get("events?" + query.format(run=world.runs["e3-s17"].uid))
    assert response.status_code == 400 and fields(response) == [field]


def test_a_hidden_study_has_no_events(world: World, caller: Caller) -> None:
    type(world.study).objects.filter(pk=world.study.pk).update(visibility="private")
    for scope in (f"study={world.study.slug}", f"run={world.runs['e3-s17'].uid}", f"plan={world.plan.uid}"):
        assert caller("stranger").get(f"events?{scope}").status_code == 404


@given(
    st.dictionaries(st.tuples(st.sampled_from(["run", "plan", "study"]), st.integers(1, 10**6)), st.integers(1, 10**9))
)
def test_a_cursor_keeps_every_position(positions: dict[tuple[str, int], int]) -> None:
    streams = [Stream(kind, key, f"{kind}:{key}") for kind, key in positions]
    named = {f"{kind}:{key}": seq for (kind, key), seq in positions.items()}
    assert decode(encode(streams, named), streams) == named


def test_a_cursor_of_a_thousand_runs_fits_into_an_address() -> None:
    """Request lines of 4,094 bytes pass every server. Keys 1 apart, positions of 20 to 59."""
    streams = [Stream("run", key, f"run:{key}") for key in range(500, 1500)]
    text = encode(streams, {item.name: 20 + item.key % 40 for item in streams})
    assert len(text) < 1500
    with pytest.raises(ApiProblem):
        decode(text[:-8], streams)


def test_waiting_ends_in_time_and_gives_way_where_all_places_are_taken(
    world: World, mara: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = world.runs["e3-s17"]
    cursor = mara.read(f"events?run={run.uid}&from=now")["cursor"]
    begin = time.monotonic()
    assert mara.read(f"events?run={run.uid}&cursor={cursor}&wait=1")["items"] == []
    assert 0.9 < time.monotonic() - begin < 5
    monkeypatch.setattr(events, "WAITERS", threading.BoundedSemaphore(1))
    assert events.WAITERS.acquire(blocking=False)
    begin = time.monotonic()
    assert mara.read(f"events?run={run.uid}&cursor={cursor}&wait=20")["items"] == []
    assert time.monotonic() - begin < 2


def test_a_token_revoked_while_it_waits_gets_no_event(world: World, mara: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wait is where the token goes and the event comes; the answer is a refusal and not the event."""
    run = world.runs["e3-s17"]
    cursor = mara.read(f"events?run={run.uid}&from=now")["cursor"]

    def meanwhile(_: float) -> None:
        row = ApiToken.objects.get(user__username="mara", revoked_at=None)
        revoke_token(row, at=world.tick(), by=row.user)
        append_receipt(f"run:{run.uid}", "test", str(run.uid), {}, actor=service_actor("scheduler"), at=world.tick())

    monkeypatch.setattr(events.time, "sleep", meanwhile)
    assert mara.get(f"events?run={run.uid}&cursor={cursor}&wait=5").status_code == 401


def test_a_role_taken_while_it_waits_hides_the_event(world: World, mara: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    run = world.runs["e3-s17"]
    cursor = mara.read(f"events?run={run.uid}&from=now")["cursor"]

    def meanwhile(_: float) -> None:
        Membership.objects.filter(user__username="mara").delete()
        Study.objects.filter(pk=world.study.pk).update(visibility=Study.PRIVATE)
        append_receipt(f"run:{run.uid}", "test", str(run.uid), {}, actor=service_actor("scheduler"), at=world.tick())

    monkeypatch.setattr(events.time, "sleep", meanwhile)
    assert mara.get(f"events?run={run.uid}&cursor={cursor}&wait=5").status_code == 404
