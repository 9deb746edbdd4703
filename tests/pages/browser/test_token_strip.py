"""The token strip in a real browser: hover, keyboard, shades, permalinks, phone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page

from tests.pages.browser.conftest import Site, Watched, eventually
from tests.pages.browser.test_every_page import PHONE
from tests.sweeps import sweep

pytestmark = pytest.mark.browser


def _open(watched: Watched, site: Site, extra: str = "") -> Page:
    page = watched.page
    page.goto(site.url("trajectory") + extra)
    page.locator("#tokens[data-ready]").wait_for(state="attached")
    return page


def _card(page: Page, name: str) -> str:
    return page.locator(f'#card [data-f="{name}"]').inner_text()


def test_hover_fills_the_card_and_a_click_keeps_it(site: Site, watched: Watched) -> None:
    page = _open(watched, site)
    trained = page.locator(".tok.trained")
    trained.nth(3).hover()
    assert _card(page, "fate") == "sampled, trained"
    assert re.fullmatch(r"−?\d+\.\d{4}", _card(page, "old"))
    trained.nth(5).click()
    index = trained.nth(5).get_attribute("data-i")
    trained.nth(8).hover()
    assert f"token {index} of" in _card(page, "where")
    assert page.url.endswith(f"#t{index}")
    assert page.locator(".turn.lit").count() == 1
    page.keyboard.press("Escape")
    assert page.locator("#card .card-empty").is_visible()
    assert watched.complaints == []


@pytest.mark.gate
def test_cut_tokens_say_that_they_carry_no_gradient(site: Site, watched: Watched) -> None:
    page = _open(watched, site)
    page.locator(".tok.cut").first.click()
    assert _card(page, "fate") == "sampled, cut by the mask: no gradient"
    assert _card(page, "weight") == "0 (cut by the mask)"
    assert _card(page, "clip") == "clip: does not apply"
    assert _card(page, "advantage").replace("−", "-") not in ("", "+0.0000", "-0.0000")
    page.locator(".tok.k1").first.click()
    assert _card(page, "fate") == "read, never trained"
    assert _card(page, "old") == "not recorded"
    assert page.locator(".tok.trained.cut").count() == 0
    assert page.locator(".tok.k0.trained, .tok.k1.trained, .tok.k0.cut, .tok.k1.cut").count() == 0


def test_arrow_keys_move_by_token_and_row_and_brackets_by_turn(site: Site, watched: Watched) -> None:
    page = _open(watched, site)
    page.locator(".tok").nth(10).click()
    page.keyboard.press("ArrowRight")
    assert page.url.endswith("#t11")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Home")
    assert page.url.endswith("#t0")
    page.keyboard.press("ArrowDown")
    second = page.locator(".tokrow").nth(1).get_attribute("data-start")
    assert page.url.endswith(f"#t{second}")
    page.keyboard.press("]")
    turn = page.locator('.tokrow[data-decision="1"]').first.get_attribute("data-start")
    assert page.url.endswith(f"#t{turn}")


@pytest.mark.gate
def test_brackets_change_the_slot_outside_the_strip(site: Site, watched: Watched) -> None:
    page = _open(watched, site)
    before = page.url
    key = "]" if page.locator('[data-key="next"]').count() else "["
    page.keyboard.press(key)
    page.wait_for_url(lambda url: url != before)


@pytest.mark.parametrize("shade", sweep(["advantage", "ratio", "entropy", "logprob"], 1))
def test_shades_colour_tokens_and_show_their_scale(site: Site, watched: Watched, shade: str) -> None:
    page = _open(watched, site)
    page.locator(f'button[data-shade="{shade}"]').click()
    assert page.locator('button[data-shade][aria-pressed="true"]').get_attribute("data-shade") == shade
    assert page.locator('[data-legend="scale"]').is_visible()
    assert page.locator('[class*="tok"][class*=" h"], [class*="tok"][class*=" l"]').count() > 0
    assert watched.complaints == []


def test_permalinks_open_a_token_and_a_turn(site: Site, watched: Watched) -> None:
    page = _open(watched, site, "#t12")
    assert "token 12 of" in _card(page, "where")
    assert page.locator(".tok.on").get_attribute("data-i") == "12"
    page.goto(site.url("trajectory") + "#d0")
    assert page.evaluate("document.querySelector(':target').id") == "d0"


@pytest.mark.gate
def test_step_buttons_show_ratio_one_at_the_first_step(site: Site, watched: Watched) -> None:
    page = _open(watched, site)
    page.locator(".tok.trained").nth(2).click()
    page.locator("button[data-step]").first.click()
    eventually(page, "document.querySelector('[data-f=ratio]').textContent === '1.0000'")


def test_fatal_marks_and_divergence_are_drawn(site: Site, watched: Watched) -> None:
    page = _open(watched, site)
    assert page.locator(".overview .fl").count() == 2
    assert page.locator(".fatalrow").count() == 2
    assert (
        page.locator(".parts", has_text="parts at").count() + page.locator(".parts", has_text="same tokens").count()
        == 3
    )


@pytest.mark.parametrize("context", [PHONE], indirect=True)
def test_phone_switches_between_conversation_and_tokens(site: Site, watched: Watched) -> None:
    page = _open(watched, site)
    assert not page.locator("#tokens").is_visible()
    page.locator('[data-view="tokens"]').tap()
    page.locator(".tok.trained").nth(1).tap()
    assert page.locator("#card .card-body").is_visible()
    page.get_by_role("link", name="Back to the turn").tap()
    assert page.locator(".conversation").is_visible()
    assert "Tokens, at" in page.locator('[data-view="tokens"]').inner_text()
    page.locator('[data-view="tokens"]').tap()
    assert page.locator(".tok.on").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("locale", sweep(["zh-CN", "en-GB"], 1))
def test_no_table_reaches_into_the_column_beside_it(site: Site, browser: Browser, locale: str) -> None:
    """The widths on both sides of each change of columns; a table wider than its panel covers the token card."""
    context = browser.new_context(locale=locale)
    try:
        page = context.new_page()
        page.goto(site.url("trajectory"))
        for width in (1242, 1280, 1300, 1398, 1402, 1440, 1100, 800, 390):
            page.set_viewport_size({"width": width, "height": 900})
            beyond = page.evaluate(
                """() => [...document.querySelectorAll('.panel table, .panel svg')].map(inner =>
                inner.getBoundingClientRect().right - inner.closest('.panel').getBoundingClientRect().right)"""
            )
            assert len(beyond) >= 2 and max(beyond) <= 1, (width, beyond)
    finally:
        context.close()


def test_what_an_edit_added_stands_apart_from_the_advantage(site: Site, watched: Watched) -> None:
    """A, C and A + C are three rows where the update had credit from edits, and one row where it had none."""
    page = watched.page
    page.goto(site.url("terminal_coefficients"))
    edits = page.locator(".term .termfacts a").first.get_attribute("href") or ""
    page.goto(site.url(edits.removesuffix("edits/")))
    page.locator("#tokens[data-ready]").wait_for(state="attached")
    data = page.evaluate("fetch(document.getElementById('tokens').dataset.url).then((r) => r.json())")
    start = next(s[0] for s in data["segments"] if s[2] >= 2 and s[3] == data["edit"]["selected"])
    page.locator(f'.tok[data-i="{start}"]').click()
    assert page.locator("#card [data-edit]:visible").count() == 2
    for name, value in (("advantage", data["advantage"]), ("edit", data["edit"]["chosen"])):
        assert float(_card(page, name).replace("−", "-")) == pytest.approx(value, abs=6e-5)
    assert _card(page, "used") == "not recorded"  # this world stores no trace
    _open(watched, site)
    page.locator(".tok.trained").first.click()
    assert page.locator("#card [data-edit]:visible").count() == 0
    assert watched.complaints == []
