"""A researcher in the browser, on real processes: sign in, write a plan, freeze, run, read a token, find it by hash."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.pages.browser.conftest import browser as browser
from tests.pages.browser.conftest import eventually
from tests.servers import free_port
from tests.workbench.processes import Up, up

pytestmark = [pytest.mark.slow, pytest.mark.browser]
STUDY, PLAN = "first-steps", "in-the-browser"
BUSY_MS = 240_000  # for work that a worker does, on a busy machine


class Sitting:
    """One person at one browser; everything that the pages complain about is kept."""

    def __init__(self, page: Page, base: str) -> None:
        self.page, self.base = page, base
        self.complaints: list[str] = []
        page.set_default_timeout(60_000)
        page.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def open(self, path: str) -> None:
        """An address of the site."""
        answer = self.page.goto(self.base + path)
        assert answer is not None and answer.status == 200, path

    @property
    def verdict(self) -> str:
        """The sentence that opens the page."""
        return self.page.locator("h1").inner_text()


@pytest.fixture
def server(tmp_path: Path, cache: Path) -> Iterator[tuple[Up, str]]:
    """``manage.py up`` on a home without a study, and its address."""
    port = free_port()
    with up(tmp_path / "home", "--port", str(port), WORKBENCH_CACHE_HOME=str(cache)) as started:
        started.wait_ready()
        yield started, f"http://127.0.0.1:{port}"


@pytest.fixture
def sitting(browser: Browser, server: tuple[Up, str]) -> Iterator[Sitting]:
    """A fresh profile in English, light."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, locale="en-GB", color_scheme="light")
    yield Sitting(context.new_page(), server[1])
    context.close()


def test_from_signing_in_to_a_token_found_by_its_hash(sitting: Sitting, server: tuple[Up, str]) -> None:
    """Every step through what a page offers; the search by keyboard alone; nothing complains on the way."""
    password = re.search(r"first user: admin, password (\S+)", server[0].text)
    assert password is not None, server[0].text
    _sign_in(sitting, password[1])
    _found_a_study(sitting)
    _write_a_plan(sitting)
    sha256 = _freeze(sitting)
    _run_it(sitting)
    _read_a_token(sitting)
    _switch_language_and_theme(sitting)
    _find_by_prefix(sitting, sha256)
    assert sitting.complaints == []


def _sign_in(sitting: Sitting, password: str) -> None:
    page = sitting.page
    sitting.open("/")
    page.get_by_role("link", name="Sign in").first.click()
    page.get_by_label("Name").fill("admin")
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{sitting.base}/")
    assert page.locator(".account-name").inner_text() == "admin"


def _found_a_study(sitting: Sitting) -> None:
    page = sitting.page
    page.get_by_role("link", name="New study").click()
    page.get_by_label("Short name").fill(STUDY)
    page.get_by_label("Title", exact=True).fill("First steps")
    page.get_by_role("button", name="Found the study").click()
    page.wait_for_url(f"**/studies/{STUDY}/**")


def _write_a_plan(sitting: Sitting) -> None:
    """The title in the YAML, the learning rate in the form; each side follows the other."""
    page = sitting.page
    sitting.open("/")
    page.get_by_role("link", name=f"New plan in {STUDY}").click()
    page.get_by_label("Name of the plan").fill(PLAN)
    page.get_by_label("fatal-mask-pair, tiny").check()
    page.get_by_role("button", name="Create the draft").click()
    page.wait_for_url(f"**/studies/{STUDY}/plans/{PLAN}/edit/")
    text = page.locator("#plan-text")
    written = text.input_value().replace("en: Fatal mask, strict pair", "en: Written in the browser")
    text.fill(written)
    eventually(page, "document.getElementById('field-title-en').value === 'Written in the browser'")
    rate = page.locator("#field-optimizer-learning_rate")
    rate.fill("0.002")
    rate.press("Tab")
    eventually(page, "document.getElementById('plan-text').value.includes('learning_rate: 0.002')")
    assert "en: Written in the browser" in text.input_value()
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_text("Saved as revision 2. Nothing keeps it from being frozen.").wait_for()


def _freeze(sitting: Sitting) -> str:
    """A worker says what would be bound, the strict pair holds; returns the hash of the frozen bytes."""
    page = sitting.page
    page.locator(".badges").get_by_role("link", name="Freeze").click()
    page.get_by_role("button", name="Find out what would be bound").click()
    freeze = page.get_by_role("button", name="Freeze these bytes")
    freeze.wait_for(timeout=BUSY_MS)
    assert sitting.verdict == "This is exactly what freezing would bind."
    assert page.get_by_text(re.compile(r"1 different, [4-9]\d equal")).is_visible()
    shown = str(page.locator(".act [data-copy]").first.get_attribute("data-copy"))
    freeze.click()
    page.get_by_role("button", name="Start", exact=True).wait_for()
    sitting.open(f"/studies/{STUDY}/plans/{PLAN}/")
    assert sitting.verdict.startswith("Frozen: 4 arms, 4 runs") and re.fullmatch("[0-9a-f]{64}", shown)
    assert page.locator(f'.badges [data-copy="{shown}"]').count() == 1
    return shown


def _run_it(sitting: Sitting) -> None:
    """Started from the freeze page; the first page follows it to its end without being loaded again."""
    page = sitting.page
    page.locator(".badges").get_by_role("link", name="Start").click()
    page.get_by_role("button", name="Start", exact=True).click()
    page.get_by_text("Started. Workers take its jobs as they are free.").wait_for()
    sitting.open("/")
    ended = "/^Nothing runs now; [1-4] of 4 runs completed/.test(document.querySelector('h1').innerText)"
    eventually(page, ended, seconds=600)
    page.locator(".cardgrid").get_by_role("link", name="Results").click()
    page.wait_for_url(f"**/plans/{PLAN}/results/")
    assert "F against V" in sitting.verdict
    assert page.locator(".tablegrid td", has_text=re.compile(r"^\d+/\d+$")).count() > 0


def _read_a_token(sitting: Sitting) -> None:
    page = sitting.page
    page.locator("#rail").get_by_role("link", name="Trajectories").click()
    page.get_by_role("link", name="is:effective").click()
    page.locator("td.primary a").first.click()
    page.locator("#tokens[data-ready]").wait_for(state="attached")
    trained = page.locator(".tok.trained").first
    trained.click()
    card = page.locator("#card")
    assert card.locator('[data-f="fate"]').inner_text() == "sampled, trained"
    assert re.fullmatch(r"−?\d+\.\d{4}", card.locator('[data-f="old"]').inner_text())
    assert page.url.endswith(f"#t{trained.get_attribute('data-i')}")


def _switch_language_and_theme(sitting: Sitting) -> None:
    page = sitting.page
    before = page.url.partition("#")[0].partition("?")[0]
    page.get_by_role("button", name="中文").click()
    eventually(page, "document.documentElement.lang === 'zh-hans'")
    assert page.url.startswith(before)
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(background) == "rgb(252, 252, 250)"
    page.locator("[data-theme-switch]").click()
    assert page.evaluate(background) == "rgb(19, 21, 23)"
    page.reload()
    assert page.evaluate(background) == "rgb(19, 21, 23)"


def _find_by_prefix(sitting: Sitting, sha256: str) -> None:
    """The plan by eight digits of its hash, then a run by the beginning of its uid: by keyboard alone."""
    page = sitting.page
    _search(page, sha256[:8])
    page.wait_for_url(f"**/studies/{STUDY}/plans/{PLAN}/**")
    sitting.open("/runs/")
    address = str(page.locator("td.primary a").first.get_attribute("href"))
    _search(page, address.split("/")[2][:8])
    page.wait_for_url(f"**{address}")


def _search(page: Page, prefix: str) -> None:
    """``/`` to the field, Enter, then ``j`` to the first hit and Enter to open it."""
    page.keyboard.press("/")
    page.keyboard.type(prefix)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/search/?q={prefix}")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
