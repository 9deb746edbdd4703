"""The static site: whole, local, without forms, in both languages."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from evidence.actions.journal import add_note, draft_day
from evidence.models import Claim, Figure
from evidence.outward.archive import BundleError
from evidence.outward.localise import localise
from evidence.outward.site import write_site
from tests.evidence_outward.conftest import World
from tests.evidence_outward.world import AT

pytestmark = pytest.mark.django_db


class Links(HTMLParser):
    """Addresses and ids of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.ids: set[str] = set()
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if name in ("href", "src", "action"):
                self.addresses.append(value or "")
            if name == "id":
                self.ids.add(value or "")


def read(path: Path) -> Links:
    links = Links()
    links.feed(path.read_text())
    return links


@pytest.fixture
def site(world: World, tmp_path: Path) -> Path:
    acting: dict[str, Any] = world.made["acting"]
    draft_day(world.study, AT.date(), **acting)
    add_note(world.study, AT.date(), "The pilot kept [[pilot.usable]] groups.", "en", **acting)
    write_site(world.study, tmp_path / "site")
    return tmp_path / "site"


def test_every_address_is_a_file_beside_it(site: Path) -> None:
    pages = sorted(site.glob("*.html"))
    assert {"index.html", "claims.en.html", "claims.zh.html", "figures.en.html", "sources.zh.html"} <= {
        page.name for page in pages
    }
    found = {page.name: read(page) for page in pages}
    for name, links in found.items():
        for address in links.addresses:
            parts = urlsplit(address)
            assert not parts.scheme and not parts.netloc and not parts.path.startswith("/"), (name, address)
            if parts.path:
                assert (site / parts.path).is_file(), (name, address)
            if parts.fragment:
                assert parts.fragment in found[parts.path or name].ids, (name, address)
        assert not links.tags & {"form", "iframe", "dialog"}


def test_style_sheets_find_their_fonts(site: Path) -> None:
    for sheet in (site / "static/css").glob("*.css"):
        for name in re.findall(r'url\("\.\./([^"]+)"\)', sheet.read_text()):
            assert (site / "static" / name).is_file()


def test_pages_say_what_the_study_says(site: Path) -> None:
    figures, claims = (site / "figures.en.html").read_text(), (site / "claims.zh.html").read_text()
    for figure in Figure.objects.exclude(current__value=None).select_related("current"):
        assert f'id="{figure.uid}"' in figures and figure.current.value in figures
    assert str(Claim.objects.get().uid) in claims and "组给出信号" in claims
    assert "The pilot kept" in (site / "journal.en.html").read_text()
    assert 'lang="zh-Hans"' in claims


def test_no_trajectory_label_or_secret_leaves(site: Path, world: World) -> None:
    text = "".join(page.read_text() for page in site.glob("*.html"))
    assert "csrf" not in text and "PRIVATE" not in text and "Question 0?" not in text


def test_a_folder_that_holds_something_is_refused(world: World, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(BundleError, match="holds files"):
        write_site(world.study, tmp_path)


def test_a_page_that_is_made_local() -> None:
    page = (
        '<!doctype html><p><a href="/claims/11111111-1111-4111-8111-111111111111/">one</a>'
        '<a href="/claims/22222222-2222-4222-8222-222222222222/">two</a><a href="https://else.where/">three</a>'
        '<a href="#here">four</a><link rel="stylesheet" href="/static/css/a.css"><form action="/x"><b>five</b></form>'
        '<script src="https://else.where/x.js"></script><script>alert(1)</script>&lt;six&gt;</p>'
    )
    text, files = localise(page, "en", {"11111111-1111-4111-8111-111111111111"})
    assert 'href="claims.en.html#11111111-1111-4111-8111-111111111111"' in text and "<a>two</a><a>three</a>" in text
    assert 'href="#here"' in text and "five" not in text and "alert" not in text and "&lt;six&gt;" in text
    assert files == {"css/a.css"}
