"""One batch of an import: foreign items as rows, in the transaction that also moves the cursor."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import zstandard

from runs.actions.tracking import KEY_LENGTH, KEYS_MOST, VALUE_LENGTH
from runs.metrics.store import BOUND, LoggedPoint, log_points
from runs.models import Actor, ImportedRollout, LogImport, RunParameter
from workbench.contracts.canonical import CanonicalError, canonical_bytes, derive_uid, parse_canonical, sha256_hex
from workbench.contracts.errors import RecordError
from workbench.importers.body import columns_of, fits, rollout_value, series_name
from workbench.importers.items import (
    LOSSES,
    NOT_IMPORTED,
    REFUSED,
    Item,
    MetricItem,
    ParameterItem,
    ProblemItem,
    RolloutItem,
)  # fmt: skip

LISTED = 500  # problems kept one by one; all are counted
LEVEL = 3
MOST_BODY = 256 << 20  # bytes of a stored body when it is unpacked


def _refused(item: Item, what: str, got: str, expected: str, kind: str = REFUSED) -> ProblemItem:
    return ProblemItem(item.cursor, kind, "record", what, got, expected)


def rollout_uid(log_import: LogImport, position: int) -> uuid.UUID:
    """Identity of a rollout: its import and its position in it."""
    return derive_uid(log_import.uid, f"rollout:{position}")


def _rollout(log_import: LogImport, item: RolloutItem, position: int) -> ImportedRollout | ProblemItem:
    try:
        value = rollout_value(item)
        data = canonical_bytes(value)
    except CanonicalError as error:
        return _refused(item, "rollout", str(error)[:200], "values that have a canonical form")
    return ImportedRollout(
        uid=rollout_uid(log_import, position), run=log_import.run, log_import=log_import,
        position=position, sha256=sha256_hex(data), **columns_of(value),
        body=zstandard.ZstdCompressor(level=LEVEL, write_content_size=True).compress(data),
    )  # fmt: skip


def _points(items: Sequence[MetricItem]) -> tuple[list[LoggedPoint], list[ProblemItem]]:
    """Points that can be stored; a file without times gives time 0, one without steps step 0 and a label."""
    points: list[LoggedPoint] = []
    problems: list[ProblemItem] = []
    for item in items:
        name, step, time_ms = series_name(item), item.step or 0, item.wall_time_ms or 0
        if not fits(name):
            problems.append(_refused(item, "name with its labels", f"{len(name)} characters", "at most 500"))
        elif abs(step) >= BOUND or abs(time_ms) >= BOUND:
            problems.append(_refused(item, "step or time", f"{step}, {time_ms}", f"within {BOUND}"))
        else:
            points.append(LoggedPoint(name, item.value, step, time_ms))
    return points, problems


def _parameters(log_import: LogImport, items: Sequence[ParameterItem], at: datetime) -> tuple[int, list[ProblemItem]]:
    """Store settings; the first value of a name stands, another one is named."""
    run, problems = log_import.run, []
    known = dict(
        RunParameter.objects.filter(run=run, key__in=[item.name for item in items]).values_list("key", "value")
    )
    room = KEYS_MOST - RunParameter.objects.filter(run=run).count() if items else 0
    fresh: dict[str, str] = {}
    for item in items:
        standing = known.get(item.name, fresh.get(item.name))
        if len(item.name) > KEY_LENGTH or len(item.value) > VALUE_LENGTH or "\x00" in item.value:
            got = f"{len(item.name)} and {len(item.value)} characters"
            problems.append(_refused(item, "setting", got, f"at most {KEY_LENGTH} and {VALUE_LENGTH}, without NUL"))
        elif standing is None and len(fresh) >= room:
            problems.append(_refused(item, "settings", f"more than {KEYS_MOST}", f"at most {KEYS_MOST} in one run"))
        elif standing is None:
            fresh[item.name] = item.value
        elif standing != item.value:
            what, got = f"setting {item.name[:100]}", item.value[:80]
            problems.append(_refused(item, what, got, f"the value that stands: {standing[:80]}", NOT_IMPORTED))
    RunParameter.objects.bulk_create(
        [RunParameter(run=run, key=key, value=value, at=at) for key, value in fresh.items()], batch_size=200
    )
    return len(fresh), problems


def note_problems(log_import: LogImport, items: Sequence[ProblemItem]) -> None:
    """Count problems by kind and list them; what was left out on purpose is one line for all of its like."""
    counts = log_import.counts.setdefault("problems", {})
    for item in items:
        counts[item.kind] = counts.get(item.kind, 0) + 1
        like = next(
            (row for row in log_import.problems if item.kind == NOT_IMPORTED and row["what"] == item.what
             and row["kind"] == item.kind and row["expected"] == item.expected), None,
        )  # fmt: skip
        if like is not None:
            like["count"] += 1
        elif len(log_import.problems) < LISTED:
            log_import.problems.append(
                {
                    "kind": item.kind, "file": item.cursor.file, "unit": item.unit, "number": item.cursor.number,
                    "offset": item.cursor.offset, "what": item.what, "got": item.got, "expected": item.expected,
                    "count": 1,
                }
            )  # fmt: skip


def is_partial(log_import: LogImport) -> bool:
    """Whether anything was lost."""
    counts = log_import.counts.get("problems", {})
    return any(counts.get(kind, 0) for kind in LOSSES)


def write_batch(log_import: LogImport, items: Sequence[Item], *, by: Actor, at: datetime) -> None:
    """Store items and count them in the head, which the caller holds locked and saves."""
    counts = log_import.counts
    problems = [item for item in items if isinstance(item, ProblemItem)]
    points, refused = _points([item for item in items if isinstance(item, MetricItem)])
    problems += refused
    if points:
        assert log_import.run is not None
        accepted = log_points(log_import.run, points, source="import", actor=by, at=at)
        counts["metrics"] = counts.get("metrics", 0) + accepted.stored
        counts["repeated"] = counts.get("repeated", 0) + accepted.repeated
    rows: list[ImportedRollout] = []
    grades = counts.setdefault("grades", {})
    for item in items:
        if isinstance(item, RolloutItem):
            made = _rollout(log_import, item, counts.get("rollouts", 0))
            if isinstance(made, ProblemItem):
                problems.append(made)
                continue
            rows.append(made)
            counts["rollouts"] = counts.get("rollouts", 0) + 1
            grades[item.grade] = grades.get(item.grade, 0) + 1
    ImportedRollout.objects.bulk_create(rows, batch_size=50)
    stored, refused = _parameters(log_import, [item for item in items if isinstance(item, ParameterItem)], at)
    counts["parameters"] = counts.get("parameters", 0) + stored
    note_problems(log_import, [*problems, *refused])


def rollouts_sha256(log_import: LogImport) -> str:
    """Digest of all rollouts of an import: their hashes, a line each, in the order of their positions."""
    found = hashlib.sha256()
    rows = log_import.rollouts.order_by("position").values_list("sha256", flat=True)
    for sha256 in rows.iterator(chunk_size=2000):
        found.update(sha256.encode() + b"\n")
    return found.hexdigest()


def rollout_body(row: ImportedRollout) -> dict[str, Any]:
    """What a stored rollout says. Raises ``RecordError`` where its bytes are not those of its hash."""
    try:
        data = zstandard.ZstdDecompressor().decompress(bytes(row.body), max_output_size=MOST_BODY)
    except zstandard.ZstdError as error:
        raise RecordError(f"body of rollout {row.uid}: got {error}, expected zstd") from error
    if sha256_hex(data) != row.sha256:
        raise RecordError(f"sha256 of rollout {row.uid}: got {sha256_hex(data)}, expected {row.sha256}")
    found: dict[str, Any] = parse_canonical(data)
    return found
