"""Step 3: documents are canonical and hash to their name; receipts name documents that are there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evidence.outward.foreign import foreign_streams
from evidence.report import StepLog
from runs.models import Document, PlanVersion, Receipt
from workbench.contracts.canonical import parse_canonical, sha256_hex

CHUNK = 100


def check_documents(log: StepLog) -> None:
    """Each document against its own hash, then each receipt against what it recorded."""
    for document in Document.objects.iterator(chunk_size=CHUNK):
        log.count()
        name = f"{document.kind}:{document.subject_uid}"
        with log.reading("runs_document", name):
            data = bytes(document.bytes)  # raises where the column holds text
            log.compare("runs_document", name, {"sha256": sha256_hex(data)}, document)
            parse_canonical(data)
    foreign = foreign_streams()
    for receipt in Receipt.objects.order_by("id").iterator(chunk_size=CHUNK):
        name = f"{receipt.stream}#{receipt.seq}"
        with log.reading("runs_receipt", name):
            for kind, subject, sha256 in recorded(receipt.kind, parse_canonical(bytes(receipt.bytes))):
                if kind != "plan" and receipt.seq <= foreign.get(receipt.stream, 0):
                    continue  # its documents stay in the bundle
                log.count()
                found = _stored(kind, subject)
                if found != sha256:
                    log.problem("runs_document", f"{kind}:{subject}", "sha256", expected=sha256, got=found)


def _stored(kind: str, subject: str) -> str | None:
    if kind == "plan":
        return PlanVersion.objects.filter(uid=subject).values_list("sha256", flat=True).first()
    return Document.objects.filter(kind=kind, subject_uid=subject).values_list("sha256", flat=True).first()


def recorded(kind: str, value: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(document kind, subject uid, sha256) of everything that a receipt says was recorded."""
    body = value["body"]
    if kind in ("shard.collected", "shard.lost"):
        for uid, record_sha256, _ in body["groups"]:
            yield "group", uid, record_sha256
    elif kind in ("update.applied", "update.skipped"):
        yield "update", body["update"], body["record_sha256"]
    elif kind == "probe.recorded":
        yield "probe", body["probe"], body["record_sha256"]
    elif kind in ("trials.recorded", "trials.unavailable") and "trials" in body:
        yield "trials", body["trials"], body["record_sha256"]
    elif kind == "controls.recorded":
        yield "controls", body["controls"], body["record_sha256"]
    elif kind == "branch.recorded":
        yield "branch", body["branch"], body["record_sha256"]
    elif kind == "execution.closed":
        yield "closure", value["subject"], body["manifest_sha256"]
    elif kind == "plan.frozen":
        yield "plan", value["subject"], body["plan_sha256"]
