"""A query applied to the rows of one list."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from runs.query.keys import KEYS
from runs.query.lists import LISTS, ListSpec
from runs.query.parse import Query, QueryError, Term, quote
from runs.query.resolve import Asker, Unknown, contains, nearest
from runs.query.values import Unreadable, hash_prefix, text_range, uid_prefix

_NO_COLON = re.compile(r"^([A-Za-z_]+)(>=|<=|[<>=≥≤])([^<>=≥≤]+)$")
_SIGNS = {"≥": ">=", "≤": "<=", "=": ""}
_HASHES = ("sha256", "record_sha256", "task_sha256")


@dataclass(frozen=True)
class Narrowed:
    """``where`` is None where an error forbids listing; ``sort`` a name of the list, with ``-`` for descending."""

    where: Q | None
    sort: str
    errors: tuple[QueryError, ...]


def keys_of(spec: ListSpec) -> tuple[str, ...]:
    """Keys that a list knows, ``sort`` included."""
    return (*(name for name, key in KEYS.items() if spec.name in key.on), "sort")


def _sort(spec: ListSpec, term: Term) -> str:
    value = term.values[0].lower()
    if term.negated or len(term.values) > 1 or value.lstrip("-") not in spec.sorts or value.startswith("--"):
        near = nearest(value.lstrip("-"), spec.sorts)
        sign = "-" if value.startswith("-") else ""
        raise QueryError(
            term.source,
            _("sort: got %(value)s, expected one of %(names)s, with - before it for descending")
            % {"value": ",".join(term.values), "names": ", ".join(spec.sorts)},
            f"sort:{sign}{near}" if near else "",
            tuple(spec.sorts),
        )
    return value


def _free(spec: ListSpec, term: Term) -> Q:
    word = term.values[0]
    found = Q()
    for field in spec.text:
        found |= contains(spec.model, field, word)
    if text_range(word):
        for field in spec.hashes:
            if field in _HASHES and "-" not in word:
                found |= hash_prefix(field, word)
            elif field not in _HASHES and len(word.replace("-", "")) <= 32:
                found |= uid_prefix(field, word)
    return found


def without_colon(term: Term) -> tuple[str, str, str] | None:
    """(key, sign, value) of a word that compares a key and lacks the colon, as ``reward<0.4``; None for any other.

    A word in quotation marks is free text whatever it holds.
    """
    if term.key or '"' in term.source:
        return None
    key, sign, value = ("", "", "") if (found := _NO_COLON.match(term.values[0])) is None else found.groups()
    return (key.lower(), sign, value) if key.lower() in KEYS else None


def _no_colon(spec: ListSpec, term: Term, key: str, sign: str, value: str) -> QueryError:
    matcher = KEYS[key].on.get(spec.name)
    if matcher is None:
        return _unknown_key(spec, Term(key, (f"{sign}{value}",), term.negated, term.source))
    compared = _SIGNS.get(sign, sign) if matcher.compares else ""
    message = _("got no colon after %(key)s, expected one before the value; free text stands in quotation marks")
    sign = "-" if term.negated else ""
    return QueryError(term.source, message % {"key": key}, f"{sign}{key}:{compared}{value}")


def _unknown_key(spec: ListSpec, term: Term) -> QueryError:
    names = keys_of(spec)
    value = ",".join(quote(v) for v in term.values)
    sign = "-" if term.negated else ""
    if term.key in KEYS:
        lists = ", ".join(str(LISTS[name].word) for name in KEYS[term.key].on)
        message = _("%(key)s: no such column in this list, it belongs to: %(lists)s") % {
            "key": term.key,
            "lists": lists,
        }
        return QueryError(term.source, message, "", names)
    near = nearest(term.key, names)
    message = _("%(key)s: got an unknown key with the value %(value)s, expected one of %(names)s") % {
        "key": term.key, "value": value, "names": ", ".join(names),
    }  # fmt: skip
    return QueryError(term.source, message, f"{sign}{near}:{value}" if near else f'"{term.source.lstrip("-")}"', names)


def _condition(spec: ListSpec, asker: Asker, term: Term) -> Q:
    if not term.key:
        meant = without_colon(term)
        if meant is not None:
            raise _no_colon(spec, term, *meant)
        return _free(spec, term)
    key = KEYS.get(term.key)
    if key is None or spec.name not in key.on:
        raise _unknown_key(spec, term)
    found = Q()
    for value in term.values:
        try:
            found |= key.on[spec.name].read(asker, value)
        except Unreadable as error:
            near = error.near if isinstance(error, Unknown) else ""
            possible = error.possible if isinstance(error, Unknown) else ()
            message = _("%(key)s: got %(value)s, expected %(expected)s") % {
                "key": term.key, "value": value, "expected": error,
            }  # fmt: skip
            sign = "-" if term.negated else ""
            raise QueryError(
                term.source, message, f"{sign}{term.key}:{quote(near)}" if near else "", possible
            ) from error
    return found


def narrow(spec: ListSpec, query: Query, asker: Asker) -> Narrowed:
    """The condition of a query in a list; everything that is wrong is named at once."""
    errors, where, sort = list(query.errors), Q(), spec.default
    for term in query.terms:
        try:
            if term.key == "sort":
                sort = _sort(spec, term)
                continue
            found = _condition(spec, asker, term)
            where &= ~found if term.negated else found
        except QueryError as error:
            errors.append(error)
    return Narrowed(None if errors else where, sort, tuple(errors))


def fits(spec: ListSpec, query: Query) -> str:
    """The part of a query that another list understands too: how one filter follows the reader around."""
    kept = []
    for term in query.terms:
        if term.key == "sort":
            known = term.values[0].lstrip("-") in spec.sorts
        elif term.key:
            key = KEYS.get(term.key)
            matcher = key.on.get(spec.name) if key else None
            known = matcher is not None and (
                matcher.words is None or all(value.lower() in matcher.words for value in term.values)
            )
        else:
            known = True
        if known:
            kept.append(term.source)
    return " ".join(kept)


def filtered(spec: ListSpec, asker: Asker, where: Q) -> QuerySet[Any]:
    """Visible rows under a condition."""
    return spec.visible(asker.principal).filter(where)
