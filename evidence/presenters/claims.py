"""Claims as pages show them: the list with its counts, and what one claim rests on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q, QuerySet
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from evidence.binding.tokens import FIGURE, parse_text
from evidence.evidence_of import Evidence, evidence_of
from evidence.models import Claim, ClaimVersion, Link, Review
from evidence.presenters import reviews as shown
from evidence.presenters.chips import HEAVY, RELATED, Chip, Shown, chips_of, shown_for
from evidence.presenters.claim_history import VersionView, history_of
from evidence.presenters.claim_links import LinkView, link_views
from evidence.presenters.claim_parents import Dependant, dependants_of
from evidence.presenters.review_item import FigureRow, Stop, _figure_row, scale_of
from evidence.status import Derived, decide
from runs.access import EVIDENCE_WRITE, ROLES, Principal, study_ids, visible_studies
from runs.models import Study
from runs.presenters.states import TABLES, StateView

SEARCH_MOST = 200
FLAGS: dict[str, StateView] = {
    "stale": TABLES["evidence"]["stale"],
    "disputed": StateView(_("disputed"), "flag", "disputed"),
    "provisional": StateView(_("provisional"), "half", "provisional"),
}
# What each kind may claim, shown beside the choice.
KIND_HELP: dict[str, Any] = {
    "improvement": _("needs a frozen plan's endpoint with a direction, and its effect figure"),
    "equivalence": _("needs an endpoint with an equivalence interval, and its effect figure"),
    "non_inferiority": _("needs an endpoint with a margin, and its effect figure"),
    "no_regression": _("says that no regression was observed; needs no endpoint"),
    "mechanism": _("how something works; shows no effect"),
    "cost": _("what something takes"),
    "environment": _("what the tasks, tools and schedules are"),
    "description": _("what was done or counted"),
    "negative": _("what did not hold, or could not be shown"),
}


@dataclass(frozen=True)
class Narrowed:
    """What a list is narrowed to. Empty texts: everything."""

    study: str = ""
    status: str = ""
    kind: str = ""
    flag: str = ""
    text: str = ""

    @property
    def any(self) -> bool:
        """Whether anything is left out."""
        return any((self.study, self.status, self.kind, self.flag, self.text))

    def rows(self, principal: Principal) -> QuerySet[Claim]:
        """Visible claims of this choice, newest first."""
        found = visible_claims(principal)
        if self.study:
            found = found.filter(study__slug=self.study)
        if self.kind:
            found = found.filter(current__kind=self.kind)
        for word in self.text.split():
            found = found.filter(
                Q(key__icontains=word) | Q(current__text_en__icontains=word) | Q(current__text_zh__icontains=word)
            )
        return found

    def chosen(self, rows: QuerySet[Claim]) -> QuerySet[Claim]:
        """The rows with the chosen status or flag, which the counts beside them are not narrowed to."""
        if self.status:
            rows = rows.filter(status=self.status)
        if self.flag:
            rows = rows.filter(**{self.flag: True})
        return rows


@dataclass(frozen=True)
class Tab:
    """One choice above the list with how many claims it has."""

    name: str
    value: str
    word: Any
    count: int
    current: bool
    view: StateView | None = None


@dataclass(frozen=True)
class ClaimRow:
    """One claim of the list: ``sentence`` with the values of its figures as they are now."""

    claim: Claim
    sentence: str
    links: int
    reviews: int
    view: StateView
    flags: tuple[StateView, ...]

    @property
    def kind(self) -> Any:
        """Kind in words."""
        return shown.CLAIM_KINDS[self.claim.current.kind] if self.claim.current is not None else ""


def visible_claims(principal: Principal) -> QuerySet[Claim]:
    """Claims of the studies that the principal may read. A list of keys and no subquery: studies are few."""
    return Claim.objects.filter(study__in=study_ids(principal), current__isnull=False)


def tabs_of(rows: QuerySet[Claim], narrowed: Narrowed) -> list[Tab]:
    """Counts by status and by what asks for attention. One query."""
    counts = {
        **{name: Count("pk", filter=Q(status=name)) for name in Claim.STATUSES},
        **{f"is_{name}": Count("pk", filter=Q(**{name: True})) for name in FLAGS},
    }
    found = rows.order_by().aggregate(all=Count("pk"), **counts)
    tabs = [Tab("status", "", _("all"), found["all"], not narrowed.status and not narrowed.flag)]
    for name in (Claim.SUPPORTED, Claim.PARTLY, Claim.NOT_ESTABLISHED, Claim.PENDING, Claim.REFUTED, Claim.WITHDRAWN):
        view = shown.STATUSES[name]
        tabs.append(Tab("status", name, view.word, found[name], narrowed.status == name, view))
    for name, view in FLAGS.items():
        tabs.append(Tab("flag", name, view.word, found[f"is_{name}"], narrowed.flag == name, view))
    return tabs


def flags_of(claim: Claim) -> tuple[StateView, ...]:
    """What asks for attention."""
    return tuple(view for name, view in FLAGS.items() if getattr(claim, name))


def _counted(model: Any, claims: Sequence[int], **where: Any) -> dict[int, int]:
    rows = model.objects.filter(claim__in=claims, **where).order_by().values_list("claim")
    return dict(rows.annotate(n=Count("pk")))


def listed(claims: Iterable[Claim]) -> list[ClaimRow]:
    """Rows of one page, in three queries however many."""
    rows = list(claims)
    keys = [row.pk for row in rows]
    texts = {row.pk: shown.in_language(row.current, "text") for row in rows if row.current is not None}
    values = shown.values_of(
        (row.study_id, piece.value)
        for row in rows
        for piece in parse_text(texts.get(row.pk, ""))
        if piece.kind == FIGURE
    )
    links, reviews = _counted(Link, keys, withdrawal__isnull=True), _counted(Review, keys)
    return [
        ClaimRow(
            row, shown.plain(texts.get(row.pk, ""), row.study_id, values), links.get(row.pk, 0), reviews.get(row.pk, 0),
            shown.STATUSES[row.status], flags_of(row),
        )
        for row in rows
    ]  # fmt: skip


@dataclass(frozen=True)
class ClaimView:
    """Everything that the page of one claim shows."""

    claim: Claim
    version: ClaimVersion
    derived: Derived
    scale: tuple[Stop, ...]
    off_scale: StateView | None
    figures: tuple[FigureRow, ...]
    links: tuple[LinkView, ...]
    told: tuple[shown.ToldView, ...]
    history: tuple[VersionView, ...]
    more_history: int
    dependants: tuple[Dependant, ...]
    shown: Shown

    @property
    def text(self) -> str:
        """The sentence in the reader's language."""
        return shown.in_language(self.version, "text")

    @property
    def other_text(self) -> str:
        """The sentence in the other language, where it has both."""
        first, second = self.version.text_en, self.version.text_zh
        return "" if not (first and second) else second if self.text == first else first

    @property
    def other_language(self) -> str:
        """Language of ``other_text``."""
        return "zh-Hans" if self.text == self.version.text_en else "en"

    @property
    def review_url(self) -> str:
        """Where the claim as a whole is reviewed."""
        return shown.item_url(f"claim:{self.claim.uid}")

    @property
    def view(self) -> StateView:
        """How the status looks."""
        return shown.STATUSES[self.derived.status]

    @property
    def flags(self) -> tuple[StateView, ...]:
        """What asks for attention."""
        return flags_of(self.claim)

    @property
    def kind(self) -> Any:
        """Kind in words."""
        return shown.CLAIM_KINDS[self.version.kind]

    @property
    def facts(self) -> list[tuple[Any, str]]:
        """Scope, denominator and what is missing, where they are said."""
        named = ((_("Scope"), "scope"), (_("Denominator"), "denominator"), (_("Still missing"), "missing"))
        found = [(word, shown.in_language(self.version, name)) for word, name in named]
        return [(word, text) for word, text in found if text]

    @property
    def why(self) -> str:
        """The first cap in one sentence; empty where nothing caps it."""
        return self.derived.reasons[0].text if self.derived.reasons else ""

    @property
    def open_links(self) -> tuple[LinkView, ...]:
        """Links that stand."""
        return tuple(item for item in self.links if item.withdrawal is None)

    @property
    def gone_links(self) -> tuple[LinkView, ...]:
        """Links that were withdrawn."""
        return tuple(item for item in self.links if item.withdrawal is not None)


def claim_view(claim: Claim) -> ClaimView:
    """Read everything of one claim: a fixed number of queries, whatever it has."""
    found = evidence_of(claim)
    derived = decide(claim, found)
    version = found.version
    assert version is not None
    links = link_views(claim)
    texts = [getattr(version, f"{name}_{language}") for name in PROSE for language in ("en", "zh")]
    texts += [text for item in links for text in (item.link.reach_en, item.link.reach_zh)]
    history, more = history_of(claim)
    return ClaimView(
        claim, version, derived, scale_of(derived.status, derived.cap),
        None if derived.status in SCALE else shown.STATUSES[derived.status], _figures(found), links,
        shown.told_views(claim, found.told), history, more, dependants_of(claim),
        shown_for(claim.study, texts),
    )  # fmt: skip


PROSE = ("text", "scope", "denominator", "missing")
SCALE = (Claim.NOT_ESTABLISHED, Claim.PARTLY, Claim.SUPPORTED)


def _figures(found: Evidence) -> tuple[FigureRow, ...]:
    """Rows of the figures that the text shows or a link brings, in the order in which they are met."""
    from evidence.models import Figure

    keys = [item.pk for item in found.figures]
    rows = Figure.objects.filter(pk__in=keys).select_related("study", *RELATED).defer(*HEAVY)
    chips: Mapping[str, Chip] = chips_of(rows) if keys else {}
    return tuple(_figure_row(chips[item.key]) for item in found.figures if item.key in chips)


def writable_studies(principal: Principal, study: Study | None) -> list[str]:
    """Slugs of the studies, or of this one, in which the principal may write claims. One query."""
    user = principal.user
    if user is None:
        return []
    rows = visible_studies(principal) if study is None else Study.objects.filter(pk=study.pk)
    if not user.is_superuser:
        roles = [role for role, held in ROLES.items() if EVIDENCE_WRITE in held]
        rows = rows.filter(memberships__user=user, memberships__role__in=roles).distinct()
    return list(rows.order_by("slug").values_list("slug", flat=True))


def claim_url(claim: Claim) -> str:
    """Address of a claim's page."""
    return reverse("evidence:claim", args=[claim.uid])


def plan_choices(study: Study) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """(uid, title, endpoints as (id, what it registered)) of each frozen plan version of a study, newest first."""
    from runs.actions.plans import plan_body
    from runs.models import PlanVersion

    found = []
    for version in PlanVersion.objects.filter(plan__study=study).select_related("plan").order_by("-pk")[:50]:
        endpoints = [(item["id"], _endpoint_words(item)) for item in plan_body(version)["plan"]["endpoints"]]
        found.append((str(version.uid), f"{version.plan.slug}, {version.sha256[:12]}", endpoints))
    return found


def _endpoint_words(endpoint: Mapping[str, Any]) -> str:
    parts = [str(endpoint["metric"]), str(endpoint["direction"])]
    if endpoint.get("margin") is not None:
        parts.append(f"margin {endpoint['margin']}")
    if endpoint.get("equivalence") is not None:
        parts.append(f"equivalence {endpoint['equivalence']}")
    return ", ".join(parts)
