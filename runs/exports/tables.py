"""Tables as CSV and Parquet, written batch by batch.

``value`` is null where nothing was measured, and not a number or infinite where that was measured; ``state``
says which, in words, for readers of CSV that know no infinity.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from runs.metrics import codec
from runs.metrics.codec import Points
from runs.metrics.read import SeriesInfo

ROWS = 20_000  # of a batch
SPOOL = 16 * 1024 * 1024  # bytes of a Parquet file that stay in memory
STATES = np.array(["finite", "nan", "inf", "-inf", "absent"])
POINTS = pa.schema(
    [
        ("run", pa.string()), ("series", pa.string()), ("metric", pa.string()), ("label", pa.string()),
        ("phase", pa.string()), ("split", pa.string()), ("attempt", pa.string()), ("step", pa.int64()),
        ("policy_version", pa.int64()), ("trajectories", pa.int64()), ("generated_tokens", pa.int64()),
        ("wall_seconds", pa.float64()), ("time_ms", pa.int64()), ("value", pa.float64()), ("state", pa.string()),
        ("count", pa.int64()), ("subject", pa.string()),
    ]
)  # fmt: skip
COMPARED = pa.schema(
    [
        ("kind", pa.string()), ("arm", pa.string()), ("run", pa.string()), ("seed", pa.string()),
        ("metric", pa.string()), ("step", pa.int64()), ("x", pa.float64()), ("value", pa.float64()),
        ("sd", pa.float64()), ("n", pa.int64()), ("state", pa.string()),
    ]
)  # fmt: skip


def _known(column: NDArray[Any] | None, keep: NDArray[np.int64], kind: pa.DataType) -> pa.Array:
    """A column whose unknown places (below 0, not a number) are null; all null where the points have no such column."""
    if column is None:
        return pa.nulls(len(keep), kind)
    chosen = column[keep]
    unknown = np.isnan(chosen) if chosen.dtype.kind == "f" else chosen < 0
    return pa.array(chosen, kind, mask=unknown)


def point_batches(
    run: str, lines: Sequence[tuple[SeriesInfo, str]], points: Mapping[int, Points], kept: Mapping[int, NDArray[Any]]
) -> Iterator[pa.RecordBatch]:
    """Stored points of series with their labels. ``kept``: positions to write by series; all of one that it lacks."""
    for item, label in lines:
        some = points[item.pk]
        chosen = np.asarray(kept.get(item.pk, np.arange(len(some))), np.int64)
        for start in range(0, len(chosen), ROWS):
            yield _points(run, item, label, some, chosen[start : start + ROWS])


def _points(run: str, item: SeriesInfo, label: str, points: Points, keep: NDArray[np.int64]) -> pa.RecordBatch:
    n, flags = len(keep), points.flag[keep]
    value = points.value[keep].copy()
    for flag, number in ((codec.NAN, np.nan), (codec.PLUS_INFINITY, np.inf), (codec.MINUS_INFINITY, -np.inf)):
        value[flags == flag] = number
    subject = None if points.subject is None else [points.subject[place] or None for place in keep.tolist()]
    text = [pa.array([part] * n, pa.string()) for part in (
        run, item.uid, item.name if item.is_logged else item.definition, label, item.phase, item.split, item.segment
    )]  # fmt: skip
    return pa.record_batch(
        [
            *text, pa.array(points.step[keep]), _known(points.version, keep, pa.int64()),
            _known(points.trajectories, keep, pa.int64()), _known(points.tokens, keep, pa.int64()),
            _known(points.wall, keep, pa.float64()), pa.array(points.time_ms[keep]),
            pa.array(value, pa.float64(), mask=flags == codec.ABSENT), pa.array(STATES[flags].tolist(), pa.string()),
            _known(points.count, keep, pa.int64()), pa.array(subject or [None] * n, pa.string()),
        ],
        schema=POINTS,
    )  # fmt: skip


def csv_stream(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    """CSV with a header; numbers in the shortest form that reads back equal."""
    yield (",".join(schema.names) + "\n").encode()
    options = pa_csv.WriteOptions(include_header=False, quoting_style="needed")
    for batch in batches:
        buffer = io.BytesIO()
        pa_csv.write_csv(batch, buffer, options)
        yield buffer.getvalue()


def parquet_file(schema: pa.Schema, batches: Iterable[pa.RecordBatch], facts: Mapping[str, str]) -> IO[bytes]:
    """A Parquet file at its beginning; large ones lie on disk. ``facts`` are metadata of its schema."""
    target = tempfile.SpooledTemporaryFile(max_size=SPOOL)  # noqa: SIM115 - the answer that streams it closes it
    with pq.ParquetWriter(target, schema.with_metadata(dict(facts)), compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch.cast(schema.with_metadata(dict(facts))))
    target.seek(0)
    return target
