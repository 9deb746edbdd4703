"""Steps 4 and 7, trials: rows against their documents, and everything that a document says computed again.

Written apart from the engine: blocks, eligibility, the draw and the tree without the block from the kept snapshots;
U and D from observations in whole fractions; original verdicts from the rewards of the group's own record. What only
the environment knows (which path is a test, how actions lead to trees) is played again in step 10.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from evidence.report import StepLog
from runs import projection_trials as projection
from runs.actions.plans import plan_body
from runs.actions.record_group import GROUP, parse_group
from runs.actions.record_trials import TRIALS_RECORDED, TRIALS_UNAVAILABLE, parse_trials
from runs.models import Document, Group, Intervention, Receipt, Trial, TrialSet, UpdateBatch
from workbench.blobs import BlobError, BlobStore
from workbench.contracts import layout
from workbench.contracts.canonical import parse_canonical
from workbench.contracts.errors import RecordError
from workbench.contracts.records import POLICY_ERROR, VALID, GroupRecord, TrajectoryRecord
from workbench.contracts.seeds import derive_seed
from workbench.contracts.trials import (
    AVAILABLE,
    EXECUTE,
    FACTUAL_REPLAY,
    FORMAT_ERROR,
    INTERVENTION,
    INTERVENTION_REPEAT,
    NO_CHANGE,
    NO_ELIGIBLE_BLOCK,
    NO_ORIGINAL_UTILITY,
    ORIGINAL,
    OVERWRITTEN,
    PASSED,
    SELECTED,
    TEST_PATHS_ONLY,
    TRIAL_INCOMPLETE,
    TRIALS,
    EditBlockRecord,
    GroupTrials,
    InterventionRecord,
    Snapshots,
    TrialRecord,
    read_snapshots,
    tree_digest,
)

CHUNK = 50
Tree = Mapping[str, str]
Difference = tuple[str, Any, Any]  # column, expected, got


# --- step 4 ---------------------------------------------------------------------------------------


def check_trial_rows(log: StepLog) -> None:
    """Sets, interventions and trials equal their documents and receipts; none is missing or extra."""
    timed = _timings()
    for document in Document.objects.filter(kind=TRIALS).order_by("id").iterator(chunk_size=CHUNK):
        with log.reading("runs_trialset", document.subject_uid):
            _set(log, document, timed)
    known = Document.objects.filter(kind=TRIALS).values("subject_uid")
    for row in TrialSet.objects.exclude(uid__in=known).only("uid").iterator(chunk_size=CHUNK):
        log.problem("runs_trialset", row.uid, "uid", expected=f"a document of kind {TRIALS}", got=None)
    _complete(log)


def _timings() -> dict[str, list[Any]]:
    """Seconds of every execution as receipts tell them, by trial uid."""
    found: dict[str, list[Any]] = {}
    rows = Receipt.objects.filter(kind__in=(TRIALS_RECORDED, TRIALS_UNAVAILABLE)).values_list("bytes", flat=True)
    for data in rows.iterator(chunk_size=CHUNK):
        for uid, *seconds in parse_canonical(bytes(data))["body"].get("timings", []):
            found[uid] = seconds
    return found


def _set(log: StepLog, document: Document, timed: Mapping[str, list[Any]]) -> None:
    from evidence.checks.rows import match

    record = parse_trials(bytes(document.bytes))
    row = TrialSet.objects.select_related("group", "run", "plan_version").filter(uid=document.subject_uid).first()
    log.count()
    if row is None:
        log.problem("runs_trialset", document.subject_uid, "uid", expected="one row", got=None)
        return
    expected = {
        **projection.trial_set_columns(record),
        "record_sha256": document.sha256,
        "group__uid": uuid.UUID(record.group_uid),
        "plan_version__sha256": record.plan_sha256,
        "run_id": row.group.run_id,
        "plan_version_id": row.group.plan_version_id,
    }
    log.compare("runs_trialset", row.uid, expected, row)
    interventions = Intervention.objects.filter(trial_set=row).select_related("trajectory")
    match(
        log, "runs_intervention", row.uid,
        {item.trajectory_uid: projection.intervention_columns(item) for item in record.interventions},
        ((str(item.trajectory.uid), item) for item in interventions),
    )  # fmt: skip
    match(
        log, "runs_trial", row.uid,
        {
            item.uid: {
                **projection.trial_columns(item), "trajectory__uid": uuid.UUID(item.trajectory_uid),
                **dict(zip(projection.TIMES, timed.get(item.uid, [None] * len(projection.TIMES)), strict=True)),
            }
            for item in record.trials
        },
        ((str(item.uid), item) for item in Trial.objects.filter(trial_set=row).select_related("trajectory")),
    )  # fmt: skip


def _complete(log: StepLog) -> None:
    """Every group that an update took, of an arm that the plan has tried, has its trials."""
    for update in UpdateBatch.objects.select_related("run__arm", "run__plan_version").iterator(chunk_size=CHUNK):
        run = update.run
        if run.plan_version is None or run.arm is None:
            continue
        with log.reading("runs_updatebatch", update.uid):
            if layout.trial_settings(plan_body(run.plan_version), "train", run.arm.key) is None:
                continue
            log.count()
            without = Group.objects.filter(consumed__update=update, trial_set=None)
            for uid in without.values_list("uid", flat=True):
                log.problem(
                    "runs_trialset", uid, "group", expected="the trials of a group that was trained on", got=None
                )


# --- step 7 ---------------------------------------------------------------------------------------


def check_trial_numbers(log: StepLog, store: BlobStore) -> None:
    """Every document against the group that it speaks of, and against its own snapshots and observations."""
    for document in Document.objects.filter(kind=TRIALS).order_by("id").iterator(chunk_size=CHUNK):
        with log.reading("runs_trialset", document.subject_uid):
            record = parse_trials(bytes(document.bytes))
            found = Document.objects.filter(kind=GROUP, subject_uid=record.group_uid).first()
            group = Group.objects.select_related("plan_version", "run__arm").filter(uid=record.group_uid).first()
            if found is None or group is None:
                log.problem("runs_trialset", record.uid, "group", expected="a recorded group", got=None)
                continue
            log.count()
            for column, expected, got in _context(record, group):
                if expected != got:
                    log.problem("runs_trialset", record.uid, column, expected=expected, got=got)
            _numbers(log, record, parse_group(bytes(found.bytes)), _snapshots(record, store))


def _context(record: GroupTrials, group: Group) -> Iterator[Difference]:
    body, run = plan_body(group.plan_version), group.run
    arm = None if run is None or run.arm is None else run.arm.key
    yield "plan_sha256", group.plan_version.sha256, record.plan_sha256
    yield "purpose", group.purpose, record.purpose
    yield "ordinal", group.ordinal, record.ordinal
    yield "settings", layout.trial_settings(body, group.purpose, arm), record.settings
    yield "seed", layout.trial_seed(body, None if run is None else run.seed), record.seed
    yield "verifier", str(body["bindings"]["environment"].get("verifier") or ""), record.verifier


def _snapshots(record: GroupTrials, store: BlobStore) -> Snapshots | None:
    if record.snapshots_sha256 is None:
        return None
    try:
        return read_snapshots(store.get(record.snapshots_sha256))
    except (BlobError, ValueError):
        return None  # step 5 names it


def _numbers(log: StepLog, record: GroupTrials, group: GroupRecord, snapshots: Snapshots | None) -> None:
    uids = [item.uid for item in group.trajectories]
    if [item.trajectory_uid for item in record.interventions] != uids:
        log.problem("runs_trialset", record.uid, "interventions", expected=uids, got="other trajectories")
        return
    for trial in record.trials:
        log.count()
        for column, expected, got in _trial(trial, record):
            if expected != got:
                log.problem("runs_trial", trial.uid, column, expected=expected, got=got)
    for item, trajectory in zip(record.interventions, group.trajectories, strict=True):
        log.count()
        trials = [trial for trial in record.trials if trial.trajectory_uid == item.trajectory_uid]
        for column, expected, got in _intervention(item, trajectory, trials, record, snapshots):
            if expected != got:
                log.problem("runs_intervention", item.trajectory_uid, column, expected=expected, got=got)


def _value(trial: TrialRecord, record: GroupTrials) -> Fraction | None:
    """U from observations; None where a test of the lists has none."""
    status = {item.test: item.status for item in trial.observed}
    if not record.fail_to_pass or any(name not in status for name in (*record.fail_to_pass, *record.pass_to_pass)):
        return None
    passed = [name for name in record.fail_to_pass if status[name] == PASSED]
    harmed = {name for name in record.pass_to_pass if status[name] != PASSED}
    return Fraction(len(passed), len(record.fail_to_pass)) - bool(harmed)


def _trial(trial: TrialRecord, record: GroupTrials) -> Iterator[Difference]:
    value = _value(trial, record) if trial.complete else None
    yield "complete", value is not None, trial.complete
    yield "utility", None if value is None else float(value), trial.utility
    yield "success", None if value is None else value == 1, trial.success
    executed = trial.kind != ORIGINAL
    yield "stdout_sha256", executed and bool(trial.level), trial.stdout_sha256 is not None


def _intervention(
    item: InterventionRecord,
    trajectory: TrajectoryRecord,
    trials: Sequence[TrialRecord],
    record: GroupTrials,
    snapshots: Snapshots | None,
) -> Iterator[Difference]:
    by_kind = {kind: [trial for trial in trials if trial.kind == kind] for kind in _KINDS}
    original, without = (next(iter(by_kind[kind]), None) for kind in (ORIGINAL, INTERVENTION))
    tokens = {turn.decision: turn.policy_tokens for turn in trajectory.turns}
    yield "policy_tokens", sum(tokens.values()), item.policy_tokens
    yield "selected_tokens", None if item.selected is None else tokens.get(item.selected), item.selected_tokens
    if record.unavailable is not None:
        yield "status", _untried(trajectory), item.status
        return
    yield from _original(trajectory, original, record)
    yield "status", _status(item, trajectory, original, without, record), item.status
    known = [None if trial is None or not trial.complete else _value(trial, record) for trial in (original, without)]
    first, second = known
    yield "original_utility", None if first is None else float(first), item.original_utility
    yield "without_utility", None if second is None else float(second), item.without_utility
    gap = None if first is None or second is None or item.status != AVAILABLE else float(first - second)
    yield "difference", gap, item.difference
    yield "replays", _agreeing(original, by_kind[FACTUAL_REPLAY]), (item.replays_agree, item.replays)
    yield "repeats", _agreeing(without, by_kind[INTERVENTION_REPEAT]), (item.repeats_agree, item.repeats)
    final, other = item.final_tree_sha256, item.without_tree_sha256
    trees = {ORIGINAL: final, FACTUAL_REPLAY: final, INTERVENTION: other, INTERVENTION_REPEAT: other}
    for kind, tree in trees.items():
        for trial in by_kind[kind]:
            yield f"{kind} tree_sha256", tree, trial.tree_sha256
    if trajectory.status == VALID and snapshots is not None:
        yield from _selection(item, trajectory, record, snapshots)


_KINDS = (ORIGINAL, INTERVENTION, FACTUAL_REPLAY, INTERVENTION_REPEAT)


def _untried(trajectory: TrajectoryRecord) -> str:
    if trajectory.reward is None:
        return NO_ORIGINAL_UTILITY
    return FORMAT_ERROR if trajectory.terminal == POLICY_ERROR else TRIAL_INCOMPLETE


def _original(trajectory: TrajectoryRecord, original: TrialRecord | None, record: GroupTrials) -> Iterator[Difference]:
    """The original verdict is the reward's own, test for test."""
    parts = () if trajectory.reward is None else trajectory.reward.components
    told = next((part.detail for part in parts if "observed" in part.detail), None)
    if told is None or original is None:
        yield "original", told is None, original is None
        return
    said = {
        item.test: item.status if item.cause is None else f"{item.status}:{item.cause}" for item in original.observed
    }
    yield "original observed", told["observed"], said
    yield "original verifier", told.get("verifier"), record.verifier
    yield "original tree_sha256", told.get("tree_sha256"), original.tree_sha256


def _status(
    item: InterventionRecord,
    trajectory: TrajectoryRecord,
    original: TrialRecord | None,
    without: TrialRecord | None,
    record: GroupTrials,
) -> str:
    if trajectory.status != VALID:
        return NO_ORIGINAL_UTILITY
    if trajectory.terminal == POLICY_ERROR:
        return FORMAT_ERROR
    if not any(block.eligible for block in item.blocks):
        return NO_ELIGIBLE_BLOCK
    if record.settings["mode"] != EXECUTE:
        return SELECTED
    if original is None:
        return NO_ORIGINAL_UTILITY
    return AVAILABLE if without is not None and without.complete else TRIAL_INCOMPLETE


def _agreeing(first: TrialRecord | None, others: Sequence[TrialRecord]) -> tuple[int, int]:
    known = [{item.test: item.status for item in trial.observed} for trial in others if trial.complete]
    if first is None or not first.complete:
        return 0, len(known)
    return known.count({item.test: item.status for item in first.observed}), len(known)


def _selection(
    item: InterventionRecord, trajectory: TrajectoryRecord, record: GroupTrials, snapshots: Snapshots
) -> Iterator[Difference]:
    """Blocks, eligibility, the draw, the tree without the block: from the kept trees and the seed alone."""
    try:
        trees = snapshots.trees(item.trajectory_uid)
    except RecordError:
        yield "final_tree_sha256", "trees among the snapshots", None
        return
    yield "blocks", len(trajectory.turns) + 1, len(trees)
    yield "final_tree_sha256", tree_digest(trees[-1]), item.final_tree_sha256
    changes = {
        k: {path for path in {*old, *new} if old.get(path) != new.get(path)}
        for k, (old, new) in enumerate(pairwise(trees))
    }
    yield "blocks", [k for k, paths in changes.items() if paths], [block.decision for block in item.blocks]
    for block in item.blocks:
        yield from _block(block, trees, changes)
    format_error = trajectory.terminal == POLICY_ERROR
    eligible = sorted(block.decision for block in item.blocks if block.eligible)
    drawn = None
    if eligible and not format_error:
        drawn = eligible[int(derive_seed("edit-block", record.seed, trajectory.seed)) % len(eligible)]
    yield "selected", drawn, item.selected
    yield from _without(item, trees, drawn, changes)


def _block(block: EditBlockRecord, trees: Sequence[Tree], changes: Mapping[int, set[str]]) -> Iterator[Difference]:
    k, paths = block.decision, sorted(changes.get(block.decision, set()))
    if k + 1 >= len(trees):
        return  # the list of decisions has been named already
    where = f"blocks[{k}]"
    yield f"{where}.paths", paths, list(block.paths)
    yield f"{where}.before", {path: trees[k].get(path) for path in paths}, block.before
    yield f"{where}.after", {path: trees[k + 1].get(path) for path in paths}, block.after
    later = set().union(*(touched for decision, touched in changes.items() if decision > k))
    overwritten = bool(later & set(paths))
    restored = {path: trees[k].get(path) for path in paths}
    same = all(trees[-1].get(path) == sha256 for path, sha256 in restored.items())
    if block.reason != TEST_PATHS_ONLY:  # which paths are tests: step 10
        expected = OVERWRITTEN if overwritten else NO_CHANGE if same else None
        yield f"{where}.reason", expected, block.reason


def _without(
    item: InterventionRecord, trees: Sequence[Tree], drawn: int | None, changes: Mapping[int, set[str]]
) -> Iterator[Difference]:
    first, final = trees[0], trees[-1]
    changed = {path for path in {*first, *final} if first.get(path) != final.get(path)}
    yield "final_paths", len(changed), item.final_paths
    if drawn is None:
        yield "without_tree_sha256", None, item.without_tree_sha256
        yield "touched_share", None, item.touched_share
        return
    tree = {path: sha256 for path, sha256 in final.items() if path not in changes[drawn]}
    tree |= {path: sha256 for path, sha256 in trees[drawn].items() if path in changes[drawn]}
    share = len(changed & changes[drawn]) / len(changed) if changed else None
    yield "without_tree_sha256", tree_digest(tree), item.without_tree_sha256
    yield "touched_share", share, item.touched_share
    yield "is_empty_patch", tree == dict(first), item.is_empty_patch
