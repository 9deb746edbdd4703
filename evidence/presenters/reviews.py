"""The review queue as a page: its first sentence, the strip of items, and a line for each that waits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q
from django.urls import reverse
from django.utils.translation import get_language, gettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _

from evidence.actions.reviews import KINDS
from evidence.binding.tokens import FIGURE, SOURCE, parse_text
from evidence.models import Answer, Claim, Figure, Reservation, Review, Source, StaleMark
from evidence.presenters.chips import shown as value_of
from evidence.queue import Item
from evidence.reviewing import ANSWERED, OPEN, Told
from evidence.waiting import answered
from runs.models import Actor
from runs.presenters.states import TABLES, StateView

CELLS_MOST = 64

# What each kind of item is called after its number, and what a page says where none waits.
KIND_WORDS: dict[str, Any] = {
    "link": ngettext_lazy("unreviewed link", "unreviewed links", "n"),
    "source": ngettext_lazy("drifted source", "drifted sources", "n"),
    "figure": ngettext_lazy("recomputed figure", "recomputed figures", "n"),
    "claim": ngettext_lazy("claim on changed evidence", "claims on changed evidence", "n"),
    "answer": ngettext_lazy("dispute to answer", "disputes to answer", "n"),
}
# What one of them is called where it stands by itself.
ITEM_WORDS: dict[str, Any] = {
    "link": _("Unreviewed link"), "source": _("Drifted source"), "figure": _("Recomputed figure"),
    "claim": _("Claim on changed evidence"), "answer": _("Dispute to answer"),
}  # fmt: skip
ANSWERED_DISPUTE = _("Answered dispute, waits for an acceptance")
EMPTY: dict[str, Any] = {
    "link": _("Every link has a verdict on the words of now."),
    "source": _("No source has drifted: held bytes have the hashes that were recorded."),
    "figure": _("No figure recomputes to another value."),
    "claim": _("No claim rests on superseded evidence."),
    "answer": _("No dispute waits for an answer."),
}
VERDICTS: dict[str, StateView] = {
    Review.ACCEPT: StateView(_("accept"), "check", "verified"),
    Review.DISPUTE: StateView(_("dispute"), "flag", "disputed"),
    Review.NEEDS_EVIDENCE: StateView(_("needs evidence"), "circle", "pending"),
}
PROVISIONAL = StateView(_("accept, provisional"), "half", "provisional")
RELATIONS: dict[str, Any] = {
    "supports": _("supports"),
    "contradicts": _("contradicts"),
    "bounds": _("bounds"),
    "background": _("background"),
}
STATUSES: dict[str, StateView] = {
    Claim.SUPPORTED: StateView(_("supported"), "check", "verified"),
    Claim.PARTLY: StateView(_("partly"), "half", "neutral"),
    Claim.NOT_ESTABLISHED: StateView(_("not established"), "circle", "pending"),
    Claim.PENDING: StateView(_("pending"), "circle", "pending"),
    Claim.REFUTED: StateView(_("refuted"), "cross", "failed"),
    Claim.WITHDRAWN: StateView(_("withdrawn"), "minus", "neutral"),
}
SOURCE_STATES: dict[str, StateView] = {
    **{name: TABLES["evidence"][name] for name in ("verified", "claimed", "drifted", "superseded")},
    Source.MISSING: StateView(_("bytes are gone"), "warn", "failed"),
}
FIGURE_STATES: dict[str, StateView] = {
    **{name: TABLES["evidence"][name] for name in ("claimed", "drifted", "pending", "stale")},
    Figure.BOUND: TABLES["evidence"]["verified"],
    Figure.UNAVAILABLE: StateView(_("unavailable"), "warn", "warned"),
}


LOOKED: dict[str, Any] = {
    "quotation": _("the quotation"),
    "section": _("the section around it"),
    "whole_source": _("the whole source"),
    "figures": _("the figures and their bindings"),
    "derivations": _("the derivations"),
    "plan": _("the plan"),
    "closure": _("the closure"),
    "bytes": _("the bytes, hashed"),
}
FATES: dict[str, Any] = {
    "open": _("waits for an answer"),
    "answered": _("answered, waits for an acceptance"),
    "settled": _("answered and accepted"),
    "stands": _("stands"),
    "superseded": _("superseded by a later review"),
}
CLAIM_KINDS: dict[str, Any] = {
    "improvement": _("improvement"),
    "equivalence": _("equivalence"),
    "non_inferiority": _("non-inferiority"),
    "no_regression": _("no regression observed"),
    "mechanism": _("mechanism"),
    "cost": _("cost"),
    "environment": _("environment"),
    "description": _("description"),
    "negative": _("negative result"),
}


def kind_words(kind: str, number: int) -> str:
    """``unreviewed links``, without the number."""
    return str(KIND_WORDS[kind] % {"n": number})


def in_language(row: Any, name: str) -> str:
    """``name_en`` or ``name_zh`` of a row in the reader's language; the other one where that is empty."""
    first, second = ("zh", "en") if (get_language() or "en").startswith("zh") else ("en", "zh")
    return str(getattr(row, f"{name}_{first}", "") or getattr(row, f"{name}_{second}", ""))


def verdict_view(review: Review) -> StateView:
    """How a verdict looks; an acceptance within the family is provisional."""
    if review.verdict == Review.ACCEPT and review.independence == Review.SAME_FAMILY:
        return PROVISIONAL
    return VERDICTS[review.verdict]


def source_of(row: Any) -> Source | None:
    """The source that an excerpt or a figure stands on directly; None where it stands on receipts or figures."""
    if row is None:
        return None
    if isinstance(row, Figure):
        version = None if row.current is None else row.current.source_version
        excerpt = None if row.current is None else row.current.excerpt
        version = version or (None if excerpt is None else excerpt.version)
    else:
        version = row.version
    return None if version is None else version.source


def values_of(rows: Iterable[tuple[int, str]]) -> dict[tuple[int, str], str]:
    """(study, key) -> the value of a figure as it is bound now, as pages show it. One query."""
    wanted = set(rows)
    if not wanted:
        return {}
    found = Figure.objects.filter(
        Q(study__in={study for study, _key in wanted}) & Q(key__in={key for _study, key in wanted})
    ).select_related("current")
    return {(row.study_id, row.key): value_of(row.current, row.state) for row in found}


def plain(text: str, study: int, values: Mapping[tuple[int, str], str]) -> str:
    """A text for a list: values in place of tokens, names as they are."""
    return "".join(
        values.get((study, piece.value), "—")
        if piece.kind == FIGURE
        else "" if piece.kind == SOURCE else piece.value
        for piece in parse_text(text)
    )  # fmt: skip


@dataclass(frozen=True)
class ToldView:
    """A review as a page tells it. ``newer``: numbers of the claim's versions that it has not seen."""

    review: Review
    answers: tuple[Answer, ...]
    fate: str
    view: StateView
    newer: tuple[int, ...]

    @property
    def fate_words(self) -> Any:
        """What has become of it."""
        return FATES[self.fate]

    @property
    def looked(self) -> list[str]:
        """What was looked at, in words."""
        return [str(LOOKED[name]) for name in self.review.looked_at]

    @property
    def is_open(self) -> bool:
        """Whether it may be answered: a dispute or a request for evidence that nobody has accepted since."""
        return self.fate in (OPEN, ANSWERED)


def told_views(claim: Claim, told: Sequence[Told]) -> tuple[ToldView, ...]:
    """Reviews of a claim for ``templates/evidence/review_answers.html``, newest first. One query."""
    numbers = sorted(claim.versions.values_list("number", flat=True)) if told else []
    return tuple(
        ToldView(
            item.review, item.answers, item.fate, verdict_view(item.review),
            tuple(number for number in numbers if number > item.review.claim_version.number),
        )
        for item in reversed(told)
    )  # fmt: skip


@dataclass(frozen=True)
class Line:
    """One item of the list."""

    item: Item
    url: str
    what: str
    claim: str
    sentence: str
    evidence: str
    place: str
    state: StateView | None
    at: datetime
    mine: bool

    @property
    def held(self) -> Reservation | None:
        """Who holds it."""
        return self.item.held


def item_url(name: str) -> str:
    """Address of an item of the queue."""
    return reverse("evidence:review_item", args=[name])


def _evidence(item: Item) -> tuple[Any, str, str]:
    """(row that the evidence is, what it says, where it stands) of an item."""
    row: Any = item.row
    if item.kind in ("link", "answer"):
        link = item.row if item.kind == "link" else item.row.link
        row = None if link is None else link.excerpt or link.figure
    elif item.kind == "claim":
        row = None
    if row is None:
        return None, "", ""
    if isinstance(row, Source):
        return row, in_language(row, "title") or row.path, row.path
    source = source_of(row)
    where = "" if source is None else f"{source.reference} {source.path}".strip()
    if isinstance(row, Figure):
        return row, f"{row.key} = {value_of(row.current, row.state)}", where
    return row, row.text, where


def _state(item: Item, evidence: Any) -> StateView | None:
    if item.kind == "answer":
        return verdict_view(item.row)
    if item.kind == "claim":
        return TABLES["evidence"]["stale"] if item.row.stale else VERDICTS[Review.DISPUTE]
    if isinstance(evidence, Figure):
        return FIGURE_STATES["stale" if evidence.stale and evidence.state == Figure.BOUND else evidence.state]
    source = evidence if isinstance(evidence, Source) else source_of(evidence)
    return None if source is None else SOURCE_STATES[source.state]


def _since(item: Item, changed: Mapping[tuple[str, Any], datetime]) -> datetime:
    """When it came to wait: the oldest open mark of what is stale, else when its record or its last check was."""
    row = item.row
    found: datetime = (
        changed.get((item.kind, row.uid))
        or getattr(row, "at", None)
        or getattr(row, "checked_at", None)
        or (row.study.created_at if row.current is None else row.current.at)
    )
    return found


def _changed(items: Sequence[Item]) -> dict[tuple[str, Any], datetime]:
    """(kind, uid) of figures and claims with an open mark -> when the oldest was set. One query."""
    uids = [item.row.uid for item in items if item.kind in ("figure", "claim") and item.row.stale]
    if not uids:
        return {}
    marks = StaleMark.objects.filter(target_uid__in=uids, resolution__isnull=True).order_by("-pk")
    return {(kind, uid): at for kind, uid, at in marks.values_list("target_kind", "target_uid", "at")}


def lines(items: Sequence[Item], me: Actor | None) -> list[Line]:
    """The list. One query for the values of all figures in its sentences, one for disputes that were answered."""
    texts = {
        item.claim.pk: in_language(item.claim.current, "text")
        for item in items
        if item.claim is not None and item.claim.current is not None
    }
    tokens = [
        (item.study.pk, piece.value)
        for item in items
        if item.claim is not None
        for piece in parse_text(texts.get(item.claim.pk, ""))
        if piece.kind == FIGURE
    ]
    values = values_of(tokens)
    again, changed = _answered(items), _changed(items)
    return [
        _line(item, texts, values, me, _since(item, changed), ANSWERED_DISPUTE if item.name in again else "")
        for item in items
    ]


def _answered(items: Sequence[Item]) -> set[str]:
    """Names of links and claims that wait for the acceptance of an answer."""
    rows = {kind: {item.row.pk: item.name for item in items if item.kind == kind} for kind in ("link", "claim")}
    if not any(rows.values()):
        return set()
    links, claims = answered(rows["link"], rows["claim"])
    return {rows["link"][pk] for pk in links} | {rows["claim"][pk] for pk in claims}


def _line(
    item: Item,
    texts: Mapping[int, str],
    values: Mapping[tuple[int, str], str],
    me: Actor | None,
    at: datetime,
    what: Any = "",
) -> Line:
    evidence, said, where = _evidence(item)
    claim = item.claim
    return Line(
        item=item,
        url=item_url(item.name),
        what=str(what or ITEM_WORDS[item.kind]),
        claim="" if claim is None else claim.key,
        sentence="" if claim is None else plain(texts.get(claim.pk, ""), item.study.pk, values),
        evidence=said,
        place=where,
        state=_state(item, evidence),
        at=at,
        mine=me is not None and claim is not None and claim.author_id == me.pk,
    )


@dataclass(frozen=True)
class Tab:
    """One kind with how much of it waits."""

    kind: str
    count: int
    words: str
    url: str
    current: bool


def tabs(counts: Mapping[str, int], kind: str | None, study: str) -> list[Tab]:
    """Kinds in the order of the queue."""
    base, of_study = reverse("evidence:reviews"), f"&study={study}" if study else ""
    return [
        Tab(name, counts[name], kind_words(name, counts[name]), f"{base}?kind={name}{of_study}", name == kind)
        for name in KINDS
    ]


def headline(counts: Mapping[str, int]) -> str:
    """The page's first sentence, from the counts."""
    waiting = [f"{counts[kind]:,} {kind_words(kind, counts[kind])}" for kind in KINDS if counts[kind]]
    if not waiting:
        return gettext("Nothing waits for a review.")
    return gettext("Waiting for a person: %(what)s.") % {"what": gettext(", ").join(waiting)}


def strip(counts: Mapping[str, int], done: int, here: tuple[str, int | None] | None = None) -> list[list[str]]:
    """Cells of the progress strip in groups: ``done`` today, then each kind, the item of now among them.

    At most ``CELLS_MOST``; above that each group keeps its share, and none that holds something vanishes.
    """
    groups = [("done", done), *((kind, counts[kind]) for kind in KINDS)]
    total = sum(number for _name, number in groups)
    scale = min(1.0, CELLS_MOST / total) if total else 1.0
    found = []
    for name, number in groups:
        if not number:
            continue
        cells = ["done" if name == "done" else "waiting"] * max(1, round(number * scale))
        if here is not None and here[0] == name and here[1] is not None:
            cells[min(len(cells) - 1, int((here[1] - 1) * len(cells) / number))] = "now"
        found.append(cells)
    return found


def done_today(me: Actor | None, at: datetime) -> int:
    """Reviews that the caller has written on this day (UTC)."""
    if me is None:
        return 0
    start = at.replace(hour=0, minute=0, second=0, microsecond=0)
    return Review.objects.filter(actor=me, at__gte=start).count()
