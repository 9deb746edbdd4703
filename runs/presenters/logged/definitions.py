"""The table of metrics: every definition, and where names of other trainers belong."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from runs.presenters.layers.cards import LAYERS
from runs.presenters.layers.titles import title_of
from workbench.contracts.metrics import METRIC_DEFINITIONS, MetricDefinition
from workbench.importers.mapping import FRAMEWORKS, Mapping, map_name, mappings

SYSTEM = "system"
QUERY_MOST = 200


@dataclass(frozen=True)
class DefinitionRow:
    """A definition with its title and the range in words ("" for any number)."""

    item: MetricDefinition
    title: str | Promise

    @property
    def limits(self) -> str:
        """The closed interval of finite values."""
        if self.item.range is None:
            return ""
        low, high = self.item.range
        if math.isinf(high):
            return f"≥ {low:g}" if math.isfinite(low) else ""
        return f"{low:g} – {high:g}".replace("-", "−")


@dataclass(frozen=True)
class Trainer:
    """Lines of one trainer's mapping; ``total`` before a query narrowed them."""

    name: str
    lines: tuple[Mapping, ...]
    total: int


def _holds(query: str, *texts: str | Promise) -> bool:
    whole = " ".join(str(text) for text in texts).casefold()
    return all(word in whole for word in query.casefold().split())


def definition_rows(query: str = "") -> list[tuple[str, list[DefinitionRow]]]:
    """Definitions by layer that hold every word of the query; layers without one are left out."""
    found: dict[str, list[DefinitionRow]] = {layer: [] for layer in (*LAYERS, SYSTEM)}
    for item in METRIC_DEFINITIONS.values():
        title = title_of(item.name)
        if _holds(query, item.id, title, item.measures, item.unit):
            found.setdefault(item.layer, []).append(DefinitionRow(item, title))
    return [(layer, rows) for layer, rows in found.items() if rows]


def trainers(query: str = "") -> list[Trainer]:
    """Mapping lines by trainer; a query that is itself a name finds the line that it would meet."""
    found = []
    for name in FRAMEWORKS:
        every = mappings(name)
        hit = map_name(name, query.strip()) if query.strip() else None
        lines = tuple(
            line for line in every if line is hit or _holds(query, line.pattern, line.nearest, line.note, name)
        )
        found.append(Trainer(name, lines, len(every)))
    return found


def counted(rows: Sequence[tuple[str, Sequence[DefinitionRow]]]) -> int:
    """Definitions in all layers."""
    return sum(len(found) for _layer, found in rows)


DIRECTIONS: dict[str, str | Promise] = {
    "none": _("none declared"),
    "higher": _("higher is better"),
    "lower": _("lower is better"),
}
