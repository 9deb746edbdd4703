"""Which quantities several runs share: by definition id, by received name, or by the mapping of foreign names.

Runs executed here share a quantity by definition, phase, split and labels. Two runs of one trainer share a
name as received. A foreign name joins the definition that the table calls nearest, with the note of what
differs; equal names of different trainers are never joined, because they differ.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.utils.functional import Promise

from runs.metrics.read import SeriesInfo
from runs.models import MetricSeries, Run
from runs.presenters.layers.cards import FIRST, LAYERS, UNMAPPED
from runs.presenters.layers.titles import label_of, title_of, word_of
from workbench.contracts.canonical import canonical_bytes
from workbench.contracts.metrics import METRIC_DEFINITIONS
from workbench.importers.mapping import Mapping, map_name

BY_DEFINITION, BY_NAME, BY_MAPPING = "definition", "name", "mapping"
WHOLE: tuple[dict[str, str], ...] = (
    {},
    {"segment": "all"},
)  # labels, epoch aside, of a native series that speaks of all tokens
BOUND = "bound"  # label of an interval's ends, which are no quantity of their own
# Quantities into which what judged the trajectories enters.
GRADED_LAYERS = ("L3", "L5")
GRADED = ("l2.length_correctness_r/1", "l2.correct_by_length/1")
COLUMNS = ("run_id", "pk", "uid", "definition", "name", "phase", "split", "labels", "segment")
Key = tuple[str, ...]


@dataclass(frozen=True)
class Member:
    """One run's part of a quantity. ``series``: its attempts, the oldest first. ``received``: "" where native."""

    run: Run
    series: tuple[SeriesInfo, ...]
    received: str
    mapping: Mapping | None


@dataclass(frozen=True)
class Quantity:
    """What several runs share. ``key`` is short and stable; ``by`` how the loosest of its members came in.

    ``definition`` is "" for a name that no table maps. ``labels`` tell it from its neighbours of one definition.
    """

    key: str
    layer: str
    name: str
    definition: str
    phase: str
    split: str
    labels: tuple[tuple[str, str], ...]
    by: str
    members: tuple[Member, ...]

    @property
    def title(self) -> str | Promise:
        """Title of the definition, or the name as received."""
        return title_of(self.name)

    @property
    def label(self) -> str:
        """Labels in words; "" without any. A gap names the split that it is against."""
        found, outside = label_of(dict(self.labels)), dict(self.labels).get("outside", "")
        return ", ".join(part for part in (found, str(word_of(outside)) if outside else "") if part)

    @property
    def unit(self) -> str:
        """Unit of the definition; "" where a trainer logged without one."""
        found = METRIC_DEFINITIONS.get(self.definition)
        return "" if found is None else found.unit

    @property
    def graded(self) -> bool:
        """Whether what judged the trajectories enters it."""
        return self.layer in GRADED_LAYERS or self.definition in GRADED

    @property
    def runs(self) -> int:
        """How many runs have it."""
        return len({member.run.pk for member in self.members})

    @property
    def is_first(self) -> bool:
        """Whether it answers its layer's question: shown open, the rest folded behind it."""
        if self.layer not in FIRST:
            return True
        plain = "segment" not in dict(self.labels) and self.phase in ("", "train", "probe")
        return self.by != BY_DEFINITION or (plain and self.name in FIRST[self.layer])

    @property
    def notes(self) -> list[tuple[str, str, str]]:
        """(trainer, received name, what differs) of every member that the mapping brought in, each once."""
        found = [(item.mapping.framework, item.received, item.mapping.note) for item in self.members if item.mapping]
        return list(dict.fromkeys(found))


def series_by_run(runs: Sequence[Run]) -> dict[int, list[SeriesInfo]]:
    """Series of each run by its row number, in a fixed order. One query."""
    rows = MetricSeries.objects.filter(run__in=[run.pk for run in runs])
    rows = rows.order_by("definition", "name", "phase", "split", "labels_key", "pk")
    found: dict[int, list[SeriesInfo]] = {run.pk: [] for run in runs}
    for run_id, pk, uid, *rest in rows.values_list(*COLUMNS):
        found[run_id].append(SeriesInfo(pk, str(uid), *rest))
    return found


@functools.lru_cache(maxsize=20_000)
def _mapping(framework: str, name: str) -> Mapping | None:
    """``map_name``, which tries every line of a table: a hundred runs of one trainer ask for the same names."""
    return map_name(framework, name)


def _short(parts: Key) -> str:
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:12]


def _attempt(item: SeriesInfo) -> tuple[int, str]:
    return (int(item.segment), "") if item.segment.isdecimal() else (-1, item.segment)


def _native_key(item: SeriesInfo) -> Key:
    return (BY_DEFINITION, item.definition, item.phase, item.split, canonical_bytes(item.labels).decode())


def _members(run: Run, items: Sequence[SeriesInfo]) -> dict[Key, Member]:
    framework = "" if run.origin == Run.NATIVE else run.tracked.framework
    groups: dict[Key, list[SeriesInfo]] = {}
    for item in items:
        if BOUND in item.labels:
            continue
        key = (BY_NAME, framework, item.name) if item.is_logged else _native_key(item)
        groups.setdefault(key, []).append(item)
    found = {}
    for key, some in groups.items():
        first = some[0]
        mapping = _mapping(framework, first.name) if first.is_logged and framework else None
        found[key] = Member(run, tuple(sorted(some, key=_attempt)), first.name if first.is_logged else "", mapping)
    return found


def _quantity(key: Key, members: Sequence[Member]) -> Quantity:
    first = members[0].series[0]
    if key[0] == BY_DEFINITION:
        definition = METRIC_DEFINITIONS.get(first.definition)
        labels = tuple(sorted(first.labels.items()))
        layer = UNMAPPED if definition is None else definition.layer
        name = first.definition.rpartition("/")[0]
        return Quantity(
            _short(key), layer, name, first.definition, first.phase, first.split, labels, BY_DEFINITION, tuple(members)
        )
    mapping = members[0].mapping
    layer = UNMAPPED if mapping is None else mapping.layer
    plain = tuple(replace(member, mapping=None) for member in members)
    return Quantity(_short(key), layer, first.name, "", "", "", (), BY_NAME, plain)


def _nearest(member: Member) -> str:
    """Id of ours that a foreign name joins; "" for none, also where the trainer measures it in another layer."""
    if member.mapping is None or not member.mapping.nearest:
        return ""
    ours = METRIC_DEFINITIONS.get(member.mapping.nearest)
    return ours.id if ours is not None and ours.layer == member.mapping.layer else ""


def _whole(found: dict[Key, list[Member]], definition: str) -> list[Member] | None:
    """Native members of a definition in training that foreign names may join: of the last epoch where it has epochs."""
    fitting = []
    for key, members in found.items():
        if key[:3] == (BY_DEFINITION, definition, "train"):
            labels = members[0].series[0].labels
            if {name: value for name, value in labels.items() if name != "epoch"} in WHOLE:
                fitting.append((int(labels.get("epoch", 0)), members))
    return max(fitting, key=lambda item: item[0])[1] if fitting else None


def _joined(found: dict[Key, list[Member]]) -> list[Quantity]:
    """Quantities that the mapping makes or widens."""
    foreign: dict[str, list[Member]] = {}
    for key, members in found.items():
        for member in members if key[0] == BY_NAME else ():
            if nearest := _nearest(member):
                foreign.setdefault(nearest, []).append(member)
    made = []
    for nearest, members in foreign.items():
        own = _whole(found, nearest)
        if own is None and len({member.run.tracked.framework for member in members}) < 2:
            continue  # one trainer alone: its own names say more
        base = _quantity(_native_key(own[0].series[0]), own) if own is not None else None
        item = METRIC_DEFINITIONS[nearest]
        made.append(
            Quantity(
                _short((BY_MAPPING, nearest)), item.layer, item.name, nearest,
                base.phase if base else "", base.split if base else "", base.labels if base else (),
                BY_MAPPING, (*(own or ()), *members),
            )
        )  # fmt: skip
    return made


def _order(item: Quantity) -> tuple[int, int, str, tuple[tuple[str, str], ...]]:
    layers = [*LAYERS, "system", UNMAPPED]
    ids = list(METRIC_DEFINITIONS)
    place = ids.index(item.definition) if item.definition in METRIC_DEFINITIONS else len(ids)
    return (layers.index(item.layer) if item.layer in layers else len(layers), place, item.name, item.labels)


def quantities_of(runs: Sequence[Run]) -> list[Quantity]:
    """Every quantity that at least two of the runs share, in the order of the layers. One query.

    ``run.tracked`` of foreign runs must be loaded. A native quantity that foreign names join appears once, joined.
    """
    found: dict[Key, list[Member]] = {}
    series = series_by_run(runs)
    for run in runs:
        for key, member in _members(run, series[run.pk]).items():
            found.setdefault(key, []).append(member)
    joined = _joined(found)
    taken = {(item.definition, item.phase, item.split, item.labels) for item in joined if item.phase}
    plain = [_quantity(key, members) for key, members in found.items()]
    plain = [item for item in plain if (item.definition, item.phase, item.split, item.labels) not in taken]
    return sorted((item for item in (*joined, *plain) if item.runs > 1), key=_order)
