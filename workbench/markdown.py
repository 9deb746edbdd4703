"""Markdown of people, as HTML that cannot run anything.

Two layers: the parser passes no HTML through, and the sanitiser lets only the tags below by, whatever
the parser made. Links lead to http, https and mailto addresses, or within this site, in a new context
that knows nothing of ours. Images are shown as links: no page fetches an address that somebody wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import nh3
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

LONGEST = 200_000  # characters
TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre",
    "s", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}
SCHEMES = {"http", "https", "mailto"}
REL = "noopener noreferrer nofollow"


class _Renderer(RendererHTML):
    """Images become links with their description."""

    def image(self, tokens: Sequence[Token], position: int, options: Any, env: Any) -> str:
        """``![text](address)`` as a link."""
        token = tokens[position]
        link = Token("link_open", "a", 1, attrs={"href": str(token.attrGet("src") or "")})
        text = self.renderInlineAsText(token.children or [], options, env) or str(token.attrGet("src") or "")
        return self.renderToken([link], 0, options, env) + _escaped(text) + "</a>"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


_PARSER = MarkdownIt("commonmark", {"html": False, "linkify": False}, renderer_cls=_Renderer).enable(
    ["table", "strikethrough"]
)


def render_markdown(text: str) -> SafeString:
    """HTML of a text in CommonMark with tables and strikethrough.

    Raises ``ValueError`` for more than ``LONGEST`` characters.
    """
    if len(text) > LONGEST:
        raise ValueError(f"text: got {len(text)} characters, expected at most {LONGEST}")
    html = _PARSER.render(text.replace("\x00", "\ufffd"))
    clean = nh3.clean(html, tags=TAGS, attributes=ATTRIBUTES, url_schemes=SCHEMES, link_rel=REL, strip_comments=True)
    return mark_safe(clean)  # the sanitiser's own output
