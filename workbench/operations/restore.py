"""Restoring a backup: into an empty home and an empty database, visible only after every hash was checked.

Members are unpacked into a staging folder of the home. Then blobs move into place, then the database:
what the database names is there before the database is. Where a step fails, what moved goes back.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import connection, connections
from django.db.migrations.loader import MigrationLoader

from workbench import db
from workbench.contracts.canonical import parse_json
from workbench.contracts.errors import ContractError
from workbench.home import running_supervisor
from workbench.operations import dumps
from workbench.operations.archive import (
    MANIFEST,
    SECRET_KEY,
    SIGNING_KEY,
    BackupError,
    Member,
    blob_of,
    read_members,
    write_member,
)
from workbench.operations.backup import SCHEMA, heads
from workbench.paths import Home

MANIFEST_LIMIT = 512 * 2**20  # bytes
THERE, MISSING, ANOTHER = "there", "missing", "another"  # what a restored home has of its signing key
KEPT_FREE = 64 * 2**20  # bytes of disk that unpacking leaves
Progress = Callable[[int, int], None]  # members done, bytes so far


@dataclass(frozen=True)
class Unpacked:
    """A checked backup in its staging folder."""

    root: Path
    manifest: dict[str, Any]
    manifest_sha256: str

    @property
    def database(self) -> Path:
        """The dump."""
        return self.root / dumps.MEMBERS[self.manifest["database"]]


def restore_backup(
    source: Path, home: Home, *, expected_manifest: str | None = None, on_progress: Progress | None = None
) -> dict[str, Any]:
    """Restore ``source`` into ``home`` and the configured database; a summary.

    ``expected_manifest``: the hash that making the backup printed; a backup that was changed as a whole differs.
    Raises ``BackupError`` and leaves home and database as they were for a target that is not empty, a running
    server, another kind of database, a newer schema, or any member that is damaged, missing or too many.
    """
    refuse_unless_empty(home)
    home.prepare()
    with _staging(home) as folder:
        unpacked = unpack(source, folder, on_progress)
        if expected_manifest is not None and unpacked.manifest_sha256 != expected_manifest:
            raise BackupError(f"manifest: got SHA-256 {unpacked.manifest_sha256}, expected {expected_manifest}")
        _check_fits(unpacked.manifest)
        _refuse_another_key(home, folder / SIGNING_KEY)
        with _blobs_in_place(home, folder):
            dumps.load(unpacked.database)
            try:
                _check_loaded(unpacked.manifest)
            except BaseException:
                dumps.unload()
                raise
            missing = db.missing_triggers(connection)  # as in the original, which doctor and /readyz complained about
            if missing:
                db.install_triggers(connection)
        if (folder / SECRET_KEY).exists():
            (folder / SECRET_KEY).replace(home.secret_key)
        if (folder / SIGNING_KEY).exists():
            (folder / SIGNING_KEY).replace(home.signing_key)
        signed_by = _signed_by()
        key = _key_of(home, signed_by)
    connections.close_all()
    members = unpacked.manifest["members"]
    return {
        "restored": str(source.absolute()),
        "home": str(home.root),
        "made_at": unpacked.manifest["made_at"],
        "manifest_sha256": unpacked.manifest_sha256,
        "database": unpacked.manifest["database"],
        "members": len(members),
        "bytes": sum(member["bytes"] for member in members),
        "rows": sum(unpacked.manifest["tables"].values()),
        "streams": unpacked.manifest["streams"],
        "triggers_installed_again": missing,
        "secret_key_included": unpacked.manifest["secret_key_included"],
        "signing_key_included": unpacked.manifest.get("signing_key_included", False),
        "signing_key": key,
        "signed_by": signed_by,
    }


def _refuse_another_key(home: Home, staged: Path) -> None:
    """Raises ``BackupError`` where the home has a signing key already and the backup holds another one."""
    if not staged.exists() or not home.signing_key.exists():
        return
    if staged.read_bytes().strip() != home.signing_key.read_bytes().strip():
        raise BackupError(f"{home.signing_key}: got another key than the backup's, expected none: move it away")


def _signed_by() -> str | None:
    """Fingerprint of the key that made the newest signature of the loaded database; None where nothing is signed."""
    from evidence.models import SignedHead

    if SignedHead._meta.db_table not in connection.introspection.table_names():
        return None
    newest = SignedHead.objects.order_by("-anchor__seq", "-pk").values_list("fingerprint", flat=True).first()
    return None if newest is None else str(newest)


def _key_of(home: Home, signed_by: str | None) -> str:
    """``there``: the home has the key that signed so far; ``missing``: it has none; ``another``: it has another."""
    from evidence.outward.keys import fingerprint, signing_key

    if not home.signing_key.exists():
        return MISSING
    found = fingerprint(signing_key(home).public_key())
    return THERE if signed_by in (None, found) else ANOTHER


def refuse_unless_empty(home: Home) -> None:
    """Raises ``BackupError`` unless neither the home nor the database holds anything, and no server runs on it."""
    if running_supervisor(home) is not None:
        raise BackupError(f"{home.root}: Workbench is running on it, expected it to be stopped")
    if not dumps.is_empty():
        where = home.database if connection.vendor == "sqlite" else connection.settings_dict["NAME"]
        raise BackupError(
            f"database {where}: got tables, expected an empty one; nothing is overwritten. {_elsewhere()}"
        )
    if home.blobs.is_dir() and any(path.is_file() for path in home.blobs.rglob("*")):
        raise BackupError(f"{home.blobs}: got blobs, expected an empty folder; nothing is overwritten. {_elsewhere()}")


def _elsewhere() -> str:
    return "Set WORKBENCH_HOME (and DATABASE_URL) to an empty place"


@contextlib.contextmanager
def _staging(home: Home) -> Iterator[Path]:
    """A private folder on the home's file system, so that moving out of it is one rename."""
    folder = Path(tempfile.mkdtemp(prefix=".restore-", dir=home.root))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def unpack(source: Path, folder: Path, on_progress: Progress | None = None) -> Unpacked:
    """Unpack every member into ``folder`` and check each against the manifest. Raises ``BackupError`` naming it."""
    found: dict[str, Member] = {}
    total = 0
    for name, size, content in read_members(source):
        if shutil.disk_usage(folder).free - size < KEPT_FREE:
            raise BackupError(f"member {name}: {size} bytes do not fit on the disk of {folder.parent}")
        member = write_member(folder, name, size, content)
        if blob_of(name) not in (None, member.sha256):
            raise BackupError(f"member {name}: got bytes that hash to {member.sha256}, expected its name")
        found[name] = member
        total += size
        if on_progress is not None:
            on_progress(len(found), total)
    manifest = _read_manifest(source, folder, found)
    _compare(manifest, {name: member for name, member in found.items() if name != MANIFEST})
    return Unpacked(folder, manifest, found[MANIFEST].sha256)


def _read_manifest(source: Path, folder: Path, found: dict[str, Member]) -> dict[str, Any]:
    last = next(reversed(found), "the start")
    if MANIFEST not in found:
        raise BackupError(f"{source}: got no member {MANIFEST}, expected it: the backup was cut short after {last}")
    if found[MANIFEST].bytes > MANIFEST_LIMIT:
        raise BackupError(f"member {MANIFEST}: got {found[MANIFEST].bytes} bytes, expected at most {MANIFEST_LIMIT}")
    data = (folder / MANIFEST).read_bytes()
    try:
        value = parse_json(data)
        known = value["schema"] == SCHEMA and value["database"] in dumps.MEMBERS
        sound = known and all(
            isinstance(value[name], kind)
            for name, kind in (("members", list), ("tables", dict), ("migrations", list), ("tombstoned", list),
                               ("streams", int), ("heads_sha256", str), ("made_at", str), ("secret_key_included", bool))
        )  # fmt: skip
    except (ContractError, KeyError, TypeError, ValueError) as error:
        raise BackupError(f"member {MANIFEST}: {type(error).__name__}: {error}") from error
    if not sound:
        raise BackupError(f"member {MANIFEST}: got another form, expected {SCHEMA}")
    result: dict[str, Any] = value
    return result


def _compare(manifest: dict[str, Any], found: dict[str, Member]) -> None:
    listed: dict[str, dict[str, Any]] = {}
    for item in manifest["members"]:
        if not isinstance(item, dict) or not {"name", "bytes", "sha256"} <= item.keys():
            raise BackupError(f"member {MANIFEST}: got an entry {item!r}, expected name, bytes and sha256")
        listed[item["name"]] = item
    for name in sorted(listed.keys() - found.keys()):
        raise BackupError(f"member {name}: got none, expected it as the manifest lists it")
    for name in sorted(found.keys() - listed.keys()):
        raise BackupError(f"member {name}: got one that the manifest does not list")
    for name, member in found.items():
        if (member.bytes, member.sha256) != (listed[name]["bytes"], listed[name]["sha256"]):
            raise BackupError(
                f"member {name}: got {member.bytes} bytes that hash to {member.sha256}, "
                f"expected {listed[name]['bytes']} and {listed[name]['sha256']}"
            )
    database = dumps.MEMBERS[manifest["database"]]
    if database not in found:
        raise BackupError(f"member {database}: got none, expected the database")


def _check_fits(manifest: dict[str, Any]) -> None:
    """The kind of database and the schema are ones that this installation can read."""
    if manifest["database"] != connection.vendor:
        raise BackupError(
            f"database: got a backup of {manifest['database']}, expected {connection.vendor} as configured "
            "(DATABASE_URL decides); a backup is restored into the kind of database it was made of"
        )
    known = {f"{app}.{name}" for app, name in MigrationLoader(None).disk_migrations}
    unknown = sorted(set(manifest["migrations"]) - known)
    if unknown:
        raise BackupError(
            f"schema: got migration {unknown[0]}, which this version does not know; update Workbench first"
        )


def _check_loaded(manifest: dict[str, Any]) -> None:
    """The loaded database holds as many rows in each table, and the same receipt heads, as the manifest says."""
    present = set(connection.introspection.table_names())
    for table, expected in manifest["tables"].items():
        if table not in present:
            raise BackupError(f"table {table!r}: got none after loading, expected {expected} rows")
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT COUNT(*) FROM {connection.ops.quote_name(table)}")
            got = cursor.fetchone()[0]
        if got != expected:
            raise BackupError(f"table {table}: got {got} rows after loading, expected {expected}")
    if heads() != (manifest["streams"], manifest["heads_sha256"]):
        raise BackupError("receipts: got other stream heads after loading than the manifest names")


@contextlib.contextmanager
def _blobs_in_place(home: Home, folder: Path) -> Iterator[None]:
    """Move the blobs into the home; back again where what follows fails."""
    staged = folder / "blobs"
    staged.mkdir(exist_ok=True)
    shutil.rmtree(home.blobs, ignore_errors=True)  # holds no file: that was asked before
    staged.rename(home.blobs)
    descriptor = os.open(home.root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    try:
        yield
    except BaseException:
        home.blobs.rename(staged)
        home.blobs.mkdir()
        raise
