"""Notes: a version is saved whole or refused; an acceptance contract says what was accepted, and as what."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import Any

from django.db import transaction

from evidence.actions.record import append, lock_evidence, record_uid
from evidence.binding.tokens import check_pieces, check_text
from evidence.models import AcceptanceContract, Claim, Figure, NotesVersion, Source, SourceVersion
from evidence.notes.read import KIND, current
from evidence.notes.schema import Fault, NotesInvalid, normalise
from evidence.notes.texts import leaves, texts_of
from runs.errors import DomainError, StaleTransition
from runs.models import Actor, Study
from runs.storage import blob_store, reference_blobs
from workbench.contracts.canonical import canonical_bytes, sha256_hex

REASON_MOST = 2000
STATUSES = ("proposed", "accepted", "withdrawn")
DRAFT, RESULTS = "draft", "results"
_SHA256 = re.compile(r"[0-9a-f]{64}")


def _known(study: Study) -> dict[str, set[str]]:
    """Keys of figures and claims, references of sources."""
    return {
        "figure": set(Figure.objects.filter(study=study).values_list("key", flat=True)),
        "claim": set(Claim.objects.filter(study=study).values_list("key", flat=True)),
        "source": set(Source.objects.filter(study=study).exclude(reference="").values_list("reference", flat=True)),
    }


_NAMES = {
    "figure": "figure", "figure?": "figure", "keys": "figure", "claim": "claim", "claims": "claim", "refs": "source",
}  # fmt: skip


def _unknown(document: Mapping[str, Any], known: Mapping[str, set[str]]) -> list[Fault]:
    """Keys and labels that name nothing in the study. Texts are looked at by ``said``."""
    found = []
    for path, kind, value in leaves(document):
        what = _NAMES.get(kind)
        if what is None or value is None:
            continue
        for at, key in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if key not in known[what]:
                place = path if at is None else f"{path}.{at}"
                found.append(Fault(place, repr(key), f"a {what} of this study; add it first, or correct the key"))
    return found


def _said(document: Mapping[str, Any], known: Mapping[str, set[str]]) -> list[Fault]:
    """What the texts may not say: bare numbers, unknown figures and sources, names that are not declared."""
    declared = {item["text"] for item in document["names"]}
    return [
        Fault(path, *_two(trouble.message))
        for path, language, text in texts_of(document)
        for trouble in check_pieces(text, language, figures=known["figure"], references=known["source"], names=declared)
    ]


def _two(message: str) -> tuple[str, str]:
    """(got, expected) of a message of the form "field: got value, expected what" or "…; expected what"."""
    got, expected = re.split(r"[,;] expected ", message, maxsplit=1)
    return got.partition(": got ")[2], expected


def check_document(study: Study, document: Any) -> tuple[dict[str, Any], list[Fault]]:
    """(complete document, faults of what it names and says). Raises ``NotesInvalid`` for faults of its form."""
    found = normalise(document)
    if found["study"] != study.slug:
        raise NotesInvalid([Fault("study", repr(found["study"]), f"{study.slug}, the study that it is saved in")])
    known = _known(study)
    return found, [*_unknown(found, known), *_said(found, known)]


def save_notes(
    study: Study, document: Any, *, by: Actor, at: datetime.datetime, reason: str = "", base: int | None = None
) -> NotesVersion:
    """Append the next version of a study's notes; a document equal to the newest one returns that one.

    ``base``: the number of the version that the author began from; another one saved meanwhile raises
    ``StaleTransition``. Raises ``NotesInvalid`` with every fault, ``DomainError`` without a reason to replace.
    """
    complete, faults = check_document(study, document)
    if faults:
        raise NotesInvalid(faults)
    data = canonical_bytes(complete)
    sha256 = sha256_hex(data)
    with transaction.atomic():
        lock_evidence(study)
        before = current(study)
        if before is not None and before.document_sha256 == sha256:
            return before
        number = before.number if before else 0
        if base is not None and base != number:
            raise StaleTransition(
                f"base: got {base}, expected {number}: another version was saved meanwhile; look at the difference, "
                "take over what you need, and save again"
            )
        text = reason.strip()
        if (before is not None and not text) or len(text) > REASON_MOST or "\x00" in text:
            raise DomainError(
                f"reason: got {len(text)} characters, expected 1 to {REASON_MOST}: why version {number} is replaced"
            )
        store = blob_store()
        store.put(data)
        reference_blobs({sha256: KIND}, store=store)
        return append(_row(study, complete, sha256, number + 1, text, by, at))


def _row(
    study: Study, document: Mapping[str, Any], sha256: str, number: int, reason: str, by: Actor, at: datetime.datetime
) -> NotesVersion:
    cutoff = document["cutoff"]
    return NotesVersion(
        uid=record_uid(study.uid, NotesVersion.KIND, str(number)),
        study=study,
        actor=by,
        at=at,
        number=number,
        document_sha256=sha256,
        page_date=datetime.date.fromisoformat(document["page_date"]),
        cutoff=None if cutoff is None else datetime.date.fromisoformat(cutoff),
        manuscript=(document["manuscript"]["en"] or document["manuscript"]["zh"])[:200],
        imported=document["imported"] is not None,
        reason=reason,
    )


def accept_contract(
    study: Study,
    *,
    status: str,
    assurance: str,
    by: Actor,
    at: datetime.datetime,
    manuscript_sha256: str = "",
    text_en: str = "",
    text_zh: str = "",
) -> AcceptanceContract:
    """Record what was accepted, and as what. Accepting a draft is no readiness.

    ``results`` needs the hash of a source of the study: the manuscript that it binds. Raises ``DomainError``.
    """
    if status not in STATUSES:
        raise DomainError(f"status: got {status[:80]!r}, expected one of {', '.join(STATUSES)}")
    if assurance not in (DRAFT, RESULTS):
        raise DomainError(f"assurance: got {assurance[:80]!r}, expected {DRAFT} or {RESULTS}")
    if manuscript_sha256 and not _SHA256.fullmatch(manuscript_sha256):
        raise DomainError(f"manuscript_sha256: got {manuscript_sha256[:80]!r}, expected 64 hexadecimal characters")
    if assurance == RESULTS and not manuscript_sha256:
        raise DomainError(
            "manuscript_sha256: got nothing, expected the hash of the manuscript: a contract on results binds one"
        )
    known = SourceVersion.objects.filter(source__study=study, sha256=manuscript_sha256)
    if manuscript_sha256 and not known.exists():
        raise DomainError(
            f"manuscript_sha256: got {manuscript_sha256[:12]}…, expected the hash of a source of this study; "
            "add the manuscript as a source first"
        )
    for language, text in (("en", text_en), ("zh", text_zh)):
        for trouble in check_text(study, text, language):
            raise DomainError(f"text_{language}: {trouble}")
    with transaction.atomic():
        lock_evidence(study)
        number = AcceptanceContract.objects.filter(study=study).count() + 1
        row = AcceptanceContract(
            uid=record_uid(study.uid, AcceptanceContract.KIND, str(number)), study=study, actor=by, at=at,
            status=status, assurance=assurance, manuscript_sha256=manuscript_sha256, text_en=text_en.strip(),
            text_zh=text_zh.strip(),
        )  # fmt: skip
        return append(row)
