"""The table of signal, geometry, repeatability and missing feedback: one cell for each quantity and scope."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.utils.translation import gettext_lazy as _

from runs.presenters.trials.funnel import Column, executes
from runs.presenters.trials.rows import Rate

Cell = tuple[Column, str, Any]  # (scope, how the value is drawn, value or why there is none)
Line = tuple[Any, Any, list[Cell]]  # (word, what it is of, cells)
NEVER_READS = _("this arm never reads D")
NOT_TRAINED = _("filled by its first update")


def _of_d(columns: Sequence[Column], kind: str, value: Callable[[Column], Any]) -> list[Cell]:
    return [(c, kind, value(c)) if executes(c) else (c, "none", NEVER_READS) for c in columns]


def _of_choice(columns: Sequence[Column], kind: str, value: Callable[[Column], Any]) -> list[Cell]:
    return [(c, kind, value(c)) for c in columns]


def _of_terms(columns: Sequence[Column], kind: str, name: str) -> list[Cell]:
    found: list[Cell] = []
    for column in columns:
        if name == "shrinkage" and not executes(column):
            found.append((column, "none", _("this arm clips and has no s")))
        elif column.geometry is None and column.is_pilot:
            found.append((column, "none", _("arms have different λ or c")))
        elif column.geometry is None:
            found.append((column, "pending", NOT_TRAINED))
        else:
            found.append((column, kind, getattr(column.geometry, name)))
    return found


def _planned(columns: Sequence[Column], name: str) -> list[Cell]:
    """Agreement of replays or repeats; none where the plan asks for none, which is no agreement of 0."""
    found: list[Cell] = []
    for column in columns:
        rate: Rate = getattr(column, name)
        asked = column.is_pilot and executes(column)
        if rate.of:
            found.append((column, "rate", rate))
        else:
            found.append((column, "pending", _("none complete yet")) if asked else (column, "none", _("none planned")))
    return found


def _signal(columns: Sequence[Column]) -> list[Line]:
    return [
        (_("nonzero"), _("of all usable queries"), _of_d(columns, "rate", lambda c: c.signs.nonzero)),
        (_("signs"), _("positive, negative, exactly zero"), _of_d(columns, "signs", lambda c: c.signs)),
        (
            _("nonzero among failed originals"),
            _("of queried originals with U < 1"),
            _of_d(columns, "rate", lambda c: c.failed.nonzero),
        ),
        (_("their signs"), _("the same originals"), _of_d(columns, "signs", lambda c: c.failed)),
        (
            _("failed originals, queried or not"),
            _("known verdict below 1"),
            _of_d(columns, "count", lambda c: c.known_failed),
        ),
        (
            _("nonzero among successes"),
            _("of queried originals with U = 1"),
            _of_d(columns, "rate", lambda c: c.succeeded.nonzero),
        ),
    ]


def _geometry(columns: Sequence[Column]) -> list[Line]:
    return [
        (
            _("median m / L"),
            _("policy tokens of the chosen turn"),
            _of_choice(columns, "share", lambda c: c.ratio),
        ),
        (_("median s"), _("over terms that are not zero"), _of_terms(columns, "median", "shrinkage")),
        (_("cap acted"), _("of the terms that are not zero"), _of_terms(columns, "rate", "capped")),
        (
            _("median share of final paths touched"),
            _("of the paths that differ in the end"),
            _of_choice(columns, "share", lambda c: c.touched),
        ),
        (_("empty patch without the block"), _("of all chosen blocks"), _of_choice(columns, "rate", lambda c: c.empty)),
        (
            _("nonzero on paths absent from the final patch"),
            _("of all nonzero differences"),
            _of_d(columns, "rate", lambda c: c.elsewhere),
        ),
    ]


def _repeatability(columns: Sequence[Column]) -> list[Line]:
    return [
        (_("factual replays agree"), _("every label, of the complete replays"), _planned(columns, "replays")),
        (_("repeats without the block agree"), _("of the complete repeats"), _planned(columns, "repeats")),
    ]


def _missing(columns: Sequence[Column]) -> list[Line]:
    return [
        (_("no D"), _("of recorded queries to be executed"), _of_d(columns, "rate", lambda c: c.missing)),
        (
            _("no D among failed originals"),
            _("completeness rules can withhold negative feedback"),
            _of_d(columns, "rate", lambda c: c.missing_failed),
        ),
        (_("no D among successes"), _("for comparison"), _of_d(columns, "rate", lambda c: c.missing_succeeded)),
    ]


def quantities(columns: Sequence[Column]) -> list[tuple[Any, list[Line]]]:
    """Blocks of lines; ``columns`` are those that the plan tries."""
    return [
        (_("Signal"), _signal(columns)),
        (_("Geometry"), _geometry(columns)),
        (_("Repeatability"), _repeatability(columns)),
        (_("Missing feedback"), _missing(columns)),
    ]
