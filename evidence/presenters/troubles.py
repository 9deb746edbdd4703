"""What is wrong with a figure or excerpt, what was refused and why a mark stands, in the reader's language.

These messages are English where they are made, stored and answered by the API. Pages read them by the patterns below
and those of ``evidence.presenters.refusals``, then by those of ``runs``; one of no pattern is shown as it is.
"""

from __future__ import annotations

import re

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from evidence.presenters.refusals import CHANGES, PARTS, REASONS, REFUSALS, WORDS
from evidence.presenters.sources import STORED
from runs.presenters import told as common
from runs.presenters.patterns import is_translated, read
from runs.presenters.terms import TERMS

PATTERNS = (
    # derivations
    _("/: got a divisor of 0, expected another; a rate without cases has no value"),
    _("%(name)s: got %(key)s, which has no value (%(state)s), expected one"),
    _("figure: got '%(name)s', expected one that is bound"),
    _("figure: got '%(key)s', expected the key of a figure of %(study)s"),
    _("derivation: got a circle %(circle)s, expected figures that rest on others"),
    _("derivation: got more than %(n)s figures that rest on each other, expected fewer"),
    _("%(place)s: got %(units)s, expected one unit"),
    _("unit: got '%(unit)s', expected names joined by * or /, powers with ^"),
    _("unit: got '%(unit)s', expected %(wanted)s, which the expression gives"),
    _("expression: got %(n)s characters, expected at most %(most)s"),
    _("expression: got '%(text)s', expected an expression"),
    _("expression: got '%(text)s', expected names and numbers in ASCII letters"),
    _("expression: got '%(text)s', expected numbers, figures, + - * / and %(functions)s"),
    _("expression: got the comment '%(text)s', expected none; the reason of a figure says why"),
    _("expression: got more than %(n)s levels, expected fewer"),
    _("expression: got count, which is a number of its own; bind it as a figure of its own"),
    _(
        "expression: got the constant %(constant)s, expected none in an effect but in %(forms)s; bind it as a figure "
        "of its own"
    ),
    _("expression: got %(n)s constants, expected at most %(most)s in an effect"),
    _("expression: got %(key)s %(n)s times, expected it at most %(most)s times in an effect"),
    _("expression: got %(key)s, on which the value does not depend, expected figures that each change it"),
    _("operator: got %(name)s, expected one of + - * /"),
    # values
    _("%(column)s: recomputes to %(now)s, stored is %(before)s"),
    _("number: got '%(text)s', expected a decimal number"),
    _("number: got '%(text)s', expected a denominator other than 0"),
    _("number: got '%(text)s', expected one / at most: n/N"),
    _("number: got '%(text)s', expected one sign at most"),
    _("value: got a number of more than %(n)s characters, expected a shorter one"),
    _("value: got %(n)s characters, expected at most %(most)s"),
    _("the figure has no version"),
    # sources and receipts
    _("the source has drifted"),
    _("the bytes of the source differ from their hash"),
    _("the bytes differ from their recorded hash"),
    _("the bytes of the source are gone"),
    _("the receipt's bytes differ from their hash"),
    _("binding.source: got '%(path)s', whose bytes are gone; expected bytes to read"),
    _("binding.source: got '%(path)s', whose bytes are not held here, only their hash; expected bytes to read"),
    _("binding.source: got '%(path)s', expected the path of a source of this study"),
    _("binding.source: got '%(path)s', which has no version, expected one with bytes"),
    _("binding.sha256: got '%(hash)s', expected a receipt of this study"),
    _("binding.pointer: got a %(type)s at '%(pointer)s', expected a number"),
    _("binding.pointer: got no number at '%(pointer)s', expected one"),
    _("binding.excerpt: got '%(key)s', expected the key of an excerpt of this study"),
    _("source: got a byte at %(n)s that is no UTF-8, expected text"),
    _("source: got text that is no JSON (%(why)s), expected JSON"),
    _("source: got an empty table, expected a header"),
    _("pointer: got '%(pointer)s', which leads to nothing, expected a place in the document"),
    _("pointer: got '%(pointer)s', expected nothing or a text that begins with /"),
    _("column: got '%(column)s' %(n)s times in the header, expected once"),
    _("row: got %(n)s rows with %(column)s = '%(key)s', expected exactly one"),
    # quotations
    _("the place reads '%(now)s', expected '%(before)s'"),
    _("quote: got no place, expected exactly one"),
    _("quote: got %(n)s places (lines %(lines)s), expected exactly one: add text before or after it"),
    _("quote: got %(n)s places of the text alone, none with its prefix and suffix"),
    # closed executions
    _("plan_version: got none, expected the frozen version whose closed execution is read"),
    _("plan_version: got %(state)s, expected the closed execution of %(plan)s"),
    _("plan_version: got one of another study, expected one of %(study)s"),
    _("aggregate: got none, expected the one that closing %(plan)s stored"),
    _("closure: got one that names other documents, expected those of %(plan)s"),
    _("endpoint: got '%(endpoint)s', expected one of %(known)s"),
    _("%(endpoint)s: got no result (%(reason)s), expected a measured endpoint"),
    _("%(quantity)s: got no number, expected one; a quantity that was not measured is unavailable"),
    _("%(document)s: got %(now)s, expected %(before)s, which was bound"),
)  # fmt: skip
_CHANGE = re.compile(r"(?P<what>value|unit|kind|origin) (?P<was>[^\s,;]+) is now (?P<now>[^\s,;]+)")
_ONE = r"(?:value|unit|kind|origin) [^\s,;]+ is now [^\s,;]+"
_CHANGED = re.compile(rf"(?P<key>[\w.\-]+): (?P<changes>{_ONE}(?:, {_ONE})*);(?P<reason>.*)", re.DOTALL)
STORED_WORDS = ("of", "status", "cap", "verdict", "fate", "relation", "origin")  # values that are stored words
_KEYED = re.compile(r"(?P<key>[\w.\-]+): (?P<rest>.+)", re.DOTALL)


MESSAGES = (*PATTERNS, *STORED, *REASONS, *PARTS, *REFUSALS)


def told(message: str) -> str:
    """A message in the reader's language: itself in English, and where no pattern reads it."""
    if not is_translated() or not message:
        return message
    return _told(message, 0) or common.told(message)


def _value(name: str, value: str, depth: int) -> str:
    """One value of a message: a message of its own, a stored word, or what somebody wrote, as it is."""
    if name == "said":
        return _told(value, depth + 1) or value
    if name in ("field", "kind"):
        return gettext(WORDS[value]) if value in WORDS else _word(value)
    return _word(value) if name in STORED_WORDS else value


def _word(value: str) -> str:
    """A stored word; one that is not listed, such as a number, as it is."""
    return gettext("none") if value == "none" else str(TERMS.get(value, value))


def _told(message: str, depth: int) -> str:
    """The translation; empty where nobody knows the message."""
    if depth > 20:
        return ""
    if found := read(MESSAGES, message, lambda name, value: _value(name, value, depth)):
        return found
    if changed := _changed(message):
        return changed
    head, mark, tail = message.partition("; ")
    if mark and (first := _told(head, depth + 1)) and (second := _told(tail, depth + 1)):
        return f"{first}；{second}"
    keyed = _KEYED.fullmatch(message)  # what is wrong with an operand stands behind its key
    rest = _told(keyed["rest"], depth + 1) if keyed else ""
    return f"{keyed['key']}：{rest}" if keyed and rest else ""


def _changed(message: str) -> str:
    """What a new version of a figure changed, and why somebody said that it did; empty where it is no such message."""
    found = _CHANGED.fullmatch(message)
    if found is None:
        return ""
    rows = [
        gettext(CHANGES[row["what"]]) % {"was": _word(row["was"]), "now": _word(row["now"])}
        for row in _CHANGE.finditer(found["changes"])
    ]
    return "；".join((f"{found['key']}：{'，'.join(rows)}", *filter(None, (found["reason"].strip(),))))
