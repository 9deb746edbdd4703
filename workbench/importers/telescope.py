"""telescope: zips of Parquet tables. No ids in the tables: grade C.

A sample's row in ``samples_data`` is joined on disk with its prompt (by group), generations,
environment responses, reward components, tags and reference answers (by sample). The same tables
exist with ``_discarded``, ``_cancelled`` and ``_eval``; their samples carry the word as ``kind``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import IO, Any

import zstandard

from . import parquet
from .archive import Member, copy_member, list_members
from .items import Item, MetricItem, RolloutItem
from .limits import Limits
from .reading import At, Found, Record, Unit, problem_units
from .scratch import Scratch
from .values import Misread, integer, key, metric_name, number, step_of, text

KINDS = ("", "_discarded", "_cancelled", "_eval")
SAMPLES, METRICS = "samples_data", "metrics"
_JOINED = {
    "prompts": ("group_id",),
    "generations": ("sample_id", "generation_idx", "content"),
    "env_responses": ("sample_id", "generation_idx", "content"),
    "tool_calls": ("sample_id",),
    "rollouts_metrics": ("sample_id", "metric_name", "value"),
    "golden_answers": ("sample_id", "key", "value"),
    "sample_tags": ("sample_id", "tag_name", "tag_value"),
}
_SAMPLE = ("sample_id",)
_METRIC = ("step", "metric", "value")
_USED = ("step", "group_id", "sample_id", "reward", "advantage", "stop_reason", "raw_string")


def _content(value: Any, what: str, limits: Limits) -> Any:
    """Text of a column that may be zstd-compressed UTF-8. Raises ``Misread``."""
    if not isinstance(value, bytes):
        return value
    try:
        if value[:4] == b"\x28\xb5\x2f\xfd":
            reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(value, read_across_frames=True)
            value = reader.read(limits.text + 1)
        if len(value) > limits.text:
            raise Misread(what, f"over {limits.text} bytes", f"at most {limits.text} bytes of text")
        return value.decode("utf-8")
    except (zstandard.ZstdError, UnicodeDecodeError) as error:
        raise Misread(what, str(error), "UTF-8 text, plain or compressed with zstd") from error


def _decoded(row: dict[str, Any], limits: Limits) -> dict[str, Any]:
    return {name: _content(value, name, limits) for name, value in row.items()}


def _table_of(name: str) -> tuple[str, str]:
    """Table and kind of a member's name."""
    stem = name.rpartition("/")[2].removesuffix(".parquet")
    kind = next((kind for kind in KINDS[1:] if stem.endswith(kind)), "")
    return stem.removesuffix(kind), kind


class _Archive:
    """One zip of tables with its scratch, filled once before the samples are read."""

    def __init__(self, found: Found, limits: Limits):
        self.found, self.limits, self.scratch = found, limits, Scratch()
        self.listing = list_members(found.path, found.name, limits)

    def open(self, member: Member) -> AbstractContextManager[IO[bytes]]:
        return copy_member(self.found.path, member, self.limits)

    def rows(self, member: Member, columns: tuple[str, ...], number: int = 1) -> Iterator[Record]:
        name = f"{self.found.name}!{member.name}"
        return parquet.read_rows(partial(self.open, member), name, self.limits, number, columns)

    def join_key(self, table: str, kind: str, row: dict[str, Any]) -> str:
        # groups of an evaluation have no group id: its prompts go by sample
        by_group = table == "prompts" and kind != "_eval"
        return f"{kind}:{row['group_id'] if by_group else row['sample_id']}"

    def joined(self, table: str, kind: str, name: object) -> list[dict[str, Any]]:
        return list(self.scratch.get(table, f"{kind}:{name}"))


def _fill(archive: _Archive, member: Member, table: str, kind: str) -> Unit:
    """The rows of a joined table into the scratch; what is wrong with them comes out as a unit."""
    columns = ("sample_id",) if table == "prompts" and kind == "_eval" else _JOINED[table]
    for record in archive.rows(member, columns):
        if record.payload is not None:
            try:
                row = _decoded(record.payload, archive.limits)
            except Misread:
                continue  # said by the unit
            archive.scratch.put(table, archive.join_key(table, kind, row), row)

    def parse(record: Record) -> Iterator[Item]:
        try:
            _decoded(record.payload, archive.limits)
        except Misread as error:
            yield record.at.problem(error.what, error.got, error.expected)

    def read(number: int, offset: int) -> Iterator[Record]:
        return archive.rows(member, columns, number)

    return Unit(f"{archive.found.name}!{member.name}", read, parse)


def _messages(archive: _Archive, kind: str, prompt: dict[str, Any], sample: object) -> list[dict[str, Any]]:
    """The conversation: prompts, then generations and what the environment answered, by their order."""
    messages = [
        {"role": role, "content": prompt[name]}
        for role, name in (("system", "system_prompt"), ("user", "prompt"))
        if prompt.get(name)
    ]
    turns = [(row.get("agent_id") or 0, row["generation_idx"], 0, "assistant", row)
             for row in archive.joined("generations", kind, sample)]  # fmt: skip
    turns += [(row.get("agent_id") or 0, row["generation_idx"], 1, row.get("turn_type") or "environment", row)
              for row in archive.joined("env_responses", kind, sample)]  # fmt: skip
    for agent, _, _, role, row in sorted(turns, key=lambda turn: turn[:3]):
        messages.append({"role": role, "content": row["content"]} | ({"agent": agent} if agent else {}))
    return messages


def _sample(record: Record, archive: _Archive, kind: str) -> Iterator[Item]:
    at = record.at
    try:
        row = _decoded(record.payload, archive.limits)
        sample = row["sample_id"]
        prompts = archive.joined("prompts", kind, row.get("group_id") if kind != "_eval" else sample)
        prompt = prompts[0] if prompts else {}
        rewards = {
            key(item["metric_name"], "metric_name"): number(item["value"], "value")
            for item in archive.joined("rollouts_metrics", kind, sample)
        }
        extra: dict[str, Any] = {name: value for name, value in row.items() if name not in _USED and value is not None}
        extra |= {"kind": kind.lstrip("_") or "train", "env": prompt.get("env", row.get("env"))}
        tags = {item["tag_name"]: item["tag_value"] for item in archive.joined("sample_tags", kind, sample)}
        answers = {item["key"]: item["value"] for item in archive.joined("golden_answers", kind, sample)}
        calls = archive.joined("tool_calls", kind, sample)
        extra |= {name: value for name, value in (("tags", tags), ("answers", answers), ("tool_calls", calls)) if value}
        messages = _messages(archive, kind, prompt, sample)
        step = integer(row.get("step", row.get("trainer_step")), "step")
        fields: dict[str, Any] = {
            "step": step if step is None or step >= 0 else None, "group_key": key(row.get("group_id"), "group_id"),
            "sample_key": key(sample, "sample_id"), "reward": number(row.get("reward"), "reward"),
            "advantage": number(row.get("advantage"), "advantage"),
            "stop_reason": key(row.get("stop_reason"), "stop_reason", 100),
        }  # fmt: skip
    except Misread as error:
        yield at.problem(error.what, error.got, error.expected)
        return
    said = [message["content"] for message in messages if message["role"] == "assistant"]
    yield RolloutItem(
        at.next(), "C", prompt=text(prompt.get("prompt")), completion="\n".join(str(item) for item in said) or None,
        messages=messages or None, rewards=rewards,
        extra={name: value for name, value in extra.items() if value is not None}, **fields,
    )  # fmt: skip


def _metric(record: Record) -> Iterator[Item]:
    row, at = record.payload, record.at
    try:
        parts = [str(row[name]) for name in ("section", "group", "metric") if row.get(name)]
        value = number(row["value"], "value")
        if value is not None:
            yield MetricItem(at.next(), metric_name("/".join(parts)), step_of(row["step"]), value)
    except Misread as error:
        yield at.problem(error.what, error.got, error.expected)


def _units(archive: _Archive) -> Iterator[Unit]:
    tables = [
        (member, *_table_of(member.name)) for member in archive.listing.members if member.name.endswith(".parquet")
    ]
    for member, table, kind in tables:
        if table in _JOINED:
            yield _fill(archive, member, table, kind)
    for member, table, kind in tables:
        name = f"{archive.found.name}!{member.name}"
        if table == SAMPLES:
            yield parquet.unit(
                partial(archive.open, member), name, archive.limits, _SAMPLE,
                partial(_sample, archive=archive, kind=kind),
            )  # fmt: skip
        elif table == METRICS and not kind:
            yield parquet.unit(partial(archive.open, member), name, archive.limits, _METRIC, _metric)
        elif table not in _JOINED:
            at = At(name, "member")
            yield from problem_units(
                [at.left_out(f"table {table + kind}", "a table of events", "samples or step metrics")]
            )
    yield from problem_units(archive.listing.problems)


def units(files: list[Found], limits: Limits) -> Iterator[Unit]:
    """The tables of every zip; a sample is joined within its zip."""
    for found in files:
        if found.name.endswith(".zip"):
            archive = _Archive(found, limits)
            try:
                yield from _units(archive)
            finally:
                archive.scratch.close()


def holds_tables(path: Path, limits: Limits) -> bool:
    """Whether a zip has one of the tables."""
    known = {SAMPLES, *_JOINED}
    return any(_table_of(member.name)[0] in known for member in list_members(path, path.name, limits).members)
