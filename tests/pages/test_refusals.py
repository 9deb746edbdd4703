"""Refusals of plans, runs, people, logs and queries on Chinese pages: made in English, read by patterns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import override

from runs.actions.plans import parse_plan_text
from runs.models import LogImport, Membership, Trajectory
from runs.presenters import patterns
from runs.presenters.catalogue.problems import in_words
from runs.presenters.catalogue.wordings import WORDINGS
from runs.presenters.refusals import REFUSALS
from runs.presenters.told import told
from tests.pages import elsewhere
from tests.pages.catalogue_people import client_of, draft, member, posted
from tests.pages.refusals import CHINESE, english_in, muted, refusals_in
from tests.pages.state import World
from tests.refusals import literal_refusals

REFUSING = ("DomainError", "StaleTransition", "StaleDraft", "NotAllowed", "AlreadyFrozen", "DraftExists", "StudyExists",
            "SourceChanged", "RunDeleted", "ParameterChanged")  # fmt: skip
OF_WORKERS = ("record_", "advance", "jobs.py", "closure", "receipts.py", "documents.py", "tombstones")
ACTIONS = [path for path in sorted(Path("runs/actions").glob("*.py")) if not path.name.startswith(OF_WORKERS)]
STUDY, MINE = "/studies/fatal-mask-pair/", "/studies/fatal-mask-pair/plans/mine/"
WRONG = """
study: other
name: another
title: {en: t}
seeds: ["1", "1", "x"]
rollout: {group_size: 99, sampling: {temperature: 0.5, top_p: 0.5}, group: 3}
arms:
- {key: "a b", title: {en: ""}, role: gated}
- {key: c, title: {en: ""}, role: context, overrides: {nothing: 3}}
evaluation: {splits: [{split: test, tasks: 1}, {split: test, tasks: 1}], repeats: 1000}
"""


@pytest.fixture
def chinese(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with muted(monkeypatch), override("zh-hans"):
        yield


@pytest.fixture
def admin(world: World, db: None) -> Client:
    """Researcher and admin of the study, and of the whole site."""
    user = member(world.study, Membership.RESEARCHER, "ying")
    Membership.objects.get_or_create(study=world.study, user=user, role=Membership.ADMIN)
    user.set_password("correct horse battery")
    user.is_superuser = True
    user.save()
    cache.clear()  # the rate limits of asking for a password
    client = client_of(user)
    client.post("/accounts/reauthenticate/", {"password": "correct horse battery", "next": "/users/"})
    return client


def _seen(client: Client, address: str, data: dict[str, Any]) -> list[str]:
    """The refusals of the page that answers."""
    answer = client.post(address, data, headers=CHINESE, follow=True)
    assert answer.status_code in (200, 400, 409, 422), (address, answer.status_code)
    return refusals_in(answer.content.decode())


@pytest.mark.parametrize("listed", [REFUSALS, WORDINGS])
def test_each_is_read_by_its_own_pattern(monkeypatch: pytest.MonkeyPatch, listed: tuple[str, ...]) -> None:
    """Filled with plain values, it is read by itself and by none before it, with every value kept."""
    monkeypatch.setattr(patterns, "gettext", lambda message: f"「{message}」")
    for message in listed:
        filled = patterns.HOLE.sub(r"x\1y", message)
        assert patterns.read(listed, filled, lambda _name, value: value) == f"「{filled}」"


def test_every_refusal_of_an_action_has_a_pattern(chinese: None) -> None:
    texts = set(literal_refusals(ACTIONS, REFUSING, ": "))
    assert len(texts) > 60
    assert sorted(text for text in texts if told(text) == text) == []


def test_what_nobody_knows_stays_and_english_readers_see_it_as_it_was_made(chinese: None) -> None:
    assert told("recomputed by hand") == "recomputed by hand"
    with override("en"):
        assert told("run e3: it is not paused") == "run e3: it is not paused"


def test_plans(world: World, admin: Client, chinese: None) -> None:
    frozen = f"{STUDY}plans/{world.plan.slug}/"
    plan = draft(world)
    asked = [
        (f"{STUDY}plans/new/", {"name": "a b", "start": "minimal"}),
        (f"{STUDY}plans/new/", {"name": "mine", "start": "minimal"}),
        (f"{frozen}edit/", {"do": "save", "yaml": "a: 1", "revision": "1"}),
        (f"{MINE}edit/", {"do": "save", "yaml": "a: \0", "revision": "1"}),
        (f"{MINE}edit/", {"do": "check", "yaml": "a: 1\na: 2", "revision": "1"}),
        (f"{MINE}edit/", {"do": "check", "yaml": WRONG, "base": WRONG, "revision": "1"}),
        (f"{MINE}edit/", {"do": "check", "revision": "1", **posted(
            plan.draft_text, parse_plan_text(plan.draft_text), rollout__sampling__temperature="0.5",
            runtime__shard_rows="1",
        )}),
        (f"{frozen}freeze/inspect/", {}), (f"{frozen}freeze/now/", {}), (f"{MINE}freeze/now/", {"sha256": "a"}),
        (f"{MINE}start/", {}), (f"{MINE}supersede/", {"reason": "a"}), (f"{MINE}supersede/", {"reason": "为什么"}),
    ]  # fmt: skip
    _none_in_english(admin, asked)


def _none_in_english(client: Client, asked: list[tuple[str, dict[str, Any]]]) -> None:
    for address, data in asked:
        seen = _seen(client, address, data)
        assert re.search("[一-鿿]", "".join(seen)), (address, data)
        assert english_in(seen) == [], (address, data)


def test_runs(world: World, admin: Client, chinese: None) -> None:
    run = world.runs["e3-s17"]
    slot = Trajectory.objects.filter(group__run=run, status="valid").order_by("pk")[0]
    ask = reverse("runs:branch_ask", args=[slot.uid])
    asked = [
        (f"/runs/{run.uid}/{verb}/", {}) for verb in ("resume", "pause", "pause", "cancel", "cancel", "pause")
    ] + [
        (ask, {"decision": "a", "continuations": "b"}),
        (ask, {"decision": "99", "continuations": "4"}),
        (ask, {"decision": "0", "continuations": "999"}),
        (reverse("runs:reading_judge", args=[run.uid]), {"rule": "x", "verdict": "confirmed", "reason": "因为"}),
    ]  # fmt: skip
    seen = [_seen(admin, address, data) for address, data in asked]
    assert all(texts for texts in seen) and english_in([text for texts in seen for text in texts]) == []


def test_people_and_tokens(world: World, admin: Client, chinese: None) -> None:
    people, taken = f"{STUDY}people/", {"slug": "fatal-mask-pair", "title_en": "T", "visibility": "private"}
    asked = [
        (f"{people}add/", {"user": "谁", "role": "viewer"}), (f"{people}add/", {"user": "ying", "role": "king"}),
        (f"{people}remove/", {"user": "ying", "role": "worker"}),
        (f"{people}remove/", {"user": "ying", "role": "admin"}),
        (f"{STUDY}visibility/", {"visibility": "x"}), ("/studies/new/", taken),
        ("/studies/new/", {**taken, "slug": "A"}), ("/studies/new/", {**taken, "slug": "fresh", "title_en": ""}),
        ("/account/tokens/", {"name": "", "scopes": ["read"], "expiry": "90"}),
        ("/account/tokens/", {"name": "t", "scopes": [], "expiry": "90"}),
        ("/account/tokens/", {"name": "t", "scopes": ["read"], "expiry": "1"}),
        ("/users/new/", {"name": "a b"}), ("/users/new/", {"name": "Ying"}),
        ("/users/new/", {"name": "noa", "family": "a b"}),
    ]  # fmt: skip
    _none_in_english(admin, asked)


@pytest.mark.parametrize("query", [
    "is:nonsense", "foo:bar", "sort:x", "created:when", "reward:high", '"open', "sha:z", "arm:", "x " * 31,
])  # fmt: skip
def test_queries_and_saved_filters(world: World, admin: Client, query: str) -> None:
    """The search language speaks through the catalogue itself."""
    page = admin.get("/trajectories/", {"q": query}, headers=CHINESE).content.decode()
    seen = refusals_in(page)
    assert seen and english_in([text.replace(query, "") for text in seen]) == []


def test_saving_a_filter(world: World, admin: Client, chinese: None) -> None:
    save = reverse("runs:filter_save")
    _none_in_english(admin, [
        (save, {"page": "runs", "query": '"open', "name": "n"}), (save, {"page": "x", "query": "a", "name": "n"}),
        (save, {"page": "runs", "query": "a", "name": ""}), (save, {"page": "runs", "query": "", "name": "n"}),
    ])  # fmt: skip


def test_imports_and_lost_bytes(world: World, admin: Client, chinese: None) -> None:
    head = elsewhere.imported(world.study, timezone.now(), [elsewhere.item(1)])
    error = "source: got 'a.jsonl' no longer in its place, expected it unchanged"
    LogImport.objects.filter(run=head.run).update(state=LogImport.FAILED, error=error)
    page = admin.get(reverse("runs:logged_run", args=[head.run.uid]), headers=CHINESE).content.decode()
    seen = [text for text in refusals_in(page) if "a.jsonl" in text]
    assert seen and english_in(seen) == []
    assert told(f"blob: got no file for {'a' * 64}, expected it in the store").startswith("译")


def test_validator_words(chinese: None) -> None:
    """What the validator says, where no page of these tests provokes it."""
    for text in ("a section, since arm e4 needs it", "at most 3 tasks of split test", "non-empty text"):
        assert english_in([in_words(text)]) == []


def test_english_is_found() -> None:
    """The look for English sees a sentence, and no list of names."""
    page = '<ul class="messages"><li>run e3: it is not paused</li></ul><ul class="messages"><li>a, bc, de</li></ul>'
    assert english_in(refusals_in(page)) == ["it is not paused"]
