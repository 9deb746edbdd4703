"""The tables of docs/metrics.md, from the definitions. ``python -m tests.docs.metrics_rows`` writes them anew."""

from __future__ import annotations

import re
from pathlib import Path

from workbench.contracts.metrics import METRIC_DEFINITIONS, MetricDefinition

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
COLUMNS = (
    "id", "unit", "range", "direction", "one value is of", "varies over", "what is measured", "what it cannot tell",
    "source",
)  # fmt: skip
BLOCK = re.compile(r"(<!-- (L\d) -->\n).*?(\n<!-- end -->)", re.DOTALL)


def row(item: MetricDefinition) -> str:
    """One definition as a row of Markdown."""
    limits = "any" if item.range is None else f"{item.range[0]:g} to {item.range[1]:g}"
    cells = (
        f"`{item.id}`", item.unit, limits, item.direction, item.scope, item.varies_over, item.measures,
        item.cannot_tell, item.source,
    )  # fmt: skip
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def table(layer: str) -> str:
    """All definitions of a layer, in the order of the table of data."""
    rows = [row(item) for item in METRIC_DEFINITIONS.values() if item.layer == layer]
    head = ["| " + " | ".join(cells) + " |" for cells in (COLUMNS, ["---"] * len(COLUMNS))]
    return "\n".join([*head, *rows])


def rendered(text: str) -> str:
    """``text`` with the block of every layer written anew."""
    return BLOCK.sub(lambda found: found[1] + table(found[2]) + found[3], text)


if __name__ == "__main__":
    DOCUMENT.write_text(rendered(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
