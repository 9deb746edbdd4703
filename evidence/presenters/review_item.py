"""One item of the review queue: the claim with everything said about it, and its source at the quotation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from evidence import parts
from evidence.foretold import foretell
from evidence.models import Claim, ClaimFigure, Excerpt, Figure, Link, Review, SourceVersion
from evidence.parts import Part, authors_of, parts_of
from evidence.presenters import review_dependants as below
from evidence.presenters import reviews as shown
from evidence.presenters.chips import HEAVY, RELATED, Chip, chips_of
from evidence.presenters.review_basis import Basis, basis_of
from evidence.presenters.review_source import EMPTY, SourcePane, source_pane
from evidence.queue import Item, Place, actor_of, counts, place_of
from evidence.reviewing import family_of, independence, reviews_of
from evidence.status import Derived, derive
from runs.access import EVIDENCE_WRITE, REVIEW_WRITE, Principal, can
from runs.actions.actors import OWN_FAMILY
from runs.models import Actor
from runs.presenters.states import StateView
from workbench.contracts.canonical import derive_uid

INDEPENDENCE: dict[str, Any] = {Review.INDEPENDENT: _("independent"), Review.SAME_FAMILY: _("same family")}
CARDS = (
    (Review.ACCEPT, _("Accept"), _("it carries the sentence"), "check", "1"),
    (Review.DISPUTE, _("Dispute"), _("it says something else"), "flag", "2"),
    (Review.NEEDS_EVIDENCE, _("Needs evidence"), _("it does not reach that far"), "circle", "3"),
)
SCALE = (Claim.NOT_ESTABLISHED, Claim.PARTLY, Claim.SUPPORTED)


@dataclass(frozen=True)
class FigureRow:
    """A figure of the claim as its chip, where it is bound, and what its state means."""

    chip: Chip
    title: str
    where: str
    state: StateView
    note: str


@dataclass(frozen=True)
class Stop:
    """One stop of the status scale."""

    view: StateView
    here: bool
    cap: bool
    barred: bool


@dataclass(frozen=True)
class Card:
    """One verdict with what recording it will do."""

    verdict: str
    title: Any
    words: Any
    icon: str
    key: str
    foretold: str


@dataclass(frozen=True)
class ItemView:
    """Everything that the page shows of one item."""

    title: str
    of: int
    tabs: list[shown.Tab]
    strip: list[list[str]]
    place: Place
    before: str
    after: str
    done: int
    claim: Claim | None
    derived: Derived | None
    scale: tuple[Stop, ...]
    figures: tuple[FigureRow, ...]
    link: Link | None
    told: tuple[shown.ToldView, ...]
    dependants: tuple[below.Dependant, ...]
    others: tuple[below.Dependant, ...]
    pane: SourcePane
    basis: Basis | None
    may: bool
    why_not: str
    mine: bool
    independence: str
    authors: tuple[str, ...]
    cards: tuple[Card, ...]
    looked: tuple[tuple[str, Any], ...] = field(default_factory=lambda: tuple(shown.LOOKED.items()))
    may_answer: bool = False
    resting: tuple[below.Dependant, ...] = ()

    @property
    def crumb(self) -> str:
        """The item in one word: the claim's key, the source or the figure."""
        if self.claim is not None:
            return self.claim.key
        return self.figures[0].chip.key if self.figures else str(self.pane.source or "")

    @property
    def text(self) -> str:
        """The claim's sentence in the reader's language."""
        return "" if self.claim is None or self.claim.current is None else shown.in_language(self.claim.current, "text")

    @property
    def reach(self) -> str:
        """What the link cannot show, in its author's words."""
        return "" if self.link is None else shown.in_language(self.link, "reach")

    @property
    def relation(self) -> Any:
        """Relation of the link."""
        return "" if self.link is None else shown.RELATIONS[self.link.relation]

    @property
    def kind_word(self) -> Any:
        """Kind of the claim."""
        return "" if self.claim is None or self.claim.current is None else shown.CLAIM_KINDS[self.claim.current.kind]

    @property
    def off_scale(self) -> StateView | None:
        """A status that is no step of the scale: pending, refuted, withdrawn."""
        if self.derived is None or self.derived.status in SCALE:
            return None
        return shown.STATUSES[self.derived.status]


def _version_of(row: Any) -> SourceVersion | None:
    """The version that an excerpt, a figure or a source stands on."""
    if isinstance(row, Excerpt):
        return row.version
    if isinstance(row, Figure):
        current = row.current
        return (
            None
            if current is None
            else current.source_version or (current.excerpt.version if current.excerpt else None)
        )
    return None


def _pane(main: Any, links: Sequence[Link], figures: Sequence[Figure], whole: bool) -> SourcePane:
    """The source of the evidence under review: of the first evidence that has one, for a claim as a whole."""
    evidence = [main] if main is not None else [link.excerpt or link.figure for link in links]
    chosen = next((row for row in evidence if _version_of(row) is not None), None)
    version = _version_of(chosen)
    if version is None:
        return EMPTY
    excerpt = chosen if isinstance(chosen, Excerpt) else chosen.current.excerpt
    others = [link.excerpt for link in links if link.excerpt is not None]
    others += [
        item.current.excerpt for item in figures if item.current is not None and item.current.excerpt is not None
    ]
    same = [item for item in others if item.version_id == version.pk]
    return source_pane(version, excerpt, same, figures, whole=whole)


def _basis(main: Any, links: Sequence[Link], figures: Sequence[Figure], pane: SourcePane) -> Basis | None:
    """What the evidence rests on where no source's lines show it: the figure's, or all figures' of a claim."""
    if pane.version is not None or isinstance(main, Excerpt):
        return None
    linked = [link.figure for link in links if link.figure is not None]
    every = [main] if main is not None else list({figure.pk: figure for figure in (*figures, *linked)}.values())
    return basis_of(every) if every else None


def _figures_of(claim: Claim) -> list[Figure]:
    rows = (
        ClaimFigure.objects.filter(version=claim.current_id)
        .select_related(*(f"figure__{name}" for name in RELATED))
        .defer(*(f"figure__{name}" for name in HEAVY))
    )
    return list({row.figure_id: row.figure for row in rows.order_by("language", "ordinal")}.values())


def _listed(*parts: str | None) -> str:
    """The parts that are there, with commas between them."""
    return gettext(", ").join(part for part in parts if part)


def _where(found: Chip) -> str:
    """What a figure is bound to, in one line."""
    binding, name = found.version.binding, found.source_name
    match binding.get("type"):
        case "pointer":
            return f"{name}#{binding.get('pointer', '')}"
        case "cell":
            return _listed(name, binding.get("column"), binding.get("key"))
        case "excerpt":
            return _listed(name, binding.get("excerpt"))
        case "derivation":
            return found.expression
        case "receipt":
            return f"{str(binding.get('sha256', ''))[:12]}{binding.get('pointer', '')}"
        case "endpoint":
            return _listed(name, binding.get("quantity"))
        case "cell_rate":
            place = (binding.get(member) for member in ("checkpoint", "condition", "split", "outcome", "part"))
            return _listed(name, *place)
        case _:
            return found.why(get_language())


def _figure_row(found: Chip) -> FigureRow:
    stale = found.stale and found.state == Figure.BOUND
    notes = {
        Figure.BOUND: _("recomputed, equal"), Figure.DRIFTED: _("recomputes to another value"),
        Figure.CLAIMED: _("bytes not held"), Figure.PENDING: _("filled by its plan"), Figure.UNAVAILABLE: _("no value"),
    }  # fmt: skip
    note = _("what it rests on has changed") if stale else notes[found.state]
    return FigureRow(
        found,
        found.title(get_language()),
        _where(found),
        shown.FIGURE_STATES["stale" if stale else found.state],
        str(note),
    )


def scale_of(status: str, cap: str) -> tuple[Stop, ...]:
    """Not established, partly, supported: where the claim is, where its cap lies, what is barred."""
    order = {name: at for at, name in enumerate(SCALE)}
    top = order.get(cap, -1)
    return tuple(
        Stop(shown.STATUSES[name], name == status, at == top and cap != SCALE[-1], at > top)
        for at, name in enumerate(SCALE)
    )


def _foretold(before: str, after: Derived) -> str:
    word = shown.STATUSES[after.status].word
    if after.status == before:
        return gettext("status stays %(status)s") % {"status": word}
    if after.disputed:
        return gettext("status falls to %(status)s until it is answered and accepted") % {"status": word}
    return gettext("status becomes %(status)s") % {"status": word}


def _cards(claim: Claim, link: Link | None, me: Actor | None, found: str, at: datetime) -> tuple[Card, ...]:
    told = foretell(claim, link, me, found, at) if me is not None else {}
    return tuple(
        Card(verdict, title, words, icon, key, _foretold(claim.status, told[verdict]) if verdict in told else "")
        for verdict, title, words, icon, key in CARDS
    )


def _title(item: Item, pane: SourcePane) -> str:
    """The question that the page asks."""
    claim = item.claim
    key = "" if claim is None else claim.key
    if item.kind == "link":
        main, figure = pane.main, item.row.figure
        if figure is not None:
            return gettext("Does figure %(figure)s carry claim %(claim)s?") % {"figure": figure.key, "claim": key}
        source = item.row.excerpt.version.source
        values: dict[str, Any] = {"source": source, "claim": key}
        if main is None or main.first_line is None:
            return gettext("Does this quotation of %(source)s carry claim %(claim)s?") % values
        values |= {"first": main.first_line, "last": main.last_line}
        if main.first_line == main.last_line:
            return gettext("Does line %(first)d of %(source)s carry claim %(claim)s?") % values
        return gettext("Do lines %(first)d to %(last)d of %(source)s carry claim %(claim)s?") % values
    if item.kind == "claim":
        return gettext("Does its evidence still carry claim %(claim)s?") % {"claim": key}
    if item.kind == "answer":
        return gettext("What answers %(who)s on claim %(claim)s?") % {"who": item.row.actor.name, "claim": key}
    if item.kind == "source":
        return gettext("What still holds that rests on %(source)s?") % {"source": item.row}
    return gettext("What still holds that rests on figure %(figure)s?") % {"figure": item.row.key}


_PARTS: dict[str, Any] = {
    parts.VERSION: _("version %(n)s of claim %(key)s"),
    parts.LINK: _("a link of claim %(key)s"),
    parts.WITHDRAWAL: _("a withdrawal of a link of claim %(key)s"),
    parts.BINDING: _("the binding of figure %(key)s"),
    parts.OPERAND: _("the binding of figure %(key)s, from which another is derived"),
    parts.EXCERPT: _("excerpt %(key)s"),
}


def _wrote(part: Part) -> str:
    """What somebody wrote, in the reader's language."""
    return str(_PARTS[part.what] % {"n": part.number, "key": part.key})


def _why_not(item: Item, principal: Principal, me: Actor | None, written: Sequence[Part], at: datetime) -> str:
    """Why the caller can record no verdict here; empty where they can."""
    if not can(principal, REVIEW_WRITE, item.study):
        return gettext("Only reviewers of this study record verdicts.")
    wrote = next((part for part in written if me is not None and part.actor.pk == me.pk), None)
    if wrote is not None:
        return gettext("You wrote %(what)s; somebody who wrote none of it reviews it.") % {"what": _wrote(wrote)}
    if item.held is not None and (me is None or item.held.actor_id != me.pk):
        return gettext("%(who)s holds this item until %(until)s.") % {
            "who": item.held.actor.name, "until": f"{item.held.until:%H:%M:%SZ}",
        }  # fmt: skip
    if item.claim is not None and item.claim.status == Claim.WITHDRAWN:
        return gettext("The claim is withdrawn.")
    return ""


def _link_of(item: Item) -> Link | None:
    found: Link | None = item.row if item.kind == "link" else item.row.link if item.kind == "answer" else None
    return found


def build(principal: Principal, item: Item, *, at: datetime, whole: bool = False) -> ItemView:
    """The page of an item. The number of queries depends on the item's claim only, never on how many items wait."""
    claim, link, me = item.claim, _link_of(item), actor_of(principal)
    figures = _figures_of(claim) if claim is not None else [item.row] if item.kind == "figure" else []
    links: list[Link] = []
    if claim is not None:
        rows = Link.objects.filter(claim=claim, withdrawal__isnull=True).select_related(
            "actor", "excerpt__version__source", "figure__current__source_version__source",
            "figure__current__excerpt__version__source",
        )  # fmt: skip
        links = list(rows.order_by("pk"))
    main = (link.excerpt or link.figure) if link is not None else item.row if item.kind == "figure" else None
    pane = _pane(main, links, figures, whole)
    if item.kind == "source" and item.row.current is not None:
        excerpts = list(item.row.current.excerpts.order_by("pk")[:40])
        pane = source_pane(item.row.current, None, excerpts, [], whole=whole)
    found, place = counts(principal, item.study), place_of(principal, item, item.study, at=at)
    derived = derive(claim) if claim is not None else None
    written = parts_of(claim, link) if claim is not None else []
    authors = authors_of(written)
    asks = item.kind in ("link", "claim") and claim is not None
    why_not = _why_not(item, principal, me, written, at) if asks else ""
    judge = me or _first_time(principal)
    kinship = independence(judge, authors) if judge is not None else ""
    told = shown.told_views(claim, reviews_of(claim)) if claim is not None else ()
    return ItemView(
        title=_title(item, pane), of=found[item.kind], tabs=shown.tabs(found, item.kind, item.study.slug),
        strip=shown.strip(found, shown.done_today(me, at), (item.kind, place.number)), place=place,
        before=shown.item_url(place.before) if place.before else "",
        after=shown.item_url(place.after) if place.after else "", done=shown.done_today(me, at), claim=claim,
        derived=derived, scale=scale_of(derived.status, derived.cap) if derived is not None else (),
        figures=tuple(_figure_row(found) for found in chips_of(figures).values()), link=link,
        told=told, dependants=below.sections_that_show(claim) if claim is not None else (),
        others=below.same_evidence(claim, link) if claim is not None else (), pane=pane,
        basis=_basis(main, links, figures, pane) if item.kind != "source" else None, may=asks and not why_not,
        why_not=why_not, mine=item.held is not None and me is not None and item.held.actor_id == me.pk,
        independence=kinship, authors=tuple(f"{author.name} ({_family(author)})" for author in authors),
        cards=_cards(claim, link, judge, kinship, at) if asks and not why_not and claim is not None else (),
        may_answer=_may_answer(principal, item, me),
        resting=below.resting(item) if item.kind in ("source", "figure") else (),
    )  # fmt: skip


def _first_time(principal: Principal) -> Actor | None:
    """The actor that the caller's first record will make; reading makes none."""
    if principal.user is None:
        return None
    name = principal.user.get_username()
    uid = derive_uid(None, f"actor:person:{name}")
    return Actor(uid=uid, kind=Actor.PERSON, family=OWN_FAMILY, name=name, user=principal.user)


def _family(actor: Actor) -> str:
    """A family for reading: a person without a recorded one is of their own."""
    name = family_of(actor)
    return str(gettext("own family")) if name == f"{actor.kind}:{actor.uid}" else name


def _may_answer(principal: Principal, item: Item, me: Actor | None) -> bool:
    """Whether the caller may answer disputes of the item's claim."""
    if item.claim is None or not can(principal, EVIDENCE_WRITE, item.study):
        return False
    return item.kind != "answer" or me is None or item.row.actor_id != me.pk
