"""What a figure rests on where no source's lines can be shown: receipts, closed executions, operands of derivations.

Each with its hash, what it gives now, and whether that is what was stored; all of it is read again for the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from evidence.binding.figures import Recomputed, Resolver, recompute
from evidence.models import Figure
from evidence.presenters.chips import HEAVY, RELATED, TYPES, Chip, chip_list, source_url
from evidence.presenters.reviews import FIGURE_STATES
from evidence.presenters.troubles import told
from runs.models import Receipt
from runs.presenters.states import StateView
from workbench.contracts.canonical import sha256_hex

MOST, DEEPEST = 60, 12  # rows of one page; levels of derivation

_NOTES: dict[str, Any] = {
    Figure.BOUND: _("computed again, equal"),
    Figure.CLAIMED: _("its bytes are not held here"),
    Figure.PENDING: _("not measured yet"),
    Figure.UNAVAILABLE: _("no value"),
    Figure.DRIFTED: _("computes to another value"),
}
_DOCUMENTS: dict[str, Any] = {
    "plan_sha256": _("frozen plan"), "closure_sha256": _("closure"), "aggregate_sha256": _("aggregate"),
}  # fmt: skip


@dataclass(frozen=True)
class Hash:
    """One hash that a figure is bound to. ``url``: where its bytes can be read, empty for none."""

    word: Any
    sha256: str
    url: str = ""
    state: StateView | None = None


@dataclass(frozen=True)
class Row:
    """A figure: the one under review at ``depth`` 0, what it is derived from below it. ``name``: in the expression."""

    chip: Chip
    depth: int
    name: str
    word: Any
    place: str
    place_url: str
    hashes: tuple[Hash, ...]
    state: StateView
    note: str


@dataclass(frozen=True)
class Basis:
    """Figures with everything below them, in the order in which a reader follows them. ``cut``: there is more."""

    rows: tuple[Row, ...]
    cut: bool


def basis_of(figures: Sequence[Figure]) -> Basis:
    """What figures of one study rest on. Two queries for each level of derivation, and what computing again reads."""
    chips = _levels(figures)
    resolver = Resolver(figures[0].study) if figures else None
    wanted = [chip.version.binding["sha256"] for chip in chips.values() if chip.version.binding["type"] == "receipt"]
    receipts = {row.sha256: row for row in Receipt.objects.filter(sha256__in=wanted)} if wanted else {}
    rows: list[Row] = []

    def walk(key: str, name: str, depth: int) -> None:
        if len(rows) > MOST or depth > DEEPEST or key not in chips:
            return
        rows.append(_row(chips[key], depth, name, recompute(chips[key].figure, resolver), receipts))
        for operand, below in chips[key].inputs:
            walk(below, operand, depth + 1)

    for figure in figures:
        walk(figure.key, "", 0)
    return Basis(tuple(rows[:MOST]), len(rows) > MOST)


def _levels(figures: Iterable[Figure]) -> dict[str, Chip]:
    """Chips of the figures and of everything that they are derived from, by key."""
    found: dict[str, Chip] = {}
    level = chip_list(_rows(figure.pk for figure in figures))
    for _depth in range(DEEPEST):
        found.update({chip.key: chip for chip in level})
        below = {key for chip in level for _name, key in chip.inputs} - found.keys()
        if not below or len(found) > MOST:
            break
        study = level[0].figure.study_id
        wanted = Figure.objects.filter(study=study, key__in=sorted(below)[:MOST], current__isnull=False)
        level = chip_list(_rows(wanted.values_list("pk", flat=True)))
    return found


def _rows(keys: Iterable[int]) -> list[Figure]:
    rows = Figure.objects.filter(pk__in=list(keys)).select_related("study", *RELATED).defer(*HEAVY)
    return list(rows.order_by("key"))


def _row(chip: Chip, depth: int, name: str, found: Recomputed, receipts: dict[str, Receipt]) -> Row:
    version, state = chip.version, FIGURE_STATES["stale" if chip.stale and found.state == Figure.BOUND else found.state]
    source = version.source_version.source if version.source_version is not None else None
    trouble = told(found.trouble) if version.value else chip.why(get_language())
    return Row(
        chip, depth, name, TYPES[version.binding["type"]], chip.expression or _place(chip),
        source_url(source) if source is not None else "", tuple(_hashes(chip, receipts)), state,
        trouble or str(_NOTES[found.state]),
    )  # fmt: skip


def _place(chip: Chip) -> str:
    """Where in its source, receipt or plan the number stands."""
    binding = chip.version.binding
    where = binding.get("pointer") or binding.get("quantity") or binding.get("excerpt") or binding.get("column") or ""
    return f"{chip.source_name} {where}".strip()


def _hashes(chip: Chip, receipts: dict[str, Receipt]) -> Iterable[Hash]:
    binding, version = chip.version.binding, chip.version
    if version.source_version is not None:
        yield Hash(_("source"), version.source_version.sha256)
    if binding["type"] == "receipt":
        row = receipts.get(binding["sha256"])
        same = row is not None and sha256_hex(bytes(row.bytes)) == row.sha256
        url = reverse("runs:receipt", args=[row.sha256]) if row is not None else ""
        yield Hash(_("receipt"), binding["sha256"], url, FIGURE_STATES[Figure.BOUND if same else Figure.DRIFTED])
    for member, word in _DOCUMENTS.items():
        if member in binding:
            yield Hash(word, binding[member])
