"""Sources: what a page stands on. Bytes by hash, held here or only claimed; versions replace, never overwrite."""

from __future__ import annotations

from django.db import models

from .base import EvidenceRecord


class Source(models.Model):
    """Head of a source: its path in the project, its newest version and the state of that version's bytes.

    ``reference``: the short name on pages (R1); unique in a study where it is given. ``state`` is a projection of
    the newest ``SourceCheck`` and of ``held``: verified (bytes held, hash recomputed and equal), drifted (held or
    watched bytes differ), missing (held once, gone now), claimed (a hash recorded elsewhere, bytes not held).
    Older versions are superseded by definition.
    """

    VERIFIED, DRIFTED, MISSING, CLAIMED = "verified", "drifted", "missing", "claimed"
    STATES = (VERIFIED, DRIFTED, MISSING, CLAIMED)
    UPLOAD, WATCHED, GIT, RECEIPT, CLOSURE, EXPORT, IMPORTED = (
        "upload", "watched", "git", "receipt", "closure", "export", "imported",
    )  # fmt: skip
    ORIGINS = (UPLOAD, WATCHED, GIT, RECEIPT, CLOSURE, EXPORT, IMPORTED)
    FORMS = ("text", "markdown", "latex", "json", "jsonl", "csv", "pdf", "binary")

    uid = models.UUIDField(unique=True, editable=False)
    study = models.ForeignKey("runs.Study", models.PROTECT, related_name="sources")
    path = models.CharField(max_length=500)
    reference = models.CharField(max_length=32, blank=True, default="")
    title_en = models.CharField(max_length=300, blank=True, default="")
    title_zh = models.CharField(max_length=300, blank=True, default="")
    form = models.CharField(max_length=16)
    origin = models.CharField(max_length=16)
    current = models.ForeignKey("evidence.SourceVersion", models.PROTECT, null=True, related_name="+")
    state = models.CharField(max_length=16, default=CLAIMED)
    checked_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["study", "path"], name="source_path_unique"),
            models.UniqueConstraint(
                fields=["study", "reference"], name="source_reference_unique", condition=~models.Q(reference="")
            ),
            models.CheckConstraint(
                name="source_state_known", condition=models.Q(state__in=["verified", "drifted", "missing", "claimed"])
            ),
        ]
        indexes = [models.Index(fields=["study", "state"], name="source_by_state")]

    def __str__(self) -> str:
        return self.reference or self.path


class SourceVersion(EvidenceRecord):
    """The bytes of a source at one time: ``sha256`` and, where ``held``, the blob of that name.

    ``size`` None: not recorded by whoever recorded the hash. ``cutoff``: the day up to which it knows anything.
    ``commit``: full id of the git commit that it was read from. ``reason``: why it replaces the version before.
    """

    KIND = "source_version"

    source = models.ForeignKey(Source, models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    sha256 = models.CharField(max_length=64, db_index=True)
    size = models.PositiveBigIntegerField(null=True)
    media_type = models.CharField(max_length=100)
    held = models.BooleanField()
    captured_at = models.DateTimeField()
    cutoff = models.DateField(null=True)
    commit = models.CharField(max_length=64, blank=True, default="")
    note = models.TextField(blank=True, default="")
    reason = models.TextField(blank=True, default="")

    class Meta(EvidenceRecord.Meta):
        constraints = [models.UniqueConstraint(fields=["source", "number"], name="source_version_number_unique")]

    def __str__(self) -> str:
        return f"{self.source} version {self.number}"


class SourceCheck(EvidenceRecord):
    """A check of a version's bytes that found another state than the one before it. ``found``: the hash, or none."""

    KIND = "source_check"

    version = models.ForeignKey(SourceVersion, models.PROTECT, related_name="checks")
    state = models.CharField(max_length=16)
    found_sha256 = models.CharField(max_length=64, blank=True, default="")
    note = models.TextField(blank=True, default="")

    class Meta(EvidenceRecord.Meta):
        indexes = [models.Index(fields=["version", "-id"], name="source_check_newest")]


class WatchedFolder(models.Model):
    """A folder whose files become sources. ``root`` names a folder that the settings allow; ``path`` lies below it."""

    study = models.ForeignKey("runs.Study", models.PROTECT, related_name="watched_folders")
    root = models.CharField(max_length=64)
    path = models.CharField(max_length=500, blank=True, default="")
    enabled = models.BooleanField(default=True)
    scanned_at = models.DateTimeField(null=True)
    trouble = models.TextField(blank=True, default="")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["study", "root", "path"], name="watched_folder_unique")]
