"""Turns the pieces of a text into HTML: bound figures as chips, citations as links, declared words as what they are.

Everything that an author typed is escaped. ``data-walk`` says what kind of element the page itself emits, for the
walk that looks for numbers nobody bound.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.html import format_html, format_html_join, strip_tags
from django.utils.safestring import SafeString, mark_safe

from evidence.binding.tokens import FIGURE, SOURCE, Piece, parse_text
from evidence.notes.texts import sentences
from evidence.presenters.chips import Chip, Shown
from evidence.templatetags.evidence_text import piece_markup

_LINK = re.compile(r'<a (class="[^"]*") href="[^"]*"')  # only chips and citations are links in a text
HTML_LANGUAGE = {"en": "en", "zh": "zh-Hans"}


@dataclass(frozen=True)
class Said:
    """A text in one language. ``lang`` is set where it is not the page's own; ``html`` is safe; empty: nothing said."""

    html: SafeString
    lang: str = ""
    parts: tuple[tuple[str, SafeString], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.html)

    def __str__(self) -> SafeString:
        """Safe markup, with its language where that is not the page's own; templates print this."""
        if not self.lang:
            return self.html
        return format_html('<span lang="{}">{}</span>', self.lang, self.html)

    @property
    def unlinked(self) -> SafeString:
        """The same without links, for places that are pressed themselves; chips stay bound and lose their card."""
        return mark_safe(_LINK.sub(r"<span \1", str(self)).replace("</a>", "</span>"))

    @property
    def plain(self) -> str:
        """The text without markup, for titles and labels."""
        return " ".join(html.unescape(strip_tags(self.html)).split())


@dataclass(frozen=True)
class Rich:
    """Renders texts in ``language`` with the chips and sources of a page."""

    language: str
    chips: Mapping[str, Chip]
    sources: Mapping[str, Any]
    _made: dict[str, SafeString] = field(default_factory=dict, compare=False, repr=False)  # one chip stands often

    @property
    def shown(self) -> Shown:
        """What the pieces of a text are rendered with."""
        return Shown(self.chips, {})

    def choose(self, text: Mapping[str, str]) -> tuple[str, str]:
        """(language, text): the page's own, else the other one, said to be so."""
        other = "zh" if self.language == "en" else "en"
        own = text.get(self.language, "")
        return (self.language, own) if own else (other, text.get(other, ""))

    def said(self, text: Mapping[str, str], anchor: str = "") -> Said:
        """A text; with ``anchor`` also by sentences, each with the id of its permalink."""
        language, chosen = self.choose(text)
        parts = tuple(
            (f"{anchor}-{at}", self.markup(sentence))
            for at, sentence in enumerate(sentences(chosen) if anchor else (), start=1)
        )
        whole = mark_safe("".join(part for _, part in parts)) if parts else self.markup(chosen)
        return Said(whole, "" if language == self.language else HTML_LANGUAGE[language], parts)

    def markup(self, text: str) -> SafeString:
        """The pieces of one text, joined."""
        return format_html_join("", "{}", ((self._piece(piece),) for piece in parse_text(text)))

    def _piece(self, piece: Piece) -> Any:
        if piece.kind == SOURCE:
            return self.citation(piece.value)
        if piece.kind == FIGURE:
            if piece.value not in self._made:
                self._made[piece.value] = piece_markup(piece, self.shown, self.language)
            return self._made[piece.value]
        return piece_markup(piece, self.shown, self.language)

    def citation(self, label: str) -> SafeString:
        """A label as a link to its entry among the sources."""
        found = self.sources.get(label)
        title = "" if found is None else found.title
        return format_html(
            '<a class="cite" href="#source-{}" data-cites="{}" title="{}" data-walk="label">[{}]</a>',
            label, label, title, label,
        )  # fmt: skip


def day(value: str) -> SafeString:
    """A day as ``<time>``."""
    return format_html('<time datetime="{}">{}</time>', value, value)
