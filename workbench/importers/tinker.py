"""Tinker wire rows: one sampled span a line with its ids, log-probabilities and policy version. Grade A."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .items import Item, RolloutItem
from .jsondata import line_unit
from .limits import Limits
from .reading import Found, Record, Unit
from .values import Misread, aligned, grade, integer, integers, key, number, numbers, rewards_of, step_of, text

FIELDS = ("run_id", "iteration", "group_idx", "traj_idx", "prompt_tokens", "sampled_tokens", "logprobs")
_USED = (*FIELDS, "policy_version", "reward", "advantage", "stop_reason", "metrics", "prompt", "completion")


def _row(record: Record) -> Iterator[Item]:
    row, at = record.payload, record.at
    missing = [name for name in FIELDS if name not in row]
    if missing:
        yield at.problem("fields", ", ".join(sorted(row)), f"also {', '.join(missing)}")
        return
    try:
        prompt, sampled = (
            integers(row["prompt_tokens"], "prompt_tokens"),
            integers(row["sampled_tokens"], "sampled_tokens"),
        )
        logprobs = numbers(row["logprobs"], "logprobs")
        if prompt is None or sampled is None or logprobs is None:
            raise Misread("prompt_tokens, sampled_tokens, logprobs", None, "three lists")
        aligned(sampled, {"logprobs": logprobs})
        version = integer(row.get("policy_version"), "policy_version")
        ids, mine = prompt + sampled, [False] * len(prompt) + [True] * len(sampled)
        values = [None] * len(prompt) + logprobs
        fields: dict[str, Any] = {
            "step": step_of(row["iteration"], "iteration"), "group_key": key(row["group_idx"], "group_idx"),
            "sample_key": key(row["traj_idx"], "traj_idx"), "reward": number(row.get("reward"), "reward"),
            "advantage": number(row.get("advantage"), "advantage"),
            "rewards": rewards_of(row.get("metrics"), "metrics"),
            "stop_reason": key(row.get("stop_reason"), "stop_reason", 100),
        }  # fmt: skip
    except Misread as error:
        yield at.problem(error.what, error.got, error.expected)
        return
    yield RolloutItem(
        at.next(), grade(ids, mine, values, version, version), token_ids=ids, is_policy_token=mine, logprobs=values,
        version_start=version, version_end=version, prompt=text(row.get("prompt")),
        completion=text(row.get("completion")),
        extra={"run_id": row["run_id"], **{name: value for name, value in row.items() if name not in _USED}},
        **fields,
    )  # fmt: skip


def units(files: list[Found], limits: Limits) -> Iterator[Unit]:
    """One unit for each file of lines."""
    for found in files:
        if found.name.endswith(".jsonl"):
            yield line_unit(found, limits, _row)
