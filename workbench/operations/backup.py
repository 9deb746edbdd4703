"""A backup: the database at one moment, every blob that its rows name, and a manifest with the hash of each.

The database is copied first. Blobs never change, so they are copied afterwards while the server works
on; each is hashed on the way. Where retention removed one meanwhile, the database is copied again, so
that the tombstone is in the backup as well.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import django
from django.apps import apps
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.recorder import MigrationRecorder

from evidence.checks.blobs import referenced
from evidence.outward.keys import signing_key
from evidence.snapshot import reading
from runs.actions.tombstones import standing_tombstones
from runs.models import StreamHead
from workbench.blobs import BlobStore
from workbench.contracts.canonical import canonical_bytes, sha256_hex
from workbench.contracts.chain import time_text
from workbench.logs import redact
from workbench.operations import dumps
from workbench.operations.archive import (
    MANIFEST,
    SECRET_KEY,
    SIGNING_KEY,
    BackupError,
    Member,
    Sink,
    blob_name,
    new_container,
)

SCHEMA = "workbench.backup/1"
ROUNDS = 5  # times that the database is copied again because retention was at work
INCLUDED = (
    "database: all tables, thus hashes of passwords and API tokens, sessions, the audit log; blobs that rows name"
)
LEFT_OUT = "not included: logs, the broker's queue (rows send it again), the model cache"
Progress = Callable[[int, int, int], None]  # blobs done, blobs in all, bytes so far


@dataclass
class Snapshot:
    """What the copied database says. ``blobs``: sha256 -> column that names it; ``gone``: those without bytes."""

    blobs: dict[str, str]
    gone: set[str]
    tables: dict[str, int]
    migrations: list[str]
    heads: int
    heads_sha256: str
    members: list[Member] = field(default_factory=list)


def table_counts() -> dict[str, int]:
    """Rows of every table that a model has and that is there: an older schema lacks some."""
    present = set(connection.introspection.table_names())
    models = apps.get_models(include_auto_created=True)
    found: dict[str, int] = {}
    with connection.cursor() as cursor:
        for table in sorted({model._meta.db_table for model in models} & present):
            cursor.execute(f"SELECT COUNT(*) FROM {connection.ops.quote_name(table)}")
            found[table] = cursor.fetchone()[0]
    return found


def heads() -> tuple[int, str]:
    """How many receipt streams there are, and one hash over all their heads."""
    rows = sorted(StreamHead.objects.values_list("stream", "seq", "sha256"))
    return len(rows), sha256_hex(canonical_bytes([list(row) for row in rows]))


def take(target: Path, store: BlobStore) -> Snapshot:
    """Copy the database to ``target`` and read, in the same moment, what it refers to.

    A schema that is somewhat older is fine: a backup is what one makes before an upgrade. Raises ``BackupError``
    where it is too old to tell which blobs it names, or where the database cannot be read.
    """
    try:
        return _take(target, store)
    except DatabaseError as error:
        raise BackupError(
            f"database: cannot be read ({redact(str(error).strip())}); manage.py doctor says more"
        ) from error


def _take(target: Path, store: BlobStore) -> Snapshot:
    with reading():
        StreamHead.objects.count()  # SQLite takes its snapshot with the first reading
        dumps.dump(target)
        blobs: dict[str, str] = {}
        for sha256, where, _ in referenced():
            blobs.setdefault(sha256, where)
        tombstoned = standing_tombstones().keys()
        count, digest = heads()
        applied = sorted(f"{app}.{name}" for app, name in MigrationRecorder(connection).applied_migrations())
        gone = {sha256 for sha256 in tombstoned & blobs.keys() if not store.exists(sha256)}
        return Snapshot(blobs, gone, table_counts(), applied, count, digest)


def make_backup(
    target: Path,
    *,
    store: BlobStore,
    at: datetime,
    with_secret_key: bool = False,
    with_signing_key: bool = False,
    on_progress: Progress | None = None,
) -> dict[str, Any]:
    """Write a backup to ``target`` (``.tar.zst`` or a folder), complete or not at all; a summary.

    Raises ``BackupError`` for an existing target, a blob that is missing without a tombstone or damaged, or a
    database program that is not there.
    """
    with (
        new_container(target) as sink,
        tempfile.TemporaryDirectory(prefix=".backup-", dir=target.absolute().parent) as folder,
    ):
        members, snapshot, database = _blobs_and_rows(sink, Path(folder), store, on_progress)
        members.append(_copy_file(sink, dumps.MEMBERS[connection.vendor], database))
        if with_secret_key:
            members.append(_copy_file(sink, SECRET_KEY, settings.HOME.secret_key))
        if with_signing_key:
            signing_key(settings.HOME)  # made at its first use
            members.append(_copy_file(sink, SIGNING_KEY, settings.HOME.signing_key))
        manifest = _manifest(snapshot, members, at)
        data = json.dumps(manifest, indent=1, sort_keys=True, ensure_ascii=False).encode()
        path = Path(folder) / MANIFEST
        path.write_bytes(data)
        _copy_file(sink, MANIFEST, path)
    blobs = [member for member in members if member.name.startswith("blobs/")]
    return {
        "backup": str(target.absolute()),
        "manifest_sha256": sha256_hex(data),
        "database": connection.vendor,
        "blobs": len(blobs),
        "blob_bytes": sum(member.bytes for member in blobs),
        "tombstoned": len(snapshot.gone),
        "rows": sum(snapshot.tables.values()),
        "streams": snapshot.heads,
        "secret_key_included": with_secret_key,
        "signing_key_included": with_signing_key,
        "note": f"{INCLUDED}. {LEFT_OUT}.",
    }


def _blobs_and_rows(
    sink: Sink, folder: Path, store: BlobStore, on_progress: Progress | None
) -> tuple[list[Member], Snapshot, Path]:
    copied: dict[str, Member] = {}
    for round_number in range(ROUNDS):
        database = folder / f"database-{round_number}"
        snapshot = take(database, store)
        vanished = _copy_blobs(sink, snapshot, store, copied, on_progress)
        if vanished is None:
            return list(copied.values()), snapshot, database
        database.unlink()
    raise BackupError(f"blob {vanished}: removed by retention while it was copied, {ROUNDS} times over; start again")


def _copy_blobs(
    sink: Sink, snapshot: Snapshot, store: BlobStore, copied: dict[str, Member], on_progress: Progress | None
) -> str | None:
    """Copy what is not copied yet; the blob that retention removed meanwhile, or None."""
    wanted = sorted(snapshot.blobs.keys() - snapshot.gone)
    total = sum(member.bytes for member in copied.values())
    for done, sha256 in enumerate(wanted, start=1):
        if sha256 not in copied:
            member = _copy_blob(sink, store, sha256, snapshot.blobs[sha256])
            if member is None:
                return sha256
            copied[sha256] = member
            total += member.bytes
        if on_progress is not None:
            on_progress(done, len(wanted), total)
    return None


def _copy_blob(sink: Sink, store: BlobStore, sha256: str, where: str) -> Member | None:
    """Copy one blob, or None where retention removed it after the database was copied."""
    try:
        file = store.path(sha256).open("rb")
    except FileNotFoundError as error:
        if standing_tombstones([sha256]):
            return None
        raise BackupError(
            f"blob {sha256}: got no bytes in the store, expected them since {where} names it and no tombstone does; "
            "run manage.py verify"
        ) from error
    with file:
        member = sink.add(blob_name(sha256), store.size(sha256), file)
    if member.sha256 != sha256:
        raise BackupError(f"blob {sha256}: got bytes that hash to {member.sha256}; run manage.py verify")
    return member


def _copy_file(sink: Sink, name: str, path: Path) -> Member:
    with path.open("rb") as file:
        return sink.add(name, path.stat().st_size, file)


def _manifest(snapshot: Snapshot, members: list[Member], at: datetime) -> dict[str, Any]:
    names = {member.name for member in members}
    return {
        "schema": SCHEMA,
        "made_at": time_text(at),
        "database": connection.vendor,
        "versions": {
            "python": sys.version.split()[0],
            "django": django.get_version(),
            "sqlite": sqlite3.sqlite_version,
            "database_server": ".".join(str(part) for part in connection.get_database_version()),
        },
        "migrations": snapshot.migrations,
        "tables": snapshot.tables,
        "streams": snapshot.heads,
        "heads_sha256": snapshot.heads_sha256,
        "tombstoned": sorted(snapshot.gone),
        "secret_key_included": SECRET_KEY in names,
        "signing_key_included": SIGNING_KEY in names,
        "members": [member.as_json() for member in sorted(members, key=lambda member: member.name)],
    }
