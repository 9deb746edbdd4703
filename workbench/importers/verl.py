"""veRL: ``{rollout_data_dir}/{step}.jsonl``. Text only: grade C."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .items import Item, RolloutItem
from .jsondata import line_unit
from .limits import Limits
from .reading import Found, Record, Unit
from .values import Misread, is_number, key, number, step_of, text

FIELDS = ("input", "output", "score", "step")
_REQUEST = re.compile(r"(.+)_(\d+)_(\d+)")


def _keys(row: dict[str, object], number_of_line: int) -> tuple[str, str]:
    """Group and sample: ``uid`` names the group; a request id is ``{uid}_{session}_{i}``."""
    request = key(row.pop("request_id", None), "request_id")
    uid = key(row.pop("uid", None), "uid")
    for name in (request, uid):
        found = _REQUEST.fullmatch(name)
        if found:
            return found[1], name
    return uid, request or str(number_of_line - 1)


def _line(record: Record) -> Iterator[Item]:
    row = dict(record.payload)
    missing = [name for name in FIELDS if name not in row]
    if missing:
        yield record.at.problem("fields", ", ".join(sorted(row)), f"also {', '.join(missing)}")
        return
    try:
        group, sample = _keys(row, record.at.number)
        prompt, completion = text(row.pop("input")), text(row.pop("output"))
        score, step = number(row.pop("score"), "score"), step_of(row.pop("step"))
        rewards = {key(name, "field"): number(value, name) for name, value in row.items() if is_number(value)}
    except Misread as error:
        yield record.at.problem(error.what, error.got, error.expected)
        return
    yield RolloutItem(
        record.at.next(), "C", step=step, group_key=group, sample_key=sample, prompt=prompt, completion=completion,
        reward=score, rewards=rewards, extra={name: value for name, value in row.items() if name not in rewards},
    )  # fmt: skip


def units(files: list[Found], limits: Limits) -> Iterator[Unit]:
    """One unit for each file of lines."""
    for found in files:
        if found.name.endswith(".jsonl"):
            yield line_unit(found, limits, _line)
