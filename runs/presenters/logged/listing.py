"""The list of logged runs: what each brought, counted for one page at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import QuerySet, Sum

from runs.access import Principal, visible
from runs.models import MetricChunk, TrackedRun

NAME_MOST = 200  # characters of a query that are looked for


@dataclass(frozen=True)
class LoggedRow:
    """One run of the list. ``points`` as stored: one that two batches sent counts twice until both are read."""

    head: TrackedRun
    points: int

    @property
    def attempts(self) -> int:
        """How often the run was begun or taken up again."""
        return self.head.segment + 1


def logged_runs(principal: Principal) -> QuerySet[TrackedRun]:
    """Visible logged runs that are not marked as deleted, newest first."""
    rows = visible(principal, TrackedRun.objects.filter(deleted=False), "study")
    return rows.select_related("run", "study").order_by("-started_at", "-pk")


def narrowed(rows: QuerySet[TrackedRun], text: str) -> QuerySet[TrackedRun]:
    """Runs whose name holds every word of ``text``; a whole external id finds its run."""
    text = text.strip()[:NAME_MOST]
    if len(text) == 32 and rows.filter(external_id=text).exists():
        return rows.filter(external_id=text)
    for word in text.split():
        rows = rows.filter(name__icontains=word)
    return rows


def points_of(heads: Sequence[TrackedRun]) -> dict[int, int]:
    """Stored points by the run's row number: sealed chunks and landing rows. One query."""
    keys = [head.run_id for head in heads]
    sealed = MetricChunk.objects.filter(series__run__in=keys).order_by().values_list("series__run")
    found = dict(sealed.annotate(n=Sum("points")))
    return {head.run_id: found.get(head.run_id, 0) + head.landed for head in heads}


def listed(heads: Sequence[TrackedRun]) -> list[LoggedRow]:
    """Rows of one page."""
    points = points_of(heads)
    return [LoggedRow(head, points[head.run_id]) for head in heads]
