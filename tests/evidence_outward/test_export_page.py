"""The page of exports: what it says, who may download, and that what comes down holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from evidence.outward import download
from evidence.outward.check import verify_bundle
from evidence.outward.download import require_export
from runs.access import Principal
from runs.actions.studies import create_study
from runs.errors import NotAllowed
from runs.models import Membership, Study, User
from tests.evidence_outward.conftest import World
from workbench.contracts.canonical import sha256_hex

pytestmark = pytest.mark.django_db
PAGE = "/studies/scripted/export/"


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def researcher(world: World) -> Client:
    return signed_in(world.made["author"])


def content(response: Any) -> bytes:
    return b"".join(response.streaming_content)


def test_the_page_says_what_each_export_holds(world: World, researcher: Client) -> None:
    text = researcher.get(PAGE).content.decode()
    for words in (
        "export-study scripted --bundle",
        "--ro-crate",
        "--site",
        "verify-bundle",
        "heads export",
        "prml export",
    ):
        assert words in text
    assert "csrfmiddlewaretoken" in text


def test_a_downloaded_bundle_holds(world: World, researcher: Client, tmp_path: Path) -> None:
    response = researcher.post(f"{PAGE}bundle/")
    data = content(response)
    assert response["X-Data-SHA256"] == sha256_hex(data) and response["Content-Length"] == str(len(data))
    assert "scripted.bundle" in response["Content-Disposition"]
    (tmp_path / "bundle").write_bytes(data)
    assert verify_bundle(tmp_path / "bundle").ok


@pytest.mark.parametrize("form", ["crate", "site"])
def test_folders_come_as_zips(world: World, researcher: Client, form: str) -> None:
    response = researcher.post(f"{PAGE}{form}/")
    assert content(response)[:2] == b"PK" and f"scripted.{form}.zip" in response["Content-Disposition"]


def test_an_unknown_form_and_a_limit_are_refused(world: World, researcher: Client, settings: Any) -> None:
    assert "expected one of" in researcher.post(f"{PAGE}other/", follow=True).content.decode()
    settings.EXPORT_BYTES_LIMIT = 10
    for form in ("bundle", "crate", "site"):
        assert "expected at most 10" in researcher.post(f"{PAGE}{form}/", follow=True).content.decode()


def test_one_export_at_a_time(world: World, researcher: Client) -> None:
    with download._one_at_a_time():
        assert "being built" in researcher.post(f"{PAGE}bundle/", follow=True).content.decode()


def test_who_may(world: World) -> None:
    """A viewer sees the page of a public study and may not export; nobody is sent to sign in; GET builds nothing."""
    viewer = User.objects.create(username="vera")
    Membership.objects.create(study=world.study, user=viewer, role=Membership.VIEWER)
    client = signed_in(viewer)
    assert "Needs a role" in client.get(PAGE).content.decode()
    assert client.post(f"{PAGE}bundle/").status_code == 403
    assert content(signed_in(world.made["reader"]).post(f"{PAGE}bundle/"))[:2] == b"PK"
    nobody = Client()
    assert nobody.get(PAGE).status_code == 200 and nobody.post(f"{PAGE}bundle/").status_code == 302
    assert client.get(f"{PAGE}bundle/").status_code == 405
    world.study.visibility = "private"
    world.study.save()
    assert nobody.get(PAGE).status_code == 404 and client.get("/studies/nothing/export/").status_code == 404


def test_the_page_asks_few_questions(world: World, researcher: Client, django_assert_max_num_queries: Any) -> None:
    with django_assert_max_num_queries(45):
        researcher.get(PAGE)


def test_csrf_is_needed(world: World) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(world.made["author"])
    assert client.post(f"{PAGE}bundle/").status_code == 403


def test_a_researcher_beside_private_studies_is_told_what_to_do(world: World, researcher: Client) -> None:
    """Another person's private study with one receipt: bundle and crate are refused with a way out, the site is not."""
    owner = User.objects.create_user("owner", password="correct horse battery")
    create_study("hidden", title={"en": "Hidden"}, summary={}, by=owner, at=timezone.now())
    page = researcher.get(PAGE).content.decode()
    assert page.count("You cannot download it: its anchors name and count") == 2
    assert page.count("Ask a site admin to download it on this page, or to run the command beside it") == 2
    assert f'action="{PAGE}site/"' in page and f'action="{PAGE}bundle/"' not in page
    for form, command in (("bundle", "--bundle FILE"), ("crate", "--ro-crate FOLDER")):
        answer = researcher.post(f"{PAGE}{form}/")
        assert answer.status_code == 403
        with pytest.raises(NotAllowed, match=rf"manage.py export-study scripted {command} and send you the file"):
            require_export(Principal(world.made["author"]), Study.objects.get(slug="scripted"), form)
    site = researcher.post(f"{PAGE}site/")
    assert site.status_code == 200 and content(site)[:2] == b"PK"
