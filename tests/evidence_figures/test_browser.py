"""Hover cards and the binding form in a real browser, with pointer, keyboard and finger."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from tests.pages.browser.conftest import Site, Watched, served
from tests.pages.browser.conftest import browser as browser
from tests.pages.browser.conftest import context as context
from tests.pages.browser.conftest import watched as watched

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server on a study with four figures."""
    with served("tests.evidence_figures.serve", tmp_path_factory) as found:
        yield found


def sign_in(page: Page, site: Site, then: str) -> None:
    """Through the sign-in page to an address."""
    page.goto(site.url(f"/accounts/login/?next={then}"))
    page.locator("#id_username").fill("ada")
    page.locator("#id_password").fill("correct horse battery")
    page.locator("#id_password").press("Enter")
    page.wait_for_url(f"**{then}")


def test_a_card_opens_by_pointer_and_by_focus_and_closes(site: Site, watched: Watched) -> None:
    """Value, denominator, derivation and state; Escape closes it, and the link leads to the figure."""
    page = watched.page
    sign_in(page, site, site.addresses["pilot.share"])
    card, chip = page.locator(".fig-card"), page.locator("a.chip[data-key='pilot.usable']").first
    chip.hover()
    card.wait_for()
    assert "Of 244 usable rows 92 were nonzero" in card.inner_text() and "244" in card.inner_text()
    assert chip.get_attribute("aria-describedby") == "fig-card"
    box, window = card.bounding_box(), page.viewport_size
    assert box is not None and window is not None and box["x"] >= 0 and box["x"] + box["width"] <= window["width"]
    page.keyboard.press("Escape")
    card.wait_for(state="detached")
    chip.focus()
    card.wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{site.addresses['pilot.usable']}")
    assert watched.complaints == []


def test_the_form_says_what_it_would_bind(site: Site, watched: Watched) -> None:
    """A number that does not stand there is said at once; the right one is bound, and its page opens."""
    page = watched.page
    sign_in(page, site, "/figures/new/")
    page.locator("[name=key]").fill("pilot.typed")
    page.locator("[name='excerpt.excerpt']").fill("counts")
    page.locator("[name='excerpt.number']").fill("93")
    page.locator("[data-live-trouble][data-wrong]").wait_for()
    assert "of which the excerpt holds 0" in page.locator("[data-live-trouble]").inner_text()
    page.get_by_label("a derivation over figures").check()
    assert page.locator("[data-panel=excerpt]").is_hidden()
    page.locator("[name='derivation.expression']").fill("usable - nonzero")
    page.locator("[name='derivation.operands']").fill("usable = pilot.usable\nnonzero = pilot.nonzero")
    page.locator("[data-live-shown]").get_by_text("152", exact=True).wait_for()
    assert page.locator("[data-live-unit]").inner_text() == "rows"
    page.locator("[name=title_en]").fill("The rest")
    page.get_by_role("button", name="Bind the figure").click()
    page.wait_for_url("**/figures/*-*/")
    assert page.locator(".figure-large").inner_text().split() == ["152", "rows"]
    assert watched.complaints == []


@pytest.mark.parametrize("context", [{"viewport": {"width": 390, "height": 844}, "has_touch": True}], indirect=True)
def test_a_finger_opens_the_card_first(site: Site, watched: Watched) -> None:
    """The first tap shows the card and stays on the page; the second one follows the link."""
    page = watched.page
    here = site.addresses["pilot.share"]
    sign_in(page, site, here)
    chip = page.locator("a.chip[data-key='pilot.nonzero']").first
    chip.tap()
    page.locator(".fig-card").wait_for()
    assert page.url.endswith(here)
    chip.tap()
    page.wait_for_url(f"**{site.addresses['pilot.nonzero']}")
