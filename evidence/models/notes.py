"""The notes page, the acceptance contract, the journal and the signed heads."""

from __future__ import annotations

from django.db import models

from workbench.db import AppendOnlyModel

from .base import EvidenceRecord


class NotesVersion(EvidenceRecord):
    """One version of a study's notes. ``document_sha256``: the canonical JSON blob that ``evidence.notes`` reads.

    ``imported``: a record of other people's work. ``live_cutoff``: the record ends on that day and never guesses on.
    """

    KIND = "notes_version"

    number = models.PositiveIntegerField()
    document_sha256 = models.CharField(max_length=64)
    page_date = models.DateField()
    cutoff = models.DateField(null=True)
    manuscript = models.CharField(max_length=200, blank=True, default="")
    imported = models.BooleanField(default=False)
    reason = models.TextField(blank=True, default="")

    class Meta(EvidenceRecord.Meta):
        constraints = [models.UniqueConstraint(fields=["study", "number"], name="notes_version_number_unique")]


class AcceptanceContract(EvidenceRecord):
    """What was accepted, and as what: ``assurance`` draft is no readiness; results binds a manuscript's hash."""

    KIND = "acceptance"

    status = models.CharField(max_length=16)  # proposed, accepted, withdrawn
    assurance = models.CharField(max_length=16)  # draft, results
    manuscript_sha256 = models.CharField(max_length=64, blank=True, default="")
    text_en = models.TextField(blank=True, default="")
    text_zh = models.TextField(blank=True, default="")


class JournalDay(EvidenceRecord):
    """The draft of one day from receipts: ``lines`` [{kind, text_en, text_zh, receipt}], ``upto`` {stream: seq}.

    A day may be drafted again while it lasts; the newest draft counts and the older ones stay.
    """

    KIND = "journal_day"

    day = models.DateField()
    number = models.PositiveIntegerField()
    lines = models.JSONField()
    upto = models.JSONField()

    class Meta(EvidenceRecord.Meta):
        constraints = [models.UniqueConstraint(fields=["study", "day", "number"], name="journal_day_unique")]


class JournalNote(EvidenceRecord):
    """What a person adds to a day."""

    KIND = "journal_note"

    day = models.DateField()
    text = models.TextField()
    language = models.CharField(max_length=16)

    class Meta(EvidenceRecord.Meta):
        indexes = [models.Index(fields=["study", "day"], name="journal_note_by_day")]


class SignedHead(AppendOnlyModel):
    """An Ed25519 signature over an anchor and its count of receipts; ``bytes`` are exactly what was signed."""

    anchor = models.ForeignKey("runs.Anchor", models.PROTECT, related_name="signatures")
    fingerprint = models.CharField(max_length=64)
    bytes = models.BinaryField()
    signature = models.BinaryField()
    at = models.DateTimeField()


class TimeStamp(AppendOnlyModel):
    """An RFC 3161 token over a signed head."""

    head = models.ForeignKey(SignedHead, models.PROTECT, related_name="time_stamps")
    server = models.CharField(max_length=300)
    token = models.BinaryField()
    at = models.DateTimeField()
