"""The run page in a real browser: charts, live fragment, scroll and zoom."""

from __future__ import annotations

import pytest

from tests.pages.browser.conftest import Site, Watched, eventually

pytestmark = pytest.mark.browser


def test_charts_are_drawn_with_their_caption(site: Site, watched: Watched) -> None:
    page = watched.page
    page.goto(site.url("run"))
    chart = page.locator("[data-chart]").first
    chart.scroll_into_view_if_needed()
    chart.locator(".main-svg").first.wait_for()
    assert "shown" in chart.locator("[data-caption]").inner_text()
    assert (chart.locator("[data-caption]").get_attribute("title") or "").startswith("sha256 ")
    assert watched.complaints == []


def test_live_fragment_keeps_scroll_and_an_open_explanation(site: Site, watched: Watched) -> None:
    """Two polls go by: the verdict is swapped, the place and the opened details stay."""
    page = watched.page
    polls: list[str] = []
    page.on("response", lambda r: polls.append(r.url) if r.url.endswith("/live/") else None)
    page.goto(site.url("run"))
    page.get_by_text("How this sentence is made").click()
    page.evaluate("window.scrollTo(0, 700)")
    page.evaluate("document.getElementById('run-live').dataset.old = '1'")
    eventually(page, "!document.getElementById('run-live').dataset.old")
    page.wait_for_timeout(2500)
    assert len(polls) >= 2
    assert page.evaluate("scrollY") == 700
    assert page.locator("details.how[open]").count() == 1
    assert page.locator("#run-progress").count() == 1
    assert watched.complaints == []


@pytest.mark.gate
def test_polling_pauses_while_the_tab_is_hidden(site: Site, watched: Watched) -> None:
    page = watched.page
    page.add_init_script("Object.defineProperty(document, 'hidden', { get: () => window.pretendHidden === true })")
    polls: list[str] = []
    page.on("request", lambda r: polls.append(r.url) if r.url.endswith("/live/") else None)
    page.goto(site.url("run"))
    page.evaluate("window.pretendHidden = true")
    page.wait_for_timeout(500)
    before = len(polls)
    page.wait_for_timeout(4500)
    assert len(polls) == before
    page.evaluate("window.pretendHidden = false; document.dispatchEvent(new Event('visibilitychange'))")
    page.wait_for_timeout(1000)
    assert len(polls) > before


def test_a_cell_of_the_step_bar_opens_its_group(site: Site, watched: Watched) -> None:
    page = watched.page
    page.goto(site.url("run"))
    page.locator(".stepbar a").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/groups/*/")
    first = page.url
    page.keyboard.press("]")
    page.wait_for_url(lambda url: url != first)
    assert "/groups/" in page.url


def test_an_address_that_an_mlflow_client_prints_opens_the_logged_run(site: Site, watched: Watched) -> None:
    page, address = watched.page, site.url("logged")
    run_id = address.rstrip("/").rpartition("/")[2].replace("-", "")
    page.goto(site.url(f"/#/experiments/8/runs/{run_id}"))
    page.wait_for_url(address)
    page.goto(site.url("/#/experiments/8"))
    page.wait_for_url("**/logged/")
    page.goto(site.url("/#/experiments/8/runs/none"))
    page.locator("#now-live").wait_for()
    assert page.url.endswith("/#/experiments/8/runs/none") and watched.complaints == []
