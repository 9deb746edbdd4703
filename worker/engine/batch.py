"""Stage 5, batch: from captures to padded tensors, with a partition that never depends on load.

Captures are read back from the store and checked against everything that the group record, the
specification and the loaded policy say; the first difference refuses the batch (``EngineFault``).
Consecutive turns whose prompt continues the previous prompt and generation share one sequence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from workbench.capturefile import read_trajectory
from workbench.contracts.canonical import parse_bound, sha256_hex
from workbench.contracts.capture import Capture
from workbench.contracts.errors import ContractError, EngineFault
from workbench.contracts.jobs import UpdateGroup
from workbench.contracts.records import TRAIN, GroupRecord, TrajectoryRecord
from workbench.contracts.trials import AVAILABLE, EXECUTE, SELECTED, STATUSES, GroupTrials, trials_uid
from workbench.contracts.wire import from_wire

from .checkpoint import checked

ROUNDING = 1e-12  # D is a difference of fractions, its verdicts are stored as floats
CAPTURE_IDENTITIES = ("base_model", "adapter", "tokenizer", "formatter", "environment", "harness", "runtime")


@dataclass(frozen=True)
class TokenSequence:
    """Ids of one forward pass, and where its policy tokens stand; a token at ``p`` is predicted at ``p - 1``."""

    ids: tuple[int, ...]
    positions: tuple[int, ...]


@dataclass(frozen=True)
class TrajectoryTokens:
    """One trajectory ready for teacher forcing. The ``_T`` arrays are parallel to its policy tokens.

    ``sampler_logprobs_T`` is None where any capture has none. ``fatal_start`` as in the facts.
    """

    uid: str
    group_uid: str
    advantage: float
    fatal_start: int | None
    sequences: tuple[TokenSequence, ...]
    decisions_T: tuple[int, ...]
    sampler_logprobs_T: tuple[float, ...] | None
    capture_sha256: tuple[str, ...]
    segments_T: tuple[int, ...] = ()  # SEGMENT_* of each policy token

    @property
    def tokens(self) -> int:
        """Number of policy tokens."""
        return len(self.decisions_T)

    @property
    def length(self) -> int:
        """Longest sequence."""
        return max((len(sequence.ids) for sequence in self.sequences), default=0)


@dataclass(frozen=True)
class MicroBatch:
    """Trajectories of one forward pass. Flat ``_N`` tensors run over their policy tokens, in order.

    ``ids_BT`` is padded on the right with id 0: causal attention keeps padding out of every real
    token, so no id is ever read as padding. ``rows_N`` and ``places_N`` say which hidden state predicts
    the token; ``owners_B`` gives each row's trajectory, ``sizes`` its tokens by trajectory.
    """

    members: tuple[int, ...]  # positions in the list of trajectories
    ids_BT: Tensor
    rows_N: Tensor
    places_N: Tensor
    targets_N: Tensor
    owners_B: Tensor
    sizes: tuple[int, ...]


def _mismatch(where: str, name: str, got: Any, expected: Any) -> EngineFault:
    return EngineFault(f"{where}.{name}: got {got}, expected {expected}")


def read_group(group: UpdateGroup) -> GroupRecord:
    """The group's record, its hash checked."""
    data = group.record_json.encode()
    if sha256_hex(data) != group.record_sha256:
        raise _mismatch("group", "record_sha256", sha256_hex(data), group.record_sha256)
    return from_wire(GroupRecord, parse_bound(data))  # canonical when it was recorded: the hash says it is these bytes


def read_trials(group: UpdateGroup, record: GroupRecord, *, executed: bool) -> GroupTrials:
    """The trials of a training group, checked: hash, group, run, plan, one intervention a slot, D with its verdicts.

    ``executed``: the arm reads D, so choosing alone does not do. A group whose trials broke has a record that says so;
    none at all raises ``EngineFault``, as does any difference.
    """
    where = f"group {record.uid}.trials"
    if group.trials_json is None:
        raise EngineFault(f"{where}: got none, expected the trials of a group whose credit comes from edits")
    data = group.trials_json.encode()
    if sha256_hex(data) != group.trials_sha256:
        raise _mismatch(where, "sha256", sha256_hex(data), group.trials_sha256)
    try:
        found = from_wire(GroupTrials, parse_bound(data))
    except ContractError as error:
        raise EngineFault(f"{where}: {error}") from error
    pairs: list[tuple[str, Any, Any]] = [
        ("uid", found.uid, trials_uid(record.uid)),
        ("group_uid", found.group_uid, record.uid),
        ("run_uid", found.run_uid, record.run_uid),
        ("plan_sha256", found.plan_sha256, record.plan_sha256),
        ("ordinal", found.ordinal, record.ordinal),
        ("purpose", found.purpose, TRAIN),
        ("interventions", [item.trajectory_uid for item in found.interventions], [t.uid for t in record.trajectories]),
    ]
    if executed:
        pairs.append(("settings.mode", found.settings.get("mode"), EXECUTE))
    for name, got, wanted in pairs:
        if got != wanted:
            raise _mismatch(where, name, got, wanted)
    for item in found.interventions:
        at, known = f"{where}: trajectory {item.trajectory_uid}", item.status == AVAILABLE
        if item.status not in STATUSES or (executed and item.status == SELECTED):
            raise _mismatch(at, "status", item.status, "one of " + ", ".join(STATUSES))
        if item.status in (AVAILABLE, SELECTED) and item.selected is None:
            raise _mismatch(at, "selected", None, "a decision")
        d = None
        if known and item.original_utility is not None and item.without_utility is not None:
            d = item.original_utility - item.without_utility
        same = item.difference == d if item.difference is None or d is None else abs(item.difference - d) < ROUNDING
        if not same or (known and d is None):
            raise _mismatch(at, "difference", item.difference, f"{d}, the original verdict minus the one without")
    return found


def check_group(
    record: GroupRecord, *, adapter: str, policy_version: int, runtime: str, expected: dict[str, str]
) -> None:
    """Refuse a group sampled by another policy or under another runtime. ``expected``: further identities."""
    where, identities = f"group {record.uid}", record.identities
    for name, value in {"adapter": adapter, "runtime": runtime, **expected}.items():
        if getattr(identities, name) != value:
            raise _mismatch(where, f"identities.{name}", getattr(identities, name), value)
    if identities.policy_version != policy_version:
        raise _mismatch(where, "identities.policy_version", identities.policy_version, policy_version)


def _check_capture(where: str, capture: Capture, record: GroupRecord, item: TrajectoryRecord, position: int) -> None:
    turn = item.turns[position]
    ids = record.identities
    pairs: list[tuple[str, Any, Any]] = [
        ("trajectory_uid", capture.trajectory_uid, item.uid),
        ("decision", capture.decision, turn.decision),
        ("policy_version", capture.policy_version, ids.policy_version),
        ("seed", capture.seed, item.seed),
        ("sampling", capture.sampling, record.sampling),
        ("prompt_ids", len(capture.prompt_ids), turn.prompt_tokens),
        ("generated_ids", len(capture.generated_ids), turn.generated_tokens),
        ("is_policy_token", sum(capture.is_policy_token), turn.policy_tokens),
        ("attention", capture.attention, "all"),
        ("processor_inputs", capture.processor_inputs, {}),
    ]
    pairs += [(f"identities.{name}", capture.identities.get(name), getattr(ids, name)) for name in CAPTURE_IDENTITIES]
    for name, got, wanted in pairs:
        if got != wanted:
            raise _mismatch(where, name, got, wanted)


def _sequences(captures: Sequence[Capture]) -> tuple[TokenSequence, ...]:
    """Merge turns that carry their context verbatim."""
    open_ids: list[int] = []
    open_positions: list[int] = []
    done: list[TokenSequence] = []
    for capture in captures:
        prompt = capture.prompt_ids.tolist()
        if open_ids and prompt[: len(open_ids)] != open_ids:
            done.append(TokenSequence(tuple(open_ids), tuple(open_positions)))
            open_ids, open_positions = [], []
        open_ids = prompt + capture.generated_ids.tolist()
        start = len(prompt)
        open_positions += [start + offset for offset, keep in enumerate(capture.is_policy_token) if keep]
    if open_ids:
        done.append(TokenSequence(tuple(open_ids), tuple(open_positions)))
    return tuple(done)


def load_trajectories(
    group: UpdateGroup, record: GroupRecord, store: Any, *, vocabulary: int
) -> list[TrajectoryTokens]:
    """All slots of an eligible group, checked. Raises ``EngineFault`` for anything missing or different."""
    if record.advantages_G is None or not record.eligible:
        raise _mismatch(
            f"group {record.uid}", "eligible", record.ineligible_reason, "an eligible group with advantages"
        )
    blob = checked(store, group.capture_blob_sha256, "capture file")
    found = []
    for item, advantage in zip(record.trajectories, record.advantages_G, strict=True):
        where = f"trajectory {item.uid}"
        refs = [ref for ref in group.captures if ref.trajectory_uid == item.uid]
        wanted = [turn.capture_sha256 for turn in item.turns]
        if [ref.capture_sha256 for ref in refs] != wanted:
            raise _mismatch(where, "captures", len(refs), f"{len(wanted)} captures, those of its turns")
        try:
            captures = [Capture.from_bytes(data) for data in read_trajectory(blob, refs)]
        except ContractError as error:
            raise EngineFault(f"{where}: {error}") from error
        for position, capture in enumerate(captures):
            _check_capture(where, capture, record, item, position)
        found.append(_tokens(record, item, advantage, captures, wanted, vocabulary))
    return found


def _tokens(
    record: GroupRecord,
    item: TrajectoryRecord,
    advantage: float,
    captures: Sequence[Capture],
    hashes: Sequence[str],
    vocabulary: int,
) -> TrajectoryTokens:
    decisions: list[int] = []
    segments: list[int] = []
    logprobs: list[float] | None = []
    for capture in captures:
        kept = [offset for offset, keep in enumerate(capture.is_policy_token) if keep]
        decisions += [capture.decision] * len(kept)
        segments += [capture.segments[offset] for offset in kept]
        if capture.sampler_logprobs is None or logprobs is None:
            logprobs = None
        else:
            logprobs += [capture.sampler_logprobs[offset] for offset in kept]
    sequences = _sequences(captures)
    for sequence in sequences:
        if min(sequence.ids) < 0 or max(sequence.ids) >= vocabulary:
            raise _mismatch(
                f"trajectory {item.uid}", "ids", f"{min(sequence.ids)} to {max(sequence.ids)}", f"0 to {vocabulary - 1}"
            )
    return TrajectoryTokens(
        item.uid,
        record.uid,
        advantage,
        item.facts.fatal_start if item.facts is not None else None,
        sequences,
        tuple(decisions),
        None if logprobs is None else tuple(logprobs),
        tuple(hashes),
        tuple(segments),
    )


def split_minibatches(count: int, minibatches: int) -> list[list[int]]:
    """Positions 0 to count - 1 in ``minibatches`` contiguous parts of nearly equal size."""
    if not 1 <= minibatches <= count:
        raise EngineFault(f"minibatches: got {minibatches}, expected 1 to {count} (trajectories)")
    return [list(range(part * count // minibatches, (part + 1) * count // minibatches)) for part in range(minibatches)]


def partition(
    lengths: Sequence[int], members: Sequence[int], micro_batch: int, length_buckets: bool
) -> list[list[int]]:
    """Micro-batches of ``members``: in order, or by falling length so that padding is little."""
    order = sorted(members, key=lambda member: (-lengths[member], member)) if length_buckets else list(members)
    return [order[start : start + micro_batch] for start in range(0, len(order), micro_batch)]


def make_micro_batch(trajectories: Sequence[TrajectoryTokens], members: Sequence[int]) -> MicroBatch:
    """Padded tensors of some trajectories."""
    rows: list[tuple[int, ...]] = []
    owners: list[int] = []
    row_of: list[int] = []
    places: list[int] = []
    targets: list[int] = []
    for local, member in enumerate(members):
        for sequence in trajectories[member].sequences:
            row_of += [len(rows)] * len(sequence.positions)
            places += [position - 1 for position in sequence.positions]
            targets += [sequence.ids[position] for position in sequence.positions]
            owners.append(local)
            rows.append(sequence.ids)
    width = max((len(row) for row in rows), default=1)
    return MicroBatch(
        tuple(members),
        torch.tensor([list(row) + [0] * (width - len(row)) for row in rows], dtype=torch.long).view(len(rows), width),
        torch.tensor(row_of, dtype=torch.long),
        torch.tensor(places, dtype=torch.long),
        torch.tensor(targets, dtype=torch.long),
        torch.tensor(owners, dtype=torch.long),
        tuple(trajectories[member].tokens for member in members),
    )
