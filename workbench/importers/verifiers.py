"""verifiers before its version 1: ``results.jsonl`` and ``metadata.json``. Text only: grade C."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .items import Item, MetricItem, ParameterItem, RolloutItem
from .jsondata import line_unit, read_document
from .limits import Limits
from .reading import Found, Record, Unit
from .values import Misread, is_number, key, metric_name, number, rewards_of, text

RESULTS, METADATA = "results.jsonl", "metadata.json"
FIELDS = ("example_id", "prompt", "completion", "reward")
_MEANS = ("avg_metrics", "pass_at_k", "pass_all_k")
_USED = (*FIELDS, "metrics")


def _stop(row: dict[str, Any]) -> str:
    """What the file says of the end: a condition, or one of its flags."""
    if row.get("error"):  # a grader that died leaves reward 0 and the ordinary condition
        return "error"
    if row.get("stop_condition") is not None:
        return key(row["stop_condition"], "stop_condition", 100)
    if row.get("is_truncated"):
        return "truncated"
    return "completed" if row.get("is_completed") else ""


def _line(record: Record) -> Iterator[Item]:
    row, at = record.payload, record.at
    missing = [name for name in FIELDS if name not in row]
    if missing:
        yield at.problem("fields", ", ".join(sorted(row)), f"also {', '.join(missing)}")
        return
    try:
        prompt, completion = row["prompt"], row["completion"]
        rewards = rewards_of(row.get("metrics"), "metrics")
        group, reward, stop = key(row["example_id"], "example_id"), number(row["reward"], "reward"), _stop(row)
        # rows of newer files carry the metrics as columns of their own
        rewards |= {key(name, name): number(value, name) for name, value in row.items()
                    if name not in _USED and is_number(value)}  # fmt: skip
    except Misread as error:
        yield at.problem(error.what, error.got, error.expected)
        return
    messages = [*prompt, *completion] if isinstance(prompt, list) and isinstance(completion, list) else None
    yield RolloutItem(
        at.next(), "C", group_key=group, sample_key=str(at.number - 1), prompt=text(prompt),
        completion=text(completion), messages=messages, reward=reward, rewards=rewards, stop_reason=stop,
        extra={name: value for name, value in row.items() if name not in _USED and name not in rewards},
    )  # fmt: skip


def _metadata(record: Record) -> Iterator[Item]:
    at = record.at
    for name, value in record.payload.items():
        try:
            if name.startswith("avg_") and is_number(value):
                found = number(value, name)
                assert found is not None
                yield MetricItem(at.next(), metric_name(name), None, found)
            elif name in _MEANS and isinstance(value, dict):
                for metric, mean in rewards_of(value, name).items():
                    if mean is not None:
                        yield MetricItem(at.next(), metric_name(f"{name}/{metric}"), None, mean)
            else:
                yield ParameterItem(at.next(), metric_name(name), text(value) or "")
        except Misread as error:
            yield at.problem(error.what, error.got, error.expected)


def _metadata_unit(found: Found, limits: Limits) -> Unit:
    def read(number: int, offset: int) -> Iterator[Record]:
        yield read_document(found.path, found.name, limits)

    return Unit(found.name, read, _metadata)


def units(files: list[Found], limits: Limits) -> Iterator[Unit]:
    """The metadata, then the results, of every folder; a single file may have any name."""
    for found in files:
        name = found.path.name
        if name == METADATA:
            yield _metadata_unit(found, limits)
        elif name == RESULTS or (len(files) == 1 and name.endswith(".jsonl")):
            yield line_unit(found, limits, _line)
