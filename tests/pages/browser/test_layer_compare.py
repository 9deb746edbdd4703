"""Comparison over layers in a browser: cards come when looked at, keep their table, redraw in another theme."""

from __future__ import annotations

import pytest

from tests.pages.browser.conftest import Site, Watched

pytestmark = pytest.mark.browser


def test_card_is_fetched_drawn_and_redrawn(site: Site, watched: Watched) -> None:
    page = watched.page
    page.goto(site.url("layers_side"))
    card = page.locator("[data-quantity]").first
    card.scroll_into_view_if_needed()
    card.locator(".main-svg").first.wait_for()
    assert card.locator(".scatterlayer .trace").count() == 2
    rows = card.locator("table.ends tbody tr")
    assert rows.count() == 2 and "no spread: one run each" in rows.nth(1).inner_text()
    assert "6 of 6 points shown" in card.inner_text()
    before = card.locator(".scatterlayer .trace path.js-line").first.evaluate("node => node.style.stroke")
    page.locator("[data-theme-switch]").click()
    page.wait_for_function(
        "before => document.querySelector('[data-quantity] .trace path.js-line').style.stroke !== before", arg=before
    )
    link = card.locator(".exports a").first
    with page.expect_download() as waiting:
        link.click()
    assert waiting.value.suggested_filename.endswith(".csv")
    assert watched.complaints == []


def test_axis_is_in_the_address(site: Site, watched: Watched) -> None:
    page = watched.page
    page.goto(site.url("layers_side"))
    page.locator(".layeraxis a", has_text="generated tokens").click()
    page.wait_for_url("**axis=tokens**")
    card = page.locator("[data-quantity]").first
    card.scroll_into_view_if_needed()
    card.locator(".main-svg").first.wait_for()
    assert "generated tokens" in (card.locator(".xtitle").text_content() or "")
    assert watched.complaints == []
