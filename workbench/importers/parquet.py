"""Parquet from elsewhere, a few rows at a time.

The footer is looked at before any page is: columns, values and sizes beyond ``Limits`` are refused.
Extension types are read as the plain values below them; nothing is ever unpickled.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from .archive import BadMember
from .items import Item, ProblemItem
from .limits import Limits
from .reading import At, Record, Unit

ROWS = 16  # rows decoded together: a row may hold a whole conversation
_INDEX = "__index_level_"  # columns that pandas adds for an index that it could not describe


def _over(metadata: pq.FileMetaData, size: int, at: At, limits: Limits) -> ProblemItem | None:
    total = 0
    if metadata.num_columns > limits.columns:
        return at.refused("columns", metadata.num_columns, f"at most {limits.columns}")
    for group in range(metadata.num_row_groups):
        for place in range(metadata.num_columns):
            column = metadata.row_group(group).column(place)
            total += max(column.total_uncompressed_size, 0)
            if column.total_uncompressed_size > limits.column_chunk:
                got = f"{column.total_uncompressed_size} bytes in {column.path_in_schema}"
                return at.refused("size of a column chunk", got, f"at most {limits.column_chunk}")
            if column.num_values > limits.column_values:
                got = f"{column.num_values} in {column.path_in_schema}"
                return at.refused("values of a column chunk", got, f"at most {limits.column_values}")
    if total > limits.ratio_floor and total > limits.ratio * max(size, 1):
        return at.refused("decompressed over stored size", total // max(size, 1), f"at most {limits.ratio}")
    return None


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    arrays = [column.storage if isinstance(column, pa.ExtensionArray) else column for column in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _rows(file: pq.ParquetFile, name: str, number: int) -> Iterator[Record]:
    row = 0
    for group in range(file.metadata.num_row_groups):
        count = file.metadata.row_group(group).num_rows
        if row + count < number:
            row += count
            continue
        for batch in file.iter_batches(batch_size=ROWS, row_groups=[group]):
            plain = _plain(batch)
            for place in range(plain.num_rows):
                row += 1
                if row >= number:
                    values = {key: plain.column(index)[place].as_py() for index, key in enumerate(plain.schema.names)}
                    yield Record(At(name, "row", row), {k: v for k, v in values.items() if not k.startswith(_INDEX)})


def read_rows(
    open_file: Callable[[], AbstractContextManager[IO[bytes]]],
    name: str,
    limits: Limits,
    number: int = 1,
    columns: Sequence[str] = (),
) -> Iterator[Record]:
    """Rows as objects from row ``number``. ``columns`` must be there. Problems are records too."""
    at = At(name, "file")
    row = number
    try:
        with open_file() as stream:
            size = stream.seek(0, 2)
            stream.seek(0)
            footer = _footer_bytes(stream, size)
            if footer > limits.footer:
                yield Record(at, problem=at.refused("footer", f"{footer} bytes", f"at most {limits.footer}"))
                return
            try:
                file = pq.ParquetFile(
                    stream, arrow_extensions_enabled=False, thrift_string_size_limit=limits.footer,
                    thrift_container_size_limit=limits.footer,
                )  # fmt: skip
            except (pa.ArrowException, OSError, ValueError) as error:
                kind = at.problem if footer else at.truncated
                yield Record(at, problem=kind("footer", _message(error), "a whole Parquet file"))
                return
            names = file.schema_arrow.names
            missing = [column for column in columns if column not in names]
            if missing:
                yield Record(at, problem=at.problem("columns", ", ".join(names), f"also {', '.join(missing)}"))
                return
            problem = _over(file.metadata, size, at, limits)
            if problem is not None:
                yield Record(at, problem=problem)
                return
            for record in _rows(file, name, number):
                row = record.at.number + 1
                yield record
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        if isinstance(error, BadMember):
            yield Record(at, problem=error.problem(at))
        else:
            at = At(name, "row", row)
            yield Record(at, problem=at.problem("rows from here on", _message(error), "pages that can be decoded"))


def _footer_bytes(stream: IO[bytes], size: int) -> int:
    """Length of the footer as the file's end says; 0 where the file has no end of a Parquet file."""
    if size < 12:
        return 0
    stream.seek(-8, 2)
    length, magic = struct.unpack("<I4s", stream.read(8))
    stream.seek(0)
    return max(length, 1) if magic == b"PAR1" else 0


def _message(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def unit(
    open_file: Callable[[], AbstractContextManager[IO[bytes]]],
    name: str,
    limits: Limits,
    columns: Sequence[str],
    parse: Callable[[Record], Iterator[Item]],
) -> Unit:
    """A Parquet file as a unit of rows."""

    def read(number: int, offset: int) -> Iterator[Record]:
        return read_rows(open_file, name, limits, number, columns)

    return Unit(name, read, parse)
