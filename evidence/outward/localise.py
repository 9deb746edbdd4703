"""Makes a rendered page stand alone: addresses become files beside it, and whatever needs a server goes."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from html.parser import HTMLParser
from urllib.parse import urlsplit

_ADDRESSES = frozenset({"href", "src", "action", "data-search", "poster", "srcset", "formaction"})
_VOID = frozenset(
    {
        "area",
        "base",
        "br",
        "col",
        "embed",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "source",
        "track",
        "wbr",
        "path",
        "use",
    }
)
_GONE = frozenset({"form", "dialog", "template"})  # what asks a server, or has no use on a page at rest
_SITE = re.compile(r"^(?:claims|figures|sources|index|notes|journal)\.(?:en|zh)\.html(?:#.*)?$")
_BY_UID = re.compile(r"^/(claims|figures|sources)/([0-9a-f-]{36})/")
_NOTES = re.compile(r"^/studies/[^/]+/notes/(?:(en|zh)/)?$")
_LIST = re.compile(r"^/(claims|figures|sources)/$")


def target(address: str, language: str, ids: set[str]) -> str | None:
    """Where an address of the workbench lies in the site; None where the site has no such page.

    ``ids``: uids that the site's pages show, so that no link leads to nothing.
    """
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return None  # a page at rest names no other host
    if not parts.path:
        return f"#{parts.fragment}" if parts.fragment else None
    if _SITE.match(address) or parts.path.startswith("static/"):
        return address
    if parts.path.startswith("/static/"):
        return parts.path.lstrip("/")
    found = _BY_UID.match(parts.path)
    if found:
        return f"{found[1]}.{language}.html#{found[2]}" if found[2] in ids else None
    if found := _LIST.match(parts.path):
        return f"{found[1]}.{language}.html"
    if found := _NOTES.match(parts.path):
        return f"notes.{found[1] or language}.html" + (f"#{parts.fragment}" if parts.fragment else "")
    return None


class _Writer(HTMLParser):
    """Writes a document again with its addresses mapped; forms and dialogs are left out with what they hold."""

    def __init__(self, map_address: Callable[[str], str | None]):
        super().__init__(convert_charrefs=False)
        self._map, self.out, self.files = map_address, [], set[str]()  # type: ignore[var-annotated]
        self._skip = 0

    def handle_decl(self, decl: str) -> None:
        self.out.append(f"<!{decl}>")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._start(tag, attrs, "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._start(tag, attrs, "/")

    def _start(self, tag: str, attrs: list[tuple[str, str | None]], end: str) -> None:
        if self._skip or tag in _GONE:
            self._skip += tag not in _VOID and not end
            return
        kept: list[tuple[str, str | None]] = []
        for name, value in attrs:
            if name in _ADDRESSES:
                value = self._map(value or "")
                if value is None:
                    continue
                if value.startswith("static/"):
                    self.files.add(value.removeprefix("static/"))
            if not name.startswith("hx-"):
                kept.append((name, value))
        names = {name for name, _value in kept}
        if tag in ("link", "script", "img") and not names & {"href", "src"}:
            self._skip += tag == "script"
            return
        text = "".join(f" {name}" if value is None else f' {name}="{html.escape(value)}"' for name, value in kept)
        self.out.append(f"<{tag}{text}{end}>")

    def handle_endtag(self, tag: str) -> None:
        if self._skip:
            self._skip -= tag not in _VOID
            return
        if tag not in _GONE:
            self.out.append(f"</{tag}>")

    def _text(self, text: str) -> None:
        if not self._skip:
            self.out.append(text)

    def handle_data(self, data: str) -> None:
        self._text(data)

    def handle_entityref(self, name: str) -> None:
        self._text(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self._text(f"&#{name};")


def localise(page: str, language: str, ids: set[str]) -> tuple[str, set[str]]:
    """(the page with local addresses, files under ``static`` that it needs)."""
    writer = _Writer(lambda address: target(address, language, ids))
    writer.feed(page)
    writer.close()
    return "".join(writer.out), writer.files
