"""Charts of a run by layer: one card a quantity and phase, one line a label, split or attempt."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from runs.metrics.read import SeriesInfo, series_of
from runs.models import Run
from runs.presenters.layers.titles import label_of, unit_of, word_of
from workbench.contracts.metrics import METRIC_DEFINITIONS, MetricDefinition
from workbench.importers.mapping import Mapping, map_name

LAYERS = ("L1", "L2", "L3", "L4", "L5", "L6")
UNMAPPED = "unmapped"
TRAIN = "train"
PHASES = ("train", "standard", "stress", "probe", "preflight")  # in this order wherever several stand together
SPLITS = ("train", "validation", "test", "out_of_distribution", "anchor")
# What answers the layer's question stands first and open; the rest of the layer is folded behind it.
FIRST: dict[str, tuple[str, ...]] = {
    "L1": (
        "l1.grad_norm", "l1.clip_high_share", "l1.kl_k3_reference", "l1.engine_drift_max", "l1.effective_sample_size",
        "l1.skipped_share", "l1.relative_update_norm",
    ),
    "L2": (
        "l2.entropy_sampled", "l2.response_length", "l2.tool_calls_mean", "l2.repeat_call_rate", "l2.finish_rate",
        "l2.segment_length", "l2.recovery_all",
    ),
    "L3": (
        "l3.reward_mean", "l3.success_rate", "l3.group_sigma", "l3.zero_variance_share", "l3.pass_gap",
        "l3.effective_batch",
    ),
    "L4": (
        "l4.action_edit_distance", "l4.distinct_sequences", "l4.step_group_size", "l4.state_coverage",
        "l4.entropy_left", "l4.think_edit_distance", "l4.entropy_by_decision", "l4.state_concentration",
    ),
    "L5": ("l5.reward", "l5.success_rate", "l5.reward_gap", "l5.reward_forgotten"),
    "L6": (
        "l6.action_unchanged", "l6.answer_unchanged", "l6.corruption_followed", "l6.statements_true",
        "l6.self_consistency_gap", "l6.think_action_agreement", "l6.unmeasured_share", "l6.probe_generations",
    ),
}  # fmt: skip


ORDER = (  # of words that have one: parts before what they are parts of, stages as they follow, treatments as planned
    "", "all", "think", "action", "answer", "none", "some", "started", "finished", "not_infrastructure_failed",
    "reconstructed", "not_too_old", "in_complete_group", "with_signal", "factual", "delete", "corrupt", "paraphrase",
    "random",
)  # fmt: skip


@dataclass(frozen=True)
class CardLine:
    """One line: its series and what tells it from its neighbours ("" where it is alone).

    ``part``: the label without the split. ``low``, ``high``: series of the interval's bounds, None where the
    quantity has none.
    """

    series: SeriesInfo
    label: str
    part: str = ""
    low: SeriesInfo | None = None
    high: SeriesInfo | None = None

    @property
    def parts(self) -> tuple[SeriesInfo, ...]:
        """The series and its bounds."""
        return tuple(item for item in (self.series, self.low, self.high) if item is not None)


@dataclass(frozen=True)
class Card:
    """One chart. ``definition`` is None for a name that a trainer logged; ``mapping`` then says what it may be.

    ``key`` is short, stable and unique within the run; ``is_first``: it answers the layer's question.
    ``over``: what is counted, where one definition counts two things that no axis can share.
    """

    key: str
    layer: str
    name: str
    definition: MetricDefinition | None
    mapping: Mapping | None
    phase: str
    lines: tuple[CardLine, ...]
    is_first: bool
    over: str = ""

    @property
    def unit(self) -> str:
        """Unit of the values in words; empty where they have none or a trainer logged them without one."""
        if self.over:
            return str(word_of(self.over))
        return "" if self.definition is None else str(unit_of(self.definition.unit))

    @property
    def series(self) -> tuple[SeriesInfo, ...]:
        """Every series of the card, bounds included."""
        return tuple(item for line in self.lines for item in line.parts)


def _key(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:12]


def _place(order: tuple[str, ...], value: str) -> tuple[int, str]:
    return (order.index(value) if value in order else len(order), value)


def _natural(labels: dict[str, str]) -> list[tuple[str, float, str]]:
    """Labels as a sort key: numbers by size, known words in their order, others by name."""
    found = []
    for key, value in sorted(labels.items()):
        try:
            found.append((key, float(value), ""))
        except ValueError:
            found.append((key, float(_place(ORDER, value)[0]), value))
    return found


def _lines(items: list[SeriesInfo]) -> tuple[CardLine, ...]:
    """Lines of a card; series whose label says that they are a bound go to the line that they bound."""
    bounds: dict[tuple[str, str, str], dict[str, SeriesInfo]] = {}
    whole = []

    def identity(item: SeriesInfo) -> tuple[str, str, str]:
        rest = sorted((key, value) for key, value in item.labels.items() if key != "bound")
        return (item.split, item.segment, str(rest))

    for item in items:
        if "bound" in item.labels:
            bounds.setdefault(identity(item), {})[item.labels["bound"]] = item
        else:
            whole.append(item)
    several = any(item.labels.keys() - {"outside", "over"} for item in whole)
    splits, segments = {item.split for item in whole}, {item.segment for item in whole}
    whole.sort(key=lambda item: (_place(SPLITS, item.split), _natural(item.labels), item.segment))
    found = []
    for item in whole:
        rest = {key: value for key, value in item.labels.items() if key != "over"}
        part = label_of(rest) or (str(word_of("all")) if several else "")
        parts = [part]
        if len(splits) > 1:
            parts.insert(0, str(word_of(item.split)))
        if len(segments) > 1:
            parts.append(f"#{item.segment}")
        mine = bounds.get(identity(item), {})
        label = ", ".join(part for part in parts if part)
        found.append(CardLine(item, label, part, mine.get("low"), mine.get("high")))
    return tuple(found)


def cards_of(run: Run, series: Iterable[SeriesInfo] | None = None) -> dict[str, list[Card]]:
    """Cards by layer, the important first; every layer is there, empty where nothing was recorded.

    Series of one definition and phase share a card: their splits, labels (segment of the text, pass,
    intervention) and attempts are its lines.
    """
    framework = run.tracked.framework if run.origin != Run.NATIVE else ""
    groups: dict[tuple[str, str, str, str], list[SeriesInfo]] = {}
    for item in series_of(run) if series is None else series:
        groups.setdefault((item.definition, item.name, item.phase, item.labels.get("over", "")), []).append(item)
    found: dict[str, list[Card]] = {layer: [] for layer in (*LAYERS, UNMAPPED)}
    for (identity, name, phase, over), items in groups.items():
        definition = METRIC_DEFINITIONS.get(identity)
        mapping = map_name(framework, name) if definition is None and framework else None
        layer = definition.layer if definition is not None else (mapping.layer if mapping is not None else UNMAPPED)
        lines = _lines(items)
        if not lines:
            continue
        shown = (name or identity) if definition is None else definition.name
        first = definition is None or shown in FIRST.get(layer, ())
        key = _key(identity, name, phase, over)
        card = Card(key, layer, shown, definition, mapping, phase, lines, first, over)
        found.setdefault(layer, []).append(card)
    for layer, cards in found.items():
        cards.sort(key=lambda card: (_place(FIRST.get(layer, ()), card.name)[0], _place(PHASES, card.phase)))
    return found


def card_of(run: Run, key: str) -> Card | None:
    """The card of a key, or None."""
    return next((card for cards in cards_of(run).values() for card in cards if card.key == key), None)
