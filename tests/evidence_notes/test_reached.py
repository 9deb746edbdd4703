"""The pages of evidence are reached from the rail, the study, the first page and the search."""

from __future__ import annotations

import pytest
from django.test import Client

from evidence.models import Claim, Figure, Source
from runs.access import Principal
from runs.actions.studies import create_study
from runs.models import Study
from runs.presenters.search import find
from tests.evidence_notes.build import Desk

NOBODY = Principal(None)
PAGES = ("notes", "journal", "export")
SECTIONS = ("claims", "sources", "figures", "reviews", "stale")


def test_a_study_leads_to_its_evidence(desk: Desk, client: Client) -> None:
    text = client.get("/studies/pilot/").content.decode()
    main = text.split("<main")[1]
    assert all(f'href="/studies/pilot/{name}/"' in main for name in PAGES)
    assert all(f'href="/{name}/?study=pilot"' in main for name in SECTIONS)


def test_the_rail_leads_to_the_pages_of_the_chosen_study_only(desk: Desk, client: Client) -> None:
    rail = client.get("/studies/pilot/journal/").content.decode().split("</aside>")[0]
    assert all(f'href="/studies/pilot/{name}/"' in rail for name in PAGES)
    assert 'href="/studies/pilot/journal/" aria-current="page"' in rail
    create_study("other", title={"en": "Other"}, summary={}, by=desk.user, at=desk.tick(), visibility=Study.PUBLIC)
    rail = client.get("/claims/").content.decode().split("</aside>")[0]
    assert "/studies/pilot/notes/" not in rail and 'href="/stale/"' in rail


def test_the_card_of_a_study_leads_to_its_note(desk: Desk, client: Client) -> None:
    main = client.get("/").content.decode().split("<main")[1]
    assert all(f'href="/studies/pilot/{name}/"' in main for name in PAGES)


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("signal", "signal · pilot"),  # a key
        ("次有信号", "signal · pilot"),  # words of the claim
        ("pilot.md", "R1 pilot.md · pilot"),
        ("r2", "R2 paper.pdf · pilot"),
        ("先导记录", "R1 pilot.md · pilot"),
        ("pilot.usable", "pilot.usable · pilot"),
        ("abab", "paper.pdf · 1 · pilot"),  # the beginning of a hash
    ],
)
def test_the_search_finds_evidence(desk: Desk, query: str, name: str) -> None:
    assert name in [hit.name for hit in find(NOBODY, query)]


def test_uids_lead_to_their_pages(desk: Desk) -> None:
    for model, path in ((Claim, "claims"), (Source, "sources"), (Figure, "figures")):
        uid = str(model.objects.earliest("pk").uid)
        assert f"/{path}/{uid}/" in [hit.url for hit in find(NOBODY, uid)]


def test_hidden_evidence_is_not_found(desk: Desk) -> None:
    uid = str(Claim.objects.earliest("pk").uid)
    Study.objects.update(visibility="private")
    for query in ("signal", "pilot.md", "r2", "pilot.usable", "abab", uid):
        assert find(NOBODY, query) == []
