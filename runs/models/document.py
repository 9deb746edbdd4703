"""Canonical bytes of records: what every projected row is proved against."""

from __future__ import annotations

from django.db import models

from workbench.db import AppendOnlyModel


class Document(AppendOnlyModel):
    """The exact RFC 8785 bytes of one record. ``kind``: group, update, item_manifest, run_manifest, closure, ..."""

    kind = models.CharField(max_length=64)
    subject_uid = models.UUIDField()
    sha256 = models.CharField(max_length=64, db_index=True)
    bytes = models.BinaryField()

    class Meta(AppendOnlyModel.Meta):
        constraints = [models.UniqueConstraint(fields=["kind", "subject_uid"], name="document_subject_unique")]
