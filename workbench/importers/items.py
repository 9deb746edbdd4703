"""What an importer yields: records of foreign logs, each with the place where it stood.

Produced by the readers of this package, consumed by ``runs.actions.imports``. Values are as the file
has them; None means that the file does not say.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

MALFORMED, TRUNCATED, REFUSED, NOT_IMPORTED = "malformed", "truncated", "refused", "not_imported"
LOSSES = (MALFORMED, TRUNCATED, REFUSED)  # an import with one of these is partial


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where an item stood, and where to go on after it.

    ``file``: path below the source (archive members after ``!``). ``number``: line, record or row, from 1;
    0 for the file as a whole. ``offset``: its first byte, 0 where the format has rows instead. ``part``: how
    many items of that record have been handed out; 0 says that the record must be read again.
    """

    file: str
    number: int = 0
    offset: int = 0
    part: int = 0

    def to_json(self) -> dict[str, Any]:
        """The cursor as plain JSON."""
        return {"file": self.file, "number": self.number, "offset": self.offset, "part": self.part}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Cursor:
        """The inverse of ``to_json``. Raises ``ValueError`` for anything else."""
        numbers = [value.get(name) for name in ("number", "offset", "part")]
        if not isinstance(value.get("file"), str) or any(type(item) is not int or item < 0 for item in numbers):
            raise ValueError(f"cursor: got {value!r:.200}, expected file, number, offset and part")
        return cls(value["file"], *numbers)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class MetricItem:
    """One point. ``name`` as received; ``value`` may be nan or infinite; ``step`` None: the file has none.

    ``wall_time_ms``: Unix time in milliseconds. ``labels``: what else tells this series from another.
    """

    cursor: Cursor
    name: str
    step: int | None
    value: float
    wall_time_ms: int | None = None
    labels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RolloutItem:
    """One foreign rollout.

    ``prompt`` and ``completion`` are text; ``messages`` is the whole conversation where the file keeps
    turns. The arrays are parallel to ``token_ids`` (prompt and completion in order) or None:
    ``is_policy_token`` True where the policy sampled the token; ``logprobs`` of the sampler, natural
    logarithm, None where there is none. ``version_start`` and ``version_end``: policy that served the first
    and the last token. ``advantages``: credit per token. ``rewards`` by name, unweighted. ``grade``: see
    ``values.grade``.
    """

    cursor: Cursor
    grade: str
    step: int | None = None
    group_key: str = ""
    sample_key: str = ""
    prompt: str | None = None
    completion: str | None = None
    messages: list[Any] | None = None
    token_ids: list[int] | None = None
    is_policy_token: list[bool] | None = None
    logprobs: list[float | None] | None = None
    version_start: int | None = None
    version_end: int | None = None
    reward: float | None = None
    rewards: dict[str, float | None] = field(default_factory=dict)
    advantage: float | None = None
    advantages: list[float | None] | None = None
    stop_reason: str = ""
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ParameterItem:
    """One setting of the foreign run, as text."""

    cursor: Cursor
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class ProblemItem:
    """Something that was not imported. ``kind``: one of the words above; ``not_imported`` is no loss.

    ``unit`` names what ``cursor.number`` counts. ``got`` is short text.
    """

    cursor: Cursor
    kind: str
    unit: str
    what: str
    got: str
    expected: str

    def __str__(self) -> str:
        place = self.cursor.file if not self.cursor.number else f"{self.cursor.file}, {self.unit} {self.cursor.number}"
        return f"{place} (byte {self.cursor.offset}): {self.what}: got {self.got}, expected {self.expected}"


Item = MetricItem | RolloutItem | ParameterItem | ProblemItem
