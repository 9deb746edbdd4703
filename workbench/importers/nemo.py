"""NeMo-RL: ``train_data_step{N}.jsonl``. Ids, indicator and log-probabilities without a version: grade B.

Rows of a batch are padded to one length. The padding is cut where the file has ``input_lengths``; it is
never guessed from ids, since a padding id may equal the end-of-text id.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from .items import Item, RolloutItem
from .jsondata import line_unit
from .limits import Limits
from .reading import Found, Record, Unit
from .values import Misread, aligned, grade, indicator, integer, integers, is_number, key, number, numbers, text

_NAME = re.compile(r"(train|val)_data_step(\d+)\.jsonl$")
_ARRAYS = ("token_ids", "token_loss_mask", "advantages", "generation_logprobs", "prev_logprobs")
_USED = (*_ARRAYS, "content", "rewards", "input_lengths", "idx")


def _arrays(row: dict[str, Any]) -> dict[str, Any]:
    """Aligned arrays of a row, cut to ``input_lengths``; a scalar advantage stands apart."""
    length = integer(row.get("input_lengths"), "input_lengths")
    cut = {name: row[name][:length] if isinstance(row.get(name), list) else row.get(name) for name in _ARRAYS}
    scalar = cut.pop("advantages") if is_number(cut["advantages"]) else None
    ids, mine = integers(cut["token_ids"], "token_ids"), indicator(cut["token_loss_mask"], "token_loss_mask")
    values = numbers(cut["generation_logprobs"], "generation_logprobs")
    old = numbers(cut["prev_logprobs"], "prev_logprobs")
    credit = numbers(cut.get("advantages"), "advantages")
    aligned(
        ids, {"token_loss_mask": mine, "generation_logprobs": values, "prev_logprobs": old, "advantages": credit}
    )  # fmt: skip
    return {"ids": ids, "mine": mine, "values": values, "old": old, "credit": credit, "scalar": scalar}


def _line(record: Record, step: int | None, split: str) -> Iterator[Item]:
    row, at = record.payload, record.at
    if "content" not in row and "token_ids" not in row:
        yield at.problem("fields", ", ".join(sorted(row)), "content or token_ids")
        return
    try:
        reward, sample = number(row.get("rewards"), "rewards"), key(row.get("idx", at.number - 1), "idx")
        try:
            found = _arrays(row)
        except Misread as error:  # the text is sound, the arrays are not
            yield at.problem(error.what, error.got, error.expected)
            found = dict.fromkeys(("ids", "mine", "values", "old", "credit", "scalar"))
    except Misread as error:
        yield at.problem(error.what, error.got, error.expected)
        return
    credit = set(found["credit"] or ())
    advantage = found["scalar"] if found["scalar"] is not None else (credit.pop() if len(credit) == 1 else None)
    extra = {name: value for name, value in row.items() if name not in _USED}
    yield RolloutItem(
        at.next(), grade(found["ids"], found["mine"], found["values"], None, None), step=step, sample_key=sample,
        completion=text(row.get("content")), token_ids=found["ids"], is_policy_token=found["mine"],
        logprobs=found["values"], reward=reward, advantage=advantage, advantages=found["credit"],
        extra={**extra, "split": split, "trainer_logprobs": found["old"], "length": row.get("input_lengths")},
    )  # fmt: skip


def is_dump(name: str) -> bool:
    """Whether a file's name is that of such a dump."""
    return _NAME.search(name) is not None


def units(files: list[Found], limits: Limits) -> Iterator[Unit]:
    """One unit for each dump; the step stands in its name."""
    for found in files:
        match = _NAME.search(found.name)
        if match is None and len(files) > 1:
            continue
        step, split = (int(match[2]), match[1]) if match else (None, "train")

        def parse(record: Record, step: int | None = step, split: str = split) -> Iterator[Item]:
            return _line(record, step, split)

        yield line_unit(found, limits, parse)
