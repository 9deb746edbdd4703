"""docs/pages.md lists every page of evidence that the walk in a browser opens."""

from __future__ import annotations

import re
from pathlib import Path

from evidence import urls
from tests.pages.browser.walk import PAGES

DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "pages.md").read_text(encoding="utf-8")


def address(route: str) -> str:
    """``sources/<uuid:uid>/`` as the document writes it: ``/sources/<uid>/``."""
    return "/" + re.sub(r"<\w+:(\w+)>", r"<\1>", route).replace("<name>", "<kind>:<uid>")


def test_every_page_of_evidence_is_listed() -> None:
    """In full, or behind ``…`` by its last parts; at least one of them is a word."""
    listed = set(re.findall(r"`([/…][^`]*)`", DOCUMENT.split("## Pages")[1].split("\n## ")[0]))
    pages = {pattern.name: address(str(pattern.pattern)) for pattern in urls.urlpatterns}
    wanted = {name.partition(":")[2] for name in PAGES if name.startswith("evidence:")}
    assert len(wanted) >= 20 and wanted <= set(pages)
    missing = []
    for name in sorted(wanted):
        full = pages[name]
        tails = {f"…{full[at:]}" for at, sign in enumerate(full) if sign == "/" and re.match(r"/\w", full[at:])}
        if not listed & {full, *tails}:
            missing.append(full)
    assert missing == []
    unknown = {text for text in listed if text.startswith(("/sources", "/figures", "/claims", "/reviews", "/stale"))}
    assert unknown <= set(pages.values())
