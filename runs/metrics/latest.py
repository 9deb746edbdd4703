"""The newest point of each logged series, kept beside the points so that lists need not read them.

Newest is the greatest (step, time); of two values there the greater, and a finite one before any other.
So it does not depend on the order in which batches came.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from runs.metrics import codec
from runs.models import MetricLatest, Run

_TABLE = MetricLatest._meta.db_table
_LOWEST = "-1.7976931348623157e308"  # of a value that is not finite, where two lie at one step and time
_UPSERT = f"""
INSERT INTO {_TABLE} (series_id, run_id, name, step, time_ms, value, nonfinite) VALUES (%s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (series_id) DO UPDATE SET
    step = excluded.step, time_ms = excluded.time_ms, value = excluded.value, nonfinite = excluded.nonfinite
WHERE (excluded.step, excluded.time_ms, COALESCE(excluded.value, {_LOWEST}))
    > ({_TABLE}.step, {_TABLE}.time_ms, COALESCE({_TABLE}.value, {_LOWEST}))
"""


def last_rows(rows: NDArray[Any]) -> NDArray[Any]:
    """The newest row of each series out of landing rows."""
    series = rows["series"]
    if len(rows) > 1:
        value = np.where(rows["flag"] == codec.FINITE, rows["value"], -np.inf)
        order = np.lexsort((value, rows["time_ms"], rows["step"], series))
        ends = np.flatnonzero(np.diff(series[order], append=np.int64(-1)))
        rows = rows[order[ends]]
    last: NDArray[Any] = rows
    return last


def remember(run: Run, names: Mapping[int, str], rows: NDArray[Any]) -> None:
    """Move ``MetricLatest`` forward where landing rows hold something newer."""
    values = [
        (
            series,
            run.pk,
            names[series],
            step,
            time_ms,
            value if flag == codec.FINITE else None,
            codec.NONFINITE.get(flag, ""),
        )
        for series, step, time_ms, value, flag in last_rows(rows).tolist()
    ]
    with connection.cursor() as cursor:
        cursor.executemany(_UPSERT, values)
