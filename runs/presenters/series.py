"""Chart series of a run, read from its rows, thinned so that no extreme is lost.

``Series.points`` are (x, value or None, non-finite word or ""): ``None`` with "" was not measured.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from tsdownsample import MinMaxLTTBDownsampler

from runs.models import Group, Run, UpdateStep

Point = tuple[float, float | None, str]
MAX_POINTS = 600
WINDOW = 12
FIGURES, MOST_DECIMALS = 3, 6  # of the figures beside a chart
SAMPLER = "min-max-lttb"


@dataclass(frozen=True)
class Definition:
    """A chart: what it shows, of which layer, in which unit, over which axis, and what it cannot tell."""

    key: str
    title: Any
    unit: Any
    layer: str
    axis: Any
    explains: Any
    read: Callable[[Run], list[Point]]
    digits: int = 3
    zero: bool = False

    @property
    def per_group(self) -> bool:
        """Whether a point is one group: then neighbouring points are of different tasks."""
        return self.axis is GROUP


def _from_groups(field: str) -> Callable[[Run], list[Point]]:
    def read(run: Run) -> list[Point]:
        rows = Group.objects.filter(run=run, purpose="train", eligible=True).order_by("ordinal")
        return [(float(ordinal), value, "") for ordinal, value in rows.values_list("ordinal", field)]

    return read


def _silent_share(run: Run) -> list[Point]:
    rows = (
        Group.objects.filter(run=run, purpose="train", eligible=True)
        .order_by("ordinal")
        .values_list("ordinal", "signal")
    )
    found: list[Point] = []
    flags: list[bool] = []
    for ordinal, signal in rows:
        flags.append(signal != "signal")
        if len(flags) >= WINDOW:
            found.append((float(ordinal), 100.0 * sum(flags[-WINDOW:]) / WINDOW, ""))
    return found


def _from_steps(*fields: str, scale: float = 1.0, moved: bool = False) -> Callable[[Run], list[Point]]:
    """``moved``: leave out the first step of a batch that has more, where the ratio is 1 by construction."""

    def read(run: Run) -> list[Point]:
        steps = UpdateStep.objects.filter(update__run=run).order_by("step")
        if moved:
            steps = steps.filter(~Q(epoch=0, minibatch=0) | Q(update__clipping_inert=True))
        rows = steps.values("step", "nonfinite", *fields)
        found: list[Point] = []
        for row in rows:
            word = next((str(row["nonfinite"][name]) for name in fields if name in row["nonfinite"]), "")
            parts = [row[name] for name in fields]
            value = None if word or any(part is None for part in parts) else scale * sum(parts)
            found.append((float(row["step"]), value, word))
        return found

    return read


GROUP, STEP = _("group"), _("optimizer step")
DEFINITIONS: dict[str, Definition] = {
    item.key: item
    for item in (
        Definition(
            "reward",
            _("Mean reward of a group"),
            _("0 to 1"),
            "R",
            GROUP,
            _(
                "Mean of the total rewards of the slots of each eligible group. Tasks differ from group to "
                "group: compare on the results page, not here."
            ),
            _from_groups("mean"),
        ),
        Definition(
            "sigma",
            _("Group σ"),
            _("reward"),
            "L3",
            GROUP,
            _("Population standard deviation of the rewards within a group. 0 means that the group trains nothing."),
            _from_groups("sigma"),
        ),
        Definition(
            "silent",
            _("Groups without signal"),
            _("of last 12, %"),
            "L3",
            GROUP,
            _(
                "Share of zero-variance groups among the last twelve eligible groups. It says neither converged "
                "nor collapsed."
            ),
            _silent_share,
            0,
            True,
        ),
        Definition(
            "loss",
            _("Loss"),
            _("per trajectory"),
            "L1",
            STEP,
            _(
                "Clipped objective, negative, averaged over the trajectories of the batch. Its level says little "
                "in policy-gradient training."
            ),
            _from_steps("loss"),
            4,
        ),
        Definition(
            "grad_norm",
            _("Gradient norm"),
            _("L2, before clipping"),
            "L1",
            STEP,
            _("A spike names a step; the update's trace names the trajectory."),
            _from_steps("grad_norm"),
            2,
            True,
        ),
        Definition(
            "clip",
            _("Clip fraction"),
            _("of trained tokens, %"),
            "L1",
            STEP,
            _(
                "Tokens whose ratio left the clip range on the side that the objective clips, low and high "
                "together. The first step of a batch, where it is 0 by construction, is left out."
            ),
            _from_steps("clip_low_share", "clip_high_share", scale=100.0, moved=True),
            1,
            True,
        ),
        Definition(
            "kl_k3",
            _("KL to the old policy"),
            _("nats, k3"),
            "L1",
            STEP,
            _(
                "Estimator k3 over the trained tokens, against the policy that sampled them. The first step of a "
                "batch, where it is 0, is left out."
            ),
            _from_steps("kl_k3", moved=True),
            4,
            True,
        ),
        Definition(
            "entropy",
            _("Token entropy"),
            _("nats"),
            "L2",
            STEP,
            _("Exact entropy over the vocabulary, mean over the trained tokens. Falling entropy warns poorly early."),
            _from_steps("entropy"),
            3,
        ),
        Definition(
            "update_norm",
            _("Relative update"),
            _("norm of change / norm"),
            "L1",
            STEP,
            _("How far one step moved the trained parameters, relative to their norm."),
            _from_steps("relative_update_norm"),
            6,
            True,
        ),
    )
}


@dataclass(frozen=True)
class Thinned:
    """Points to draw. ``shown`` counts them; every bucket keeps its minimum and maximum."""

    points: list[Point]
    stored: int
    shown: int
    sampler: str


def thin(points: list[Point], limit: int = MAX_POINTS) -> Thinned:
    """At most about ``limit`` points; values that are not finite or not measured are all kept."""
    kept = [p for p in points if p[1] is None or not math.isfinite(p[1])]
    plain = [p for p in points if p[1] is not None and math.isfinite(p[1])]
    if len(plain) <= limit:
        return Thinned(points, len(points), len(points), "none")
    x = np.asarray([p[0] for p in plain], dtype=np.float64)
    y = np.asarray([p[1] for p in plain], dtype=np.float64)
    chosen = {int(i) for i in MinMaxLTTBDownsampler().downsample(x, y, n_out=limit)}
    chosen |= {int(y.argmin()), int(y.argmax()), 0, len(plain) - 1}
    shown = sorted([plain[i] for i in chosen] + kept, key=lambda p: p[0])
    return Thinned(shown, len(points), len(shown), SAMPLER)


def to_csv(definition: Definition, points: list[Point]) -> tuple[bytes, str]:
    """All stored points as CSV, and the SHA-256 of these bytes."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["x", definition.key, "nonfinite"])
    for x, value, word in points:
        writer.writerow([f"{x:g}", "" if value is None else repr(value), word])
    data = buffer.getvalue().encode()
    return data, hashlib.sha256(data).hexdigest()


@dataclass(frozen=True)
class ChartView:
    """What the page shows beside a chart before any script runs.

    ``change``: over steps, the last value against the first; over groups, whose tasks differ, the mean of the
    last twelve against the mean of the first twelve (``windowed``). None where that would compare nothing.
    """

    definition: Definition
    last: float | None
    change: float | None
    windowed: bool
    stored: int

    @property
    def digits(self) -> int:
        """Decimals for the value and its change alike: three significant digits of the larger one, at most six."""
        sizes = [abs(value) for value in (self.last, self.change) if value and math.isfinite(value)]
        if not sizes:
            return self.definition.digits
        return min(max(FIGURES - 1 - math.floor(math.log10(max(sizes))), 0), MOST_DECIMALS)


def change_of(values: list[float], windowed: bool) -> float | None:
    """Change of a series; ``windowed`` compares means of twelve and needs at least twenty-four values."""
    if not windowed:
        return values[-1] - values[0] if len(values) > 1 else None
    if len(values) < 2 * WINDOW:
        return None
    return math.fsum(values[-WINDOW:]) / WINDOW - math.fsum(values[:WINDOW]) / WINDOW


def chart_views(run: Run) -> list[ChartView]:
    """Last value and change since the first of every definition, in reading order."""
    found = []
    for definition in DEFINITIONS.values():
        points = definition.read(run)
        values = [p[1] for p in points if p[1] is not None]
        windowed = definition.per_group
        found.append(
            ChartView(
                definition,
                values[-1] if values else None,
                change_of(values, windowed),
                windowed,
                len(points),
            )
        )
    return found
