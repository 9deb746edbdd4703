"""A reviewer's session in a real browser: take the queue, look, dispute, see the claim fall, answer, accept."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from tests.pages.browser.conftest import Site, Watched, eventually, served
from tests.pages.browser.conftest import browser as browser
from tests.pages.browser.conftest import context as context
from tests.pages.browser.conftest import watched as watched

pytestmark = pytest.mark.browser
PASSWORD = "correct horse battery"


@pytest.fixture
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server on a study of its own: what one test records the next does not find."""
    with served("tests.evidence_reviews.serve", tmp_path_factory) as found:
        yield found


def sign_in(page: Page, site: Site, name: str) -> None:
    """Through the sign-in page to the queue; whoever was signed in before is signed out."""
    page.context.clear_cookies()
    page.goto(site.url("/accounts/login/?next=/reviews/"))
    page.locator("#id_username").fill(name)
    page.locator("#id_password").fill(PASSWORD)
    page.locator("#id_password").press("Enter")
    page.wait_for_url("**/reviews/")


def status(page: Page) -> str:
    """The status that the scale marks."""
    return page.locator(".scale [aria-current=true] > span").inner_text().split(",")[0].strip()


def test_a_dispute_from_the_queue_to_the_acceptance(site: Site, watched: Watched) -> None:
    """lea disputes the first link, the author answers, lea accepts: partly, not established, supported."""
    page = watched.page
    sign_in(page, site, "lea")
    page.get_by_role("button", name="Take the next item").click()
    page.wait_for_url(f"**{site.addresses['link']}")
    page.get_by_text("reserved to you until").wait_for()
    assert status(page) == "partly"
    box = page.locator("#sourcetext")
    assert page.locator("mark[data-quote='1']").is_visible() and box.locator("li.marked").first.inner_text()
    assert page.locator("mark.bound").all_inner_texts() == ["1/27", "13/27"]

    page.get_by_role("radio", name="Dispute").click()
    assert page.get_by_role("button", name="Record dispute, go to next").is_visible()
    assert "status falls to not established" in page.locator("[data-foretold-now]").inner_text()
    page.locator("#reason").fill("Say whether it is all tasks or exposed tasks.")
    page.get_by_label("the quotation", exact=True).check()
    page.get_by_label("the section around it").check()
    page.get_by_role("button", name="Record dispute, go to next").click()
    page.get_by_text("Recorded: dispute, independent. Claim stress-recovery: not established.").wait_for()
    assert "/reviews/link:" in page.url and site.addresses["link"] not in page.url

    page.goto(site.url("claim"))
    assert status(page) == "not established"
    assert page.get_by_text("lea disputes it: “Say whether").is_visible()

    sign_in(page, site, "author")
    page.get_by_role("link", name="1 dispute to answer").click()
    page.get_by_role("link", name="Dispute to answer", exact=True).click()
    page.get_by_label("Answer").fill("All paired tasks; the next sentence of the note says so.")
    page.get_by_role("button", name="Answer").click()
    page.get_by_text("answered, waits for an acceptance").wait_for()
    assert status(page) == "not established"

    sign_in(page, site, "lea")
    page.goto(site.url("link"))
    page.get_by_text("reserved to you until").wait_for()
    assert page.get_by_text("All paired tasks; the next sentence").is_visible()
    page.keyboard.press("1")
    page.keyboard.type("It does: the same paragraph keeps them apart.")
    page.get_by_label("the quotation", exact=True).check()
    page.get_by_role("button", name="Record accept, go to next").click()
    page.get_by_text("Recorded: accept, independent. Claim stress-recovery: supported.").wait_for()
    page.goto(site.url("claim"))
    assert status(page) == "supported"
    assert page.get_by_text("superseded by a later review").is_visible()
    assert watched.complaints == []


def test_keys_walk_the_queue_and_the_quotations(site: Site, watched: Watched) -> None:
    page = watched.page
    sign_in(page, site, "lea")
    page.goto(site.url("link"))
    first = page.url
    page.keyboard.press("n")
    eventually(page, "document.activeElement.dataset.quote === '2'")
    assert "2 of 2" in page.locator("[data-quote-place]").inner_text()
    page.keyboard.press("o")
    page.wait_for_url("**?whole=1")
    assert page.locator("#sourcetext li").count() == 28
    page.keyboard.press("o")
    page.wait_for_url(first + "**")
    page.keyboard.press("j")
    page.wait_for_url(lambda url: "link:" in url and not url.startswith(first))
    page.keyboard.press("k")
    page.wait_for_url(first)
    page.keyboard.press("3")
    assert page.locator("input[value=needs_evidence]").is_checked()
    eventually(page, "document.activeElement.id === 'reason'")
    page.keyboard.type("jk12")
    assert page.locator("#reason").input_value() == "jk12" and page.url.startswith(first)
    assert watched.complaints == []


@pytest.mark.gate
@pytest.mark.parametrize("context", [{"viewport": {"width": 390, "height": 844}}], indirect=True)
def test_on_a_phone_the_halves_stack_with_a_switch(site: Site, watched: Watched) -> None:
    page = watched.page
    sign_in(page, site, "lea")
    page.goto(site.url("link"))
    sentence, source = page.locator(".sentence"), page.locator("#sourcetext")
    assert sentence.is_visible() and not source.is_visible()
    page.get_by_role("button", name="Source", exact=True).click()
    assert source.is_visible() and not sentence.is_visible()
    shown = "(() => { const m = document.querySelector('mark[data-quote]').getBoundingClientRect(),"
    shown += " b = document.getElementById('sourcetext').getBoundingClientRect();"
    shown += " return m.top >= b.top && m.bottom <= b.bottom; })()"
    assert page.evaluate(shown)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert watched.complaints == []


@pytest.mark.gate
def test_two_reviewers_get_two_items(site: Site, watched: Watched) -> None:
    page = watched.page
    taken = []
    for name in ("lea", "rui"):
        sign_in(page, site, name)
        page.get_by_role("button", name="Take the next item").click()
        page.get_by_text("reserved to you until").wait_for()
        taken.append(page.url)
    assert len(set(taken)) == 2
    page.goto(taken[0])
    assert page.get_by_text("lea holds this item until").is_visible()
    assert page.locator("#verdict-form").count() == 0
