"""Inspect ``.eval`` logs: a zip of JSON documents. Text only: grade C.

``header.json`` (``_journal/start.json`` while the evaluation runs) has the task, model and settings;
``samples/{id}_epoch_{n}.json`` has one sample each. Several epochs of an id are one group.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from .archive import BadMember, Member, list_members, read_member
from .items import Item, MetricItem, ParameterItem, RolloutItem
from .jsondata import parse_object
from .limits import Limits
from .reading import At, Found, Record, Unit, problem_units
from .values import Misread, is_number, key, metric_name, number, text

SUFFIX = ".eval"
_ATTACHMENT = "attachment://"
_HEADERS = ("header.json", "_journal/start.json")
_LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}  # Inspect's own values: correct, incorrect, partial, no answer
_EXTRA = ("target", "error", "limit", "metadata", "store", "model_usage", "total_time", "working_time", "error_retries")


def _score(value: Any, what: str) -> float | None:
    """A score as a number: letters as Inspect counts them; None where it is text or an object."""
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        return _LETTERS.get(value)
    return number(value, what) if is_number(value) else None


def _scores(sample: dict[str, Any]) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    scores = sample.get("scores")
    if scores is None:
        return found
    if not isinstance(scores, dict):
        raise Misread("scores", scores, "an object")
    for name, score in scores.items():
        value = score.get("value") if isinstance(score, dict) else score
        if isinstance(value, dict):
            found |= {key(f"{name}/{part}", "scores"): _score(item, name) for part, item in value.items()}
        else:
            found[key(name, "scores")] = _score(value, name)
    return found


def _stop(sample: dict[str, Any]) -> str:
    if sample.get("error"):
        return "error"
    limit = sample.get("limit")
    if isinstance(limit, dict) and limit.get("type"):
        return key(f"limit: {limit['type']}", "limit.type", 100)
    choices = (sample.get("output") or {}).get("choices") if isinstance(sample.get("output"), dict) else None
    first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    return key(first.get("stop_reason"), "stop_reason", 100)


def _attached(value: Any, attachments: dict[str, Any]) -> Any:
    """A value with the long texts that Inspect keeps apart (``attachment://`` and a key) put back."""
    if isinstance(value, str):
        return attachments.get(value.removeprefix(_ATTACHMENT), value) if value.startswith(_ATTACHMENT) else value
    if isinstance(value, list):
        return [_attached(item, attachments) for item in value]
    if isinstance(value, dict):
        return {name: _attached(item, attachments) for name, item in value.items()}
    return value


def _sample(record: Record) -> Iterator[Item]:
    sample, at = record.payload, record.at
    try:
        if "id" not in sample or not isinstance(sample.get("messages"), list):
            raise Misread("fields", ", ".join(sorted(sample)), "id and a list of messages")
        group, epoch = key(sample["id"], "id"), key(sample.get("epoch"), "epoch")
        attachments = sample.get("attachments")
        if isinstance(attachments, dict) and attachments:
            for name in ("messages", "input", "output"):
                sample[name] = _attached(sample.get(name), attachments)
        rewards, stop = _scores(sample), _stop(sample)
    except Misread as error:
        yield at.problem(error.what, error.got, error.expected)
        return
    output = sample.get("output") if isinstance(sample.get("output"), dict) else {}
    extra = {name: sample[name] for name in _EXTRA if sample.get(name) not in (None, {}, [])}
    if isinstance(sample.get("scores"), dict) and sample["scores"]:
        extra["scores"] = sample["scores"]
    yield RolloutItem(
        at.next(), "C", group_key=group, sample_key=epoch, prompt=text(sample.get("input")),
        completion=text(output.get("completion")), messages=sample["messages"],
        reward=next(iter(rewards.values())) if len(rewards) == 1 else None, rewards=rewards, stop_reason=stop,
        extra=extra,
    )  # fmt: skip


def _settings(at: At, header: dict[str, Any]) -> Iterator[Item]:
    evaluation = header.get("eval")
    about = {"status": header.get("status")} | (evaluation if isinstance(evaluation, dict) else {})
    for name, value in about.items():
        if value not in (None, {}, []):
            yield ParameterItem(at.next(), metric_name(name), text(value) or "")


def _header(record: Record) -> Iterator[Item]:
    """Settings, and the metrics over all samples."""
    header, at = record.payload, record.at
    results = header.get("results") if isinstance(header.get("results"), dict) else {}
    try:
        yield from _settings(at, header)
        moment = (header.get("stats") or {}).get("completed_at") or None
        wall = None if moment is None else math.floor(datetime.fromisoformat(moment).timestamp() * 1000)
        for score in results.get("scores") or ():
            for metric in (score.get("metrics") or {}).values():
                value = number(metric.get("value"), "results")
                if value is not None:
                    name = metric_name(f"{score.get('name')}/{metric.get('name')}")
                    yield MetricItem(at.next(), name, None, value, wall)
    except Misread as error:
        yield at.problem(error.what, error.got, error.expected)
    except (AttributeError, TypeError, ValueError) as error:
        yield at.problem("header", str(error), "the header of an evaluation")


def _unit(path: Path, file: str, member: Member, is_header: bool, limits: Limits) -> Unit:
    name = f"{file}!{member.name}"

    def read(number: int, offset: int) -> Iterator[Record]:
        at = At(name, "document", 1)
        try:
            data = read_member(path, member, limits, limits.line)
        except BadMember as error:
            yield Record(at, problem=error.problem(at))
            return
        value, problem = parse_object(data, at, limits)
        yield Record(at, value, problem)

    return Unit(name, read, _header if is_header else _sample)


def units(files: list[Found], limits: Limits) -> Iterator[Unit]:
    """The header, then every sample of each log."""
    for found in files:
        if len(files) > 1 and not found.name.endswith(SUFFIX):
            continue
        listing = list_members(found.path, found.name, limits)
        members = {member.name: member for member in listing.members}
        header = next((name for name in _HEADERS if name in members), None)
        if header is not None:
            yield _unit(found.path, found.name, members[header], True, limits)
        elif not listing.problems:
            at = At(found.name, "archive")
            yield from problem_units([at.problem("members", f"{len(members)} without a header", "header.json")])
        for name, member in members.items():
            if name.startswith("samples/") and name.endswith(".json"):
                yield _unit(found.path, found.name, member, False, limits)
        yield from problem_units(listing.problems)
