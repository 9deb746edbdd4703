"""Whether this server can do its work now: database, schema, triggers, broker, blob store.

Each check says ok or what is wrong in words of ours: never an address, a path, or an error's own text,
for the answer is given to anybody.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from workbench import broker, db

PROBE = b"ready?\n"


@dataclass(frozen=True)
class Check:
    """One answer. ``detail``: a number or the reason, without secrets."""

    ok: bool
    detail: str


@lru_cache(maxsize=1)
def _known_migrations() -> frozenset[tuple[str, str]]:
    """Migrations of the installed code; reading them from disk is dear, and they do not change while it runs."""
    return frozenset(MigrationLoader(None, ignore_no_migrations=True).disk_migrations)


def check_database() -> Check:
    """It answers a query."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        cursor.fetchone()
    return Check(True, connection.vendor)


def check_migrations() -> Check:
    """Every migration of this code is applied."""
    pending = _known_migrations() - MigrationRecorder(connection).applied_migrations().keys()
    if pending:
        return Check(False, f"{len(pending)} migrations are not applied, the first {'.'.join(min(pending))}")
    return Check(True, "applied")


def check_triggers() -> Check:
    """History cannot be changed."""
    missing = db.missing_triggers(connection)
    if missing:
        return Check(False, f"{len(missing)} append-only triggers are missing, the first {missing[0]}")
    return Check(True, f"{len(db.append_only_models())} tables")


def check_broker() -> Check:
    """It answers within a second."""
    try:
        return Check(True, broker.ping(settings.CELERY_BROKER_URL, timeout_s=1.0))
    except broker.BrokerUnavailable:
        return Check(False, "the broker does not answer")


def check_blobs() -> Check:
    """A file can be written, synced and read again, and there is room for more."""
    root = Path(settings.BLOB_ROOT)
    free = shutil.disk_usage(root).free
    if free < settings.MINIMUM_FREE_BYTES:
        return Check(False, f"{free // 2**20} MiB are free, expected at least {settings.MINIMUM_FREE_BYTES // 2**20}")
    with tempfile.TemporaryFile(dir=root, prefix=".ready-") as file:
        file.write(PROBE)
        file.flush()
        os.fsync(file.fileno())
        file.seek(0)
        if file.read() != PROBE:
            return Check(False, "what was written is not what is read")
    return Check(True, f"{free // 2**20} MiB are free")


CHECKS: dict[str, Callable[[], Check]] = {
    "database": check_database,
    "migrations": check_migrations,
    "triggers": check_triggers,
    "broker": check_broker,
    "blobs": check_blobs,
}
NEEDS_DATABASE = ("migrations", "triggers")


def examine() -> dict[str, Check]:
    """Every check by name. One that breaks says so by the kind of its error alone."""
    found: dict[str, Check] = {}
    for name, check in CHECKS.items():
        if name in NEEDS_DATABASE and not found["database"].ok:
            found[name] = Check(False, "not looked at: the database does not answer")
            continue
        try:
            found[name] = check()
        except (DatabaseError, OSError) as error:
            found[name] = Check(False, f"does not work: {type(error).__name__}")
            if name == "database":
                connection.close()  # else a broken connection would be asked again
    return found


_lock = threading.Lock()
_last: list[Any] = [float("-inf"), {}]


def answer() -> tuple[bool, dict[str, Any]]:
    """(ready, the JSON of the answer); computed at most once a second, whoever asks."""
    with _lock:
        if time.monotonic() - _last[0] >= settings.READINESS_KEPT_SECONDS:
            _last[1] = examine()
            _last[0] = time.monotonic()
        found = _last[1]
    ready = all(check.ok for check in found.values())
    return ready, {"ready": ready, "checks": {name: asdict(check) for name, check in found.items()}}
