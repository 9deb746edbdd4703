"""Sources: taken in, read, checked again. A version replaces the one before it and never overwrites it."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections import Counter
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

from django.conf import settings
from django.db import transaction

from evidence.actions.record import append, lock_evidence, record_uid
from evidence.ingest.names import OWN, form_of, media_type_of, reference_name, source_path
from evidence.ingest.roots import place, read_file
from evidence.models import Excerpt, Source, SourceCheck, SourceVersion, WatchedFolder, stream_of
from runs.actions.receipts import append_receipt
from runs.errors import DomainError
from runs.models import Actor, Study
from runs.storage import blob_store, reference_blobs
from workbench.blobs import BlobCorrupt, BlobMissing

KIND = "source"  # in the ledger of blobs
DESCRIBED = "source.described"  # receipt: what a source is called, and what form its newest bytes have
REASON_LEAST, TEXT_MOST = 3, 4000
WATCHED_FILE = "the watched file"
BYTES_ARE_HERE = "the bytes are held now; their hash is the one that was recorded"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_COMMIT = re.compile(r"|[0-9a-f]{40}|[0-9a-f]{64}")


class BytesUnavailable(DomainError):
    """The bytes of a version cannot be read here: never held, gone, or no longer those of its hash."""


@dataclass(frozen=True)
class Found:
    """What a look at a version's bytes gave. ``sha256``: of the bytes that differ or match; empty without bytes."""

    state: str
    sha256: str = ""
    note: str = ""


def _text(name: str, value: str, most: int = TEXT_MOST) -> str:
    found = value.strip()
    if len(found) > most or "\x00" in found:
        raise DomainError(f"{name}: got {len(found)} characters, expected at most {most} without U+0000")
    return found


def _identity(data: bytes | None, sha256: str, size: int | None) -> tuple[str, int | None]:
    """(hash, size) of a version. Raises ``DomainError`` where what was stated is not what the bytes say."""
    if sha256 and not _SHA256.fullmatch(sha256):
        raise DomainError(f"sha256: got {sha256[:80]!r}, expected 64 lower-case hexadecimal digits")
    if size is not None and not 0 <= size < 2**53:
        raise DomainError(f"size: got {size}, expected 0 to 2**53 - 1")
    if data is None:
        if not sha256:
            raise DomainError("sha256: got nothing, expected the recorded hash of bytes that are not given")
        return sha256, size
    if len(data) > settings.SOURCE_LIMIT:
        raise DomainError(f"bytes: got {len(data)}, expected at most {settings.SOURCE_LIMIT}")
    found = hashlib.sha256(data).hexdigest()
    if sha256 and found != sha256:
        raise DomainError(f"sha256: got {sha256}, expected {found}, the hash of the bytes that were given")
    if size is not None and size != len(data):
        raise DomainError(f"size: got {size}, expected {len(data)}, the length of the bytes that were given")
    return found, len(data)


def _describe(source: Source, given: dict[str, str], *, by: Actor, at: datetime) -> None:
    """Set what a source is called; a receipt says so where anything is new. Raises for a reference that is taken."""
    new = {name: value for name, value in given.items() if value and getattr(source, name) != value}
    reference = new.get("reference")
    if reference and Source.objects.filter(study=source.study, reference=reference).exclude(pk=source.pk).exists():
        raise DomainError(f"reference: got {reference}, which another source of this study has, expected a free one")
    if source.pk and not new:
        return
    for name, value in new.items():
        setattr(source, name, value)
    source.save()
    names = ("path", "reference", "title_en", "title_zh", "form", "origin")
    append_receipt(
        stream_of(source.study), DESCRIBED, source.uid, {name: getattr(source, name) for name in names}, actor=by, at=at
    )


def add_source(
    study: Study,
    path: str,
    data: bytes | None,
    *,
    origin: str,
    by: Actor,
    at: datetime,
    sha256: str = "",
    size: int | None = None,
    form: str = "",
    media_type: str = "",
    reference: str = "",
    title_en: str = "",
    title_zh: str = "",
    cutoff: date | None = None,
    captured_at: datetime | None = None,
    commit: str = "",
    note: str = "",
    reason: str = "",
) -> SourceVersion:
    """Take in a source, or the next version of the one at ``path``; returns the version that is current then.

    ``data`` None: only its hash is recorded (claimed). The hash of the current version again adds nothing, and
    puts back bytes that had drifted or gone. Another hash is a new version: ``reason`` says why, and everything
    that rests on the old one is marked stale. Raises ``DomainError`` naming the field.
    """
    if origin not in Source.ORIGINS:
        raise DomainError(f"origin: got {origin[:80]!r}, expected one of {', '.join(Source.ORIGINS)}")
    if not _COMMIT.fullmatch(commit):
        raise DomainError(f"commit: got {commit[:80]!r}, expected the full id of a commit, or nothing")
    path, (sha256, size) = source_path(path), _identity(data, sha256, size)
    if path.startswith(f"{OWN}/") and origin in (Source.UPLOAD, Source.WATCHED, Source.GIT):
        raise DomainError(f"path: got {path[:120]!r}, expected one outside {OWN}/, which holds our own records")
    form = form_of(path, data, form)
    named = {
        "reference": reference_name(reference),
        "title_en": _text("title_en", title_en, 300),
        "title_zh": _text("title_zh", title_zh, 300),
    }
    row = SourceVersion(
        study=study, actor=by, at=at, sha256=sha256, size=size, media_type=media_type_of(form, media_type),
        held=data is not None, captured_at=captured_at or at, cutoff=cutoff, commit=commit, note=_text("note", note),
        reason=_text("reason", reason),
    )  # fmt: skip
    if data is not None:
        blob_store().put(data)  # before the transaction, which on SQLite holds the only write lock
    with transaction.atomic():
        lock_evidence(study)
        if data is not None:
            reference_blobs({sha256: KIND}, store=blob_store())
        source = Source.objects.select_related("current", "study").filter(study=study, path=path).first()
        if source is None:
            uid = record_uid(study.uid, "source", path)
            source = Source(uid=uid, study=study, path=path, form=form, origin=origin, created_at=at)
        elif source.current is not None and source.current.sha256 == sha256 and (source.current.held or data is None):
            _describe(source, named, by=by, at=at)
            if data is not None and source.state != Source.VERIFIED:
                check_version(source.current, by=by, at=at)
            return source.current
        return _next(source, row, {**named, "form": form, "origin": origin}, by=by, at=at)


def _next(source: Source, row: SourceVersion, given: dict[str, str], *, by: Actor, at: datetime) -> SourceVersion:
    """Append ``row`` as the newest version. Called with the study's evidence locked."""
    old = source.current
    same_bytes = old is not None and old.sha256 == row.sha256
    if same_bytes and not row.reason:
        row.reason = BYTES_ARE_HERE
    if old is not None and len(row.reason) < REASON_LEAST:
        raise DomainError(
            f"reason: got {row.reason[:80]!r}, expected why these bytes replace version {old.number} "
            f"({old.sha256[:12]}): they differ"
        )
    source.state, source.checked_at = (Source.VERIFIED, row.at) if row.held else (Source.CLAIMED, None)
    _describe(source, given, by=by, at=at)
    row.source, row.number = source, (old.number if old else 0) + 1
    row.uid = record_uid(source.uid, "source_version", f"{row.number}:{row.sha256}")
    append(row)
    source.current = row
    source.save(update_fields=["current", "state", "checked_at"])
    if old is not None:
        _look_again(source, at=at)
        if not same_bytes:
            from evidence.actions.stale import mark_changed

            mark_changed("source", source.uid, f"superseded: {row.reason}"[:TEXT_MOST], by=by, at=at)
        _compute_again("source", source.uid, source.study, by=by, at=at)
        if old.held and SourceCheck.objects.filter(version=old).exists():
            check_version(old, by=by, at=at)  # a watched file no longer speaks against it
    return row


def read_version(version: SourceVersion) -> bytes:
    """The bytes of a version, hashed again. Raises ``BytesUnavailable``."""
    if not version.held:
        raise BytesUnavailable(f"bytes: got only the hash {version.sha256} of {version}, expected bytes held here")
    try:
        return blob_store().get(version.sha256)
    except BlobMissing as error:
        raise BytesUnavailable(f"bytes: got none for {version.sha256}, expected those of {version}") from error
    except BlobCorrupt as error:
        raise BytesUnavailable(f"bytes: got others under {version.sha256}, expected those of {version}") from error


def held_digest(version: SourceVersion) -> str | None:
    """SHA-256 of the bytes that lie under a held version's name; None where none do."""
    try:
        with blob_store().path(version.sha256).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None


def lying_bytes(version: SourceVersion) -> bytes | None:
    """The bytes that lie under a version's name, whatever they hash to; None where none do."""
    try:
        return blob_store().path(version.sha256).read_bytes()
    except FileNotFoundError:
        return None


def watched_bytes(source: Source) -> bytes | None:
    """What the watched file of a source holds now; None where it is gone. Raises ``DomainError`` where unreadable."""
    name, _slash, relative = source.path.partition("/")
    try:
        found = place(name, relative)
    except DomainError:
        if not settings.WATCH_ROOTS.get(name, Path()).joinpath(relative).exists():
            return None
        raise
    return read_file(found, settings.SOURCE_LIMIT)


def is_watched(source: Source) -> bool:
    """Whether this process may look at the file that a source was read from, and a folder that is watched holds it."""
    name, _slash, relative = source.path.partition("/")
    if source.origin != Source.WATCHED or name not in settings.WATCH_ROOTS:
        return False
    folders = WatchedFolder.objects.filter(study=source.study, root=name, enabled=True).values_list("path", flat=True)
    return any(not folder or relative.startswith(f"{folder}/") for folder in folders)


def examine(version: SourceVersion, last: SourceCheck | None) -> Found:
    """Look at a version's bytes, and at the watched file where it is the newest; writes nothing.

    Where this process cannot see the watched file, a drift that was found before stands.
    """
    if not version.held:
        return Found(Source.CLAIMED)
    digest = held_digest(version)
    if digest is None:
        return Found(Source.MISSING, note="the store holds no bytes of this hash")
    if digest != version.sha256:
        return Found(Source.DRIFTED, digest, "the held bytes hash to something else")
    source = version.source
    if source.origin != Source.WATCHED or source.current_id != version.pk:
        return Found(Source.VERIFIED, digest)
    if not is_watched(source):
        drifted = last is not None and last.state == Source.DRIFTED and last.found_sha256 != version.sha256
        return (
            Found(Source.DRIFTED, last.found_sha256, last.note) if last and drifted else Found(Source.VERIFIED, digest)
        )
    try:
        data = watched_bytes(source)
    except DomainError as error:
        return Found(Source.DRIFTED, "", f"{WATCHED_FILE} cannot be read: {error}"[:TEXT_MOST])
    if data is None:
        return Found(Source.DRIFTED, "", f"{WATCHED_FILE} is gone; the held bytes are unchanged")
    now = hashlib.sha256(data).hexdigest()
    if now != version.sha256:
        return Found(Source.DRIFTED, now, f"{WATCHED_FILE} has changed; the held bytes are unchanged")
    return Found(Source.VERIFIED, digest)


def check_version(version: SourceVersion, *, by: Actor, at: datetime) -> str:
    """Hash a version's bytes again; returns its state.

    Appends a ``SourceCheck`` where it differs from the check before, projects the source's state, looks for the
    version's excerpts again, and marks what rests on it stale, or heals it once the bytes are back.
    """
    with transaction.atomic():
        lock_evidence(version.study)
        source = Source.objects.get(pk=version.source_id)
        version.source = source
        last = SourceCheck.objects.filter(version=version).order_by("-id").first()
        found = examine(version, last)
        initial = (Source.VERIFIED, version.sha256) if version.held else (Source.CLAIMED, "")
        before = (last.state, last.found_sha256) if last else initial
        if source.current_id == version.pk:
            source.state, source.checked_at = found.state, at
            source.save(update_fields=["state", "checked_at"])
        if (found.state, found.sha256) != before:
            number = SourceCheck.objects.filter(version=version).count() + 1
            append(
                SourceCheck(
                    uid=record_uid(version.uid, "source_check", f"{number}:{found.state}:{found.sha256}"),
                    study=version.study, actor=by, at=at, version=version, state=found.state,
                    found_sha256=found.sha256, note=found.note,
                )
            )  # fmt: skip
            _follow(version, found, by=by, at=at)
    return found.state


def _look_again(source: Source, *, at: datetime) -> None:
    """Search every excerpt of a source in its newest bytes."""
    from evidence.actions.excerpts import check_excerpt

    for excerpt in Excerpt.objects.filter(version__source=source).select_related("version__source").order_by("pk"):
        check_excerpt(excerpt, at=at)


def _follow(version: SourceVersion, found: Found, *, by: Actor, at: datetime) -> None:
    """What a changed state means for what rests on the version."""
    from evidence.actions.stale import heal, mark_changed

    _look_again(version.source, at=at)
    if found.state == Source.VERIFIED:
        heal("version", version.uid, by=by, at=at, note="the bytes are those of the recorded hash again")
    elif found.state in (Source.DRIFTED, Source.MISSING):
        mark_changed("version", version.uid, f"{found.state}: {found.note}"[:TEXT_MOST], by=by, at=at)
    _compute_again("version", version.uid, version.study, by=by, at=at)


def _compute_again(kind: str, uid: uuid.UUID, study: Study, *, by: Actor, at: datetime) -> None:
    """Recompute every figure that rests on a source or on one of its versions; what rests on it is marked already."""
    from evidence.actions.figures import refresh_figures
    from evidence.propagation import FIGURE, dependants

    uids = [path.uid for path in dependants(kind, uid) if path.kind == FIGURE]
    refresh_figures(study, uids, by=by, at=at, mark=False)


def check_all(study: Study, *, by: Actor, at: datetime) -> dict[str, int]:
    """Check every held version of a study; how many are in which state."""
    rows = SourceVersion.objects.filter(study=study, held=True).select_related("source", "study").order_by("pk")
    return dict(Counter(check_version(version, by=by, at=at) for version in rows))
