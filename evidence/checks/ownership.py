"""Steps 1 and 2: who and what a row says it is, where frozen bytes and receipts say it too.

Names of actors, studies and plans are bound by the uids that receipts carry; the state of a plan, who moved it,
when and why, by the receipts of its stream; its text and place by its frozen bytes.
"""

from __future__ import annotations

from typing import Any

from evidence.outward.foreign import foreign_streams
from evidence.report import StepLog
from runs.actions.actors import OWN_FAMILY, SERVICE_FAMILY
from runs.actions.plans import parse_plan_text
from runs.models import Actor, Anchor, Plan, PlanTransition, PlanVersion, Receipt, Study
from workbench.contracts.canonical import derive_uid, digest, parse_canonical
from workbench.contracts.spec import complete_plan

MOVES = {"plan.frozen": "frozen", "plan.superseded": "superseded"}
FAMILIES = {Actor.PERSON: OWN_FAMILY, Actor.SERVICE: SERVICE_FAMILY}  # of actors without a receipt of theirs


def check_actors(log: StepLog) -> None:
    """An actor's uid is derived from its kind and name, and every receipt names the uid; a family has its receipt."""
    told = {}
    for subject, data in Receipt.objects.filter(kind="actor.family").values_list("subject_uid", "bytes"):
        with log.reading("runs_receipt", subject):
            told[subject] = parse_canonical(bytes(data))["body"]["family"]
    for actor in Actor.objects.iterator(chunk_size=500):
        log.count()
        family = told.get(actor.uid, FAMILIES[actor.kind])
        expected = {"uid": derive_uid(None, f"actor:{actor.kind}:{actor.name}"), "family": family}
        log.compare("runs_actor", actor.uid, expected, actor)


def check_anchored(log: StepLog) -> None:
    """Closing an execution anchors all heads, its own at the closing receipt; a removed anchor is missed here."""
    closings = Receipt.objects.filter(kind="execution.closed").values_list("stream", "seq", "sha256")
    foreign = foreign_streams()
    missing = {item for item in closings if item[1] > foreign.get(item[0], 0)}  # the others' anchors are in a bundle
    log.count(len(missing))
    for anchor in Anchor.objects.iterator(chunk_size=100):
        with log.reading("runs_anchor", anchor.seq):
            missing -= {(stream, seq, sha256) for stream, seq, sha256 in parse_canonical(bytes(anchor.bytes))["heads"]}
    for stream, seq, _ in sorted(missing):
        log.problem("runs_anchor", f"{stream}#{seq}", "heads", expected="an anchor made at this closing", got=None)


def check_plan_rows(log: StepLog) -> None:
    """Studies and plans under their names; each plan's head and history against its receipts and its bytes."""
    for study in Study.objects.iterator(chunk_size=100):
        log.count()
        log.compare("runs_study", study.uid, {"uid": derive_uid(None, f"study:{study.slug}")}, study)
    for plan in Plan.objects.select_related("study").iterator(chunk_size=50):
        log.count()
        log.compare("runs_plan", plan.uid, {"uid": derive_uid(plan.study.uid, f"plan:{plan.slug}")}, plan)
        versions = list(PlanVersion.objects.filter(plan=plan).select_related("created_by").order_by("number"))
        newest = versions[-1] if versions else None
        log.compare("runs_plan", plan.uid, {"current_version_id": newest.pk if newest else None}, plan)
        _history(log, plan, versions)
        if newest is not None:
            with log.reading("runs_plan", plan.uid, "draft_text"):
                _bytes(log, plan, parse_canonical(bytes(newest.bytes))["plan"])


def _bytes(log: StepLog, plan: Plan, frozen: dict[str, Any]) -> None:
    log.compare("runs_plan", plan.uid, {"slug": frozen["name"], "study__slug": frozen["study"]}, plan)
    if digest(complete_plan(parse_plan_text(plan.draft_text))) != digest(frozen):
        log.problem("runs_plan", plan.uid, "draft_text", expected="the text that was frozen", got=plan.draft_text)


def _history(log: StepLog, plan: Plan, versions: list[PlanVersion]) -> None:
    """State, transitions and the version's maker are those of the receipts ``plan.frozen`` and ``plan.superseded``."""
    receipts = Receipt.objects.filter(stream=f"plan:{plan.uid}", kind__in=MOVES).select_related("actor").order_by("seq")
    by_uid = {version.uid: version for version in versions}
    rows = list(PlanTransition.objects.filter(plan=plan).select_related("actor").order_by("pk"))
    state = "draft"
    for number, receipt in enumerate(receipts):
        log.count()
        name = f"{receipt.stream}#{receipt.seq}"
        state = MOVES[receipt.kind]
        frozen = by_uid.get(receipt.subject_uid) if receipt.subject_uid else None
        expected = {"to_state": state, "actor_id": receipt.actor_id, "at": receipt.at}
        with log.reading("runs_receipt", name):
            body = parse_canonical(bytes(receipt.bytes))["body"]
            expected["reason"] = body["reason"] if state == "superseded" else "frozen"
        if state == "frozen":
            expected["version_id"] = frozen.pk if frozen else None
            if frozen is not None:
                made = {"created_by_id": receipt.actor_id, "created_at": receipt.at}
                log.compare("runs_planversion", frozen.uid, made, frozen)
        if number < len(rows):
            log.compare("runs_plantransition", rows[number].pk, expected, rows[number])
        else:
            log.problem("runs_plantransition", name, "to_state", expected=state, got=None)
    for row in rows[len(receipts) :]:
        log.problem("runs_plantransition", row.pk, "to_state", expected="a receipt of the move", got=row.to_state)
    log.compare("runs_plan", plan.uid, {"state": state}, plan)
