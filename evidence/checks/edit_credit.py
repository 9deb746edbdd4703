"""Step 6, credit from edits: every coefficient computed again from the trials record that the update names.

Written apart from the engine. With A the advantage, L the policy tokens of a trajectory, m those of the selected turn::

    B   s * lambda * D on every token             M   s * lambda * D * L / m on the selected turn's
    E   clip(lambda * A * L / m, -c, c) there     s = min(1, c / |lambda * D * L / m|), 1 where D is 0
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evidence.report import StepLog
from runs.models import Document, Group
from workbench.contracts.canonical import sha256_hex
from workbench.contracts.errors import ContractError
from workbench.contracts.records import EditCreditRecord, TrajectoryCredit, UpdateRecord
from workbench.contracts.trials import TRIALS, GroupTrials, InterventionRecord, trials_uid
from workbench.contracts.wire import parse_record

ARMS = {"edit_broadcast": "B", "edit_localised": "M", "edit_terminal": "E"}
NEAR = 1e-9  # relative to the larger of 1 and the value
Terms = dict[str, NDArray[Any]]  # added coefficient of each policy token, by trajectory


def check_edit_credit(log: StepLog, record: UpdateRecord, decisions: Mapping[str, Sequence[int]]) -> Terms | None:
    """Compare the update's edit records with its trials; the coefficients, None for an arm without credit from edits.

    ``decisions``: decision of each policy token by trajectory, from its turns.
    """
    arm = ARMS.get(record.objective["credit"])
    if arm is None:
        strangers = [item.trajectory_uid for item in record.credits if item.edit is not None]
        if strangers or record.edit_only_group_uids:
            log.problem("runs_trajectorycredit", f"{record.uid} {strangers or record.edit_only_group_uids}", "edit",
                        expected=None, got="credit from edits")  # fmt: skip
        return None
    found: Terms = {}
    tried = _interventions(log, record)
    for credit in record.credits:
        log.count()
        own = np.asarray(decisions.get(credit.trajectory_uid, ()), np.int64)
        item = tried.get(credit.trajectory_uid)
        if item is None:
            log.problem("runs_trajectorycredit", f"{record.uid} {credit.trajectory_uid}", "edit",
                        expected="an intervention in the trials that the update names", got=None)  # fmt: skip
            continue
        expected, found[credit.trajectory_uid] = term_of(arm, credit, own, item, record.objective)
        _compare(log, record, credit, expected)
    _groups(log, record)
    return found


def _interventions(log: StepLog, record: UpdateRecord) -> dict[str, InterventionRecord]:
    """By trajectory, of the trials documents whose hashes the update names."""
    found: dict[str, InterventionRecord] = {}
    for group_uid in record.trained_group_uids:
        if group_uid not in record.trials:
            log.problem("runs_updatebatch", record.uid, f"trials.{group_uid}", expected="a trials record", got=None)
    for group_uid, sha256 in record.trials.items():
        log.count()
        document = Document.objects.filter(kind=TRIALS, subject_uid=trials_uid(group_uid)).first()
        got = None if document is None else sha256_hex(bytes(document.bytes))
        if document is None or got != sha256:
            log.problem("runs_updatebatch", record.uid, f"trials.{group_uid}", expected=sha256, got=got)
            continue
        try:
            trials = parse_record(GroupTrials, bytes(document.bytes))
        except ContractError as error:
            log.problem("runs_document", str(document.subject_uid), "bytes", expected="a trials record", got=str(error))
            continue
        if trials.group_uid == group_uid:
            found |= {item.trajectory_uid: item for item in trials.interventions}
    return found


def term_of(
    arm: str, credit: TrajectoryCredit, decisions: NDArray[Any], item: InterventionRecord, objective: Mapping[str, Any]
) -> tuple[EditCreditRecord, NDArray[Any]]:
    """(the record that the update must hold, the coefficient of each policy token)."""
    chosen = np.zeros(len(decisions), bool) if item.selected is None else decisions == item.selected
    tokens, count = len(decisions), int(chosen.sum())
    weight, cap = float(objective["edit_weight"]), float(objective["edit_cap"])
    difference = None if arm == "E" else item.difference
    missing = item.selected is None if arm == "E" else difference is None
    added, shrinkage, capped = np.zeros(tokens), None, False
    status = item.status if missing else ("applied" if count else "no_selected_token")
    if status == "applied" and arm == "E":
        raw = weight * credit.advantage * tokens / count
        added, capped = np.where(chosen, np.clip(raw, -cap, cap), 0.0), abs(raw) > cap
    elif status == "applied":
        value = weight * float(difference or 0.0)
        size = abs(value * tokens / count)
        shrinkage = 1.0 if size == 0 else min(1.0, cap / size)
        capped = shrinkage < 1.0
        local = np.where(chosen, shrinkage * value * tokens / count, 0.0)
        added = local if arm == "M" else np.full(tokens, shrinkage * value)
    expected = EditCreditRecord(
        arm, status, item.selected, tokens, count, difference, shrinkage, capped, float(added.sum()),
        float(np.abs(added).sum()), float((added * added).sum()),
    )  # fmt: skip
    return expected, added


def _compare(log: StepLog, record: UpdateRecord, credit: TrajectoryCredit, expected: EditCreditRecord) -> None:
    name = f"{record.uid} {credit.trajectory_uid}"
    if credit.edit is None:
        log.problem("runs_trajectorycredit", name, "edit", expected=expected.status, got=None)
        return
    for column in (item.name for item in dataclasses.fields(EditCreditRecord)):
        want, got = getattr(expected, column), getattr(credit.edit, column)
        same = want == got
        if isinstance(want, float) and isinstance(got, float):
            same = abs(want - got) <= NEAR * max(1.0, abs(want))
        if not same:
            log.problem("runs_trajectorycredit", name, f"edit.{column}", expected=want, got=got)


def _groups(log: StepLog, record: UpdateRecord) -> None:
    """Groups without variance that were trained are those that the update counts apart."""
    rows = Group.objects.filter(uid__in=record.trained_group_uids).exclude(signal="signal")
    wanted = {str(uid) for uid in rows.values_list("uid", flat=True)}
    if wanted != set(record.edit_only_group_uids):
        log.problem("runs_updatebatch", record.uid, "edit_only_group_uids", expected=sorted(wanted),
                    got=sorted(record.edit_only_group_uids))  # fmt: skip
    moved = {item.group_uid for item in record.credits if item.edit is not None and item.edit.l1_mass > 0}
    for uid in sorted(set(record.edit_only_group_uids) - moved):
        log.problem("runs_updatebatch", record.uid, f"edit_only_group_uids.{uid}", expected="a coefficient", got=0)
