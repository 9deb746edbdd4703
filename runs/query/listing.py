"""One page of a list: rows, count, way on and back, what is new, saved filters, other lists under this filter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.core.exceptions import ValidationError
from django.http import QueryDict
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from runs.access import Principal
from runs.models import SavedFilter
from runs.query.histogram import Histogram, build_histogram
from runs.query.keys import KEYS
from runs.query.lists import LISTS, ListSpec
from runs.query.narrow import Narrowed, filtered, fits, keys_of, narrow
from runs.query.paging import SIZE, BadCursor, Place, capped_count, decode, encode, newest_key, place_of, window
from runs.query.parse import Query, QueryError, parse, quote
from runs.query.resolve import Asker

# Parameters that links of other pages use; each becomes a term of the query.
PLAIN = ("state", "condition", "split", "arm", "run", "task", "plan", "study", "purpose", "stream")
OTHER_WORDS = {"outcome": "stop"}


@dataclass(frozen=True)
class Quick:
    """A term to switch on or off with one press."""

    term: str
    url: str
    on: bool


@dataclass(frozen=True)
class Other:
    """The same filter in another list."""

    word: Any
    url: str
    current: bool


@dataclass(frozen=True)
class Column:
    """A column that can be sorted by. ``direction``: "ascending", "descending" or empty."""

    url: str
    direction: str


@dataclass
class Listing:
    """What the list's page shows. ``count`` is capped where ``more`` is true; ``new`` rows came since ``upto``."""

    spec: ListSpec
    query: Query
    rows: list[Any]
    count: int
    more: bool
    sort: str
    upto: int
    errors: tuple[QueryError, ...]
    next_url: str
    first_url: str
    previous_url: str
    new: int
    new_more: bool
    histogram: Histogram | None
    quick: list[Quick]
    others: list[Other]
    saved: list[SavedFilter]
    columns: Mapping[str, Column]
    help: list[tuple[str, Any, str, tuple[str, ...]]]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def text(self) -> str:
        """The query as typed."""
        return self.query.text

    @property
    def total(self) -> str:
        """The count as it may be said: "10,000+" where more were not counted."""
        return f"{self.count:,}" + ("+" if self.more else "")

    @property
    def carried(self) -> str:
        """What a row's link carries along, so that the page it opens can go on through this list."""
        if not self.query.terms:
            return ""
        return "?" + urlencode({"in": self.spec.name, "q": self.query.text})


def query_text(given: QueryDict) -> str:
    """The query of an address: ``q`` and the plain parameters of older links."""
    terms = [given.get("q", "")]
    for name in (*PLAIN, *OTHER_WORDS):
        value = given.get(name, "")
        if value:
            key = OTHER_WORDS.get(name, name)
            terms.append("is:parent" if (key, value) == ("arm", "parent") else f"{key}:{quote(value)}")
    return " ".join(term for term in terms if term)


def address(spec: ListSpec, **given: Any) -> str:
    """The list's address with parameters; empty ones are left out."""
    kept = {name: value for name, value in given.items() if value not in ("", None)}
    return reverse(spec.url) + ("?" + urlencode(kept) if kept else "")


def _toggled(query: Query, term: str) -> Quick:
    on = any(own.source == term for own in query.terms)
    key = term.split(":")[0]
    single = key in ("condition", "split", "stop")
    kept = [own.source for own in query.terms if own.source != term and not (single and own.key == key)]
    return Quick(term, " ".join(kept if on else [*kept, term]), on)


def _columns(spec: ListSpec, query: Query, sort: str) -> dict[str, Column]:
    kept = " ".join(term.source for term in query.terms if term.key != "sort")
    found = {}
    for name in spec.sorts:
        falling, rising = f"-{name}", name
        target = rising if sort == falling else falling
        asked = kept if target == spec.default else f"{kept} sort:{target}".strip()
        direction = "descending" if sort == falling else "ascending" if sort == rising else ""
        found[name] = Column(address(spec, q=asked), direction)
    return found


def _help(spec: ListSpec) -> list[tuple[str, Any, str, tuple[str, ...]]]:
    rows = [(n, KEYS[n].help, KEYS[n].example, KEYS[n].on[spec.name].words or ()) for n in keys_of(spec) if n in KEYS]
    return [*rows, ("sort", _("order; - before the name for descending"), "sort:-created", tuple(spec.sorts))]


def _saved(principal: Principal, name: str) -> list[SavedFilter]:
    if principal.user is None:
        return []
    return list(SavedFilter.objects.filter(user=principal.user, page=name).order_by("name"))


def _place(text: str, sort: str) -> tuple[Place | None, QueryError | None]:
    if not text:
        return None, None
    try:
        return decode(text, sort), None
    except BadCursor:
        return None, _cursor_error()


def _cursor_error() -> QueryError:
    return QueryError("after", _("this place in the list is not one that the list gave out; it begins at its start"))


def _read(
    spec: ListSpec, asker: Asker, found: Narrowed, place: Place | None, upto: int, backward: bool
) -> tuple[list[Any], bool]:
    """(rows in reading order, whether there are others beyond them)."""
    assert found.where is not None
    # Keys first: with the related tables joined, the planner would sort every row instead of walking the index.
    rows = filtered(spec, asker, found.where).filter(pk__lte=upto).values_list("pk", flat=True)
    got = window(spec, rows, found.sort, place, SIZE + 1, backward)
    loaded = {row.pk: row for row in spec.load(spec.model._default_manager.filter(pk__in=got[:SIZE]))}
    kept = [loaded[key] for key in got[:SIZE]]
    return (kept[::-1] if backward else kept), len(got) > SIZE


def build_listing(name: str, principal: Principal, given: QueryDict) -> Listing:
    """The page of list ``name`` for the parameters ``given``."""
    spec, query = LISTS[name], parse(query_text(given))
    asker = Asker(principal, timezone.now())
    found = narrow(spec, query, asker)
    errors = list(found.errors)
    backward = "before" in given
    place, bad = _place(given.get("before" if backward else "after", ""), found.sort)
    upto = place.upto if place else newest_key(spec.visible(principal))
    rows: list[Any] = []
    count, more, others, new, new_more, histogram = 0, False, False, 0, False, None
    if found.where is not None:
        base = filtered(spec, asker, found.where)
        try:
            rows, others = _read(spec, asker, found, place, upto, backward)
        except (ValueError, TypeError, ValidationError):
            bad, place, backward = _cursor_error(), None, False
            rows, others = _read(spec, asker, found, None, upto, False)
        count, more = capped_count(base.filter(pk__lte=upto))
        new, new_more = capped_count(base.filter(pk__gt=upto), 1_000) if place else (0, False)
        histogram = build_histogram(spec, base.filter(pk__lte=upto), query)
    if bad:
        errors.append(bad)
    forward = others if not backward else True
    back = place is not None and (others if backward else True)
    last = encode(place_of(spec, found.sort, rows[-1], upto)) if rows and forward else ""
    first = encode(place_of(spec, found.sort, rows[0], upto)) if rows and back else ""
    return Listing(
        spec, query, rows, count, more, found.sort, upto, tuple(errors),
        next_url=address(spec, q=query.text, after=last) if last else "",
        first_url=address(spec, q=query.text),
        previous_url=address(spec, q=query.text, before=first) if first else "",
        new=new, new_more=new_more, histogram=histogram,
        quick=[Quick(q.term, address(spec, q=q.url), q.on) for q in (_toggled(query, term) for term in spec.quick)],
        others=[Other(s.word, address(s, q=fits(s, query)), s is spec) for s in LISTS.values()],
        saved=_saved(principal, name),
        columns=_columns(spec, query, found.sort), help=_help(spec),
    )  # fmt: skip


@dataclass(frozen=True)
class Within:
    """Where a row stands in the filtered list that its link came from. An address is empty where there is none."""

    word: Any
    query: str
    list_url: str
    previous_url: str
    next_url: str


def within(principal: Principal, given: QueryDict, name: str, row: Any, url: str) -> Within | None:
    """Neighbours of ``row`` in list ``name`` under the query that its address carries; None without one."""
    if given.get("in") != name or not given.get("q"):
        return None
    spec, query = LISTS[name], parse(given.get("q", ""))
    asker = Asker(principal, timezone.now())
    found = narrow(spec, query, asker)
    if found.where is None:
        return None
    rows = filtered(spec, asker, found.where)
    place = place_of(spec, found.sort, row, newest_key(rows))
    carried = "?" + urlencode({"in": name, "q": query.text})
    links = []
    for backward in (True, False):
        near = window(spec, rows.values_list("uid", flat=True), found.sort, place, 1, backward)
        links.append(reverse(url, args=[near[0]]) + carried if near else "")
    return Within(spec.word, query.text, address(spec, q=query.text), *links)
