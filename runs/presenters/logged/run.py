"""One logged run: what it was told, what it brought, how often it was begun, and what could not be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count
from django.utils.translation import gettext, ngettext

from runs.actions.import_batch import rollout_body
from runs.models import (
    ImportedRollout,
    LogImport,
    MetricSeries,
    Run,
    RunArtifact,
    RunSegment,
    RunTag,
    TrackedRun,
    TrackedTransition,
)
from runs.presenters.logged.listing import points_of
from runs.presenters.states import state_view
from runs.presenters.told import told
from workbench.contracts.errors import ContractError
from workbench.importers import FORMATS, LOSSES

PROBLEMS_SHOWN = 50


@dataclass(frozen=True)
class ImportView:
    """One import with its problems; ``more`` of them are counted and not listed. ``lost`` of what it could not read."""

    row: LogImport
    problems: tuple[dict[str, Any], ...]
    more: int
    lost: int
    left_out: int

    @property
    def title(self) -> str:
        """Name of the format for people; its own where the table has none."""
        found = FORMATS.get(self.row.format)
        return self.row.format if found is None else found.title


@dataclass(frozen=True)
class Facts:
    """Counts behind the page's first sentence."""

    points: int
    names: int
    rollouts: int
    attempts: int


def tags_of(run: Run) -> list[tuple[str, str]]:
    """Standing tags in order of their keys: the newest of each, without those taken away."""
    newest = dict(RunTag.objects.filter(run=run).order_by("id").values_list("key", "value"))
    return sorted((key, value) for key, value in newest.items() if value is not None)


def artifacts_of(run: Run) -> list[RunArtifact]:
    """The newest file of each path, in order of paths."""
    newest = {row.path: row for row in RunArtifact.objects.filter(run=run).order_by("id")}
    return [newest[path] for path in sorted(newest)]


def artifact_of(run: Run, path: str) -> RunArtifact | None:
    """The newest file of one path."""
    return RunArtifact.objects.filter(run=run, path=path).order_by("-id").first()


def segments_of(run: Run) -> list[RunSegment]:
    """Attempts, the first one first."""
    return list(RunSegment.objects.filter(run=run).select_related("actor").order_by("ordinal"))


def history_of(run: Run) -> list[TrackedTransition]:
    """Changes of the status, the newest first."""
    return list(TrackedTransition.objects.filter(run=run).select_related("actor").order_by("-id"))


def _import(row: LogImport) -> ImportView:
    counts = {kind: int(n) for kind, n in (row.counts.get("problems") or {}).items()}
    shown = tuple(row.problems[:PROBLEMS_SHOWN])
    listed = sum(int(item.get("count", 1)) for item in shown)
    lost = sum(n for kind, n in counts.items() if kind in LOSSES)
    return ImportView(row, shown, max(0, sum(counts.values()) - listed), lost, sum(counts.values()) - lost)


def imports_of(run: Run) -> list[ImportView]:
    """Imports into the run, the newest first."""
    return [_import(row) for row in LogImport.objects.filter(run=run).select_related("actor").order_by("-id")]


def facts_of(head: TrackedRun) -> Facts:
    """Counts of a run. Three queries."""
    names = MetricSeries.objects.filter(run=head.run).values("name").distinct().count()
    rollouts = ImportedRollout.objects.filter(run=head.run).count()
    return Facts(points_of([head])[head.run_id], names, rollouts, head.segment + 1)


def headline(head: TrackedRun, facts: Facts, imports: Sequence[ImportView]) -> str:
    """The page's first sentence."""
    parts = [str(state_view("tracked", head.status).word)]
    if facts.names:
        found = ngettext("%(p)s points of %(n)d name", "%(p)s points of %(n)d names", facts.names)
        parts.append(found % {"p": f"{facts.points:,}", "n": facts.names})
    else:
        parts.append(gettext("no point logged"))
    if facts.rollouts:
        found = ngettext("%(n)s rollout", "%(n)s rollouts", facts.rollouts)
        parts.append(found % {"n": f"{facts.rollouts:,}"})
    if facts.attempts > 1:
        parts.append(gettext("%(n)d attempts") % {"n": facts.attempts})
    lost = sum(view.lost for view in imports)
    if head.partial or lost:
        parts.append(ngettext("partial: %(n)d problem", "partial: %(n)d problems", lost) % {"n": lost})
    return gettext("%(name)s: %(facts)s.") % {"name": head.name, "facts": gettext(", ").join(parts)}


def body_of(row: ImportedRollout) -> tuple[dict[str, Any] | None, str]:
    """What a rollout says, and what kept its bytes from being read ("" for nothing)."""
    try:
        return rollout_body(row), ""
    except ContractError as error:
        return None, told(error)


def grades_of(run: Run) -> list[tuple[str, int]]:
    """Rollouts by grade, the best first."""
    rows = ImportedRollout.objects.filter(run=run).order_by("grade").values_list("grade")
    return list(rows.annotate(n=Count("pk")))
