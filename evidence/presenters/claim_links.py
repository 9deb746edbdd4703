"""Links of a claim: each with its quotation in the lines around it, or the figure that it brings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from evidence.models import Claim, Excerpt, ExcerptHead, Figure, Link, LinkWithdrawal, Review, SourceVersion
from evidence.presenters import reviews as shown
from evidence.presenters.chips import HEAVY, RELATED, Chip, chips_of
from evidence.reading import Line, marks_of, quotes_in, shown_lines, windows
from runs.presenters.states import StateView
from workbench.blobs import BlobError

AROUND = 2  # lines shown on either side of a quotation
READ_MOST = 12  # sources whose bytes one page reads; further quotations are shown by themselves
LINES_MOST = 24
ORPHAN = StateView(_("orphan: not found in its source"), "warn", "failed")
TONES = {"supports": ("check", "verified"), "contradicts": ("notequal", "failed"), "bounds": ("barrier", "warned"),
         "background": ("dot", "neutral")}  # fmt: skip


@dataclass(frozen=True)
class LinkView:
    """One link. ``lines``: the quotation in context, empty where the bytes are not held or not to be read.

    ``verdicts``: newest verdict of each reviewer on this link.
    """

    link: Link
    withdrawal: LinkWithdrawal | None
    view: StateView
    chip: Chip | None
    lines: tuple[Line, ...]
    state: StateView | None
    verdicts: tuple[tuple[str, StateView], ...]

    @property
    def excerpt(self) -> Excerpt | None:
        """The quotation, where it is one."""
        return self.link.excerpt

    @property
    def source(self) -> Any:
        """Where it stands."""
        return shown.source_of(self.link.excerpt or self.link.figure)

    @property
    def reach(self) -> str:
        """What it cannot show."""
        return shown.in_language(self.link, "reach")

    @property
    def form_name(self) -> str:
        """Name of the form that withdraws it."""
        return f"unlink-{self.link.uid}"

    @property
    def review_url(self) -> str:
        """Its place in the review queue."""
        return reverse("evidence:review_item", args=[f"link:{self.link.uid}"])

    @property
    def place(self) -> tuple[int, int] | None:
        """First and last line of the quotation, where the last check found it."""
        head = getattr(self.link.excerpt, "head", None)
        return (head.first_line, head.last_line) if head is not None and head.first_line else None


def link_views(claim: Claim) -> tuple[LinkView, ...]:
    """All links of a claim, those that stand first. Four queries, and the bytes of at most ``READ_MOST`` sources."""
    rows = list(
        Link.objects.filter(claim=claim)
        .select_related("withdrawal__actor", "actor", "claim_version", "excerpt__head", "excerpt__version__source")
        .order_by("pk")
    )
    keys = [row.figure_id for row in rows if row.figure_id]
    figures = Figure.objects.filter(pk__in=keys).select_related("study", *RELATED).defer(*HEAVY) if keys else []
    by_pk = {item.figure.pk: item for item in chips_of(figures).values()}
    for row in rows:
        if row.figure_id in by_pk:
            row.figure = by_pk[row.figure_id].figure
    verdicts: dict[int, dict[int, Review]] = defaultdict(dict)
    for review in Review.objects.filter(claim=claim, link__isnull=False).select_related("actor").order_by("pk"):
        verdicts[review.link_id or 0][review.actor_id] = review
    contexts = _contexts([row.excerpt for row in rows if row.excerpt is not None and not _withdrawal(row)])
    found = [
        LinkView(
            row, _withdrawal(row), _view(row), by_pk.get(row.figure_id or 0), contexts.get(row.excerpt_id or 0, ()),
            _state(row), tuple((item.actor.name, shown.verdict_view(item)) for item in verdicts[row.pk].values()),
        )
        for row in rows
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda item: item.withdrawal is not None))


def _withdrawal(link: Link) -> LinkWithdrawal | None:
    return getattr(link, "withdrawal", None)


def _view(link: Link) -> StateView:
    icon, tone = TONES[link.relation]
    return StateView(shown.RELATIONS[link.relation], icon, tone)


def _state(link: Link) -> StateView | None:
    """State of the bytes that the evidence stands on."""
    if link.figure is not None:
        return shown.FIGURE_STATES["stale" if link.figure.stale else link.figure.state]
    source = shown.source_of(link.excerpt)
    assert link.excerpt is not None and source is not None
    head = getattr(link.excerpt, "head", None)
    if head is not None and head.state == ExcerptHead.ORPHAN:
        return ORPHAN
    return shown.SOURCE_STATES["claimed" if not link.excerpt.version.held else source.state]


def _contexts(excerpts: Sequence[Excerpt]) -> dict[int, tuple[Line, ...]]:
    """Lines around each quotation whose bytes are held; the text is read in windows, never whole."""
    of_version: dict[int, list[Excerpt]] = defaultdict(list)
    versions: dict[int, SourceVersion] = {}
    for excerpt in excerpts:
        head = getattr(excerpt, "head", None)
        readable = excerpt.version.held and excerpt.version.source.form != "pdf" and excerpt.form == Excerpt.QUOTE
        if readable and head is not None and head.first_line and head.state == "found":
            of_version[excerpt.version_id].append(excerpt)
            versions[excerpt.version_id] = excerpt.version
    found: dict[int, tuple[Line, ...]] = {}
    for key in list(of_version)[:READ_MOST]:
        for excerpt in of_version[key]:
            lines = _lines(versions[key], excerpt)
            if lines:
                found[excerpt.pk] = lines
    return found


def _lines(version: SourceVersion, excerpt: Excerpt) -> tuple[Line, ...]:
    first, last = excerpt.head.first_line or 1, excerpt.head.last_line or 1
    low, high = max(1, first - AROUND), min(last, first + LINES_MOST) + AROUND
    try:
        lines, _total = windows(version, [(low, high)])
    except (BlobError, OSError):
        return ()
    text = "\n".join(lines[number] for number in sorted(lines))
    spans = [(start, stop, 1) for start, stop, _at in quotes_in(text, [excerpt])]
    marks = marks_of(text, spans, low)
    return tuple(shown_lines(lines, marks, form=version.source.form))
