"""Figures computed again: their states kept at once for everything that a change has reached.

The stored version never changes: a person binds it anew. One lock, one resolver, one write for each state however
many figures there are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from django.db import transaction
from django.db.models import F

from evidence.actions.record import lock_evidence
from evidence.binding.figures import HEAD, Recomputed, Resolver, Unreachable, recompute, stored_difference
from evidence.binding.places import Kept, place_of
from evidence.binding.values import RATIO, exact
from evidence.models import Claim, ClaimFigure, Excerpt, ExcerptHead, Figure, Link
from evidence.propagation import FIGURE, chunks, dependants
from runs.errors import DomainError
from runs.models import Actor, Study
from workbench.contracts.errors import ContractError


def derived_from(figure: Figure) -> list[str]:
    """Uids of the figures that are derived from one, over however many steps, the nearest first."""
    return [path.uid for path in dependants(FIGURE, figure.uid) if path.kind == FIGURE]


def refresh_figures(
    study: Study, uids: Collection[str], *, by: Actor, at: datetime, mark: bool = True
) -> dict[str, Recomputed]:
    """Compute figures again and keep their states; what each gave, by key.

    Another value than the stored one marks what rests on it stale (``mark`` False: the change that led here has
    marked all of it); the stored value again heals what the figure itself had marked. Claims follow.
    """
    from evidence.actions import stale

    found: dict[str, Recomputed] = {}
    if not uids:
        return found
    with transaction.atomic():
        lock_evidence(study)
        rows = _rows(study, uids)
        resolver = Resolver(study)
        resolver.load(rows)
        moved: dict[str, list[Figure]] = {}
        drifted, back = set(), []
        for figure in rows:
            found[figure.key] = now = recompute(figure, resolver)
            if now.state == figure.state:
                continue
            moved.setdefault(now.state, []).append(figure)
            if now.state == Figure.DRIFTED:
                drifted.add(figure.key)
            elif figure.state == Figure.DRIFTED and now.state in (Figure.BOUND, Figure.CLAIMED):
                back.append(figure)
        for part in chunks(figure.pk for figure in rows):
            Figure.objects.filter(pk__in=part).update(checked_at=at)
        for state, same in moved.items():
            for part in chunks(figure.pk for figure in same):
                Figure.objects.filter(pk__in=part).update(state=state)
        for figure in rows if mark else ():
            if figure.key in drifted and not drifted & _operands(figure):  # an operand that drifted marks this one too
                said = f"{figure.key}: {found[figure.key].trouble}"
                stale.mark_changed(FIGURE, figure.uid, said[: stale.REASON_MOST], by=by, at=at)
        stale.heal_figures(study, [figure.uid for figure in back], by=by, at=at, note="the stored value again")
        refresh_claims([figure for same in moved.values() for figure in same], at=at)
    return found


def _rows(study: Study, uids: Collection[str]) -> list[Figure]:
    """Figures with what a resolver reads of them, in the order of ``uids``."""
    place = {str(uid): number for number, uid in enumerate(uids)}
    rows: list[Figure] = []
    for part in chunks(place):
        of = Figure.objects.filter(study=study, uid__in=part, current__isnull=False)
        rows.extend(of.select_related("study", *HEAD))
    return sorted(rows, key=lambda row: place[str(row.uid)])


def _operands(figure: Figure) -> set[str]:
    binding: Mapping[str, object] = figure.current.binding if figure.current else {}
    figures = binding.get("figures")
    return set(figures.values()) if isinstance(figures, dict) else set()


def refresh_claims(figures: Iterable[Figure], *, at: datetime) -> None:
    """Derive every claim that shows a figure, or that is linked to one, once."""
    from evidence.status import refresh_claim

    claims: set[int] = set()
    for part in chunks(figure.pk for figure in figures):
        claims.update(ClaimFigure.objects.filter(figure__in=part).values_list("version__claim", flat=True))
        claims.update(Link.objects.filter(figure__in=part).values_list("claim", flat=True))
    for part in chunks(sorted(claims)):
        for claim in Claim.objects.filter(pk__in=part).order_by("pk"):
            refresh_claim(claim, at=at)


def other_value(figure: Figure, resolver: Resolver) -> str:
    """How a figure computes to something else than it shows, or to nothing; empty where it does not.

    A quotation without a place in the newest bytes gives nothing. Bytes that are not held prove nothing either way, and
    bytes that drifted elsewhere leave the value what it is.
    """
    version = figure.current
    if version is None:
        return ""
    try:
        now = resolver.of_figure(figure)
    except Unreachable:
        return ""
    except (DomainError, ContractError) as error:
        return str(error)
    if now.lost:
        return now.lost
    same = version.value == (None if now.value is None else exact(now.value))
    return "" if same and version.style != RATIO else stored_difference(version, now)


def _lost_quotations(claims: Collection[int]) -> list[str]:
    """Quotations linked to claims that have no place in the newest bytes any more, each with why."""
    linked = Link.objects.filter(claim__in=claims, withdrawal__isnull=True, excerpt__isnull=False)
    rows = Excerpt.objects.filter(pk__in=linked.values("excerpt")).select_related("version__source__current")
    kept: Kept = {}
    places = [(row.key, place_of(row, kept)) for row in rows]
    return [f"{key}: {place.trouble}" for key, place in places if place.state == ExcerptHead.ORPHAN]


def outdated_figures(study: Study, figures: Collection[int], claims: Collection[int]) -> list[str]:
    """Why figures, and the figures that claims show, are not what they were: each by key, with both values."""
    wanted = set(figures)
    found: list[str] = []
    for part in chunks(claims):
        shown = ClaimFigure.objects.filter(version__claim__in=part, version=F("version__claim__current"))
        for row in shown.select_related("figure__current", "figure_version"):
            old, new = row.figure_version, row.figure.current
            wanted.add(row.figure_id)
            if new is not None and (old.value, old.unit) != (new.value, new.unit) and old.value is not None:
                said = f"{row.figure.key}: the words show {old.value}, it is {new.value or 'unavailable'} now"
                found += [] if said in found else [said]
        standing = Link.objects.filter(claim__in=part, withdrawal__isnull=True, figure__isnull=False)
        wanted.update(pk for pk in standing.values_list("figure", flat=True) if pk is not None)
        found += _lost_quotations(part)
    resolver = Resolver(study)
    rows: list[Figure] = []
    for part in chunks(sorted(wanted)):
        rows.extend(Figure.objects.filter(pk__in=part, current__isnull=False).select_related("study", *HEAD))
    resolver.load(rows)
    return found + [f"{row.key}: {why}" for row in rows if (why := other_value(row, resolver))]
