"""Sources in a real browser: quotations by key, permalinks of folded lines, an upload, and what axe-core finds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.evidence_sources.serve import PASSWORD
from tests.pages.browser.conftest import Site, Watched, served
from tests.pages.browser.conftest import browser as browser
from tests.pages.browser.conftest import context as context
from tests.pages.browser.conftest import watched as watched
from tests.sweeps import sweep

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server on sources of its own."""
    with served("tests.evidence_sources.serve", tmp_path_factory) as found:
        yield found


@pytest.fixture
def reader(site: Site, watched: Watched) -> Watched:
    """The researcher, signed in."""
    page = watched.page
    page.goto(site.url("/accounts/login/?next=/sources/"))
    page.locator("#id_username").fill("mara")
    page.locator("#id_password").fill(PASSWORD)
    page.locator("#id_password").press("Enter")
    page.wait_for_url("**/sources/")
    return watched


def marked(page: Page) -> str:
    """The quotation that the key has reached."""
    return page.locator("mark.current").inner_text()


def test_n_walks_the_quotations(reader: Watched, site: Site) -> None:
    page = reader.page
    page.goto(site.url("notes") + "?show=whole")
    page.keyboard.press("n")
    assert marked(page) == "92 were nonzero" and page.url.endswith("#q1")
    page.keyboard.press("n")
    assert marked(page) == "999 rows" and page.locator("mark.current").is_visible()
    page.keyboard.press("n")
    assert marked(page) == "92 were nonzero"
    page.keyboard.press("Shift+N")
    assert marked(page) == "999 rows" and reader.complaints == []


def test_a_permalink_of_a_folded_line_opens_it(reader: Watched, site: Site) -> None:
    page = reader.page
    page.goto(site.url("notes") + "#L40")
    page.wait_for_url("**line=40#L40")
    assert page.locator("#L40").is_visible() and page.locator("#L40 .lt").inner_text() == ""
    page.go_back()
    page.goto(site.url("notes"))
    page.locator(".skipped a").last.click()
    page.wait_for_url("**#L*")
    assert page.locator(".line:target").is_visible() and reader.complaints == []


def test_a_file_is_uploaded_and_a_next_version_compared(reader: Watched, site: Site, tmp_path: Path) -> None:
    page = reader.page
    for number, text in enumerate(("one\ntwo\n", "one\n2\n"), 1):
        file = tmp_path / f"any name {number}.md"
        file.write_text(text)
        page.goto(site.url("/sources/new/"))
        page.locator("#up-file").set_input_files(str(file))
        page.locator("#up-path").fill("notes/new.md")
        if number == 2:
            page.locator("#upload .morefields summary").click()
            page.locator("#up-reason").fill("figures instead of words")
        page.locator("#upload button").click()
        page.get_by_text(f"Taken in as version {number}.").wait_for()
    page.get_by_role("link", name="difference from version 1").click()
    assert (
        page.locator(".line.removed .lt").inner_text() == "two" and page.locator(".line.added .lt").inner_text() == "2"
    )
    assert reader.complaints == []


@pytest.mark.parametrize("width", sweep([390, 1440], 1))
def test_nothing_serious_and_nothing_too_wide(reader: Watched, site: Site, width: int) -> None:
    page, found = reader.page, []
    page.set_viewport_size({"width": width, "height": 844})
    for name in ("/sources/", "/sources/new/", "notes", "json", "csv", "pdf", "claimed"):
        page.goto(site.url(name))
        assert page.evaluate("document.documentElement.scrollWidth") == width, name
        for rule in Axe().run(page).response["violations"]:
            if rule["impact"] in ("serious", "critical"):
                found += [f"{name} {rule['id']}: {node['target']}" for node in rule["nodes"]]
    page.goto(site.url("json") + "diff/1/2/")
    found += [
        rule["id"] for rule in Axe().run(page).response["violations"] if rule["impact"] in ("serious", "critical")
    ]
    assert found == [] and reader.complaints == []


def test_what_is_selected_becomes_a_quotation(reader: Watched, site: Site, tmp_path: Path) -> None:
    """Selected in the content, named, quoted, marked in its place; what somebody typed is not written over."""
    page, file = reader.page, tmp_path / "rounds.md"
    file.write_text("# Rounds\n\nRounds: 31 of 40 held.\nIn the end 31 of them.\n")
    page.goto(site.url("/sources/new/"))
    page.locator("input[type=file]").first.set_input_files(file)
    page.locator("input[name=path]").first.fill("notes/rounds.md")
    page.locator("input[type=file]").first.press("Tab")
    page.locator("form:has(input[type=file]) button.primary").click()
    page.locator("#L3 .lt").click(click_count=3)
    exact = page.locator("#quote-exact")
    expect(exact).to_have_value("Rounds: 31 of 40 held.")
    exact.fill("31 of")
    page.locator("#L4 .lt").click(click_count=3)
    page.wait_for_function("getSelection().toString().includes('In the end')")
    expect(exact).to_have_value("31 of")
    page.locator("#quote-key").fill("held")
    page.get_by_role("button", name="Quote it").click()
    assert "exactly one" in page.get_by_role("alert").inner_text() and exact.input_value() == "31 of"
    page.locator("#quote-prefix").fill("Rounds: ")
    page.get_by_role("button", name="Quote it").click()
    page.wait_for_url("**#e-held")
    assert page.locator("mark", has_text="31 of").is_visible() and page.locator("#e-held").is_visible()
    assert [text for text in reader.complaints if "422" not in text] == []
