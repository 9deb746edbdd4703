"""A foreign rollout as canonical bytes, and the identity of a source: what is kept and hashed at the door."""

from __future__ import annotations

import base64
import hashlib
import math
from dataclasses import fields
from pathlib import Path
from typing import Any

from workbench.contracts.canonical import MAX_SAFE_INTEGER, canonical_bytes, decode_float, encode_float

from .items import MetricItem, RolloutItem
from .limits import LIMITS, Limits
from .reading import list_files
from .values import NAME, grade

SCHEMA = "workbench.imported_rollout/1"
_CHUNK = 1 << 20


def plain(value: Any) -> Any:
    """A foreign value in the restricted form that is hashed: big integers as decimal strings, floats encoded.

    Bytes become ``{"base64": ...}``; other types that a table may hold (times, decimals) their text.
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if abs(value) <= MAX_SAFE_INTEGER else str(value)
    if isinstance(value, float):
        return encode_float(value)
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    return str(value)


def rollout_value(item: RolloutItem) -> dict[str, Any]:
    """Everything that the item says, with its place, in the form that is hashed."""
    place = {name: value for name, value in item.cursor.to_json().items() if name != "part"}
    said = {field.name: plain(getattr(item, field.name)) for field in fields(item) if field.name != "cursor"}
    return {"schema": SCHEMA, "place": place, **said}


def columns_of(value: dict[str, Any]) -> dict[str, Any]:
    """The columns of a stored rollout, from its value: what lists sort and search by.

    A number that is not finite stands in the value alone. ``tokens``: those of the policy, None without an indicator.
    """

    def finite(name: str) -> float | None:
        found = decode_float(value[name])
        return found if found is not None and math.isfinite(found) else None

    mine = value["is_policy_token"]
    return {
        "step": None if value["step"] is None else int(value["step"]), "group_key": value["group_key"],
        "sample_key": value["sample_key"], "grade": value["grade"], "reward": finite("reward"),
        "advantage": finite("advantage"), "tokens": None if mine is None else sum(mine),
        "stop_reason": value["stop_reason"],
    }  # fmt: skip


def grade_of(value: dict[str, Any]) -> str:
    """The grade that a stored value allows, by the rule of ``values.grade``."""
    arrays = value["token_ids"], value["is_policy_token"], value["logprobs"]
    return grade(*arrays, value["version_start"], value["version_end"])


def series_name(item: MetricItem) -> str:
    """The name under which a point is stored: as received, its labels behind it in brackets.

    A point of a file without steps has the label ``step=none`` (and step 0). May be too long to store.
    """
    labels = dict(item.labels) | ({} if item.step is not None else {"step": "none"})
    if not labels:
        return item.name
    return f"{item.name} [{','.join(f'{name}={value}' for name, value in sorted(labels.items()))}]"


def fits(name: str) -> bool:
    """Whether a series name can be stored whole."""
    return len(name) <= NAME


def _file_sha256(path: Path) -> str:
    found = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            found.update(chunk)
    return found.hexdigest()


def source_signature(path: Path, limits: Limits = LIMITS) -> tuple[str, dict[str, int]]:
    """Digest of what the file system says of a source (name, size, time, number of each file), and the sizes.

    Equal signatures of one place on one machine spare the reading of every byte; never evidence.
    """
    found = [(item.name, item.path.stat()) for item in list_files(path, limits)[0]]
    said = [[name, stat.st_size, str(stat.st_mtime_ns), str(stat.st_ino)] for name, stat in found]
    return hashlib.sha256(canonical_bytes(said)).hexdigest(), {name: stat.st_size for name, stat in found}


def source_identity(path: Path, limits: Limits = LIMITS) -> str:
    """SHA-256 of a source.

    A file: of its bytes, whatever its name. A folder: of the canonical list of (name below it, SHA-256).
    """
    files, _ = list_files(path, limits)
    found = [[item.name, _file_sha256(item.path)] for item in files]
    if not path.is_dir():
        return found[0][1]
    return hashlib.sha256(canonical_bytes(found)).hexdigest()
