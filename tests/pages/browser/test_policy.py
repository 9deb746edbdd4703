"""No page sets a style that its own policy forbids: charts are hovered and zoomed, the plan editor is typed in."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.pages.browser.conftest import Site, Watched, sign_in

pytestmark = pytest.mark.browser
NEW = "/studies/fatal-mask-pair/plans/new/"
MARK = "(() => { const e = document.createElementNS('http://www.w3.org/2000/svg', 'text'); {} return e.style.fill; })()"


def _over_the_charts(page: Page, most: int = 6) -> int:
    """Point at places of the drawn charts, zoom into each and reset it; how many hover labels were seen."""
    seen = 0
    for chart in page.locator(".js-plotly-plot .nsewdrag").all()[:most]:
        chart.scroll_into_view_if_needed()
        box = chart.bounding_box()
        assert box is not None
        for at in range(12):
            page.mouse.move(box["x"] + box["width"] * (at + 0.5) / 12, box["y"] + box["height"] * (at % 4 + 0.5) / 4)
            page.wait_for_timeout(40)
            seen += page.locator(".hovertext").count()
        page.mouse.move(box["x"] + 5, box["y"] + 5)
        page.mouse.down()
        page.mouse.move(box["x"] + 80, box["y"] + 30, steps=3)
        page.mouse.up()
        page.mouse.dblclick(box["x"] + 30, box["y"] + 20)
        page.wait_for_timeout(150)
    return seen


POINT = """plot => {
  const { xaxis, yaxis, _size } = plot._fullLayout, trace = plot.data.find(t => t.x && t.x.length);
  const box = plot.getBoundingClientRect();
  return trace ? [box.x + _size.l + xaxis.d2p(trace.x[0]), box.y + _size.t + yaxis.d2p(trace.y[0])] : null;
}"""


def _bold_labels(page: Page) -> int:
    """Point at the first point of each drawn chart; how many of the labels have a bold word."""
    bold = 0
    for chart in page.locator(".js-plotly-plot").all()[:6]:
        chart.scroll_into_view_if_needed()
        place = chart.evaluate(POINT)
        if place is not None:
            page.mouse.move(place[0] + 40, place[1])
            page.mouse.move(*place, steps=4)
            page.wait_for_timeout(200)
            bold += page.locator(".hovertext tspan").evaluate_all(
                "all => all.filter(e => +getComputedStyle(e).fontWeight >= 600).length"
            )
    return bold


@pytest.mark.parametrize("name", ["run", "layers"])
def test_charts_keep_to_the_policy(site: Site, watched: Watched, name: str) -> None:
    page = watched.page
    sign_in(page, site, "rosa")
    page.goto(site.url(name))
    page.locator(".js-plotly-plot .nsewdrag").first.wait_for(state="attached")
    assert _over_the_charts(page) > 0
    assert _bold_labels(page) > 0 or name != "layers"
    assert watched.complaints == []


def test_the_plan_editor_keeps_to_the_policy(site: Site, watched: Watched) -> None:
    """A field that the reader made larger has a style of its own, which the answer's field takes over."""
    page = watched.page
    sign_in(page, site, "rosa")
    page.goto(site.url(NEW))
    page.locator("#new-name").fill("by-policy")
    page.get_by_role("button", name="Create the draft").click()
    page.wait_for_url("**/edit/")
    page.evaluate(
        "document.querySelectorAll('textarea, #form-pane, #problem-list').forEach(e => e.style.height = '90px')"
    )
    text = page.locator("#plan-text")
    for typed in ("a: 1", "b: [", "c"):
        with page.expect_response("**/edit/"):
            text.evaluate("e => { e.setSelectionRange(e.value.length, e.value.length); e.focus(); }")
            page.keyboard.type(f"\n{typed}")
            page.keyboard.press("Tab")
        page.wait_for_timeout(400)
    page.keyboard.press("Control+a")
    assert watched.complaints == []


def test_the_watch_sees_what_the_policy_forbids(site: Site, watched: Watched) -> None:
    """Markup with a style is refused and reported; a drawing's style set by a script is applied as a rule is."""
    page = watched.page
    page.goto(site.url("run"))
    set_style = MARK.replace("{}", "e.setAttribute('style', 'fill: red');")
    assert page.evaluate(set_style) == "red" and watched.complaints == []
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<p style=\"color: red\">x</p>')")
    page.wait_for_timeout(200)
    assert any("style-src" in text for text in watched.complaints)
