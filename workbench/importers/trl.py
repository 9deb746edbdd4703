"""TRL: ``completions/completions_{step:05d}.parquet``. Text only: grade C, no group in the file."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any

from . import parquet
from .items import Item, RolloutItem
from .limits import Limits
from .reading import Found, Record, Unit
from .values import Misread, is_number, key, number, step_of, text

COLUMNS = ("step", "prompt", "completion", "advantage")


def _conversation(prompt: Any, completion: Any) -> list[Any] | None:
    if isinstance(prompt, list) and isinstance(completion, list):
        return [*prompt, *completion]
    return None


def _row(record: Record) -> Iterator[Item]:
    row = dict(record.payload)
    try:
        step, prompt, completion = step_of(row.pop("step")), row.pop("prompt"), row.pop("completion")
        advantage = number(row.pop("advantage"), "advantage")
        rewards = {key(name, "column"): number(value, name) for name, value in row.items() if is_number(value)}
        item = RolloutItem(
            record.at.next(), "C", step=step, sample_key=str(record.at.number - 1),
            prompt=text(prompt), completion=text(completion), messages=_conversation(prompt, completion),
            # several functions are summed with weights that the file does not keep
            reward=next(iter(rewards.values())) if len(rewards) == 1 else None,
            rewards=rewards, advantage=advantage,
            extra={name: value for name, value in row.items() if name not in rewards},
        )  # fmt: skip
    except Misread as error:
        yield record.at.problem(error.what, error.got, error.expected)
        return
    yield item


def _open(path: Path) -> IO[bytes]:
    return path.open("rb")


def units(files: list[Found], limits: Limits) -> Iterator[Unit]:
    """One unit for each Parquet file."""
    for found in files:
        if found.name.endswith(".parquet"):
            yield parquet.unit(partial(_open, found.path), found.name, limits, COLUMNS, _row)
