"""Every page in a real browser: no complaint, no overflow, on a desk and on a phone."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from django.test import RequestFactory
from playwright.sync_api import BrowserContext, Page

from tests.pages.browser.conftest import Site, Watched, eventually, sign_in
from tests.pages.browser.walk import ANONYMOUS, NO_PAGES, PAGES, STATES, routes

pytestmark = pytest.mark.browser
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
LANGUAGES = ("en", "zh-hans")
SERIOUS = ("serious", "critical")
PARTS = 4  # in which axe walks the pages: one after another they take minutes
TOUR = (
    "runs:now", "runs:plan", "runs:plan_edit", "runs:results", "runs:pair", "runs:run", "runs:layers", "runs:group",
    "runs:trajectory", "runs:receipts", "runs:edits", "runs:jobs", "evidence:claim", "evidence:review_item",
    "evidence:notes",
)  # fmt: skip
VIEWS = [
    pytest.param({"locale": "en-GB"}, id="desk-en", marks=pytest.mark.gate),
    pytest.param({**PHONE, "locale": "zh-CN"}, id="phone-zh", marks=pytest.mark.gate),
    pytest.param({"locale": "zh-CN"}, id="desk-zh", marks=pytest.mark.slow),
    pytest.param({**PHONE, "locale": "en-GB"}, id="phone-en", marks=pytest.mark.slow),
]


def test_every_route_is_a_page_of_the_walk_or_says_why_not() -> None:
    """The URL configuration against the walk; what is left out answers no GET, or is named as no page."""
    views = routes()
    asked = RequestFactory().get("/", headers={"host": "localhost"})
    asked.user = AnonymousUser()
    others = set().union(*NO_PAGES.values())
    silent = {name for name in set(views) - set(PAGES) - others if _refuses_reading(views[name], asked)}
    missing = set(views) - set(PAGES) - others - silent
    assert not missing, "no page of tests/pages/browser/walk.py for these routes: " + ", ".join(sorted(missing))
    assert not set(PAGES) - set(views), "pages without a route: " + ", ".join(sorted(set(PAGES) - set(views)))
    assert "runs:token_issue" in silent and "runs:now" not in silent


def _refuses_reading(view: Any, asked: HttpRequest) -> bool:
    """Whether a GET is refused before any argument is read."""
    try:
        return bool(view(asked).status_code == 405)
    except (TypeError, RuntimeError):  # it went on to its arguments or to the database
        return False


@pytest.fixture
def reader(context: BrowserContext, watched: Watched, site: Site) -> Watched:
    """A site admin, signed in, who sees every page; unknown to the anonymous ones."""
    sign_in(watched.page, site, "ada")
    return watched


def _walk(site: Site, reader: Watched, names: list[str]) -> None:
    for name in names:
        answer = reader.page.goto(site.url(name))
        assert answer is not None and answer.status == 200, name
        reader.page.wait_for_load_state("load")
        reader.page.wait_for_timeout(150)
        _judge(reader.page, name)
        assert reader.complaints == [], name


@pytest.mark.parametrize("context", [{**PHONE, "locale": "zh-CN"}], indirect=True, ids=["phone-zh"])
def test_the_tour_has_no_complaint_and_no_overflow(site: Site, reader: Watched, context: BrowserContext) -> None:
    """The pages of the README's tour; all of them, in every view, are walked below."""
    _walk(site, reader, [PAGES[key] for key in TOUR])


@pytest.mark.parametrize("context", VIEWS, indirect=True)
def test_no_complaint_and_no_overflow(site: Site, reader: Watched, context: BrowserContext) -> None:
    page = reader.page
    _walk(site, reader, [*(PAGES[key] for key in PAGES if key not in ANONYMOUS), *STATES])
    context.clear_cookies()
    for name in sorted(PAGES[key] for key in ANONYMOUS):
        page.goto(site.url(name))
        _judge(page, name)
        assert reader.complaints == [], name


def _judge(page: Page, name: str) -> None:
    width, inner = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert width <= inner, f"{name}: {width} wide in a window of {inner}"
    assert page.locator("h1").count() == 1, name
    assert page.title().strip(" ·") != "Workbench", name


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    "context",
    [{"bypass_csp": True}, {"bypass_csp": True, "color_scheme": "dark", **PHONE}],
    indirect=True,
    ids=["desk-light", "phone-dark"],
)
def test_axe_finds_nothing_serious(
    site: Site, reader: Watched, context: BrowserContext, language: str, part: int
) -> None:
    """Rules of axe-core on every page: no finding of impact serious or critical. Anonymous pages come last."""
    context.add_cookies([{"name": "django_language", "value": language, "url": site.base}])
    page, axe, found = reader.page, Axe(), []
    known = [*(PAGES[key] for key in PAGES if key not in ANONYMOUS), *STATES][part::PARTS]
    for name in [*known, *sorted(ANONYMOUS)[part::PARTS]]:
        if name in ANONYMOUS:
            context.clear_cookies(name="sessionid")
        page.goto(site.url(PAGES.get(name, name)))
        page.wait_for_timeout(150)
        for rule in axe.run(page).response["violations"]:
            if rule["impact"] in SERIOUS:
                found.append((name, rule["id"], rule["nodes"][0]["html"][:120]))
    assert not found, "\n".join(f"{name}: {rule} {html}" for name, rule, html in found)


@pytest.mark.parametrize("context", [{"color_scheme": "dark"}], indirect=True)
def test_dark_follows_the_system_until_a_choice_is_made(site: Site, watched: Watched) -> None:
    page = watched.page
    page.goto(site.url("/runs/"))
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(background) == "rgb(19, 21, 23)"
    page.locator("[data-theme-switch]").click()
    assert page.evaluate(background) == "rgb(252, 252, 250)"
    page.reload()
    assert page.evaluate(background) == "rgb(252, 252, 250)"
    assert page.evaluate("document.documentElement.dataset.theme") == "light"


def test_language_switch_keeps_the_page(site: Site, watched: Watched) -> None:
    page = watched.page
    page.goto(site.url("/runs/?state=completed"))
    page.get_by_role("button", name="中文").click()
    page.wait_for_url("**/runs/?state=completed")
    assert page.evaluate("document.documentElement.lang") == "zh-hans"
    assert "个运行" in page.locator("h1").inner_text()
    page.get_by_role("button", name="EN", exact=True).click()
    eventually(page, "document.documentElement.lang === 'en'")


def test_contrast_of_text_tokens(site: Site, watched: Watched) -> None:
    """Ink, states and accent on background and tint reach 4.5:1 in both themes (WCAG relative luminance)."""
    script = """() => {
      const root = getComputedStyle(document.documentElement), get = n => root.getPropertyValue(n).trim();
      const lum = h => { const c = [1, 3, 5].map(i => parseInt(h.slice(i, i + 2), 16) / 255)
          .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2]; };
      const out = [];
      for (const a of ['--ink', '--ink2', '--ink3', '--accent', '--ok', '--warn', '--bad', '--provisional',
                       '--disputed',
                       '--orange-text', '--blue-text'])
        for (const b of ['--bg', '--tint']) { const x = lum(get(a)), y = lum(get(b));
          out.push([a, b, (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05)]); }
      return out; }"""
    page = watched.page
    page.goto(site.url("/runs/"))
    for theme in ("light", "dark"):
        page.evaluate("t => { document.documentElement.dataset.theme = t; }", theme)
        assert [row for row in page.evaluate(script) if row[2] < 4.5] == [], theme


def test_keyboard_moves_rows_searches_and_lists_shortcuts(site: Site, watched: Watched) -> None:
    page = watched.page
    page.goto(site.url("/runs/"))
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    first = page.locator("tr[data-href]").first
    assert "current" in (first.get_attribute("class") or "")
    page.keyboard.press("?")
    assert page.locator("dialog[open]").count() == 1
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search-field"
    page.keyboard.type("e3-s17")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search/?q=e3-s17")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/*/")


def test_skip_link_comes_first(site: Site, watched: Watched) -> None:
    page = watched.page
    page.goto(site.url("/"))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


@pytest.mark.parametrize("context", [{"permissions": ["clipboard-read", "clipboard-write"]}], indirect=True)
def test_copy_button_and_permalink(site: Site, watched: Watched) -> None:
    page = watched.page
    page.goto(site.url("/studies/fatal-mask-pair/plans/small/"))
    button = page.locator("[data-copy]").first
    button.click()
    assert page.evaluate("navigator.clipboard.readText()") == button.get_attribute("data-copy")
    page.keyboard.press(".")
    eventually(page, "u => navigator.clipboard.readText().then(t => t === u)", page.url)


@pytest.mark.parametrize("context", [PHONE], indirect=True)
def test_phone_menu_opens_the_sections(site: Site, watched: Watched) -> None:
    page = watched.page
    page.goto(site.url("/"))
    assert not page.locator("#rail").is_visible()
    page.locator("[data-menu]").tap()
    page.get_by_role("link", name="Receipts").first.tap()
    page.wait_for_url("**/receipts/")


def test_sign_in_and_verify_again(site: Site, watched: Watched) -> None:
    page = watched.page
    page.goto(site.url("/receipts/"))
    page.get_by_role("link", name="Sign in to verify again").click()
    page.get_by_label("Name").fill("mara")
    page.get_by_label("Password").fill("correct horse battery")
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/receipts/")
    page.get_by_role("button", name="Verify all chains again").click()
    page.wait_for_load_state()
    assert "chains hold" in page.locator("h1").inner_text()
    assert watched.complaints == []
