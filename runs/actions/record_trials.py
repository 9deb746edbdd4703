"""Record the trials of a group: document and rows, and what a receipt says of them."""

from __future__ import annotations

import math
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from runs import projection_trials as projection
from runs.actions.documents import AlreadyRecorded, store_document
from runs.actions.plans import plan_body
from runs.models import Group, Intervention, Run, Trajectory, Trial, TrialSet
from runs.storage import blob_store, reference_blobs
from workbench.blobs import BlobStore
from workbench.contracts import layout
from workbench.contracts.canonical import sha256_hex
from workbench.contracts.errors import RecordError
from workbench.contracts.records import POLICY_ERROR, PREFLIGHT, TRAIN
from workbench.contracts.trials import (
    AVAILABLE,
    EXECUTE,
    FACTUAL_REPLAY,
    FORMAT_ERROR,
    INTERVENTION,
    KINDS,
    NO_ELIGIBLE_BLOCK,
    NO_ORIGINAL_UTILITY,
    ORIGINAL,
    SELECT,
    SELECTED,
    STATUSES,
    TRIAL_INCOMPLETE,
    TRIALS,
    GroupTrials,
    InterventionRecord,
    TrialRecord,
    TrialsResult,
    status_of,
    trial_uid,
    trials_uid,
    utility_of_statuses,
)
from workbench.contracts.wire import parse_record, record_bytes

TRIALS_JOB, TRIALS_QUEUE = "run_trials", "trial"
TRIALS_RECORDED, TRIALS_UNAVAILABLE = "trials.recorded", "trials.unavailable"  # kinds of receipts
SNAPSHOTS = "snapshots"  # kind of the blob
ROUNDING = 1e-12  # verdicts are fractions, stored as floats


def parse_trials(data: bytes) -> GroupTrials:
    """The record of canonical bytes, with its inner relations checked. Raises ``RecordError``."""
    record = parse_record(GroupTrials, data)
    if record.purpose not in (PREFLIGHT, TRAIN):
        raise RecordError(f"purpose: got {record.purpose!r}, expected preflight or train")
    if record.uid != trials_uid(record.group_uid):
        raise RecordError(f"uid: got {record.uid}, expected {trials_uid(record.group_uid)}")
    if set(record.settings) != {"mode", "replays", "repeats"} or record.settings["mode"] not in (EXECUTE, SELECT):
        raise RecordError(f"settings: got {record.settings}, expected mode, replays and repeats")
    slots = [item.slot for item in record.interventions]
    if not slots or slots != list(range(len(slots))):
        raise RecordError(f"interventions: got slots {slots}, expected 0 to G - 1 in order")
    for item in record.interventions:
        _check_intervention(item)
    uids = {item.trajectory_uid for item in record.interventions}
    for trial in record.trials:
        _check_trial(trial, record, uids)
    if len({trial.uid for trial in record.trials}) != len(record.trials):
        raise RecordError("trials: got one twice, expected each once")
    return record


def _check_intervention(item: InterventionRecord) -> None:
    where = f"interventions[{item.slot}]"
    if item.status not in STATUSES:
        raise RecordError(f"{where}.status: got {item.status!r}, expected one of {', '.join(STATUSES)}")
    if (item.difference is not None) != (item.status == AVAILABLE):
        raise RecordError(f"{where}.difference: got {item.difference} with {item.status}, expected one where available")
    eligible = {block.decision for block in item.blocks if block.eligible}
    chosen, never = item.selected is not None, item.status in (FORMAT_ERROR, NO_ELIGIBLE_BLOCK)
    if (chosen and never) or (not chosen and item.status in (AVAILABLE, SELECTED)):
        raise RecordError(
            f"{where}.selected: got {item.selected} with {item.status}, expected one where one was chosen"
        )
    if item.selected is not None and item.selected not in eligible:
        raise RecordError(f"{where}.selected: got {item.selected}, expected an eligible block of {sorted(eligible)}")
    if any((block.reason is None) != block.eligible for block in item.blocks):
        raise RecordError(f"{where}.blocks: expected a reason exactly where a block is not eligible")
    for name in ("original_utility", "without_utility", "difference", "touched_share"):
        value = getattr(item, name)
        if value is not None and not math.isfinite(value):
            raise RecordError(f"{where}.{name}: got {value}, expected a finite number or none")


def _check_trial(trial: TrialRecord, record: GroupTrials, uids: set[str]) -> None:
    where = f"trials[{trial.uid}]"
    if trial.kind not in KINDS or trial.trajectory_uid not in uids:
        raise RecordError(f"{where}: got {trial.kind} of {trial.trajectory_uid}, expected one of the group's slots")
    expected = trial_uid(trial.trajectory_uid, trial.kind, trial.repeat)
    if trial.uid != expected:
        raise RecordError(f"{where}.uid: expected {expected}")
    if trial.verifier != record.verifier:
        raise RecordError(f"{where}.verifier: got {trial.verifier}, expected {record.verifier}: one in a group")
    known = (trial.utility is not None, trial.success is not None, trial.unknown is None)
    if known != (trial.complete,) * 3:
        raise RecordError(
            f"{where}: got complete {trial.complete} with {known}, expected a verdict or why there is none"
        )


def check_verdicts(record: GroupTrials) -> None:
    """Every trial is of its intervention's tree, every U that of its observations, every D of the two verdicts.

    Asked before anything is stored. ``parse_trials`` leaves it out: ``verify`` names each difference by its column.
    Raises ``RecordError``.
    """
    interventions = {item.trajectory_uid: item for item in record.interventions}
    told: dict[tuple[str, str], float | None] = {}
    for trial in record.trials:
        where, item = f"trials[{trial.uid}]", interventions[trial.trajectory_uid]
        is_final = trial.kind in (ORIGINAL, FACTUAL_REPLAY)
        tree = item.final_tree_sha256 if is_final else item.without_tree_sha256
        if trial.tree_sha256 != tree:
            which = "the final tree" if is_final else "the tree without the block"
            raise RecordError(f"{where}.tree_sha256: got {trial.tree_sha256}, expected {tree}, {which}")
        value = None
        if trial.complete:
            value = utility_of_statuses(status_of(trial), record.fail_to_pass, record.pass_to_pass)
        if not _same(trial.utility, None if value is None else float(value)):
            raise RecordError(f"{where}.utility: got {trial.utility}, expected {value} from its observations")
        if trial.kind in (ORIGINAL, INTERVENTION):
            told[(trial.trajectory_uid, trial.kind)] = trial.utility
    for item in record.interventions:
        first, second = (told.get((item.trajectory_uid, kind)) for kind in (ORIGINAL, INTERVENTION))
        known = item.status == AVAILABLE and first is not None and second is not None
        for name, got, expected in (
            ("original_utility", item.original_utility, first),
            ("without_utility", item.without_utility, second),
            ("difference", item.difference, (first or 0.0) - (second or 0.0) if known else None),
        ):
            if not _same(got, expected):
                raise RecordError(f"interventions[{item.slot}].{name}: got {got}, expected {expected} from its trials")


def _same(got: float | None, expected: float | None) -> bool:
    if got is None or expected is None:
        return got is expected
    return abs(got - expected) <= ROUNDING


def record_trials(
    *,
    group: Group,
    run: Run | None,
    result: TrialsResult,
    waited_s: float = 0.0,
    at: datetime,
    store: BlobStore | None = None,
) -> TrialSet:
    """Insert document and rows of the trials of one group. Call inside ``transaction.atomic()``.

    ``waited_s``: how long the job waited to be claimed; timings stand in rows and are hashed in receipts alone.
    Raises ``RecordError`` where record, hashes and context disagree, ``BlobMissing`` without the snapshots,
    ``AlreadyRecorded`` for a group that was tried.
    """
    data = result.record_json.encode()
    if sha256_hex(data) != result.record_sha256:
        raise RecordError(f"record_sha256: got {result.record_sha256}, expected {sha256_hex(data)}")
    record = parse_trials(data)
    rows = _check_context(record, group, run)
    timings = {item.trial_uid: item for item in result.timings}
    executed = {trial.uid for trial in record.trials if trial.kind != ORIGINAL}
    if set(timings) != executed or len(result.timings) != len(executed):
        raise RecordError(f"timings: got {len(result.timings)}, expected one for each of {len(executed)} executions")
    check_verdicts(record)
    if TrialSet.objects.filter(group=group).exists():
        raise AlreadyRecorded(f"trials {record.uid}: got them a second time, expected them once")
    if record.snapshots_sha256 is not None:
        reference_blobs({record.snapshots_sha256: SNAPSHOTS}, store=store or blob_store())
    store_document(TRIALS, record.uid, data)
    made = TrialSet.objects.create(
        **projection.trial_set_columns(record), group=group, run=run, plan_version=group.plan_version,
        record_sha256=result.record_sha256, created_at=at,
    )  # fmt: skip
    Intervention.objects.bulk_create(
        Intervention(
            trial_set=made, trajectory=rows[uuid.UUID(item.trajectory_uid)], **projection.intervention_columns(item)
        )
        for item in record.interventions
    )
    Trial.objects.bulk_create(
        Trial(
            trial_set=made,
            trajectory=rows[uuid.UUID(item.trajectory_uid)],
            **projection.trial_columns(item),
            **projection.timing_columns(timings.get(item.uid), waited_s),
        )
        for item in record.trials
    )
    return made


def _check_context(record: GroupTrials, group: Group, run: Run | None) -> dict[uuid.UUID, Trajectory]:
    """Rows of the group's trajectories by uid; the record speaks of this group, as its plan asks."""
    body = plan_body(group.plan_version)
    settings = layout.trial_settings(body, group.purpose, None if run is None or run.arm is None else run.arm.key)
    owner = layout.execution_uid(str(group.plan_version.uid)) if run is None else str(run.uid)
    rows = list(Trajectory.objects.filter(group=group).order_by("slot"))
    for field, got, expected in (
        ("group_uid", record.group_uid, str(group.uid)),
        ("run_uid", record.run_uid, owner),
        ("plan_sha256", record.plan_sha256, group.plan_version.sha256),
        ("ordinal", record.ordinal, group.ordinal),
        ("purpose", record.purpose, group.purpose),
        ("settings", record.settings, settings),
        ("interventions", [item.trajectory_uid for item in record.interventions], [str(row.uid) for row in rows]),
        ("policy_tokens", [item.policy_tokens for item in record.interventions], [row.policy_tokens for row in rows]),
    ):
        if got != expected:
            raise RecordError(f"{field}: got {got}, expected {expected}")
    seed = layout.trial_seed(body, None if run is None else run.seed)
    if record.seed != seed:
        raise RecordError(f"seed: got {record.seed}, expected {seed}")
    return {row.uid: row for row in rows}


def unavailable_trials(group: Group, run: Run | None, state: str) -> GroupTrials:
    """The record of a group whose job ended in ``state`` without an answer: no intervention, no trial.

    What made a job fail stands in its receipt; the record holds no text that may name a machine.
    """
    body = plan_body(group.plan_version)
    settings = layout.trial_settings(body, group.purpose, None if run is None or run.arm is None else run.arm.key)
    if settings is None:
        raise RecordError(f"group {group.uid}: got trials, expected none: the plan asks for none here")
    rows = Trajectory.objects.filter(group=group).order_by("slot")
    return GroupTrials(
        uid=trials_uid(str(group.uid)),
        group_uid=str(group.uid),
        run_uid=layout.execution_uid(str(group.plan_version.uid)) if run is None else str(run.uid),
        plan_sha256=group.plan_version.sha256,
        ordinal=group.ordinal,
        purpose=group.purpose,
        verifier=str(body["bindings"]["environment"].get("verifier") or ""),
        seed=layout.trial_seed(body, None if run is None else run.seed),
        settings=settings,
        fail_to_pass=(),
        pass_to_pass=(),
        snapshots_sha256=None,
        unavailable=f"job {state}",
        interventions=tuple(_untried(row) for row in rows),
        trials=(),
    )


def _untried(row: Trajectory) -> InterventionRecord:
    status = TRIAL_INCOMPLETE
    if row.reward_total is None:
        status = NO_ORIGINAL_UTILITY
    elif row.terminal == POLICY_ERROR:
        status = FORMAT_ERROR
    return InterventionRecord(
        trajectory_uid=str(row.uid), slot=row.slot, status=status, detail=None, blocks=(), selected=None,
        policy_tokens=row.policy_tokens, selected_tokens=None, final_tree_sha256=None, without_tree_sha256=None,
        final_paths=None, touched_share=None, is_empty_patch=None, original_utility=None, without_utility=None,
        difference=None, replays_agree=0, replays=0, repeats_agree=0, repeats=0,
    )  # fmt: skip


def unavailable_result(group: Group, run: Run | None, state: str) -> TrialsResult:
    """``unavailable_trials`` as an answer that ``record_trials`` takes."""
    data = record_bytes(unavailable_trials(group, run, state))
    return TrialsResult(data.decode(), sha256_hex(data), 0, (), {})


def isolation_levels(trials: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The different levels of isolation among trials, each once, in order of their first use."""
    found: list[dict[str, Any]] = []
    for level in trials:
        if level and dict(level) not in found:
            found.append(dict(level))
    return found


def trials_body(made: TrialSet) -> dict[str, Any]:
    """What a receipt says: hashes, counts by status, the level of isolation, and each execution's timings."""
    rows = list(Trial.objects.filter(trial_set=made).order_by("pk"))
    executed = [row for row in rows if row.kind != ORIGINAL]
    statuses = Counter(made.interventions.values_list("status", flat=True))
    return {
        "trials": str(made.uid),
        "record_sha256": made.record_sha256,
        "group": str(made.group.uid),
        "purpose": made.purpose,
        "ordinal": made.ordinal,
        "verifier": made.verifier,
        "mode": made.mode,
        "interventions": dict(sorted(statuses.items())),
        "executed": len(executed),
        "incomplete": sum(not row.complete for row in executed),
        "levels": isolation_levels(row.level for row in executed),
        "timings": [[str(row.uid), *(getattr(row, name) for name in projection.TIMES)] for row in executed],
    }
