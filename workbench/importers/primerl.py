"""prime-rl run directories: metrics, episodes with their annotations, token exports, configurations.

``monitors/file/metrics.jsonl`` holds ``{step, time, producer, name: number}``. Episodes lie in
``monitors/file/traces/`` or, older, in ``traces.jsonl`` and ``rollouts/step_N/{train,eval}/{all,effective}/``;
``effective`` repeats a part of ``all`` and marks those episodes. Annotations are joined by trace id, on disk.
``token_exports/step_N/rank_R.jsonl`` has ids, indicator and log-probabilities without a version: grade B; a
step without its ``STABLE`` file was still being written.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import partial
from typing import Any

from .episodes import episode_items
from .items import Item, MetricItem, ParameterItem, RolloutItem
from .jsondata import line_unit, parse_document, read_lines
from .limits import Limits
from .reading import At, Found, Record, Unit, problem_units
from .scratch import Scratch
from .values import Misread, aligned, grade, indicator, integer, integers, key, metric_name, number, numbers, step_of

METRICS = re.compile(r"(^|/)metrics\.jsonl$")
EXPORT = re.compile(r"(^|/)step_(\d+)/rank_(\d+)\.jsonl$")
TRACES = re.compile(r"(^|/)traces(\.jsonl$|/.*\.jsonl$)")
ANNOTATION = re.compile(r"(^|/)annotations/(?P<producer>[^/]+?)(\.jsonl$|/.*\.jsonl$|$)")
CONFIGURATION = re.compile(r"(^|/)configs/.*\.(toml|json)$")
_STEP = re.compile(r"(?:^|/)step_(\d+)/")
_BESIDE = re.compile(r"(^|/)traces/(live/.*|.*index[^/]*|[^/]*(?<!\.jsonl))$")  # copies and indices of the stream
_RESERVED = ("step", "time", "producer")
_EXPORT_ARRAYS = ("token_ids", "loss_mask", "advantages", "inference_logprobs")
EXPORT_FIELDS = ("schema_version", "step", "rank", *_EXPORT_ARRAYS)


def metric_line(record: Record) -> Iterator[Item]:
    """Points of one line of ``metrics.jsonl``."""
    row, at = record.payload, record.at
    try:
        step, seconds = step_of(row.get("step")), number(row.get("time"), "time")
        wall = None if seconds is None else integer(round(seconds * 1000), "time")
        producer = key(row.get("producer"), "producer")
    except (Misread, ValueError, OverflowError) as error:
        what, got, expected = ("time", str(error), "seconds") if not isinstance(error, Misread) else (
            error.what, error.got, error.expected)  # fmt: skip
        yield at.problem(what, got, expected)
        return
    labels = {"producer": producer} if producer else {}
    for name, value in row.items():
        if name in _RESERVED or value is None:
            continue
        try:
            found = number(value, name[:100])
            assert found is not None
            yield MetricItem(at.next(), metric_name(name), step, found, wall, labels)
        except Misread as error:
            yield at.problem(error.what, error.got, error.expected)


def _export_line(record: Record, is_stable: bool) -> Iterator[Item]:
    row, at = record.payload, record.at
    missing = [name for name in EXPORT_FIELDS if name not in row]
    if missing:
        yield at.problem("fields", ", ".join(sorted(row)), f"also {', '.join(missing)}")
        return
    try:
        ids, mine = integers(row["token_ids"], "token_ids"), indicator(row["loss_mask"], "loss_mask")
        values, credit = (
            numbers(row["inference_logprobs"], "inference_logprobs"),
            numbers(row["advantages"], "advantages"),
        )
        arrays = {name: value for name, value in row.items() if isinstance(value, list)}
        aligned(ids, arrays)
        step = step_of(row.get("export_step", row["step"]))
        sample = key(row.get("sample_id"), "sample_id") or f"rank {key(row['rank'], 'rank')}, sequence {at.number}"
    except Misread as error:
        yield at.problem(error.what, error.got, error.expected)
        return
    distinct = {value for value, is_mine in zip(credit or (), mine or (), strict=False) if is_mine}
    extra: dict[str, Any] = {
        name: value for name, value in row.items() if name not in _EXPORT_ARRAYS and value is not None
    }
    yield RolloutItem(
        at.next(), grade(ids, mine, values, None, None), step=step, sample_key=sample, token_ids=ids,
        is_policy_token=mine, logprobs=values, advantages=credit,
        advantage=distinct.pop() if len(distinct) == 1 else None, extra={**extra, "stable": is_stable},
    )  # fmt: skip


def export_units(files: list[Found], limits: Limits) -> Iterator[Unit]:
    """One unit for each rank of each step. A step without ``STABLE`` is read and marked."""
    names = {found.name for found in files}
    for found in files:
        match = EXPORT.search(found.name)
        if match is None and not (len(files) == 1 and found.name.endswith(".jsonl")):
            continue
        folder = found.name.rpartition("/")[0]
        marker = f"{folder}/STABLE" if folder else "STABLE"
        is_stable = marker in names or (len(files) == 1 and (found.path.parent / "STABLE").exists())
        unit = line_unit(found, limits, partial(_export_line, is_stable=is_stable))
        yield unit if is_stable else _unstable(unit)


def _unstable(unit: Unit) -> Unit:
    """The unit, and behind its last line the word that its step was not finished."""

    def read(number: int, offset: int) -> Iterator[Record]:
        last = number
        for record in unit.read(number, offset):
            last = record.at.number + 1
            yield record
        at = At(unit.file, "line", last)
        yield Record(at, problem=at.truncated("step", "no STABLE file beside it", "a step that was written to its end"))

    return Unit(unit.file, read, unit.parse)


def _annotations(files: list[Found], scratch: Scratch, limits: Limits) -> Iterator[Unit]:
    """Annotations into the scratch; what is wrong with them comes out as units. Read whole at every start."""
    for found in files:
        match = ANNOTATION.search(found.name)
        if match is None:
            continue

        def read(number: int, offset: int, found: Found = found) -> Iterator[Record]:
            return read_lines(found.path, found.name, limits, number, offset)

        for record in read_lines(found.path, found.name, limits):
            row = record.payload
            if row is not None and isinstance(row.get("branches"), list) and isinstance(row.get("trace_id"), str):
                branches = [entry for entry in row["branches"] if isinstance(entry, dict)]
                scratch.put("annotations", row["trace_id"], {"producer": match["producer"], "branches": branches})
        yield Unit(found.name, read, _annotation_problems)


def _annotation_problems(record: Record) -> Iterator[Item]:
    row = record.payload
    if not isinstance(row.get("branches"), list) or not isinstance(row.get("trace_id"), str):
        yield record.at.problem("annotation", ", ".join(sorted(row)), "trace_id and a list of branches")


def _configuration(found: Found, limits: Limits) -> Unit:
    """Settings of a TOML or JSON file, flattened to dotted names."""

    def read(number: int, offset: int) -> Iterator[Record]:
        at = At(found.name, "document", 1)
        with found.path.open("rb") as stream:
            data = stream.read(limits.configuration + 1)
        if len(data) > limits.configuration:
            got, most = f"over {limits.configuration} bytes", f"at most {limits.configuration}"
            yield Record(at, problem=at.refused("configuration", got, most))
            return
        if found.name.endswith(".json"):
            value, problem = parse_document(data, at, limits)
            yield Record(at, value, problem)
            return
        try:
            yield Record(at, tomllib.loads(data.decode("utf-8")))
        except (ValueError, RecursionError) as error:
            yield Record(at, problem=at.problem("configuration", str(error), "TOML"))

    return Unit(found.name, read, lambda record: _settings(record, found.name))


def _settings(record: Record, file: str) -> Iterator[Item]:
    waiting: list[tuple[str, Any]] = [(file.rpartition(".")[0].replace("configs/", "", 1), record.payload)]
    while waiting:
        name, value = waiting.pop(0)
        if isinstance(value, dict):
            waiting = [(f"{name}.{part}", child) for part, child in value.items()] + waiting
            continue
        try:
            yield ParameterItem(record.at.next(), metric_name(name), value if isinstance(value, str) else repr(value))
        except Misread as error:
            yield record.at.problem(error.what, error.got, error.expected)


def _is_repeated(name: str, names: set[str]) -> bool:
    """Whether the file's episodes stand in ``all`` as well."""
    return "/effective/" in name and name.replace("/effective/", "/all/") in names


def units(files: list[Found], limits: Limits) -> Iterator[Unit]:
    """Every known file of a run directory, in natural order. The join lives as long as the iterator."""
    scratch = Scratch()
    names = {found.name for found in files}
    try:
        for found in files:
            if CONFIGURATION.search(found.name):
                yield _configuration(found, limits)
        yield from _annotations(files, scratch, limits)
        for found in files:
            if _is_repeated(found.name, names):
                for record in read_lines(found.path, found.name, limits):
                    if record.payload is not None and isinstance(record.payload.get("id"), str):
                        scratch.put("effective", record.payload["id"], True)
        for found in files:
            if _BESIDE.search(found.name):
                at = At(found.name, "file")
                yield from problem_units(
                    [at.left_out("file", "an index or an unfinished copy", "the stream of episodes")]
                )
            elif METRICS.search(found.name):
                yield line_unit(found, limits, metric_line)
            elif (
                TRACES.search(found.name) and not ANNOTATION.search(found.name) and not _is_repeated(found.name, names)
            ):
                match = _STEP.search(found.name)
                step = int(match[1]) if match else None
                yield line_unit(found, limits, partial(episode_items, step=step, limits=limits, scratch=scratch))
        yield from export_units([found for found in files if "token_exports/" in found.name], limits)
    finally:
        scratch.close()
