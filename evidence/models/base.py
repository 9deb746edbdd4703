"""Base of the evidence records: rows that only grow, each told by one receipt of its study's evidence stream."""

from __future__ import annotations

import datetime
import uuid
from typing import Any, ClassVar

from django.db import models

from workbench.contracts.chain import time_text
from workbench.db import AppendOnlyModel

STREAM = "evidence"  # evidence:<study uid>
_UNTOLD = frozenset({"id", "uid", "study", "actor", "at"})  # the receipt itself carries uid, actor and time


class EvidenceRecord(AppendOnlyModel):
    """One record. ``KIND`` names it in receipts; ``body`` is what its receipt says: every other column, canonical.

    Text, whole numbers, booleans, dates, lists and null: an evidence record holds no float, since a number is
    bound as it is written.
    """

    KIND: ClassVar[str] = ""

    uid = models.UUIDField(unique=True, editable=False)
    study = models.ForeignKey("runs.Study", models.PROTECT, related_name="+")
    actor = models.ForeignKey("runs.Actor", models.PROTECT, related_name="+")
    at = models.DateTimeField()

    class Meta(AppendOnlyModel.Meta):
        abstract = True

    def body(self) -> dict[str, Any]:
        """Column name -> value, references as uids; the same in every database that holds the record."""
        found: dict[str, Any] = {}
        for column in self._meta.concrete_fields:
            if column.name in _UNTOLD:
                continue
            value = getattr(self, column.name)
            found[column.name] = _told(value)
        return found


def _told(value: Any) -> Any:
    if isinstance(value, models.Model):
        return str(value.uid)  # type: ignore[attr-defined]  # every model that a record refers to has one
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, datetime.datetime):
        return time_text(value)
    if isinstance(value, datetime.date):
        return value.isoformat()
    return value


def stream_of(study: Any) -> str:
    """Name of the receipt stream that tells of a study's evidence."""
    return f"{STREAM}:{study.uid}"
