"""The notes page and its editor in a real browser: keys, folds, storyboard, cards, paper, accessibility, binding."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, Page
from pypdf import PdfReader

from tests.pages.browser.conftest import Site, Watched, eventually, served
from tests.pages.browser.conftest import browser as browser
from tests.pages.browser.conftest import context as context
from tests.pages.browser.conftest import watched as watched

from .build import PASSWORD

pytestmark = pytest.mark.browser
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
VIEWS = [
    pytest.param({"color_scheme": "light"}, id="desk-light", marks=pytest.mark.gate),
    pytest.param({"color_scheme": "dark"}, id="desk-dark", marks=pytest.mark.gate),
    pytest.param({**PHONE, "color_scheme": "light"}, id="phone"),
]
SERIOUS = ("serious", "critical")
COVERED = """() => { const card = document.querySelector('.fig-card').getBoundingClientRect();
  return [...document.querySelectorAll('.margin li')].map(note => note.getBoundingClientRect()).filter(box => box.width
  && card.left < box.right && card.right > box.left && card.top < box.bottom && card.bottom > box.top).length; }"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The server in a process of its own; ended with the module."""
    with served("tests.evidence_notes.serve", tmp_path_factory) as found:
        yield found


@pytest.fixture
def page(watched: Watched, site: Site) -> Iterator[Page]:
    """The English page; nothing may complain about it until the test is over."""
    watched.page.goto(site.url("en"))
    yield watched.page
    assert watched.complaints == []


@pytest.mark.parametrize("context", VIEWS, indirect=True)
def test_nothing_serious_for_axe_and_nothing_wider_than_the_window(
    site: Site, watched: Watched, context: BrowserContext
) -> None:
    for name in ("en", "zh"):
        watched.page.goto(site.url(name))
        watched.page.locator("details").evaluate_all("all => all.forEach(item => { item.open = true; })")
        width, inner = watched.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert width <= inner, name
        found = Axe().run(watched.page).response["violations"]
        assert [(rule["id"], rule["nodes"][0]["html"]) for rule in found if rule["impact"] in SERIOUS] == []
    assert watched.complaints == []


def test_keys_go_from_section_to_section_and_the_contents_follow(page: Page) -> None:
    for wanted in ("why", "idea", "verify"):
        page.keyboard.press("j")
        eventually(page, "id => document.activeElement.id === id && location.hash === '#' + id", wanted)
        eventually(
            page, "id => document.querySelector('[data-contents][aria-current]')?.dataset.contents === id", wanted
        )
    page.keyboard.press("k")
    eventually(page, "() => location.hash === '#idea'")


def test_a_link_into_a_fold_opens_it(page: Page, site: Site) -> None:
    fold = page.locator("#milestones details")
    assert fold.get_attribute("open") is None
    page.locator('[data-contents="milestones"]').click()
    eventually(page, "() => document.querySelector('#milestones details').open")
    page.goto(site.url("en") + "#results-3-1-1")
    page.reload()
    eventually(page, "() => document.querySelector('#results details').open")


def test_the_storyboard_plays_when_asked_and_reads_without(page: Page) -> None:
    story = page.locator("[data-story]")
    assert story.locator(".still-text").count() == 4 and "playing" not in (story.get_attribute("class") or "")
    assert story.locator("[data-clock]").inner_text() == "0:00 / 0:40"
    page.wait_for_timeout(1200)
    assert story.locator("[data-clock]").inner_text() == "0:00 / 0:40", "nothing plays by itself"
    story.locator("[data-play]").click()
    eventually(page, "() => document.querySelector('[data-clock]').textContent !== '0:00 / 0:40'")
    story.locator("[data-play]").press("Enter")
    eventually(page, "() => !document.querySelector('[data-story]').classList.contains('playing')")


@pytest.mark.parametrize("context", [{"reduced_motion": "reduce"}], indirect=True)
def test_without_motion_the_storyboard_steps_from_still_to_still(page: Page) -> None:
    page.locator("[data-play]").click()
    eventually(page, "() => document.querySelector('[data-track] i').style.getPropertyValue('--done') === '1'")
    assert page.locator(".still.now").count() == 1


def test_a_hover_card_never_covers_a_margin_note(page: Page) -> None:
    chips = page.locator("#why a.chip:visible, #results a.chip:visible")
    assert chips.count() >= 4
    for at in range(chips.count()):
        chips.nth(at).focus()
        eventually(page, "() => document.querySelector('.fig-card')")
        assert page.evaluate(COVERED) == 0, chips.nth(at).inner_text()
        page.keyboard.press("Escape")


@pytest.mark.parametrize("context", [{**PHONE}], indirect=True)
def test_on_a_phone_sources_stand_as_footnotes_of_their_section(page: Page) -> None:
    notes = page.locator("#why .margin").bounding_box()
    prose = page.locator("#why .blocks").bounding_box()
    assert notes and prose and notes["y"] >= prose["y"] + prose["height"] - 1


def test_paper_unfolds_everything_and_keeps_no_controls(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "note.pdf"
    page.pdf(path=str(path), prefer_css_page_size=True, print_background=True)
    sheets = PdfReader(path)
    text = "\n".join(sheet.extract_text() for sheet in sheets.pages)
    assert float(sheets.pages[0].mediabox.width) == pytest.approx(595, abs=2), "A4"
    assert "were lost" in text and "Stopped" in text, "folds are open"
    assert "Play" not in text and "Print" not in text and "Contents" not in text
    assert page.locator("#milestones details").get_attribute("open") is None, "the screen is as it was"


def test_writing_binds_by_the_keyboard_and_shows_what_may_not_be_said(site: Site, watched: Watched) -> None:
    page = watched.page
    page.goto(site.url("/accounts/login/?next=" + site.addresses["edit"]))
    page.locator("#id_username").fill("mara")
    page.locator("#id_password").fill(PASSWORD)
    page.locator("#id_password").press("Enter")
    page.wait_for_url("**/edit/")
    page.locator(".part-tab").nth(1).click()
    area = page.locator('[id="f:sections.0.blocks.0.text.en"]')
    area.fill("")
    area.press_sequentially("It gained 12 points, [[pilot.sh")
    eventually(page, "() => document.querySelectorAll('#figure-picker [role=option]').length > 0")
    assert area.get_attribute("aria-activedescendant") == "figure-option-0"
    area.press("Enter")
    assert area.input_value() == "It gained 12 points, [[pilot.share]]"
    eventually(page, "() => document.querySelector('[data-live-faults] .refused')?.textContent.includes(\"'12'\")")
    area.fill("The share is [[pilot.share]].")
    eventually(page, "() => !document.querySelector('[data-live-faults] .refused')")
    page.locator('[name="reason"]').fill("shorter")
    page.get_by_role("button", name="Save as a new version").click()
    page.wait_for_url("**/notes/")
    assert "The share is 37.7 %" in page.locator("#why").inner_text()
    page.goto(site.url("versions"))
    assert "From version 1 to version 2" in page.content() and "shorter" in page.content()
    assert watched.complaints == []
