"""Markdown: what is shown, and that nothing in it can run or fetch."""

from __future__ import annotations

import re
import time
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.markdown import ATTRIBUTES, TAGS, render_markdown

ATTACKS = [
    "<script>alert(1)</script>",
    "<ScRiPt src=//evil.example/x.js></sCrIpT>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)><circle/></svg>",
    "<svg><script>alert(1)</script></svg>",
    "<iframe src='javascript:alert(1)'></iframe>",
    "<a href='javascript:alert(1)'>x</a>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java\nscript:alert(1))",
    "[x](java&#x0A;script:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](<javascript:alert(1)>)",
    "[x](\x01javascript:alert(1))",
    "[x]( javascript:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==)",
    "[x](vbscript:msgbox(1))",
    "[x](file:///etc/passwd)",
    "![x](javascript:alert(1))",
    "![x](https://evil.example/track.png)",
    '![x" onerror="alert(1)](https://evil.example/x.png)',
    '[x](https://e.example "title\\" onmouseover=\\"alert(1)")',
    "<https://e.example/\"onmouseover='alert(1)'>",
    "<javascript:alert(1)>",
    "[x][1]\n\n[1]: javascript:alert(1)",
    "<style>*{background:url(//evil.example)}</style>",
    "<p style='background:url(//evil.example)'>x</p>",
    "<div onclick=alert(1)>x</div>",
    '<math><mtext></table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=alert(1)&gt;">',
    '<noscript><p title="</noscript><img src=x onerror=alert(1)>">',
    "<form action=//evil.example><button>x</button></form>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "<base href=//evil.example>",
    "<object data=x></object><embed src=x>",
    "```html\n<script>alert(1)</script>\n```",
    "`<script>alert(1)</script>`",
    '``` "onload=alert(1)\nx\n```',
    "<!--<img src=x onerror=alert(1)>-->",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "<a id=x name=y class=z>clobber</a>",
    "| a |\n|---|\n| <img src=x onerror=alert(1)> |",
    "# <script>alert(1)</script>",
    "\x00<script>alert(1)</script>",
]


class Seen(HTMLParser):
    """Tags and attributes as a browser's parser would find them."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def tags(text: str) -> list[tuple[str, dict[str, str | None]]]:
    seen = Seen()
    seen.feed(str(render_markdown(text)))
    return seen.tags


def assert_harmless(text: str) -> None:
    """Only known tags and attributes; each link names a harmless scheme and gives nothing away."""
    for tag, attributes in tags(text):
        assert tag in TAGS
        assert set(attributes) <= {*ATTRIBUTES.get(tag, set()), *({"rel"} if tag == "a" else set())}
        if tag == "a":
            assert attributes["rel"] == "noopener noreferrer nofollow"
            address = attributes.get("href") or ""
            # As a browser reads it: controls and blanks around it are dropped, tabs and line breaks anywhere.
            plain = re.sub(r"[\t\r\n]", "", re.sub(r"^[\x00-\x20]+", "", address))
            scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):", plain)
            assert scheme is None or scheme[1].lower() in ("http", "https", "mailto"), address


@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks_come_out_harmless(attack: str) -> None:
    assert_harmless(attack)
    assert_harmless(f"> - {attack}\n\n1. {attack}")
    assert_harmless(f"text **{attack}** and ~~{attack}~~")


@given(st.text(alphabet="<>[]()\"'`*_&;:#!/\\ \n\tjavscriptonerlhf=12", max_size=200))
def test_no_text_at_all_makes_anything_else(text: str) -> None:
    assert_harmless(text)


def test_what_people_write_is_shown() -> None:
    """Emphasis, lists, tables, code, links; raw HTML appears as the text that was typed."""
    html = str(
        render_markdown("# Title\n\n**bold** *em* ~~gone~~ `a<b` [in](/runs/) [out](https://e.example/?a=1&b=2)")
    )
    assert "<h1>Title</h1>" in html and "<strong>bold</strong>" in html and "<code>a&lt;b</code>" in html
    assert '<a href="/runs/" rel=' in html and "https://e.example/?a=1&amp;b=2" in html and "<s>gone</s>" in html
    assert "<td>1</td>" in render_markdown("| a |\n|---|\n| 1 |")
    assert '<ol start="3">' in render_markdown("3. three\n4. four")
    assert "&lt;b&gt;x&lt;/b&gt;" in render_markdown("<b>x</b>")
    assert "中文" in render_markdown("**中文**")


def test_an_image_is_a_link_and_nothing_is_fetched() -> None:
    html = str(render_markdown('![loss "curve"](https://e.example/x.png)'))
    assert (
        "<img" not in html
        and '<a href="https://e.example/x.png"' in html
        and 'loss "curve"' in html.replace("&quot;", '"')
    )


def test_length_and_depth_are_bounded() -> None:
    """Deep nesting ends within seconds; a text beyond the limit is refused."""
    started = time.monotonic()
    for text in ("> " * 5000 + "x", "[" * 20_000, "*" * 20_000, "`" * 20_000, "- " * 3000 + "x", "![" * 5000):
        assert_harmless(text)
    assert time.monotonic() - started < 20
    with pytest.raises(ValueError, match="text: got 200001 characters"):
        render_markdown("x" * 200_001)
