"""Tags of the pages of figures: what a chip says in the reader's language."""

from __future__ import annotations

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import get_language

from evidence.presenters import troubles
from evidence.presenters.chips import KINDS, STATES, TYPES, Chip, source_url
from runs.templatetags.ui import absent, icon_markup

register = template.Library()


@register.simple_tag
def title(chip: Chip) -> str:
    """What the figure says."""
    return chip.title(get_language())


@register.simple_tag
def denominator(chip: Chip) -> str:
    """Of what it is a part; empty where it is no part."""
    return chip.denominator(get_language())


@register.simple_tag
def why(chip: Chip) -> str:
    """Why there is no value, or what would fill it."""
    return chip.why(get_language())


@register.simple_tag
def kind(chip: Chip) -> str:
    """The kind in words."""
    return str(KINDS[chip.version.kind])


@register.simple_tag
def look(chip: Chip) -> SafeString:
    """State as icon, word and colour; a stale figure says both."""
    view = STATES[chip.state]
    marks = format_html('<span class="state {}">{}<span>{}</span></span>', view.tone, icon_markup(view.icon), view.word)
    if not chip.stale:
        return marks
    stale = chip.look
    return format_html(
        '{} <span class="state {}">{}<span>{}</span></span>', marks, stale.tone, icon_markup(stale.icon), stale.word
    )


@register.simple_tag
def bound_to(chip: Chip) -> SafeString:
    """What it is bound to, with the page of its source."""
    word = TYPES[chip.version.binding["type"]]
    if chip.version.source_version is not None:
        source = chip.version.source_version.source
        url = source_url(source)
        name = format_html('<a href="{}">{}</a>', url, source) if url else format_html("{}", source)
        return format_html('{} <span class="muted xs">{}</span>', name, word)
    if chip.expression:
        return format_html("<code>{}</code>", chip.version.binding["expression"])
    if chip.why():
        return format_html('<span class="soft">{}</span>', chip.why(get_language()))
    return format_html('{} <span class="muted xs">{}</span>', chip.source_name or absent("none"), word)


@register.filter
def told(message: str) -> str:
    """What is wrong with a figure or excerpt, in the reader's language."""
    return troubles.told(str(message))


@register.filter
def words(text: str) -> list[str]:
    """The words of a text, to loop over."""
    return text.split()
