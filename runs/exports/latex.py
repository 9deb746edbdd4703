r"""LaTeX tables. A cell that nothing fills yet is ``\pending`` and stays so; it is never left empty and never 0.

Numbers of a run that goes on are pending as well: they may still move. What a trainer elsewhere logged carries
``\exploratory``, and fills no figure of a plan.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

PENDING, EXPLORATORY = r"\pending", r"\exploratory"
_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "_": r"\_", "%": r"\%",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}",
}  # fmt: skip


@dataclass(frozen=True)
class Table:
    """``rows`` of finished cells; ``numeric`` columns are right-aligned. ``facts`` become comments above."""

    caption: str
    columns: Sequence[str]
    numeric: Sequence[bool]
    rows: Sequence[Sequence[str]]
    facts: Sequence[str]


def escaped(text: str) -> str:
    """Plain text that LaTeX sets as it is; line breaks become blanks."""
    return "".join(_SPECIAL.get(item, item) for item in " ".join(text.split()))


def cell(value: float | None, *, pending: bool = False, digits: int = 4) -> str:
    """A number, what is not finite by its name, or the pending mark where there is none (yet)."""
    if pending or value is None:
        return PENDING
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return r"$\infty$" if value > 0 else r"$-\infty$"
    return f"${value:.{digits}g}$" if "e" not in f"{value:.{digits}g}" else _power(f"{value:.{digits}g}")


def _power(text: str) -> str:
    head, _, tail = text.partition("e")
    return rf"${head}\times 10^{{{int(tail)}}}$"


def spread(mean: float | None, sd: float | None, *, pending: bool = False) -> str:
    """Mean and standard deviation; the mean alone where no spread is known."""
    if pending or mean is None or sd is None:
        return cell(mean, pending=pending)
    return f"{cell(mean)[:-1]} \\pm {cell(sd, digits=2)[1:]}"


def render(table: Table) -> str:
    """The whole file: comments with the data's hash, the two commands where a document lacks them, the table."""
    kinds = "".join("r" if numeric else "l" for numeric in table.numeric)
    lines = [f"% {' '.join(fact.split())}" for fact in table.facts]
    lines += [
        r"\providecommand{\pending}{\textemdash}",
        r"\providecommand{\exploratory}{\textsuperscript{e}}",
        r"\begin{table}",
        rf"\caption{{{table.caption}}}",
        rf"\begin{{tabular}}{{{kinds}}}",
        r"\hline",
        " & ".join(escaped(column) for column in table.columns) + r" \\",
        r"\hline",
        *(" & ".join(row) + r" \\" for row in table.rows),
        r"\hline",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"
