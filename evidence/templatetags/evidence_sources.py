"""Lines and values of a source as markup, built in one pass: a page has up to a thousand of them."""

from __future__ import annotations

from collections.abc import Sequence

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext, ngettext

from evidence.presenters.source_page import Body, Cell, Quotation
from evidence.presenters.source_values import JsonLine
from evidence.presenters.sources import STORED
from evidence.reading import Line, Part
from runs.templatetags.ui import icon_markup

register = template.Library()


@register.filter
def stored(text: str) -> str:
    """A note or reason: one that an action wrote in the reader's language, any other in its own words."""
    return str(STORED.get(text, text))


def _keys(quotes: Sequence[int], quotations: Sequence[Quotation]) -> str:
    return escape(", ".join(quotations[quote].excerpt.key for quote in quotes))


def marked(text: str, quotes: Sequence[int], begins: Sequence[int], quotations: Sequence[Quotation]) -> str:
    """Markup ``text`` as a highlighted quotation; the first place of each has its anchor."""
    anchors = "".join(f'<span class="quoteanchor" id="q{quote + 1}"></span>' for quote in begins)
    walked = " data-quote" if begins else ""
    return f'<mark class="quoted"{walked} title="{_keys(quotes, quotations)}">{anchors}{text}</mark>'


def _part(part: Part, quotations: Sequence[Quotation]) -> str:
    text: str = escape(part.text)
    return marked(text, part.quotes, part.begins, quotations) if part.quotes else text


def _cut(count: int) -> str:
    if not count:
        return ""
    words = ngettext("… %(n)s more character", "… %(n)s more characters", count) % {"n": f"{count:,}"}
    return f'<span class="cut">{escape(words)}</span>'


def _folded(count: int, address: str, line: int) -> str:
    words = ngettext("%(n)s line is folded", "%(n)s lines are folded", count) % {"n": f"{count:,}"}
    return f'<div class="skipped"><a href="{address}{line}#L{line}">{escape(words)}</a></div>'


@register.simple_tag
def source_lines(body: Body, quotations: Sequence[Quotation], version: int) -> SafeString:
    """Numbered lines with quotations, what is folded between them, and where pages of a PDF begin."""
    address, name = f"?version={version}&amp;line=", gettext("line %(n)s")
    found = []
    for place, line in enumerate(body.lines):
        if line.skipped and (place or not body.whole):
            found.append(_folded(line.skipped, address, line.number))
        if line.page is not None:
            words = gettext("page %(n)s") % {"n": line.page}
            found.append(f'<div class="pagemark">{escape(words)}</div>')
        found.append(_line(line, name, quotations))
    if body.after and not body.whole:
        found.append(_folded(body.after, address, body.last + 1))
    return mark_safe("".join(found))


def _line(line: Line, name: str, quotations: Sequence[Quotation]) -> str:
    number, label = line.number, escape(name % {"n": line.number})
    kind = f" k-{line.kind}" if line.kind else ""
    text = "".join(_part(part, quotations) for part in line.parts) + _cut(line.cut)
    link = f'<a class="ln" href="#L{number}" aria-label="{label}">{number}</a>'
    return f'<div class="line{kind}" id="L{number}">{link}<span class="lt">{text}</span></div>'


@register.simple_tag
def source_values(values: Sequence[JsonLine], quotations: Sequence[Quotation]) -> SafeString:
    """A line a value, each with its pointer as anchor."""
    link = icon_markup("link")
    return mark_safe("".join(_value(line, quotations, link) for line in values))


def _value(line: JsonLine, quotations: Sequence[Quotation], link: str) -> str:
    anchor, pointer = escape(line.anchor), escape(line.pointer or "/")
    text: str = escape(line.opens or line.closes)
    if line.text:
        text += f'<span class="j-{line.kind}">{escape(line.text)}</span>'
    if line.quotes:
        text = marked(text, line.quotes, line.quotes, quotations)
    key = f'<span class="jkey">{escape(line.key)}</span>: ' if line.key is not None else ""
    comma = "," if line.comma else ""
    number = '<span class="ln"></span>'
    if anchor:
        number = f'<a class="ln" href="#{anchor}" title="{pointer}" aria-label="{pointer}">{link}</a>'
    place = f' id="{anchor}"' if anchor else ""
    shown = f'<span class="lt">{key}{text}{comma}{_cut(line.cut)}</span>'
    return f'<div class="line d{min(line.depth, 9)}"{place}>{number}{shown}</div>'


@register.simple_tag
def source_rows(body: Body, quotations: Sequence[Quotation]) -> SafeString:
    """Rows of a table with the line that each ends on."""
    found = []
    for row in body.rows:
        cells = "".join(_cell(cell, quotations) for cell in row.cells)
        link = f'<a class="ln" href="#L{row.line}">{row.line}</a>'
        found.append(f'<tr id="L{row.line}"><td class="num">{link}</td>{cells}</tr>')
    return mark_safe("".join(found))


def _cell(cell: Cell, quotations: Sequence[Quotation]) -> str:
    text: str = escape(cell.text)
    if cell.quotes:
        text = marked(text, cell.quotes, cell.quotes, quotations)
    kind = f' class="{cell.kind}"' if cell.kind else ""
    return f"<td{kind}>{text}{_cut(cell.cut)}</td>"
