"""Steps 16 and 17: notes documents, journals and signed heads."""

from __future__ import annotations

from typing import Any

from evidence.actions.signing import check_signed
from evidence.models import JournalDay, NotesVersion, SignedHead
from evidence.report import StepLog
from runs.models import Anchor, Receipt, Study
from workbench.blobs import BlobError, BlobStore
from workbench.contracts.canonical import parse_canonical

CHUNK = 200


def check_notes(log: StepLog, store: BlobStore) -> None:
    """Every version's document hashes to its name and is canonical; the newest one binds every number that it says."""
    newest = {row.study_id: row.pk for row in NotesVersion.objects.order_by("number")}
    for notes in NotesVersion.objects.select_related("study").order_by("pk").iterator(chunk_size=CHUNK):
        log.count()
        try:
            data = store.get(notes.document_sha256)
        except (BlobError, ValueError) as error:
            log.problem(
                "evidence_notesversion", notes.uid, "document_sha256", expected=notes.document_sha256, got=str(error)
            )
            continue
        with log.reading("evidence_notesversion", notes.uid, "document"):
            document = parse_canonical(data)
            columns = {"page_date": document["page_date"], "cutoff": document["cutoff"]}
            for name, value in columns.items():
                stored = getattr(notes, name)
                if (stored.isoformat() if stored else None) != value:
                    log.problem("evidence_notesversion", notes.uid, name, expected=value, got=stored)
            if notes.imported != (document["imported"] is not None):
                log.problem(
                    "evidence_notesversion", notes.uid, "imported", expected=not notes.imported, got=notes.imported
                )
            if newest[notes.study_id] == notes.pk:
                _says(log, notes.study, document)


def _says(log: StepLog, study: Study, document: Any) -> None:
    """What the newest document names exists, and its texts hold no number that is not bound."""
    from evidence.actions.notes import check_document

    _complete, faults = check_document(study, document)
    for fault in faults:
        log.problem("evidence_notesversion", study.slug, fault.path, expected=fault.expected, got=fault.got)


def check_journal(log: StepLog) -> None:
    """Each line of a journal names a receipt that exists, or none."""
    for day in JournalDay.objects.select_related("study").order_by("pk").iterator(chunk_size=CHUNK):
        log.count()
        with log.reading("evidence_journalday", day.uid, "lines"):
            wanted = {line["receipt"] for line in day.lines if line.get("receipt")}
            known = set(Receipt.objects.filter(sha256__in=list(wanted)[:900]).values_list("sha256", flat=True))
            for sha256 in sorted(set(list(wanted)[:900]) - known):
                log.problem("evidence_journalday", day.uid, "lines", expected="a receipt", got=sha256)


def check_signed_heads(log: StepLog) -> None:
    """Every signature holds and speaks of its anchor as it is stored; receipts reach as far as it says.

    Anchors are signed in their order, so that one without a signature before one that has it has lost its own.
    """
    for head in SignedHead.objects.select_related("anchor").order_by("pk").iterator(chunk_size=CHUNK):
        log.count()
        trouble = check_signed(head)
        if trouble:
            expected = "a signature over this anchor"
            log.problem("evidence_signedhead", f"anchor {head.anchor.seq}", "signature", expected=expected, got=trouble)
    signed = SignedHead.objects.order_by("-anchor__seq").values_list("anchor__seq", flat=True).first() or 0
    lost = Anchor.objects.filter(seq__lt=signed, signatures__isnull=True).order_by("seq")
    for seq in lost.values_list("seq", flat=True):
        log.problem("evidence_signedhead", f"anchor {seq}", "signature", expected="a signature", got=None)
