"""The rail: whose sections are whose, and how many queries the first page makes for people in many studies."""

from __future__ import annotations

import re

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from runs.actions.studies import create_study
from runs.models import Membership, Study, User
from tests.pages.state import World

STUDY = "/studies/fatal-mask-pair/"


def _found(person: User, number: int) -> None:
    """Studies that the person founds and reviews, up to a number of them."""
    for n in range(number):
        if not Study.objects.filter(slug=f"other-{n}").exists():
            study = create_study(f"other-{n}", title={"en": "Other"}, summary={}, by=person, at=timezone.now())
            Membership.objects.create(study=study, user=person, role=Membership.REVIEWER)


def _rail(client: Client, address: str) -> tuple[list[str], dict[str, int | None]]:
    """Headings of the rail as they stand, and counts by address."""
    answer = client.get(address)
    nav = answer.context["frame"].nav
    text = answer.content.decode()
    rail = text.split('<nav class="nav"')[1].split("</nav>")[0]
    shown = re.findall(r'<span class="label">([^<]+)</span><a href="([^"]+)"', rail)
    headings = [(str(item.heading), str(item.url)) for item in nav if item.heading]
    assert shown == headings
    return [heading for heading, _url in headings], {str(item.url): item.count for item in nav}


def test_one_study_needs_no_headings(signed_in: Client, world: World) -> None:
    assert _rail(signed_in, STUDY)[0] == []


def test_a_page_of_one_study_says_which_counts_are_of_all(signed_in: Client, person: User, world: World) -> None:
    """Above the second heading nothing is counted and every link leads into the study; below it, counts are of all."""
    _found(person, 2)
    headings, counts = _rail(signed_in, STUDY)
    assert headings == ["In this study", "In all studies"]
    nav = signed_in.get(STUDY).context["frame"].nav
    border = next(at for at, item in enumerate(nav) if str(item.heading) == "In all studies")
    assert border >= 4 and all(item.count is None and str(item.url).startswith(STUDY) for item in nav[:border])
    assert not any(str(item.url).startswith(STUDY) for item in nav[border:])
    assert counts == {**counts, **{url: n for url, n in _rail(signed_in, "/runs/")[1].items() if n is not None}}
    assert _rail(signed_in, "/runs/")[0] == []  # a page of all studies: its heading is All studies


def _queries(client: Client, address: str) -> int:
    client.get(address)  # what a process looks up once
    with CaptureQueriesContext(connection) as queries:
        assert client.get(address).status_code == 200
    return len(queries)


def test_the_first_page_asks_no_more_for_people_in_many_studies(signed_in: Client, person: User, world: World) -> None:
    _found(person, 2)
    few = _queries(signed_in, "/"), _queries(signed_in, "/plans/")
    _found(person, 14)
    assert (_queries(signed_in, "/"), _queries(signed_in, "/plans/")) == few


def test_writable_studies_are_those_of_a_role_that_writes(signed_in: Client, person: User, world: World) -> None:
    """A reviewer's study is none of them."""
    _found(person, 1)
    stranger = User.objects.create(username="stranger")
    seen = create_study("seen", title={"en": "Seen"}, summary={}, by=stranger, at=timezone.now())
    Membership.objects.create(study=seen, user=person, role=Membership.REVIEWER)
    assert [row.slug for row in signed_in.get("/").context["writable"]] == ["fatal-mask-pair", "other-0"]
