"""The plan editor in a real browser: write a plan in the form, meet a problem beside its field, fix it, save it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Request

from tests.pages.browser.conftest import Site, Watched, eventually
from tests.pages.browser.test_every_page import PHONE

pytestmark = pytest.mark.browser
EDIT = "/studies/fatal-mask-pair/plans/{}/edit/"
PROBLEM = "got 1, expected a whole number, 2 to 32"
VIEWS = [pytest.param({}, id="desk"), pytest.param(PHONE, id="phone")]


def _sign_in(page: Page, site: Site) -> None:
    page.goto(site.url("/accounts/login/?next=/plans/"))
    page.locator("main input:not([type=hidden]):not([type=checkbox])").nth(0).fill("rosa")
    page.locator("main input[type=password]").fill("correct horse battery")
    page.locator("main input[type=password]").press("Enter")
    page.wait_for_url("**/plans/")


def _new(page: Page, site: Site, name: str) -> None:
    _sign_in(page, site)
    page.goto(site.url("/studies/fatal-mask-pair/plans/new/"))
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Create the draft").click()
    page.wait_for_url(f"**{EDIT.format(name)}")


def _text(page: Page) -> str:
    return page.locator("#plan-text").input_value()


def test_write_see_a_problem_fix_it_and_save(site: Site, watched: Watched) -> None:
    page = watched.page
    _new(page, site, "by-form")
    field = page.locator("#field-rollout-group_size")
    field.fill("1")
    field.press("Tab")
    beside = page.locator("#field-rollout-group_size-problems")
    beside.get_by_text(PROBLEM).wait_for()
    assert "group_size: 1" in _text(page)
    assert field.get_attribute("aria-invalid") == "true"
    row = page.locator("#text-lines li.wrong")
    assert row.count() == 1 and PROBLEM in row.inner_text()
    assert "1 problem keeps it" in page.locator("h1").inner_text()
    beside.locator("[data-line]").click()
    assert page.evaluate("(t => t.value.slice(t.selectionStart, t.selectionEnd))(document.activeElement)") == (
        "  group_size: 1"
    )
    field.fill("4")
    field.press("Tab")
    eventually(page, "document.querySelectorAll('.field-problem').length === 0")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_text("Saved as revision 2. Nothing keeps it from being frozen.").wait_for()
    assert "group_size: 4" in _text(page) and _text(page).startswith("# The least")
    assert watched.complaints == []


def _posts(page: Page) -> list[str]:
    """Every POST to an editor from now on, by what it asks for."""
    found: list[str] = []

    def note(request: Request) -> None:
        if request.method == "POST" and request.url.endswith("/edit/"):
            found.append("fragment" if request.headers.get("hx-request") else "page")

    page.on("request", note)
    return found


@pytest.mark.parametrize(
    ("way", "field"),
    [
        ("click", "#field-rollout-group_size"), ("click", "#plan-text"), ("double click", "#field-rollout-group_size"),
        ("keys", "#plan-text"), ("Enter on the button", "#field-rollout-group_size"),
    ],
)  # fmt: skip
def test_saving_is_one_request(site: Site, watched: Watched, way: str, field: str) -> None:
    """Right after typing, so that a change is still under way: one POST, one revision, no conflict with oneself."""
    page = watched.page
    _new(page, site, f"once-{way.replace(' ', '-')}-{field.strip('#')}")
    page.wait_for_load_state("load")
    save = page.get_by_role("button", name="Save", exact=True)
    found = _posts(page)
    value = "4" if field != "#plan-text" else _text(page).replace("batches: 2", "batches: 3")
    page.locator(field).fill(value)
    if way == "click":
        save.click()
    elif way == "double click":
        save.dblclick()
    elif way == "keys":
        page.locator(field).press("Control+s")
    else:
        save.focus()  # leaves the field: the change may be checked before Enter
        save.press("Enter")
    page.get_by_text("Saved as revision 2. Nothing keeps it from being frozen.").wait_for()
    page.wait_for_timeout(1200)  # longer than any delay of the editor
    assert found.count("page") == 1
    assert way == "Enter on the button" or found == ["page"]
    assert page.locator("#conflict").count() == 0 and page.locator('input[name="revision"]').input_value() == "2"
    stopped = ("htmx:afterRequest", "htmx:sendAbort")  # a check under way ends when the page is left, and htmx logs it
    assert [said for said in watched.complaints if found == ["page"] or not said.startswith(stopped)] == []


def test_enter_in_a_field_asks_once_and_saves_nothing(site: Site, watched: Watched) -> None:
    page = watched.page
    _new(page, site, "enter")
    page.wait_for_load_state("load")
    found = _posts(page)
    page.locator("#field-rollout-group_size").fill("4")
    page.locator("#field-rollout-group_size").press("Enter")
    eventually(page, "document.getElementById('plan-text').value.includes('group_size: 4')")
    page.wait_for_timeout(1200)
    assert found == ["fragment"]
    assert page.locator('input[name="revision"]').input_value() == "1"


def test_the_text_fills_the_form_and_an_unreadable_one_loses_nothing(site: Site, watched: Watched) -> None:
    page = watched.page
    _new(page, site, "by-text")
    before = _text(page)
    page.locator("#plan-text").fill(before.replace("batches: 2", "batches: 77"))
    eventually(page, "document.getElementById('field-budget-batches').value === '77'")
    page.locator("#plan-text").fill(before + "\n  broken: [")
    page.locator("#problem-list").get_by_text("The text cannot be read").wait_for()
    page.locator("#field-seeds").fill("5, 6")
    page.locator("#field-seeds").press("Tab")
    page.wait_for_timeout(600)
    assert _text(page).endswith("broken: [") and page.locator("#field-seeds").input_value() == "5, 6"
    page.locator("#plan-text").fill(before)
    eventually(page, "document.getElementById('plan-text').value.includes(\"seeds: ['5', '6']\")")
    assert watched.complaints == []


@pytest.mark.gate
def test_typing_goes_on_while_the_server_answers(site: Site, watched: Watched) -> None:
    """Answers to older states are dropped: every character typed is there in the end, the cursor too."""
    page = watched.page
    _new(page, site, "fast")
    page.route("**/edit/", lambda route: (page.wait_for_timeout(150), route.continue_()))
    page.locator("#plan-text").click()
    page.keyboard.press("Control+End")
    page.keyboard.type("# " + "abcdefghij " * 6, delay=25)
    assert _text(page).rstrip().endswith("# " + ("abcdefghij " * 6).rstrip())
    page.wait_for_timeout(1500)
    assert _text(page).rstrip().endswith("# " + ("abcdefghij " * 6).rstrip())
    assert page.evaluate("document.activeElement.id") == "plan-text"


def test_an_arm_is_added_and_removed_without_leaving(site: Site, watched: Watched) -> None:
    page = watched.page
    _new(page, site, "arms")
    page.get_by_role("button", name="Add: arm").click()
    second = page.locator("#field-arms-1-key")
    second.wait_for()
    eventually(page, "document.activeElement.id === 'field-arms-1-key'")
    second.fill("B")
    second.press("Tab")
    eventually(page, "document.getElementById('plan-text').value.includes('key: B')")
    page.get_by_role("button", name="Remove arm 2").click()
    second.wait_for(state="detached")
    assert "key: B" not in _text(page)
    assert watched.complaints == []


@pytest.mark.gate
@pytest.mark.parametrize("context", [PHONE], indirect=True)
def test_phone_has_one_side_at_a_time(site: Site, watched: Watched) -> None:
    page = watched.page
    _new(page, site, "phone")
    assert not page.locator("#plan-text").is_visible()
    page.get_by_role("button", name="YAML").tap()
    assert page.locator("#plan-text").is_visible() and not page.locator("#field-seeds").is_visible()
    page.get_by_role("button", name="Form").tap()
    assert page.locator("#field-seeds").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert watched.complaints == []


@pytest.fixture
def plain(browser: Browser) -> Iterator[Page]:
    """A browser without scripts."""
    context = browser.new_context(java_script_enabled=False, viewport={"width": 1440, "height": 900})
    yield context.new_page()
    context.close()


@pytest.mark.gate
def test_without_scripts_a_plain_submit_does_the_same(site: Site, plain: Page) -> None:
    _new(plain, site, "plain")
    plain.locator("#field-rollout-group_size").fill("1")
    plain.locator("#plan-text").fill(_text(plain).replace("batches: 2", "batches: 3"))
    plain.get_by_role("button", name="Check", exact=True).last.click()
    assert PROBLEM in plain.locator("#field-rollout-group_size-problems").inner_text()
    assert "group_size: 1" in _text(plain) and plain.locator("#field-budget-batches").input_value() == "3"
    plain.locator("#field-rollout-group_size").fill("")
    plain.get_by_role("button", name="Save", exact=True).click()
    assert "Saved as revision 2. Nothing keeps it" in plain.locator(".messages").inner_text()
    assert "group_size" not in _text(plain)


@pytest.mark.gate
@pytest.mark.parametrize("context", VIEWS, indirect=True)
def test_catalogue_pages_without_complaint_or_overflow(site: Site, watched: Watched) -> None:
    page = watched.page
    page.goto(site.url("/task-sets/"))
    links = page.locator("td.primary a")
    first = links.first.get_attribute("href") or ""
    page.goto(site.url(first))
    task = page.locator("#tasks td.primary a").first.get_attribute("href") or ""
    small = "/studies/fatal-mask-pair/plans/small/"
    for address in ("/task-sets/", first, task, "/environments/", "/models/", f"{small}freeze/", f"{small}difference/"):
        page.goto(site.url(address))
        page.wait_for_load_state("load")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), address
        assert page.locator("h1").count() == 1, address
        assert watched.complaints == [], address
