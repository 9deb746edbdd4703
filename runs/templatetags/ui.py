"""Tags and filters of the interface: icons, states, hashes, times, numbers, absent values."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Any

from django import template
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language, gettext_lazy
from django.utils.translation import gettext as _

from runs.presenters import terms
from runs.presenters.states import state_view
from runs.presenters.told import told
from runs.templatetags.icons import PATHS

register = template.Library()
THEMES = ("light", "dark")
SHORT = 8


def icon_markup(name: str) -> SafeString:
    """Inline drawing of one icon; decorative, so hidden from assistive technology."""
    return mark_safe(f'<svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">{PATHS[name]}</svg>')


@register.simple_tag
def icon(name: str) -> SafeString:
    """``{% icon "check" %}``."""
    return icon_markup(name)


@register.simple_tag
def state(value: str, table: str = "run", word: str | None = None) -> SafeString:
    """A state as icon, word and colour. ``table`` names whose states these are."""
    view = state_view(table, value)
    return format_html(
        '<span class="state {}">{}<span>{}</span></span>', view.tone, icon_markup(view.icon), word or view.word
    )


@register.simple_tag
def mark(tone: str, icon_name: str, word: Any) -> SafeString:
    """A free state mark, for words that belong to one page only."""
    return format_html('<span class="state {}">{}<span>{}</span></span>', tone, icon_markup(icon_name), word)


ABSENT = {
    "pending": ("circle", gettext_lazy("pending")),
    "notmeasured": ("minus", gettext_lazy("not measured")),
    "unavailable": ("warn", gettext_lazy("unavailable")),
    "none": ("minus", gettext_lazy("does not apply")),
}


@register.simple_tag
def absent(kind: str = "pending", why: Any = "", words: bool = False) -> SafeString:
    """An em dash that says which kind of nothing it is: never a zero.

    ``pending`` will be filled, ``notmeasured`` exists and nobody measured it, ``unavailable`` was
    lost, ``none`` does not apply here.
    """
    icon_name, word = ABSENT[kind]
    title = _(": ").join((str(word), str(why))) if why else str(word)
    drawn = icon_markup(icon_name) if kind in ("pending", "unavailable") else ""
    if words:
        return format_html('<span class="absent {}" title="{}">— {} {}</span>', kind, title, drawn, why or word)
    return format_html(
        '<span class="absent {}" title="{}">—{}<span class="visually-hidden">{}</span></span>',
        kind,
        title,
        drawn,
        title,
    )


def _short_form(request: HttpRequest | None, full: str, length: int) -> str:
    """Shortest prefix of at least ``length`` that no other value on this page has been shown by."""
    taken: dict[str, str] = {} if request is None else request.__dict__.setdefault("_short_forms", {})
    while length < len(full) and taken.setdefault(full[:length], full) != full:
        length += 2
    return full[:length]


@register.simple_tag(takes_context=True)
def short(context: template.Context, value: Any, length: int = SHORT, copy: bool = True) -> SafeString:
    """A hash or uid: short form unique within the page, full on hover, copy button."""
    if not value:
        return absent("none")
    full = str(value)
    shown = _short_form(context.get("request"), full, length)
    button = (
        format_html(
            '<button type="button" class="copy" data-copy="{}" aria-label="{}">{}</button>',
            full, _("Copy %(value)s") % {"value": shown}, icon_markup("copy"),
        )
        if copy
        else ""
    )  # fmt: skip
    return format_html('<span class="hash"><span title="{}">{}</span>{}</span>', full, shown, button)


@register.filter
def when(value: datetime | None) -> SafeString:
    """A time in UTC: date, clock and zone shown, ISO 8601 on hover."""
    if value is None:
        return absent("none")
    moment = value.astimezone(UTC)
    iso = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return format_html(
        '<time datetime="{}" title="{}" class="nowrap tnum">{}</time>', iso, iso, moment.strftime("%Y-%m-%d %H:%M:%SZ")
    )


@register.filter
def duration(seconds: float | None) -> str:
    """Seconds as the two largest units that matter: 3.2 s, 4 min 10 s, 2 h 5 min."""
    if seconds is None:
        return "—"
    if seconds < 60:
        return _("%(s)s s") % {"s": f"{seconds:.1f}" if seconds < 10 else f"{seconds:.0f}"}
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return _("%(m)d min %(s)d s") % {"m": minutes, "s": rest}
    hours, minutes = divmod(minutes, 60)
    return _("%(h)d h %(m)d min") % {"h": hours, "m": minutes}


def format_number(value: float | None, digits: int = 3, signed: bool = False) -> str:
    """A number with a true minus sign; non-finite values are named; ``None`` is an em dash."""
    if value is None:
        return "—"
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("+∞" if value > 0 else "−∞")
    if isinstance(value, int):
        text = f"{value:+,}" if signed else f"{value:,}"
    elif abs(value) < 1e-12:  # rounding noise of a difference of equal numbers
        text = f"{0.0:+.{digits}f}" if signed else f"{0.0:.{digits}f}"
    elif (value != 0 and abs(value) < 10**-digits / 2) or abs(value) >= 1e9:
        text = f"{value:+.2e}" if signed else f"{value:.2e}"
    else:
        text = f"{value:+,.{digits}f}" if signed else f"{value:,.{digits}f}"
    return text.replace("-", "−")


@register.filter
def number(value: float | None, digits: int = 3) -> str:
    """``{{ x|number:3 }}``."""
    return format_number(value, digits)


@register.filter
def signed(value: float | None, digits: int = 3) -> str:
    """``{{ x|signed:2 }}``: always with its sign."""
    return format_number(value, digits, signed=True)


@register.filter
def percent(value: float | None, digits: int = 0) -> str:
    """A share as per cent, with the space that the sign takes."""
    return "—" if value is None else f"{format_number(100.0 * value, digits)} %"


@register.filter
def said(value: Any) -> str:
    """A stored message, such as why an import or a job failed, in the reader's language where it is a known one."""
    return told(str(value or ""))


@register.filter
def pick(value: Any, key: Any) -> Any:
    """``{{ mapping|pick:key }}``; None where there is no such key."""
    return value.get(key) if hasattr(value, "get") else None


@register.filter
def title_of(value: Any) -> str:
    """Text of a {"en", "zh"} pair in the reader's language; English where the other is empty."""
    if not isinstance(value, dict):
        return str(value or "")
    chinese = (get_language() or "en").startswith("zh")
    return str((value.get("zh") if chinese else None) or value.get("en") or "")


@register.simple_tag(takes_context=True)
def theme(context: template.Context) -> str:
    """The stored theme, or an empty string for the system's own."""
    request = context.get("request")
    chosen = request.COOKIES.get("theme", "") if request is not None else ""
    return chosen if chosen in THEMES else ""


@register.filter
def plus(value: float, other: float) -> float:
    """Sum of two numbers, fractions included."""
    return round(float(value) + float(other), 2)


@register.filter
def pretty(value: Any) -> str:
    """JSON on one line, or indented where it is long."""
    line = json.dumps(value, ensure_ascii=False)
    return line if len(line) <= 56 else json.dumps(value, ensure_ascii=False, indent=2)


@register.filter
def leaf(value: Any) -> str:
    """A plan's value as its canonical bytes have it: text without quotes, lists joined, the rest as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value) or "[ ]"
    return json.dumps(value, ensure_ascii=False)


@register.filter
def setting(value: Any) -> str:
    """A plan's setting for reading: a list of small objects as "test 27, out_of_distribution 27", else ``leaf``."""
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        return ", ".join(" ".join(leaf(part) for part in item.values()) for item in value)
    return leaf(value)


@register.filter
def term(value: Any) -> str:
    """``{{ e.direction|term }}``: a stored word in the reader's language."""
    return terms.term(value)


@register.filter
def reason(value: str) -> str:
    """A stored reason: a fixed one in the reader's language, any other in its own words."""
    return str(terms.TERMS.get(value, value))


@register.filter
def fixed(value: float | None, digits: int = 2) -> str:
    """With its sign and always ``digits`` decimals, for columns that are read against each other; 0 is +0.00."""
    if value is None or not math.isfinite(value):
        return format_number(value, digits, signed=True)
    return f"{round(value, digits) + 0.0:+,.{digits}f}".replace("-", "−")
