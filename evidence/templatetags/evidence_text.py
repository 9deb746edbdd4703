"""Tags that render bilingual texts: bound values as chips, references as links, declared names as themselves."""

from __future__ import annotations

import json
from typing import Any

from django import template
from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language, override
from django.utils.translation import gettext as _

from evidence.binding.tokens import Piece, parse_text
from evidence.models import Figure
from evidence.presenters.chips import Chip, Shown, in_language, is_chinese, shown_for, source_url
from runs.templatetags.ui import icon_markup

register = template.Library()
_MARKED = (Figure.DRIFTED, Figure.PENDING, Figure.UNAVAILABLE)


def chip_markup(found: Chip, language: str | None = None) -> SafeString:
    """A figure in a text: a link to its page that carries its hover card; state by icon, word and colour."""
    look = found.look
    drawn = icon_markup(look.icon) if found.stale or found.state in _MARKED else SafeString("")
    with override("zh-hans" if is_chinese(language) else "en"):
        text, word = found.shown, str(look.word)
    spoken = "" if look.tone == "verified" else format_html('<span class="visually-hidden"> ({})</span>', word)
    before = json.dumps(found.earlier, ensure_ascii=False) if found.earlier else ""
    earlier = format_html(' data-earlier="{}"', before) if before else SafeString("")
    return format_html(
        '<a class="chip fig is-{}{}" href="{}" data-figure="{}" data-key="{}" data-shown="{}" data-state="{}" '
        'data-title="{}" data-card="{}"{}>{}<span class="fig-value">{}</span>{}</a>',
        found.state, " is-stale" if found.stale else "", found.url, found.uid, found.key, text, word,
        found.title(language), json.dumps(found.rows(language), ensure_ascii=False), earlier, drawn, text, spoken,
    )  # fmt: skip


def _unknown(kind: str, raw: str) -> SafeString:
    return format_html(
        '<span class="chip fig is-unknown" title="{}">{}</span>', _("unknown %(kind)s") % {"kind": kind}, raw
    )


def _source(piece: Piece, shown: Shown) -> SafeString:
    source = shown.sources.get(piece.value)
    if source is None:
        return _unknown(_("source"), piece.raw)
    url = source_url(source)
    if not url:
        return format_html('<span class="sourceref">[{}]</span>', piece.value)
    return format_html(
        '<a class="sourceref is-{}" href="{}" title="{}">[{}]</a>', source.state, url, source.path, piece.value
    )


def piece_markup(piece: Piece, shown: Shown, language: str | None) -> SafeString:
    """One piece of a text as HTML; all user text is escaped."""
    match piece.kind:
        case "figure":
            chip_of = shown.chips.get(piece.value)
            return chip_markup(chip_of, language) if chip_of else _unknown(_("figure"), piece.raw)
        case "source":
            return _source(piece, shown)
        case "name":
            return format_html('<span class="declared" data-declared="name">{}</span>', piece.value)
        case "date":
            return format_html('<time class="declared" data-declared="date">{}</time>', piece.value)
        case "code":
            return format_html('<code class="declared" data-declared="code">{}</code>', piece.value)
        case "formula":
            return format_html('<i class="declared formula" data-declared="formula">{}</i>', piece.value)
    return conditional_escape(piece.value)


def text_markup(text: str, shown: Shown, language: str | None) -> SafeString:
    """A text as HTML, from what its page has read."""
    return format_html_join("", "{}", ((piece_markup(piece, shown, language),) for piece in parse_text(text)))


def chosen(text: Any, language: str | None) -> str:
    """The text of a language out of {"en", "zh"}, or a plain text as it is."""
    if isinstance(text, dict):
        return in_language(str(text.get("en") or ""), str(text.get("zh") or ""), language)
    return str(text or "")


@register.simple_tag(takes_context=True)
def evidence_text(context: template.Context, text: Any, study: Any = None, language: str | None = None) -> SafeString:
    """``{% evidence_text text study lang %}``. Reads the context's ``shown`` and queries only what that lacks."""
    language = language or get_language()
    words = chosen(text, language)
    if "[[" not in words and "[@" not in words and "{{" not in words:
        return conditional_escape(words)
    shown = context.get("shown")
    if not isinstance(shown, Shown):
        shown = shown_for(study, [words])
    return text_markup(words, shown, language)


@register.simple_tag
def chip(found: Chip | None, language: str | None = None) -> SafeString:
    """``{% chip chip lang %}``; nothing bound is an em dash."""
    return chip_markup(found, language or get_language()) if found else mark_safe("—")
