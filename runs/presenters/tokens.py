"""Tokens of a trajectory as they were recorded: ids, texts, classes, credit, probabilities.

Ids come from the captures, never from text that was tokenised again. What cannot be read is said
to be unavailable; it never becomes an empty value.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.utils.translation import gettext as _

from runs.models import BlobRef, PlanVersion, TraceFrame, Trajectory, TrajectoryCredit
from runs.presenters.told import told
from runs.presenters.trials.coefficients import APPLIED, coefficients_on
from runs.presenters.trials.words import STATUS
from runs.storage import blob_store
from workbench.blobs import BlobError
from workbench.capturefile import read_index, read_trajectory
from workbench.contracts.canonical import parse_json
from workbench.contracts.capture import SEGMENT_THINK, Capture
from workbench.contracts.errors import ContractError
from workbench.tracefile import Trace, read_frame

PROMPT, OBSERVATION, THINK, ACTION = 0, 1, 2, 3
KNOWN_TABLES = 16


@dataclass(frozen=True)
class Segment:
    """Tokens ``start`` to ``end`` of one class; ``decision`` None for the first prompt."""

    start: int
    end: int
    kind: int
    decision: int | None
    rewritten: bool = False


@dataclass(frozen=True)
class TokenSequence:
    """A trajectory's tokens in order. ``policy`` holds the positions of policy tokens, by decision and place."""

    ids: list[int]
    kinds: list[int]
    segments: list[Segment]
    policy: list[int]
    policy_decisions: list[int]
    sampler: dict[int, float]


@lru_cache(maxsize=KNOWN_TABLES)
def _table(sha256: str) -> tuple[str, ...]:
    value = parse_json(blob_store().get(sha256))
    if isinstance(value, dict):
        value = value["texts"]
    return tuple(value)


@lru_cache(maxsize=KNOWN_TABLES)
def _owner(sha256: str) -> str:
    value = json.loads(blob_store().get(sha256))
    return str(value.get("tokenizer_sha256", "")) if isinstance(value, dict) else ""


def vocabulary(tokenizer_sha256: str) -> tuple[str, ...] | None:
    """Texts by token id of a tokenizer; None where no table of it is stored.

    Looked up through the plans that bind the tokenizer, then among the stored tables that name it.
    """
    for version in PlanVersion.objects.order_by("-pk").only("bytes")[:50]:
        policy = _bound_policy(bytes(version.bytes))
        if policy.get("tokenizer_sha256") == tokenizer_sha256 and policy.get("vocabulary_sha256"):
            try:
                return _table(policy["vocabulary_sha256"])
            except (BlobError, ContractError, KeyError):
                return None
    for sha256 in BlobRef.objects.filter(kind="vocabulary").values_list("sha256", flat=True):
        try:
            if _owner(sha256) == tokenizer_sha256:
                return _table(sha256)
        except (BlobError, ValueError, KeyError):
            continue
    return None


@lru_cache(maxsize=64)
def _bound_policy(data: bytes) -> dict[str, Any]:
    policy = json.loads(data).get("bindings", {}).get("policy", {})
    return policy if isinstance(policy, dict) else {}


def read_captures(trajectory: Trajectory) -> list[Capture]:
    """Captures by decision, each checked against its hash. Raises ``BlobError`` or ``ContractError``."""
    return group_captures(trajectory.group.capture_blob_sha256, [str(trajectory.uid)])[str(trajectory.uid)]


def group_captures(blob_sha256: str, uids: Sequence[str]) -> dict[str, list[Capture]]:
    """Captures of several trajectories of one group file. Raises ``BlobError`` or ``ContractError``."""
    blob = blob_store().get(blob_sha256)
    index = read_index(blob)
    found = {}
    for uid in uids:
        refs = sorted((ref for ref in index if ref.trajectory_uid == uid), key=lambda ref: ref.decision)
        found[uid] = [Capture.from_bytes(data) for data in read_trajectory(blob, refs)]
    return found


def sequence_of(captures: Sequence[Capture]) -> TokenSequence:
    """One running sequence: prompt, then generated tokens and Observations in turn.

    Where a turn's prompt does not repeat what came before it, that whole prompt stands again and its
    segment says so.
    """
    ids: list[int] = []
    kinds: list[int] = []
    segments: list[Segment] = []
    policy: list[int] = []
    decisions: list[int] = []
    sampler: dict[int, float] = {}
    for position, capture in enumerate(captures):
        prompt = list(capture.prompt_ids)
        extends = position == 0 or prompt[: len(ids)] == ids
        fresh = prompt[len(ids) :] if extends else prompt
        kind = PROMPT if position == 0 or not extends else OBSERVATION
        if fresh:
            owner = None if position == 0 else captures[position - 1].decision
            segments.append(Segment(len(ids), len(ids) + len(fresh), kind, owner, not extends))
        ids += fresh
        kinds += [kind] * len(fresh)
        _append_turn(capture, ids, kinds, segments, policy, decisions, sampler)
    return TokenSequence(ids, kinds, segments, policy, decisions, sampler)


def _append_turn(
    capture: Capture,
    ids: list[int],
    kinds: list[int],
    segments: list[Segment],
    policy: list[int],
    decisions: list[int],
    sampler: dict[int, float],
) -> None:
    base = len(ids)
    classes = [THINK if s == SEGMENT_THINK else ACTION for s in capture.segments]
    start = 0
    for place in range(1, len(classes) + 1):
        if place == len(classes) or classes[place] != classes[start]:
            segments.append(Segment(base + start, base + place, classes[start], capture.decision))
            start = place
    for place, is_policy in enumerate(capture.is_policy_token):
        if is_policy:
            policy.append(base + place)
            decisions.append(capture.decision)
        if capture.sampler_logprobs is not None:
            sampler[base + place] = float(capture.sampler_logprobs[place])
    ids += list(capture.generated_ids)
    kinds += classes


def first_difference(left: Sequence[int], right: Sequence[int]) -> int | None:
    """Index of the first token that differs; the shorter length where one continues the other; None if equal."""
    for index, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return index
    return None if len(left) == len(right) else min(len(left), len(right))


def read_trace(trajectory: Trajectory, step: int | None) -> tuple[Trace | None, list[int], str]:
    """The update's trace at ``step`` (the last one if None), all steps, and why there is none."""
    frames = list(TraceFrame.objects.filter(trajectory=trajectory).select_related("update").order_by("step"))
    if not frames:
        return None, [], _("no update trained this trajectory")
    frame = next((f for f in frames if f.step == step), frames[-1])
    steps = [f.step for f in frames]
    if frame.update.trace_blob_sha256 is None:
        return None, steps, _("the update names no trace")
    try:
        data = blob_store().open_range(frame.update.trace_blob_sha256, frame.offset, frame.length)
        return read_frame(data, frame.frame_sha256), steps, ""
    except (BlobError, ContractError) as error:
        return None, steps, told(error)


def _number(value: float) -> float | str:
    """Nine significant digits, which identify each stored 32-bit number: the page rounds, and rounds once."""
    return float(f"{value:.9g}") if math.isfinite(value) else str(value)


def edit_term(trajectory: Trajectory) -> dict[str, Any] | None:
    """What its edit added to A: ``chosen`` on tokens of decision ``selected``, ``other`` on the rest.

    None where its update has no credit from edits. ``why``: words for a coefficient that is 0 since nothing is known.
    """
    credits = TrajectoryCredit.objects.filter(trajectory=trajectory, edit__isnull=False).order_by("pk")
    edit = next((credit.edit for credit in credits if credit.edit is not None), None)
    if edit is None:
        return None
    chosen, other = coefficients_on(edit)
    why = "" if edit["status"] == APPLIED else str(STATUS.get(edit["status"], (edit["status"],))[0])
    return {"selected": edit["selected"], "chosen": _number(chosen), "other": _number(other), "why": why}


def payload(trajectory: Trajectory, siblings: Sequence[Trajectory], step: int | None) -> dict[str, Any]:
    """Everything that the token strip draws. Raises ``BlobError`` or ``ContractError`` for unreadable captures."""
    uids = [str(row.uid) for row in siblings]
    captures = group_captures(trajectory.group.capture_blob_sha256, uids)
    own = sequence_of(captures[str(trajectory.uid)])
    texts = vocabulary(trajectory.group.identities.get("tokenizer", ""))
    trace, steps, why = read_trace(trajectory, step)
    credit = _credit_arrays(own, trace)
    divergence = [
        _beside(own, sequence_of(captures[str(row.uid)]), row)
        for row in siblings
        if row.pk != trajectory.pk and row.status == "valid"
    ]
    starts: dict[int, int] = {}
    for segment in own.segments:
        if segment.decision is not None and segment.kind in (THINK, ACTION):
            starts.setdefault(segment.decision, segment.start)
    return {
        "n": len(own.ids),
        "ids": own.ids,
        "kinds": own.kinds,
        "texts": None if texts is None else [texts[i] if 0 <= i < len(texts) else None for i in own.ids],
        "segments": [[s.start, s.end, s.kind, s.decision, s.rewritten] for s in own.segments],
        "policy": own.policy,
        "engine": [[i, _number(v)] for i, v in own.sampler.items()],
        "trace": credit,
        "advantage": None if trajectory.advantage is None else _number(trajectory.advantage),
        "edit": edit_term(trajectory),
        "trace_missing": why,
        "step": trace.step if trace else None,
        "steps": steps,
        "fatal_start": starts.get(trajectory.fatal_start) if trajectory.fatal_start is not None else None,
        "fatal_confirmed": starts.get(trajectory.fatal_confirmed) if trajectory.fatal_confirmed is not None else None,
        "injected": [item["decision"] for item in trajectory.injections if item.get("decision") is not None],
        "divergence": divergence,
    }


def _beside(own: TokenSequence, other: TokenSequence, row: Trajectory) -> dict[str, Any]:
    """A sibling as the timeline draws it: where it parts from the own tokens, and its segments."""
    return {
        "slot": row.slot,
        "uid": str(row.uid),
        "index": first_difference(own.ids, other.ids),
        "n": len(other.ids),
        "reward": row.reward_total,
        "segments": [[s.start, s.end, s.kind, s.decision] for s in other.segments],
    }


def _credit_arrays(own: TokenSequence, trace: Trace | None) -> dict[str, Any] | None:
    """The trace by policy token; None where there is none. Raises ``ContractError`` where lengths disagree."""
    if trace is None:
        return None
    if len(trace.decisions) != len(own.policy):
        raise ContractError(f"trace: got {len(trace.decisions)} tokens, expected {len(own.policy)} policy tokens")
    return {
        "old": [_number(v) for v in trace.old_logprobs],
        "new": [_number(v) for v in trace.new_logprobs],
        "ratio": [_number(v) for v in trace.ratios],
        "clipped": list(trace.clipped),
        "entropy": [_number(v) for v in trace.entropies],
        "credited": list(trace.is_credited),
        "advantage": [_number(v) for v in trace.advantages],
    }
