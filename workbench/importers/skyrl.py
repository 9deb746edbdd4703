"""SkyRL: ``dumped_evals/global_step_N_evals/{dataset}.jsonl``. Text only: grade C.

Its ``.pkl`` dumps are refused: unpickling runs whatever code the file names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from .items import Item, MetricItem, RolloutItem
from .jsondata import line_unit
from .limits import Limits
from .reading import At, Found, Record, Unit, problem_units
from .values import Misread, key, metric_name, number, numbers, text

FIELDS = ("input_prompt", "output_response", "score")
AGGREGATED = "aggregated_results.jsonl"
PICKLES = (".pkl", ".pickle")
_STEP = re.compile(r"global_step_(\d+)")
_USED = (*FIELDS, "stop_reason", "env_class", "data_source")


def _line(record: Record, step: int | None) -> Iterator[Item]:
    row, at = record.payload, record.at
    missing = [name for name in FIELDS if name not in row]
    if missing:
        yield at.problem("fields", ", ".join(sorted(row)), f"also {', '.join(missing)}")
        return
    extra = {name: value for name, value in row.items() if name not in _USED}
    try:
        score = row["score"]
        if isinstance(score, list):  # one reward per token; the trajectory's is their sum
            extra["token_rewards"] = score
            score = sum(value for value in numbers(score, "score") or () if value is not None)
        reward, stop = number(score, "score"), key(row.get("stop_reason"), "stop_reason", 100)
    except Misread as error:
        yield at.problem(error.what, error.got, error.expected)
        return
    extra |= {name: row[name] for name in ("env_class", "data_source") if row.get(name) is not None}
    yield RolloutItem(
        at.next(), "C", step=step, sample_key=str(at.number - 1), prompt=text(row["input_prompt"]),
        completion=text(row["output_response"]), reward=reward, stop_reason=stop, extra=extra,
    )  # fmt: skip


def _aggregated(record: Record, step: int | None) -> Iterator[Item]:
    for name, value in record.payload.items():
        try:
            if value is not None:
                found = number(value, name)
                assert found is not None
                yield MetricItem(record.at.next(), metric_name(name), step, found)
        except Misread as error:
            yield record.at.problem(error.what, error.got, error.expected)


def units(files: list[Found], limits: Limits) -> Iterator[Unit]:
    """One unit for each dump, in the order of steps; pickles are named and left closed."""
    for found in files:
        match = _STEP.search(found.name) or _STEP.search(found.path.parent.name)
        step = int(match[1]) if match else None
        if found.name.endswith(PICKLES):
            at = At(found.name, "file")
            yield from problem_units([at.refused("file", "a pickle, which runs code when it is opened", "JSON lines")])
        elif found.name.endswith(".jsonl"):
            parse = _aggregated if found.path.name == AGGREGATED else _line
            yield line_unit(found, limits, partial(parse, step=step))
