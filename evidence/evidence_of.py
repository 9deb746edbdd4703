"""What one claim rests on, read in a fixed number of queries: figures, links, reviews."""

from __future__ import annotations

from dataclasses import dataclass, field

from evidence.models import Claim, ClaimFigure, ClaimVersion, EvidenceRecord, Figure, FigureInput, Link
from evidence.reviewing import Judges, Told, judged

DEEPEST = 40  # levels of derivations; ``bind_figure`` refuses circles


@dataclass(frozen=True)
class Evidence:
    """``version`` None: a head without words. ``figures``: shown in the text or linked as support or bound, once each.

    ``links``: those that stand. ``imported``: keys of figures from elsewhere, operands of derivations included.
    ``changes``: what an acceptance must have seen: every link, every withdrawal of one, and the present binding of
    every figure that is shown or linked.
    """

    version: ClaimVersion | None
    stale: bool
    shown: tuple[ClaimFigure, ...]
    figures: tuple[Figure, ...]
    links: tuple[Link, ...]
    told: tuple[Told, ...]
    imported: frozenset[str]
    changes: tuple[EvidenceRecord, ...] = ()
    judges: Judges = field(default_factory=Judges)

    def of_relation(self, relation: str) -> tuple[Link, ...]:
        """Standing links of one relation."""
        return tuple(link for link in self.links if link.relation == relation)

    @property
    def supporting(self) -> tuple[Link, ...]:
        """Standing links that support the claim."""
        return self.of_relation("supports")

    @property
    def carrying(self) -> tuple[Link, ...]:
        """Standing links whose evidence the claim rests on: support and bounds."""
        return (*self.supporting, *self.of_relation("bounds"))


def standing_links(claim: Claim) -> list[Link]:
    """Links that nobody has withdrawn, with what their caps are read from. One query."""
    rows = Link.objects.filter(claim=claim, withdrawal__isnull=True).select_related(
        "excerpt__head", "excerpt__version__source", "figure__current__source_version__source", "actor", "claim_version"
    )
    return list(rows.order_by("pk"))


def shown_versions(claim: Claim) -> list[ClaimFigure]:
    """Bound occurrences of the present words, with figures and the versions that they showed. One query."""
    rows = ClaimFigure.objects.filter(version=claim.current_id).select_related("figure", "figure_version")
    return list(rows.order_by("language", "ordinal"))


def evidence_of(claim: Claim) -> Evidence:
    """Everything that ``status.derive`` reads."""
    current, stale = Claim.objects.filter(pk=claim.pk).values_list("current_id", "stale").get()
    if current is None:
        return Evidence(None, stale, (), (), (), (), frozenset())
    version = (
        ClaimVersion.objects.select_related("plan_version__plan").defer("plan_version__strict_pairs").get(pk=current)
    )
    shown = list(
        ClaimFigure.objects.filter(version=version)
        .select_related("figure__current__source_version__source", "figure_version")
        .order_by("language", "ordinal")
    )
    links = standing_links(claim)
    figures = {row.figure_id: row.figure for row in shown}
    for link in links:
        if link.figure is not None and link.relation in ("supports", "bounds"):
            figures.setdefault(link.figure.pk, link.figure)
    bound = [item.current for item in figures.values() if item.current is not None]
    told, judges = judged(claim, (*links, *bound))
    return Evidence(
        version, stale, tuple(shown), tuple(figures.values()), tuple(links), tuple(told),
        _imported(list(figures.values())), (*links, *bound, *(judges.withdrawn or {}).values()), judges,
    )  # fmt: skip


def _imported(figures: list[Figure]) -> frozenset[str]:
    """Keys of imported figures among these and everything that they are derived from. One query a level."""
    found: set[str] = set()
    seen: set[int] = set()
    level = figures
    for _depth in range(DEEPEST):
        level = [item for item in level if item.pk not in seen]
        seen.update(item.pk for item in level)
        found.update(item.key for item in level if item.current is not None and item.current.origin == "imported")
        derived = [
            item.current_id for item in level if item.current and item.current.binding.get("type") == "derivation"
        ]
        if not derived:
            break
        rows = FigureInput.objects.filter(version__in=derived).select_related("figure__current")
        level = [row.figure for row in rows]
    return frozenset(found)
