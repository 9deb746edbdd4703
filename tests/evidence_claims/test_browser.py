"""An author's session in a real browser: what a sentence may not say is said while one writes it."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.evidence_reviews.test_browser import sign_in, status
from tests.evidence_reviews.test_browser import site as site
from tests.pages.browser.conftest import Site, Watched
from tests.pages.browser.conftest import browser as browser
from tests.pages.browser.conftest import context as context
from tests.pages.browser.conftest import watched as watched

pytestmark = pytest.mark.browser


def serious(page: Page) -> list[str]:
    """Findings of axe-core of impact serious or critical on the page that is open."""
    rules = Axe().run(page).response["violations"]
    return [
        f"{page.url} {rule['id']}: {node['target']}"
        for rule in rules
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


def test_a_claim_is_written_linked_and_never_raised(site: Site, watched: Watched) -> None:
    page = watched.page
    sign_in(page, site, "author")
    page.goto(site.url("/claims/"))
    page.get_by_role("link", name="New claim").click()
    page.locator("#key").fill("written-here")
    page.locator("#text_en").fill("The mask improves recovery to 13/27.")
    live = page.locator("#live-en")
    live.get_by_text("“improves” claims an improvement").wait_for()
    assert live.get_by_text("/figures/new/").count() >= 1
    page.get_by_label("description").check()
    page.get_by_role("button", name="Write the claim").click()
    page.locator("#text_en-error").wait_for()
    assert page.locator("#text_en").input_value() == "The mask improves recovery to 13/27."
    assert page.locator("#key").input_value() == "written-here"
    page.wait_for_timeout(600)  # the live check has had its time: what was refused stands once
    assert page.get_by_text("“improves” claims an improvement").count() == 1 and live.locator("li").count() == 0
    page.locator("#text_en").press("End")
    page.locator("#text_en").press_sequentially(" Now.")
    live.get_by_text("“improves” claims an improvement").wait_for()
    assert page.locator("#text_en-error").count() == 0

    page.locator("#text_en").fill("{{name:E3}} recovered in [[recovery.e3]] paired tasks.")
    live.locator("li").first.wait_for(state="detached")
    page.get_by_role("button", name="Write the claim").click()
    page.wait_for_url("**/claims/*-*/")
    assert page.locator(".claimtext").inner_text() == "E3 recovered in 13/27 paired tasks."
    assert status(page) == "not established"

    page.locator("#evidence").fill("excerpt:recovery")
    page.locator("#reach_en").fill("It says nothing of correctness.")
    page.get_by_role("button", name="Link it").click()
    page.get_by_text("Linked. It waits in the review queue.").wait_for()
    assert status(page) == "partly"
    assert page.locator(".linktext mark").first.inner_text().startswith("Successful recovery")

    page.get_by_text("Set the status by hand").click()
    words = page.locator("#form-lower .choices label").all_inner_texts()
    assert "supported" not in {word.strip() for word in words} and "not established" in {word.strip() for word in words}
    page.locator("#form-lower").get_by_text("not established").click()
    page.locator("#lower-reason").fill("The note is thin.")
    page.get_by_role("button", name="Set it").click()
    page.get_by_text("Set. A receipt was written.").wait_for()
    assert status(page) == "not established"
    assert page.get_by_text("A person lowered it: “The note is thin.”").is_visible()
    found: list[str] = []
    address = page.url.partition("#")[0]
    for path in (address, "/claims/", f"{address}revise/"):
        page.goto(path if path.startswith("http") else site.url(path))
        found += serious(page)
    page.set_viewport_size({"width": 390, "height": 844})
    for path in ("/claims/", address):
        page.goto(path if path.startswith("http") else site.url(path))
        assert page.evaluate("document.documentElement.scrollWidth") == 390, path
        found += serious(page)
    assert found == []


def test_two_brackets_search_what_a_sentence_can_bind(site: Site, watched: Watched) -> None:
    """By keys alone; and the button that writes the claim is in sight before anything is scrolled, on a phone too."""
    page = watched.page
    sign_in(page, site, "author")
    page.goto(site.url("/claims/"))
    page.get_by_role("link", name="New claim").click()
    field = page.locator("#text_en")
    field.press_sequentially("Recovered in [[recov")
    chosen = page.locator('.picker [role="option"][aria-selected="true"]')
    chosen.wait_for()
    field.press("Enter")
    assert field.input_value().startswith("Recovered in [[recovery.") and field.input_value().endswith("]]")
    assert page.locator(".picker").is_hidden()
    write = page.get_by_role("button", name="Write the claim")
    for width, height in ((1440, 900), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate("scrollTo(0, 0)")
        box = write.bounding_box()
        assert box is not None and box["y"] + box["height"] <= height
        assert page.evaluate("document.documentElement.scrollWidth") == width
    assert watched.complaints == []
