"""Frame, language, theme, absent values, translations."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.template import Context, Template
from django.test import Client, RequestFactory
from django.utils.translation import override

from runs.api.handlers import permission_denied
from runs.models import Membership
from runs.templatetags.ui import absent, duration, fixed, format_number, leaf, percent, setting, title_of, when
from tests.pages.catalogue_people import client_of, hidden_study, member
from tests.pages.state import World

PO = Path(settings.LOCALE_PATHS[0]) / "zh_Hans" / "LC_MESSAGES" / "django.po"


def test_language_is_switched_and_stored(client: Client, world: World, db: None) -> None:
    answer = client.post("/i18n/setlang/", {"language": "zh-hans", "next": "/runs/"}, follow=True)
    assert '<html lang="zh-hans"' in answer.content.decode()
    assert "个运行" in answer.content.decode()


def test_theme_cookie_is_read_before_the_first_paint(client: Client, world: World, db: None) -> None:
    client.cookies["theme"] = "dark"
    assert 'data-theme="dark"' in client.get("/").content.decode()
    client.cookies["theme"] = '"><script>'
    assert "data-theme" not in client.get("/").content.decode().split("<head>")[0]


def test_every_message_is_translated() -> None:
    """No empty msgstr and no fuzzy entry; the compiled file is not older in content than its source."""
    text = PO.read_text()
    assert "fuzzy" not in text
    empty = re.findall(r'msgid "(.+)"\nmsgstr ""\n(?!")', text)
    assert empty == []
    with override("zh-hans"):
        assert title_of({"en": "a", "zh": "甲"}) == "甲"
        assert str(absent("notmeasured")).find("未测量") > 0


def test_nothing_inline_stands_in_a_template() -> None:
    """A strict policy forbids inline script, style and handlers; none of the templates has any."""
    for file in Path(settings.BASE_DIR, "templates").rglob("*.html"):
        text = file.read_text()
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=\"|<script(?![^>]*\bsrc=)", text), file.name


def test_kinds_of_nothing_differ_from_zero_and_from_each_other() -> None:
    shown = {str(absent(kind)) for kind in ("pending", "notmeasured", "unavailable", "none")}
    assert len(shown) == 4
    assert all("0" not in re.sub(r"<svg.*?</svg>", "", item) for item in shown)
    assert format_number(None) == "—" and format_number(0.0) == "0.000" and percent(None) == "—"


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (-0.5, 2, "−0.50"),
        (float("nan"), 2, "NaN"),
        (float("-inf"), 2, "−∞"),
        (1234.5, 1, "1,234.5"),
        (1e-5, 3, "1.00e−05"),
        (0, 3, "0"),
        (2.42e-15, 2, "0.00"),
    ],
)
def test_numbers(value: float, digits: int, text: str) -> None:
    assert format_number(value, digits) == text


def test_times_carry_zone_and_full_form() -> None:
    html = when(datetime(2026, 11, 30, 1, 4, 7, 250000, tzinfo=UTC))
    assert 'title="2026-11-30T01:04:07.250Z"' in html and ">2026-11-30 01:04:07Z<" in html


def test_durations_and_leaves() -> None:
    assert (duration(3.21), duration(59.6), duration(250), duration(7500)) == (
        "3.2 s",
        "60 s",
        "4 min 10 s",
        "2 h 5 min",
    )
    assert (leaf("x"), leaf(["a", "b"]), leaf([]), leaf(True), leaf({"k": 1})) == (
        "x",
        "a, b",
        "[ ]",
        "true",
        '{"k": 1}',
    )


def test_short_forms_are_unique_within_a_page() -> None:
    """Two hashes that share their first nine digits: the second is shown by ten."""
    context = Context(
        {"request": RequestFactory().get("/"), "a": "ab" * 4 + "a1" + "1" * 54, "b": "ab" * 4 + "a2" + "2" * 54}
    )
    html = Template("{% load ui %}{% short a %} {% short b %} {% short a %}").render(context)
    shown = re.findall(r'<span title="[0-9a-f]+">([0-9a-f]+)</span>', html)
    assert shown[0] == shown[2] != shown[1]
    assert shown[1] == "ab" * 4 + "a2"


def test_login_page_and_wrong_password(client: Client, world: World, db: None) -> None:
    assert "Sign in to change something." in client.get("/accounts/login/").content.decode()
    text = client.post("/accounts/login/", {"username": "x", "password": "y"}).content.decode()
    assert "do not match an account" in text


def test_the_mark_is_answered_at_the_root(client: Client) -> None:
    answer = client.get("/favicon.ico")
    assert answer.status_code == 301 and answer["Location"].endswith("mark.svg")


@pytest.mark.parametrize(("value", "text"), [(2.42e-15, "+0.00"), (-0.00123, "+0.00"), (-1.728, "−1.73"), (None, "—")])
def test_advantages_keep_their_decimals(value: float | None, text: str) -> None:
    assert fixed(value) == text


def test_settings_are_read_without_brackets() -> None:
    """A list of splits reads as names and counts; other values as the plan's bytes have them."""
    splits = [{"split": "test", "tasks": 27}, {"split": "out_of_distribution", "tasks": 27}]
    assert setting(splits) == "test 27, out_of_distribution 27"
    assert (setting([]), setting(0.5), setting("x")) == ("[ ]", "0.5", "x")


def test_not_found_page_says_what_happened(client: Client, world: World, db: None) -> None:
    answer = client.get("/no/such/page")
    assert answer.status_code == 404
    assert "Nothing is stored under this address." in answer.content.decode()


def test_a_signed_out_reader_is_offered_to_sign_in_at_every_unknown_address(world: World, db: None) -> None:
    """A private study and an address that never was read the same, so neither says that it exists."""
    user = member(world.study, Membership.RESEARCHER, "lena")
    study = hidden_study(user)
    texts = []
    for path in (f"/studies/{study.slug}/", "/studies/nosuch/"):
        answer = Client().get(path)
        assert answer.status_code == 404
        text = answer.content.decode()
        assert "If it is private, sign in" in text and f"/accounts/login/?next={path}" in text
        texts.append(text.replace(study.slug, "nosuch"))
    assert texts[0] == texts[1]
    signed_in = client_of(user).get(f"/studies/{study.slug}/")
    assert signed_in.status_code == 404 and "sign in" not in signed_in.content.decode()


def test_a_refused_member_reads_which_role_is_needed(world: World, db: None) -> None:
    """She is a member: to sign in again would not help her. A person signed out has nothing else to do."""
    viewer = client_of(member(world.study, Membership.VIEWER, "vera"))
    address = f"/studies/{world.study.slug}/plans/new/"
    for answer in (viewer.get(address), viewer.post(f"/studies/{world.study.slug}/people/add/", {})):
        text = answer.content.decode()
        assert answer.status_code == 403 and "Sign in with" not in text and "signed in as vera" in text
    assert "This needs another role in the study: researcher or admin." in viewer.get(address).content.decode()
    researcher = client_of(member(world.study, Membership.RESEARCHER, "rex"))
    assert researcher.get(address).status_code == 200
    request = RequestFactory().get("/x/")
    request.user = AnonymousUser()
    text = permission_denied(request, PermissionDenied("sign in first")).content.decode()
    assert "Sign in with an account" in text and "/accounts/login/?next=/x/" in text


def test_counts_of_one_are_said_in_the_singular() -> None:
    """No sentence of a template sets a plural beside a number that may be 1; parts of a whole are "2 of 8 runs"."""
    loose = re.compile(r"{% blocktrans (?!count|asvar \w+ count)[^%]*%}((?:(?!{% endblocktrans).)*)", re.DOTALL)
    plural = re.compile(
        r"(?<!of )(?<!to )(?<!/)(?<!over ){{ \w+ }} (?:jobs|runs|figures|claims|receipts|streams|sources)\b"
    )
    found = {
        f"{path.name}: {text}"
        for path in Path(settings.BASE_DIR, "templates").rglob("*.html")
        for text in loose.findall(path.read_text(encoding="utf-8"))
        if plural.search(text)
    }
    chosen = {item for item in found if "a run from elsewhere is an arm of its own" in item}  # two runs at least
    assert found - chosen == set()
