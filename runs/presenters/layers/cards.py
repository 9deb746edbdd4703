"""Charts of a run by layer: one card a quantity, one line a label, attempt or split."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from runs.metrics.read import SeriesInfo, series_of
from runs.models import Run
from workbench.contracts.metrics import METRIC_DEFINITIONS, MetricDefinition
from workbench.importers.mapping import Mapping, map_name

LAYERS = ("L1", "L2", "L3", "L4", "L5", "L6")
UNMAPPED = "unmapped"


@dataclass(frozen=True)
class CardLine:
    """One line: its series and what tells it from its neighbours ("" where it is alone)."""

    series: SeriesInfo
    label: str


@dataclass(frozen=True)
class Card:
    """One chart. ``definition`` is None for a name that a trainer logged; ``mapping`` then says what it may be.

    ``key`` is short, stable and unique within the run.
    """

    key: str
    layer: str
    name: str
    definition: MetricDefinition | None
    mapping: Mapping | None
    phase: str
    split: str
    lines: tuple[CardLine, ...]

    @property
    def unit(self) -> str:
        """Unit of the values; empty where a trainer logged them without one."""
        return "" if self.definition is None else self.definition.unit


def _key(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:12]


def _label(item: SeriesInfo, several_segments: bool) -> str:
    parts = [value if key == "segment" else f"{key} {value}" for key, value in sorted(item.labels.items())]
    if several_segments:
        parts.append(f"#{item.segment}")
    return ", ".join(parts)


def cards_of(run: Run, series: Iterable[SeriesInfo] | None = None) -> dict[str, list[Card]]:
    """Cards by layer, in a fixed order; every layer is there, empty where nothing was recorded.

    Series of one definition, phase and split share a card: their labels (segment of the text, epoch,
    intervention) and attempts are its lines.
    """
    framework = run.tracked.framework if run.origin != Run.NATIVE else ""
    groups: dict[tuple[str, str, str, str], list[SeriesInfo]] = {}
    for item in series_of(run) if series is None else series:
        groups.setdefault((item.definition, item.name, item.phase, item.split), []).append(item)
    found: dict[str, list[Card]] = {layer: [] for layer in (*LAYERS, UNMAPPED)}
    for (identity, name, phase, split), items in groups.items():
        definition = METRIC_DEFINITIONS.get(identity)
        mapping = map_name(framework, name) if definition is None and framework else None
        layer = definition.layer if definition is not None else (mapping.layer if mapping is not None else UNMAPPED)
        several = len({item.segment for item in items}) > 1
        lines = tuple(CardLine(item, _label(item, several)) for item in items)
        shown = name if definition is None else definition.name
        card = Card(_key(identity, name, phase, split), layer, shown, definition, mapping, phase, split, lines)
        found.setdefault(layer, []).append(card)
    return found


def card_of(run: Run, key: str) -> Card | None:
    """The card of a key, or None."""
    return next((card for cards in cards_of(run).values() for card in cards if card.key == key), None)
