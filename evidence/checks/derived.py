"""Metric values that lie over several documents: evaluation cells, the funnel, entropy decay, lag of a batch.

Written apart from the code that made them, but for the interval's resampling, which is one function of the
task means (``runs.statistics.bootstrap``) and deterministic to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from evidence.checks.rebuilt import Found
from runs import projection
from runs.actions.record_group import GROUP, parse_group
from runs.models import Checkpoint, Document, Group, MetricPoint, Task
from runs.statistics.bootstrap import Bootstrap, Interval, gap_interval, paired_interval, task_interval
from workbench.blobs import BlobError, BlobStore
from workbench.contracts.layout import parent_checkpoint_uid
from workbench.contracts.records import VALID, GroupRecord, MetricRecord, TrajectoryRecord, UpdateRecord
from workbench.contracts.seeds import derive_seed
from workbench.tracefile import Trace, read_frame

Outcomes = dict[str, list[float]]  # by task key: what its valid repeats gave
WINDOW = 20


def records_of(uids: Iterable[str]) -> list[GroupRecord]:
    """Group documents by uid, in that order; absent ones are left out (step 4 names them)."""
    wanted = list(uids)
    found = {
        str(row.subject_uid): parse_group(bytes(row.bytes))
        for row in Document.objects.filter(kind=GROUP, subject_uid__in=wanted).iterator(chunk_size=50)
    }
    return [found[uid] for uid in wanted if uid in found]


# --- evaluation cells -----------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _cell(checkpoint: str, condition: str, split: str) -> tuple[tuple[str, tuple[TrajectoryRecord, ...]], ...]:
    """(task key, trajectories) of a cell, by key."""
    groups = Group.objects.filter(checkpoint__uid=checkpoint, purpose="evaluate", condition=condition, split=split)
    records = records_of(str(uid) for uid in groups.values_list("uid", flat=True))
    keys = dict(Task.objects.filter(uid__in={item.task_uid for item in records}).values_list("uid", "key"))
    named = {str(uid): key for uid, key in keys.items()}
    return tuple(sorted(((named[item.task_uid], item.trajectories) for item in records), key=lambda pair: pair[0]))


def _outcomes(checkpoint: str, condition: str, split: str, metric: str) -> Outcomes:
    found: Outcomes = {}
    for key, trajectories in _cell(checkpoint, condition, split):
        for item in trajectories:
            if item.status != VALID:
                continue
            value = item.success if metric == "success" else (None if item.reward is None else item.reward.total)
            if value is not None:
                found.setdefault(key, []).append(float(value))
    return found


def _means(outcomes: Outcomes) -> list[float]:
    return [sum(values) / len(values) for _, values in sorted(outcomes.items())]


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def pass_any(n: int, c: int, k: int) -> float:
    """Unbiased pass@k in its product form: 1 - prod over i in n-c+1 ... n of (1 - k / i)."""
    return 1.0 if n - c < k else 1.0 - math.prod(1.0 - k / i for i in range(n - c + 1, n + 1))


def pass_every(n: int, c: int, k: int) -> float:
    """Unbiased pass^k: prod over i < k of (c - i) / (n - i)."""
    return math.prod((c - i) / (n - i) for i in range(k)) if c >= k else 0.0


def _bound(interval: Interval, item: MetricRecord, value: float | None) -> float | None:
    return {"low": interval.low, "high": interval.high}.get(item.labels.get("bound", ""), value)


def _evaluation(item: MetricRecord) -> Found | None:
    """A value of the L5 table from the items of its checkpoint; None where the checkpoint is unknown."""
    checkpoint = Checkpoint.objects.filter(uid=str(item.subject_uid)).first() if item.subject_uid else None
    group = Group.objects.filter(checkpoint=checkpoint, purpose="evaluate").select_related("plan_version").first()
    if checkpoint is None or group is None:
        return None
    bootstrap = Bootstrap(derive_seed("statistics.bootstrap", group.plan_version.sha256))
    name, uid = item.definition.removeprefix("l5.").removesuffix("/1"), str(checkpoint.uid)
    metric = "reward" if name.startswith("reward") else "success"
    own = _outcomes(uid, item.phase, item.split, metric)
    if name in ("pass_at_k", "pass_hat_k"):
        k, estimate = int(item.labels["k"]), pass_any if name == "pass_at_k" else pass_every
        values = [estimate(len(task), int(sum(task)), k) for task in own.values() if len(task) >= k]
        return _mean(values), len(values)
    if name in ("reward", "success_rate"):
        values = _means(own)
        return _bound(task_interval(values, bootstrap), item, _mean(values)), len(values)
    if name.endswith("_gap"):
        sides = _means(own), _means(_outcomes(uid, item.phase, item.labels["outside"], metric))
        first, second = _mean(sides[0]), _mean(sides[1])
        value = None if first is None or second is None else first - second
        return _bound(gap_interval(sides[0], sides[1], bootstrap), item, value), min(map(len, sides))
    parent = parent_checkpoint_uid(str(group.plan_version.uid))
    before = _outcomes(parent, item.phase, item.split, metric)
    shared = {key: (before[key], own[key]) for key in before.keys() & own.keys()}
    old, new = _means({key: pair[0] for key, pair in shared.items()}), _means({k: v[1] for k, v in shared.items()})
    value = _mean([first - second for first, second in zip(old, new, strict=True)])
    return _bound(paired_interval(new, old, bootstrap), item, value), len(shared)


# --- training -------------------------------------------------------------------------------------

_FUNNEL = (
    ("started", lambda group, item, version: True),
    ("finished", lambda group, item, version: not str(item.invalid_reason).startswith("worker_lost")),
    ("not_infrastructure_failed", lambda group, item, version: item.status == VALID),
    ("reconstructed", lambda group, item, version: {part.holds for part in item.invariants} == {True}),
    ("not_too_old", lambda group, item, version: group.identities.policy_version == version),
    ("in_complete_group", lambda group, item, version: group.eligible),
    ("with_signal", lambda group, item, version: group.signal == "signal"),
)


def _funnel(item: MetricRecord, update: UpdateRecord) -> Found:
    groups = records_of(update.group_uids)
    every = [(group, part) for group in groups for part in group.trajectories]
    place = [name for name, _ in _FUNNEL].index(item.labels["stage"])
    kept = [
        part for group, part in every
        if all(passes(group, part, update.policy_version) for _, passes in _FUNNEL[: place + 1])
    ]  # fmt: skip
    if item.definition == "l3.funnel_tokens/1":
        return float(sum(turn.generated_tokens for part in kept for turn in part.turns)), len(kept)
    if item.definition == "l3.funnel_share/1":
        return (len(kept) / len(every) if every else None), len(every)
    return float(len(kept)), len(every)


def _decay(item: MetricRecord, run_uid: str | None, document: Document) -> Found | None:
    """From the run's entropy points that were stored before ``document``."""
    rows = MetricPoint.objects.filter(
        series__run__uid=str(run_uid), series__definition="l2.entropy_sampled/1", series__phase=item.phase,
        series__split=item.split, series__labels_key=projection.labels_key({"segment": "all"}), value__isnull=False,
        document__lt=document.pk,
    ).order_by("document", "position")  # fmt: skip
    pairs = [(row.policy_version, row.value) for row in rows if row.value is not None]
    if not pairs:
        return None
    if item.definition == "l4.entropy_left/1":
        return (pairs[-1][1] / pairs[0][1] if pairs[0][1] else None), 1
    x, y = np.array(pairs[-WINDOW:]).T
    spread = float(((x - x.mean()) ** 2).sum())
    slope = float(((x - x.mean()) * (y - y.mean())).sum()) / spread if spread else None
    return slope, len(x)


def last_frames(update: UpdateRecord, store: BlobStore) -> dict[str, Trace] | None:
    """The frame of every trajectory's last step; None where the trace file is gone (step 5 names it)."""
    if update.trace_blob_sha256 is None:
        return {}
    try:
        blob = store.get(update.trace_blob_sha256)
    except BlobError:
        return None
    last = {ref.trajectory_uid: ref for ref in sorted(update.traces, key=lambda ref: ref.step)}
    return {uid: read_frame(blob[ref.offset :][: ref.length], ref.frame_sha256) for uid, ref in last.items()}


def _deltas(frame: Trace) -> np.ndarray:
    return np.array(frame.new_logprobs, np.float64) - np.array(frame.old_logprobs, np.float64)


def _exponential(value: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.exp(value))


def _lag(item: MetricRecord, frame: Trace, update: UpdateRecord, versions: dict[str, int]) -> Found | None:
    deltas, credited = _deltas(frame), np.array(frame.is_credited, bool)
    if item.definition == "l1.trajectory_age/1":
        return float(update.policy_version - versions[frame.trajectory_uid]), 1
    if item.definition == "l1.sequence_ratio/1":
        return _exponential(math.fsum(deltas)), len(deltas)
    if item.definition == "l1.trajectory_kl_k3/1":
        return (float((np.exp(deltas) - 1.0 - deltas).mean()) if len(deltas) else None), len(deltas)
    if item.definition == "l1.trajectory_clip_share/1":
        clipped = np.array(frame.clipped)[credited] > 0
        return (float(clipped.mean()) if len(clipped) else None), len(clipped)
    return None


def _sample_size(item: MetricRecord, frames: dict[str, Trace]) -> Found:
    parts = [_deltas(frame) for frame in frames.values()]
    sums = np.array([math.fsum(part) for part in parts])
    logs = sums if item.labels["over"] == "trajectory" else np.concatenate([np.zeros(0), *parts])
    if not len(logs):
        return None, 0
    weights = np.exp(logs - logs.max())
    return float(weights.sum() ** 2 / (weights**2).sum()), len(logs)


class Derived:
    """Rebuilds the values of one metrics document. ``update``: the update that it speaks of, or None."""

    def __init__(self, document: Document, run_uid: str | None, update: UpdateRecord | None, store: BlobStore):
        self.document, self.run_uid, self.update, self.store = document, run_uid, update, store
        self._frames: dict[str, Trace] | None = None
        self._versions: dict[str, int] | None = None

    def frames(self) -> dict[str, Trace] | None:
        """Last frames of the update, read once."""
        if self._frames is None and self.update is not None:
            self._frames = last_frames(self.update, self.store)
        return self._frames

    def versions(self) -> dict[str, int]:
        """Policy version that sampled each trajectory of the update's groups."""
        if self._versions is None:
            groups = records_of(self.update.group_uids if self.update is not None else ())
            self._versions = {
                part.uid: group.identities.policy_version for group in groups for part in group.trajectories
            }
        return self._versions

    def values(self, item: MetricRecord) -> list[Found] | None:
        """The one value that ``item`` may have; None for a definition that is not of this module."""
        found: Found | None = None
        if item.definition.startswith("l5."):
            found = _evaluation(item)
        elif item.definition in ("l4.entropy_left/1", "l4.entropy_slope/1"):
            found = _decay(item, self.run_uid, self.document)
        elif self.update is None:
            return None
        elif item.definition.startswith("l3.funnel_"):
            found = _funnel(item, self.update)
        elif item.definition == "l1.effective_sample_size/1":
            frames = self.frames()
            found = None if frames is None else _sample_size(item, frames)
        else:
            frame = (self.frames() or {}).get(item.subject_uid or "") if item.subject_uid != self.update.uid else None
            found = None if frame is None else _lag(item, frame, self.update, self.versions())
        return None if found is None else [found]


def reset() -> None:
    """Forget cells that an earlier check read."""
    _cell.cache_clear()
