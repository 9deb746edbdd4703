"""What each export of a study holds, counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import Sum

from evidence.actions.signing import newest_head
from evidence.models import Claim, Figure, NotesVersion, SignedHead, Source, SourceVersion
from evidence.outward.keys import fingerprint, signing_key
from runs.models import PlanVersion, StreamHead, Study
from workbench.contracts.canonical import parse_canonical


@dataclass(frozen=True)
class Holdings:
    """Counts of what an export would hold now."""

    streams: int
    receipts: int
    plans: int
    sources: int
    held: int
    figures: int
    claims: int
    notes: int


def holdings(study: Study) -> Holdings:
    """Counts, one query each."""
    heads = StreamHead.objects.filter(study=study, seq__gt=0)
    return Holdings(
        heads.count(), heads.aggregate(n=Sum("seq"))["n"] or 0, PlanVersion.objects.filter(plan__study=study).count(),
        Source.objects.filter(study=study).count(),
        SourceVersion.objects.filter(study=study, held=True).values("sha256").distinct().count(),
        Figure.objects.filter(study=study).count(), Claim.objects.filter(study=study).count(),
        NotesVersion.objects.filter(study=study).count(),
    )  # fmt: skip


@dataclass(frozen=True)
class Signing:
    """The key of this home, and how far the newest signature reaches. ``head`` None: nothing is signed yet.

    ``receipts``: of the study; those of other studies are not counted here.
    """

    fingerprint: str
    head: SignedHead | None
    receipts: int
    beyond: int
    stamps: int
    server: str


def signing(study: Study) -> Signing:
    """``beyond``: receipts of the study that were written after the newest signed anchor."""
    name, head = fingerprint(signing_key(settings.HOME).public_key()), newest_head()
    if head is None:
        total = StreamHead.objects.filter(study=study).aggregate(n=Sum("seq"))["n"] or 0
        return Signing(name, None, 0, total, 0, settings.TSA_URL)
    value: dict[str, Any] = parse_canonical(bytes(head.bytes))
    covered = {stream: count for stream, count, _sha256 in value["heads"]}
    streams = list(StreamHead.objects.filter(study=study, seq__gt=0).values_list("stream", "seq"))
    own = sum(min(seq, covered.get(stream, 0)) for stream, seq in streams)
    beyond = sum(max(0, seq - covered.get(stream, 0)) for stream, seq in streams)
    return Signing(name, head, own, beyond, head.time_stamps.count(), settings.TSA_URL)
