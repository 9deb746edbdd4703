"""docs/pages.md lists every page that the walk in a browser opens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.urls import get_resolver

from tests.pages.browser.walk import PAGES

DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "pages.md").read_text(encoding="utf-8")
OF_ACCOUNTS = re.compile(r"account_|log(in|out)$")  # the row of signing in names three of them and an ellipsis
STEPS = {"runs:filter_apply"}  # leads on to a list


def routes(of: Any, before: str = "", space: str = "") -> Iterator[tuple[str, str]]:
    """(name with its namespace, address) of every named route."""
    for item in of.url_patterns:
        address = before + str(item.pattern)
        if hasattr(item, "url_patterns"):
            yield from routes(item, address, f"{item.namespace}:" if item.namespace else space)
        elif item.name:
            yield space + item.name, address


def written(route: str) -> str:
    """``sources/<uuid:uid>/`` as the document writes it: ``/sources/<uid>/``."""
    return "/" + re.sub(r"<\w+:(\w+)>", r"<\1>", route).replace("<name>", "<kind>:<uid>").replace("<rollout>", "<uid>")


def test_every_page_is_listed() -> None:
    """In full, or behind ``…`` by its last parts; at least one of them is a word."""
    table = DOCUMENT.split("## Pages")[1].split("\n## ")[0]
    listed = {text.partition("?")[0] for text in re.findall(r"`([/…][^`]*)`", table)}
    pages = {name: written(route) for name, route in routes(get_resolver())}
    wanted = {name for name in PAGES if not OF_ACCOUNTS.match(name)} - STEPS
    assert len(wanted) >= 70 and wanted <= set(pages)
    missing = []
    for name in sorted(wanted):
        full = pages[name]
        tails = {f"…{full[at:]}" for at, sign in enumerate(full) if sign == "/" and re.match(r"/\w", full[at:])}
        if not listed & {full, *tails}:
            missing.append(full)
    assert missing == []
    unknown = {text for text in listed if text.startswith("/") and text not in pages.values()}
    assert {re.sub(r"<\w+>", "<>", text) for text in unknown} <= {
        re.sub(r"<\w+>", "<>", text) for text in pages.values()
    }
