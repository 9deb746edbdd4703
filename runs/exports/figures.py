"""Figures for papers: the drawn points as SVG or PDF, the same bytes for the same data.

Okabe-Ito order with dash and marker, so that no line is told by colour alone; the data hash stands in
the figure and in its metadata.
"""

from __future__ import annotations

import io
import os
import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings

SVG, PDF = "svg", "pdf"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 2, 1, 2)), (0, (8, 2)), (0, (8, 2, 1, 2)))
MARKERS = ("o", "s", "D", "^", "P", "*")
MARKED = 12  # markers of a line, at least
WIDTH, HEIGHT = 5.0, 3.1  # inches: one and a half columns
LEGEND = 12  # entries; more would hide the data
_drawing = threading.Lock()  # the library's font caches are shared by threads


@dataclass(frozen=True)
class Curve:
    """One line. ``colour`` from 1; ``dash`` from 0; ``odd``: (x, word) of points that are not finite."""

    label: str
    colour: int
    dash: int
    x: Sequence[float]
    y: Sequence[float]
    odd: Sequence[tuple[float, str]] = ()
    thin: bool = False


@dataclass(frozen=True)
class Ribbon:
    """Mean and standard deviation of an arm."""

    label: str
    colour: int
    x: Sequence[float]
    mean: Sequence[float]
    sd: Sequence[float]


@dataclass(frozen=True)
class Sheet:
    """What a figure shows. ``note`` says how much of how much and by which sampler; ``sha256`` of the data."""

    title: str
    unit: str
    axis: str
    curves: Sequence[Curve]
    ribbons: Sequence[Ribbon]
    note: str
    sha256: str


def _escaped(text: str) -> str:
    """Text in which a dollar sign begins no formula."""
    return text.replace("$", r"\$")


def _axes(figure: Any, sheet: Sheet) -> None:
    axes = figure.add_subplot(1, 1, 1)
    for ribbon in sheet.ribbons:
        colour = COLOURS[(ribbon.colour - 1) % len(COLOURS)]
        low = [mean - sd for mean, sd in zip(ribbon.mean, ribbon.sd, strict=True)]
        high = [mean + sd for mean, sd in zip(ribbon.mean, ribbon.sd, strict=True)]
        axes.fill_between(ribbon.x, low, high, color=colour, alpha=0.18, linewidth=0)
        axes.plot(ribbon.x, ribbon.mean, color=colour, linewidth=1.8, label=_escaped(ribbon.label))
    named = {ribbon.label for ribbon in sheet.ribbons}
    for curve in sheet.curves:
        colour = COLOURS[(curve.colour - 1) % len(COLOURS)]
        axes.plot(
            curve.x, curve.y, color=colour, linestyle=DASHES[curve.dash % len(DASHES)], markersize=2.6,
            marker=None if curve.thin else MARKERS[(curve.colour - 1) % len(MARKERS)],
            markevery=max(1, len(curve.x) // MARKED),
            linewidth=0.6 if curve.thin else 1.1, alpha=0.6 if curve.thin else 1.0,
            label=None if curve.thin or not curve.label or curve.label in named else _escaped(curve.label),
        )  # fmt: skip
    odd = [x for curve in sheet.curves for x, _word in curve.odd]
    if odd:
        axes.plot(
            odd, [1.0] * len(odd), "x", color="#a5321b", markersize=4, transform=axes.get_xaxis_transform(),
            label="not finite", clip_on=False,
        )  # fmt: skip
    axes.set_xlabel(_escaped(sheet.axis), fontsize=8)
    axes.set_ylabel(_escaped(sheet.unit), fontsize=8)
    axes.set_title(_escaped(sheet.title), fontsize=9, loc="left")
    axes.tick_params(labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", linewidth=0.4, color="#e2e3df")
    handles, labels = axes.get_legend_handles_labels()
    if 1 <= len(labels) <= LEGEND and (len(labels) > 1 or odd):
        axes.legend(handles, labels, fontsize=6.5, frameon=False)


def render(sheet: Sheet, kind: str) -> bytes:
    """The figure's bytes. ``kind``: svg or pdf. Raises ``ValueError`` for another."""
    if kind not in (SVG, PDF):
        raise ValueError(f"kind: got {kind!r}, expected {SVG} or {PDF}")
    folder = settings.CACHE_HOME / "matplotlib"
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("MPLCONFIGDIR", str(folder))
    with _drawing:
        import matplotlib  # here: loading it takes as long as a page, and most processes never draw
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine

        known = {entry.name for entry in matplotlib.font_manager.fontManager.ttflist}
        fonts = ["DejaVu Sans", *sorted(name for name in known if "CJK" in name or "Source Han" in name)]
        look = {
            "font.family": fonts, "svg.hashsalt": sheet.sha256,
            "svg.fonttype": "none", "pdf.fonttype": 42, "pdf.use14corefonts": False,
        }  # fmt: skip
        with matplotlib.rc_context(look), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph ", UserWarning)  # a machine without such a font draws boxes
            engine = ConstrainedLayoutEngine(rect=(0, 0.03, 1, 0.97))
            figure = Figure(figsize=(WIDTH, HEIGHT), layout=engine)
            _axes(figure, sheet)
            figure.text(1.0, 0.0, f"{sheet.note} · data {sheet.sha256[:16]}", fontsize=5, color="#62686f", ha="right",
                        va="bottom")  # fmt: skip
            buffer = io.BytesIO()
            figure.savefig(buffer, format=kind, metadata=_metadata(sheet, kind))
    return buffer.getvalue()


def _metadata(sheet: Sheet, kind: str) -> dict[str, Any]:
    said = f"data sha256 {sheet.sha256}; {sheet.note}"
    if kind == SVG:
        return {"Title": sheet.title, "Description": said, "Date": None, "Creator": "Workbench"}
    return {"Title": sheet.title, "Subject": said, "CreationDate": None, "ModDate": None, "Creator": "Workbench",
            "Producer": "Workbench"}  # fmt: skip
