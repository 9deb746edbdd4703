"""What the comparison over layers shows: runs, shared quantities, and one drawn card of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.utils.functional import Promise
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from runs.access import Principal, visible
from runs.metrics import codec
from runs.metrics.codec import Points
from runs.metrics.draw import draw
from runs.models import Run, TrackedRun
from runs.presenters.compare.runs import DASHES, comparability
from runs.presenters.layers import arms as words
from runs.presenters.layers.access import is_live
from runs.presenters.layers.arms import Arm, Compared, Line, Row
from runs.presenters.layers.page import SECTION_TITLES
from runs.presenters.layers.quantities import BY_MAPPING, BY_NAME, Quantity

MOST = 100  # runs in one comparison
LINES_DRAWN = 40  # single lines in one chart; bands and table count all
POINTS_DRAWN = 16_000  # points of all lines of one chart together
NATIVE = ("head__checkpoint", "arm", "plan_version__plan__study", "execution")
VERDICTS: dict[str, str | Promise] = {
    words.REFERENCE: _("compared against"),
    words.NOT_DISTINGUISHED: _("not distinguished"),
    words.DISTINGUISHED: _("beyond two standard deviations"),
    words.NO_SD: _("no spread: one run each"),
    words.WITHHELD: _("not judged: graders differ or are unknown"),
    words.NO_DATA: _("no value yet"),
}
WAYS: dict[str, str | Promise] = {
    BY_NAME: _("same trainer, same received name"),
    BY_MAPPING: _("by the mapping of foreign names"),
}


@dataclass(frozen=True)
class Section:
    """A layer with the quantities that two of the runs share."""

    key: str
    title: str | Promise
    quantities: tuple[Quantity, ...]

    @property
    def parts(self) -> list[tuple[bool, list[Quantity]]]:
        """(folded, quantities): those that answer the layer's question, then the rest."""
        first = [item for item in self.quantities if item.is_first]
        rest = [item for item in self.quantities if not item.is_first]
        return [(folded, items) for folded, items in ((False, first), (bool(first), rest)) if items]


@dataclass(frozen=True)
class CardView:
    """One card: the comparison, what the chart draws as JSON, and how much of it."""

    compared: Compared
    plain: str
    lines_drawn: int
    shown: int
    stored: int
    nonfinite: int
    samplers: str

    @property
    def rows(self) -> list[tuple[Row, str | Promise]]:
        """Rows with their verdicts in words."""
        return [(row, VERDICTS[row.verdict]) for row in self.compared.rows]

    @property
    def capped(self) -> bool:
        """Whether single lines are missing in the chart."""
        return self.lines_drawn < len([line for line in self.compared.lines if line.x is not None and len(line.step)])


def visible_runs(principal: Principal, uids: Sequence[Any]) -> dict[Any, Run]:
    """Visible runs of any origin by uid, with what the comparison reads of them. Two queries."""
    native = visible(principal, Run.objects.filter(origin=Run.NATIVE)).select_related(*NATIVE).filter(uid__in=uids)
    found = {run.uid: run for run in native}
    tracked = visible(principal, TrackedRun.objects.filter(deleted=False), "study").select_related("run", "study")
    for head in tracked.filter(run__uid__in=uids):
        run = head.run
        run.tracked = head
        found[run.uid] = run
    return found


def judged_apart(runs: Sequence[Run]) -> str:
    """Why what judged the runs may differ, in words; "" where the frozen plans say that it does not.

    One run of each arm speaks for its arm; the rule is that of the comparison of runs.
    """
    if any(run.origin != Run.NATIVE for run in runs):
        return gettext("grader, tasks and environment of runs from elsewhere are not known here")
    kinds = {(run.plan_version_id, run.arm_id): run for run in reversed(runs)}
    verdict = comparability(list(kinds.values()))
    return "" if verdict.comparable else verdict.names()


def sections_of(quantities: Sequence[Quantity]) -> list[Section]:
    """Quantities by layer, in their order; layers that share nothing are left out."""
    found: dict[str, list[Quantity]] = {}
    for item in quantities:
        found.setdefault(item.layer, []).append(item)
    return [Section(key, SECTION_TITLES.get(key, key), tuple(items)) for key, items in found.items()]


def headline(runs: Sequence[Run], arms: Sequence[Arm], quantities: Sequence[Quantity]) -> str:
    """The page's first sentence."""
    if not quantities:
        return gettext("These %(n)d runs share no quantity.") % {"n": len(runs)}
    elsewhere = sum(run.origin != Run.NATIVE for run in runs)
    text = ngettext(
        "%(n)d runs in %(a)d arm share %(q)d quantities", "%(n)d runs in %(a)d arms share %(q)d quantities", len(arms)
    ) % {"n": len(runs), "a": len(arms), "q": len(quantities)}
    if elsewhere:
        more = ngettext("%(n)d run is from elsewhere", "%(n)d runs are from elsewhere", elsewhere) % {"n": elsewhere}
        text = gettext("%(text)s; %(more)s") % {"text": text, "more": more}
    return text + gettext(".")


def live_runs(runs: Sequence[Run]) -> frozenset[int]:
    """Row numbers of runs that go on."""
    return frozenset(run.pk for run in runs if is_live(run))


def drawn_lines(lines: Sequence[Line]) -> list[Line]:
    """At most ``LINES_DRAWN`` lines: one of each arm in turn, so that no arm vanishes behind another."""
    placed = [line for line in lines if line.x is not None and len(line.step)]
    if len(placed) <= LINES_DRAWN:
        return placed
    seen: dict[Any, int] = {}
    order: list[tuple[int, int, Line]] = []
    for line in placed:
        turn = seen[line.arm.key] = seen.get(line.arm.key, -1) + 1
        order.append((turn, len(order), line))
    chosen = sorted(order, key=lambda item: item[:2])[:LINES_DRAWN]
    return [line for _turn, _place, line in sorted(chosen, key=lambda item: item[1])]


def thinned(line: Line, limit: int) -> tuple[Any, str]:
    """Positions of a line that a chart draws, and the sampler that chose them."""
    n = len(line.step)
    points = Points(line.step, np.zeros(n, np.int64), line.value, np.full(n, codec.FINITE, np.uint8))
    found = draw(points, line.x, limit=limit)  # type: ignore[arg-type]
    return found.finite, found.sampler


def _plain_line(line: Line, limit: int) -> dict[str, Any]:
    kept, sampler = thinned(line, limit)
    assert line.x is not None
    return {
        "name": line.label,
        "arm": line.arm.label,
        "colour": line.arm.colour,
        "dash": DASHES[line.dash % len(DASHES)],
        "x": line.x[kept].tolist(),
        "y": line.value[kept].tolist(),
        "step": line.step[kept].tolist(),
        "nonfinite": [list(item) for item in line.odd],
        "sampler": sampler,
    }


def limit_of(count: int) -> int:
    """Points that each of ``count`` lines may draw: a multiple of 4, at least 80."""
    return max(80, min(2000, POINTS_DRAWN // max(1, count)) // 4 * 4)


def card_of(compared: Compared, axis_word: str) -> CardView:
    """The card as a page or a figure draws it."""
    lines = drawn_lines(compared.lines)
    plain = [_plain_line(line, limit_of(len(lines))) for line in lines]
    bands = []
    for band in compared.bands:
        order = np.argsort(band.x, kind="stable")
        step = max(1, -(-len(order) // 2000))
        kept = order[::step]
        bands.append(
            {
                "arm": band.arm.label,
                "colour": band.arm.colour,
                "x": band.x[kept].tolist(),
                "mean": band.mean[kept].tolist(),
                "sd": band.sd[kept].tolist(),
                "n": band.n[kept].tolist(),
                "step": band.step[kept].tolist(),
            }
        )
    data = {"axis": axis_word, "unit": compared.quantity.unit, "lines": plain, "bands": bands}
    samplers = sorted({item["sampler"] for item in plain} - {"exact"})
    return CardView(
        compared, json.dumps(data), len(lines), sum(len(item["x"]) for item in plain),
        sum(line.stored for line in compared.lines), sum(len(line.odd) for line in compared.lines),
        ", ".join(samplers),
    )  # fmt: skip
