"""Comparison pages and the token strip's ranges, timeline and long sequences in a real browser."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Route

from tests.pages.browser.conftest import Site, Watched, eventually
from tests.pages.browser.test_every_page import PHONE

pytestmark = pytest.mark.browser
PLAN = "/studies/fatal-mask-pair/plans/small"
VIEWS = [pytest.param({}, id="desk"), pytest.param(PHONE, id="phone")]


def _runs(site: Site, watched: Watched) -> list[str]:
    page = watched.page
    page.goto(site.url("/compare/"))
    return [str(box.get_attribute("value")) for box in page.locator('form.chooser input[type="checkbox"]').all()]


@pytest.mark.gate
@pytest.mark.parametrize("context", VIEWS, indirect=True)
def test_no_complaint_and_no_overflow(site: Site, watched: Watched) -> None:
    page, chosen = watched.page, _runs(site, watched)[:3]
    pages = [
        f"{PLAN}/pairs/e2f/e3/",
        f"{PLAN}/lineage/",
        f"{PLAN}/discarded/",
        "/compare/",
        "/compare/?" + "&".join(f"run={uid}" for uid in chosen),
    ]
    page.goto(site.url(f"{PLAN}/lineage/"))
    pages.append(str(page.locator("[data-lineage] a[data-row]").last.get_attribute("href")))
    page.goto(site.url("group"))
    pages.append(str(page.locator('a[href*="/against/"]').first.get_attribute("href")))
    for name in pages:
        page.goto(site.url(name))
        page.wait_for_load_state("load")
        page.wait_for_timeout(250)
        width, inner = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert width <= inner, name
        assert watched.complaints == [], name
        assert page.locator("h1").count() == 1, name


def test_choosing_two_runs_leads_to_their_curves_over_tokens(site: Site, watched: Watched) -> None:
    page = watched.page
    page.goto(site.url("/compare/"))
    button = page.get_by_role("button", name="Compare", exact=True)
    assert button.is_disabled()
    for name in ("e3-s17", "e2f-s17"):
        page.locator("form.chooser li", has_text=name).locator("input").first.check()
    button.click()
    page.wait_for_url("**/compare/?run=*")
    page.locator('button[data-axis="tokens"]').click()
    chart = page.locator("[data-series]").first
    chart.scroll_into_view_if_needed()
    chart.locator(".main-svg").first.wait_for()
    assert chart.locator(".scatterlayer .trace").count() == 2
    assert "axis=tokens" in page.url
    assert watched.complaints == []


def test_lineage_is_walked_with_arrow_keys(site: Site, watched: Watched) -> None:
    page = watched.page
    page.goto(site.url(f"{PLAN}/lineage/"))
    page.locator('[data-lineage] a[data-row="-1"]').focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.dataset.row") == "0"
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.dataset.row") == "1"
    page.keyboard.press("Enter")
    page.wait_for_url("**/checkpoints/*/")
    assert watched.complaints == []


def _open(site: Site, watched: Watched, extra: str = "") -> None:
    watched.page.goto(site.url("trajectory") + extra)
    watched.page.locator("#tokens[data-ready]").wait_for(state="attached")


def test_a_range_has_an_address_within_its_decision(site: Site, watched: Watched) -> None:
    """Tokens 2 to 5 of decision 0 by its address; Shift and the arrow make it longer by one."""
    page = watched.page
    _open(site, watched, "#d0t2-5")
    start = int(str(page.locator('.tokrow[data-decision="0"]').first.get_attribute("data-start")))
    assert page.locator(".tok.in").count() == 4
    assert page.locator('[data-f="rangewhere"]').inner_text() == f"4 tokens, {start + 2} to {start + 5}"
    page.locator("[data-strip]").focus()
    page.keyboard.press("Shift+ArrowRight")
    assert page.locator(".tok.in").count() == 5 and page.url.endswith("#d0t2-6")
    page.keyboard.press("Escape")
    assert page.locator(".tok.in").count() == 0
    _open(site, watched, "#t1-3")
    assert page.locator(".tok.in").count() == 3
    assert watched.complaints == []


@pytest.mark.gate
def test_timeline_shows_lanes_of_the_slot_and_its_siblings(site: Site, watched: Watched) -> None:
    page = watched.page
    _open(site, watched)
    page.keyboard.press("v")
    assert page.locator(".lane a.lanename").count() == 3
    assert not page.locator(".conversation").is_visible()
    page.locator(".lanebar.own").first.click(position={"x": 40, "y": 8})
    assert page.locator("#card .card-body").is_visible()
    page.keyboard.press("v")
    assert page.locator(".conversation").is_visible()
    assert watched.complaints == []


def test_keys_change_the_shade_and_go_to_the_next_mark(site: Site, watched: Watched) -> None:
    page = watched.page
    _open(site, watched)
    page.keyboard.press("s")
    assert page.locator('button[data-shade="advantage"]').get_attribute("aria-pressed") == "true"
    page.keyboard.press("n")
    first = page.url
    page.keyboard.press("n")
    assert page.url != first
    page.locator('button[data-shade="mismatch"]').click()
    assert page.locator('[data-legend="scale"]').is_visible()


@pytest.mark.gate
def test_a_long_sequence_is_drawn_only_near_the_window(site: Site, watched: Watched) -> None:
    """20,000 more tokens in the first Observation: few cells exist, the last token is still reached by its address."""
    page, extra = watched.page, 20_000

    def longer(route: Route) -> None:
        data = json.loads(route.fetch().text())
        at = next(i for i, s in enumerate(data["segments"]) if s[2] == 1)
        cut = data["segments"][at][1]
        for name, filler in (("ids", 1), ("kinds", 1), ("texts", "x ")):
            data[name] = [*data[name][:cut], *[filler] * extra, *data[name][cut:]]
        data["segments"][at][1] += extra
        data["segments"] = [
            s if i <= at else [s[0] + extra, s[1] + extra, *s[2:]] for i, s in enumerate(data["segments"])
        ]
        data["policy"] = [i + extra if i >= cut else i for i in data["policy"]]
        data["engine"] = [[i + extra if i >= cut else i, v] for i, v in data["engine"]]
        for name in ("fatal_start", "fatal_confirmed"):
            data[name] = data[name] + extra if data[name] is not None and data[name] >= cut else data[name]
        data["n"] += extra
        route.fulfill(json=data)

    page.route(re.compile(r"/tokens\.json"), longer)
    _open(site, watched)
    page.wait_for_timeout(400)
    total = int(re.sub(r"\D", "", page.locator("[data-count]").inner_text()))
    assert total > extra and 0 < page.locator(".tok").count() < 8000
    page.locator("[data-strip]").focus()
    page.keyboard.press("End")
    eventually(page, "document.querySelector('.tok.on') !== null")
    assert page.locator(".tok.on").get_attribute("data-i") == str(total - 1)
    assert page.locator(".tok").count() < 8000
    page.locator('button[data-shade="entropy"]').click()
    assert watched.complaints == []


@pytest.mark.gate
@pytest.mark.parametrize("context", [PHONE], indirect=True)
def test_siblings_lead_to_the_first_difference_on_a_phone(site: Site, watched: Watched) -> None:
    page = watched.page
    _open(site, watched)
    page.locator("a.parts").first.tap()
    page.wait_for_url("**/against/**")
    assert page.locator("h1").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
