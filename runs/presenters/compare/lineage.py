"""Lineage of checkpoints: which policy came from which, drawn by the server, and what changed between two."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Prefetch, Sum
from django.urls import reverse
from django.utils.translation import gettext as _

from runs.models import Checkpoint, ConsumedGroup, EvaluationItem, PlanVersion, Run, Tombstone, UpdateBatch, UpdateStep
from runs.presenters.checkpoints import tombstones_of

MAX_COLUMNS = 60
WIDTH, LEFT, ROW, TOP = 1150.0, 150.0, 34.0, 26.0
PARENT_X = 30.0


@dataclass(frozen=True)
class Node:
    """One checkpoint in the drawing, or the last of ``count`` where a column holds several. ``row`` -1: a parent."""

    x: float
    y: float
    row: int
    column: int
    url: str
    title: str
    held: bool
    evaluated: bool
    head: bool
    count: int


@dataclass(frozen=True)
class Edge:
    """From parent to child; ``width`` grows with the relative norm of the update, ``path`` is SVG."""

    path: str
    width: float
    run: int


@dataclass(frozen=True)
class RowLabel:
    """Name of a run at its line."""

    y: float
    name: str
    url: str
    state: str
    tone: int


@dataclass(frozen=True)
class Drawing:
    """The whole graph. ``per_column`` policy versions stand in one column."""

    nodes: list[Node]
    edges: list[Edge]
    labels: list[RowLabel]
    ticks: list[tuple[float, int]]
    height: float
    per_column: int
    total: int
    held: int
    removed: int
    evaluated: int


def _norms(version: PlanVersion) -> dict[int, float]:
    """Checkpoint -> sum over its update's steps of the relative norm. One query."""
    rows = UpdateStep.objects.filter(update__run__plan_version=version, update__skipped__isnull=True)
    found = rows.order_by().values_list("update__checkpoint_after").annotate(norm=Sum("relative_update_norm"))
    return {pk: norm or 0.0 for pk, norm in found}


def build_drawing(version: PlanVersion, runs: Sequence[Run]) -> Drawing:
    """Rows are runs, columns policy versions. Five queries. Needs ``head`` and ``parent_checkpoint`` loaded."""
    own = list(Checkpoint.objects.filter(run__in=runs).order_by("run_id", "policy_version"))
    parents = list({run.parent_checkpoint_id: run.parent_checkpoint for run in runs if run.parent_checkpoint}.values())
    gone = set(tombstones_of(row.sha256 for row in [*own, *parents]))
    evaluated = set(
        EvaluationItem.objects.filter(plan_version=version).order_by().values_list("checkpoint", flat=True).distinct()
    )
    norms = _norms(version)
    most = max((row.policy_version for row in own), default=1)
    per = max(1, math.ceil(most / MAX_COLUMNS))
    columns = math.ceil(most / per)
    pitch = (WIDTH - LEFT - 14) / max(1, columns)
    middle = TOP + ROW * (len(runs) - 1) / 2
    heads = {run.head.checkpoint_id for run in runs}
    nodes: list[Node] = []
    spots: dict[int, tuple[float, float]] = {}
    for place, parent in enumerate(parents):
        y = middle + (place - (len(parents) - 1) / 2) * ROW
        spots[parent.pk] = (PARENT_X, y)
        nodes.append(_node([parent], -1, place, PARENT_X, y, gone, evaluated, heads, _("parent")))
    edges: list[Edge] = []
    widest = max(norms.values(), default=0.0)
    for row, run in enumerate(runs):
        y = TOP + ROW * row
        bins: dict[int, list[Checkpoint]] = {}
        for checkpoint in own:
            if checkpoint.run_id == run.pk:
                bins.setdefault((checkpoint.policy_version - 1) // per, []).append(checkpoint)
        before = spots.get(run.parent_checkpoint_id or 0)
        for column, found in sorted(bins.items()):
            x = LEFT + (column + 0.5) * pitch
            nodes.append(_node(found, row, column, x, y, gone, evaluated, heads, run.name))
            if before is not None:
                norm = sum(norms.get(item.pk, 0.0) for item in found)
                edges.append(Edge(_path(before, (x, y)), _width(norm, widest * per), row % 6 + 1))
            before = (x, y)
    labels = [
        RowLabel(TOP + ROW * i, run.name, reverse("runs:run", args=[run.uid]), run.head.state, i % 6 + 1)
        for i, run in enumerate(runs)
    ]
    step = max(1, round(columns / 8))
    ticks = [(round(LEFT + (i + 0.5) * pitch, 1), i * per + per) for i in range(0, columns, step)]
    everything = [*parents, *own]
    return Drawing(
        nodes,
        edges,
        labels,
        ticks,
        TOP + ROW * max(1, len(runs)) + 10,
        per,
        len(everything),
        sum(row.sha256 not in gone for row in everything),
        sum(row.sha256 in gone for row in everything),
        sum(row.pk in evaluated for row in everything),
    )


def _width(norm: float, widest: float) -> float:
    return round(1.0 + 3.0 * min(1.0, norm / widest), 2) if widest else 1.0


def _path(start: tuple[float, float], end: tuple[float, float]) -> str:
    if start[1] == end[1]:
        return f"M{start[0]:.1f} {start[1]:.1f}H{end[0]:.1f}"
    bend = start[0] + 50
    return f"M{start[0]:.1f} {start[1]:.1f}C{bend:.1f} {start[1]:.1f} {bend:.1f} {end[1]:.1f} {end[0]:.1f} {end[1]:.1f}"


def _node(
    found: Sequence[Checkpoint],
    row: int,
    column: int,
    x: float,
    y: float,
    gone: set[str],
    evaluated: set[int],
    heads: set[int | None],
    owner: str,
) -> Node:
    """The node of one column: it opens the last held checkpoint there, else the last."""
    held = [item for item in found if item.sha256 not in gone]
    shown = (held or list(found))[-1]
    word = _("held") if held else _("removed by retention, recipe kept")
    span = (
        f"v{found[0].policy_version}" if len(found) == 1 else f"v{found[0].policy_version}–v{found[-1].policy_version}"
    )
    is_evaluated = any(item.pk in evaluated for item in found)
    title = f"{owner} {span}, {shown.sha256[:12]}: {word}"
    if is_evaluated:
        title += ", " + _("evaluated")
    return Node(
        round(x, 1),
        round(y, 1),
        row,
        column,
        reverse("runs:checkpoint", args=[shown.uid]),
        title,
        bool(held),
        is_evaluated,
        any(item.pk in heads for item in found),
        len(found),
    )


@dataclass(frozen=True)
class UpdateLine:
    """One update on a way: its steps added up. Norms None where no step stored one."""

    update: UpdateBatch
    tombstone: Tombstone | None
    groups: list[ConsumedGroup]
    steps: int
    trained: int
    masked: int
    norm: float | None
    relative: float | None
    grad_norm: float | None
    kl: float | None
    entropy: float | None


@dataclass(frozen=True)
class Way:
    """Updates from ``start`` (left out) to ``end``; sums over them. ``length`` is the sum of the update norms."""

    start: Checkpoint
    end: Checkpoint
    lines: list[UpdateLine]

    @property
    def totals(self) -> dict[str, Any]:
        """Updates, steps, groups, tokens, and the length of the way: an upper bound of the distance."""
        norms = [line.norm for line in self.lines if line.norm is not None]
        return {
            "updates": len(self.lines),
            "steps": sum(line.steps for line in self.lines),
            "groups": sum(len(line.groups) for line in self.lines),
            "trained": sum(line.trained for line in self.lines),
            "masked": sum(line.masked for line in self.lines),
            "length": math.fsum(norms) if norms else None,
        }


@dataclass(frozen=True)
class Change:
    """What lies between two checkpoints. ``common`` None: no shared ancestor. ``back`` leads from it to the first."""

    common: Checkpoint | None
    back: Way | None
    forth: Way | None
    fields: list[tuple[str, Any, Any]] = field(default_factory=list)


def ancestry(checkpoint: Checkpoint) -> list[tuple[int | None, int, Checkpoint]]:
    """(run, policy version up to which its line counts, checkpoint) from the checkpoint to its first parent."""
    found, now = [], checkpoint
    for _hop in range(1000):
        found.append((now.run_id, now.policy_version, now))
        if now.run is None or now.run.parent_checkpoint is None:
            break
        now = now.run.parent_checkpoint
    return found


def change_between(first: Checkpoint, second: Checkpoint) -> Change:
    """Both ways from the nearest common ancestor. Needs ``run__parent_checkpoint`` loaded."""
    a, b = ancestry(first), ancestry(second)
    common: Checkpoint | None = None
    for run, version, checkpoint in a:
        match = next(
            (other for other in b if other[0] == run and (run is not None or other[2].pk == checkpoint.pk)), None
        )
        if match is not None:
            common = checkpoint if version <= match[1] else match[2]
            break
    facts = [
        (name, getattr(first, name), getattr(second, name))
        for name in ("base_model_sha256", "tokenizer_sha256", "adaptation", "blob_bytes")
        if getattr(first, name) != getattr(second, name)
    ]
    if common is None:
        return Change(None, None, None, facts)
    return Change(common, way(common, first), way(common, second), facts)


def way(start: Checkpoint, end: Checkpoint) -> Way:
    """Updates that made ``end`` from its ancestor ``start``, oldest first."""
    rows: list[Any] = []
    for run, version, _checkpoint in ancestry(end):
        if run is None:
            break
        low = start.policy_version if run == start.run_id else 0
        rows = [*_updates(run, low, version), *rows]
        if run == start.run_id:
            break
    gone = tombstones_of(row.checkpoint_after.sha256 for row in rows)
    return Way(start, end, [_line(row, gone.get(row.checkpoint_after.sha256)) for row in rows])


def _updates(run: int, low: int, high: int) -> list[Any]:
    """Updates of a run that made policies above ``low`` up to ``high``, with ``step_rows`` and ``group_rows``."""
    steps: Any = UpdateStep.objects.order_by("step")
    consumed: Any = ConsumedGroup.objects.select_related("group__task").order_by("group__ordinal")
    return list(
        UpdateBatch.objects.filter(
            run=run,
            skipped__isnull=True,
            checkpoint_after__policy_version__gt=low,
            checkpoint_after__policy_version__lte=high,
        )
        .select_related("checkpoint_before", "checkpoint_after")
        .prefetch_related(
            Prefetch("steps", queryset=steps, to_attr="step_rows"),
            Prefetch("consumed_groups", queryset=consumed, to_attr="group_rows"),
        )
        .order_by("batch")
    )


def _total(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) if known else None


def _line(update: Any, tombstone: Tombstone | None) -> UpdateLine:
    steps = update.step_rows
    last = steps[-1] if steps else None
    return UpdateLine(
        update,
        tombstone,
        update.group_rows,
        len(steps),
        max((step.trained_tokens for step in steps), default=0),
        max((step.masked_tokens for step in steps), default=0),
        _total(step.update_norm for step in steps),
        _total(step.relative_update_norm for step in steps),
        max((step.grad_norm for step in steps if step.grad_norm is not None), default=None),
        last.kl_k3 if last else None,
        last.entropy if last else None,
    )


def headline(checkpoint: Checkpoint, made: Way | None, tombstone: Tombstone | None) -> str:
    """The sentence that opens a checkpoint's page."""
    kept = _("its bytes are held") if tombstone is None else _("retention removed its bytes and kept the recipe")
    if checkpoint.run is None or made is None or not made.lines:
        return _("Parent policy: %(kept)s; runs load it fresh.") % {"kept": kept}
    line = made.lines[-1]
    return _(
        "Policy v%(v)d of %(run)s, made by update %(batch)d from %(groups)d groups and %(tokens)d trained tokens; "
        "%(kept)s."
    ) % {
        "v": checkpoint.policy_version,
        "run": checkpoint.run.name,
        "batch": line.update.batch,
        "groups": len(line.groups),
        "tokens": line.trained,
        "kept": kept,
    }
