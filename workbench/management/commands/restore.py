"""``manage.py restore FILE``: a backup into an empty home, checked, then verified."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from tqdm import tqdm

from evidence.verify import verify
from runs.actions.actors import service_actor
from runs.actions.audit import audited_command
from runs.storage import blob_store
from workbench.home import initialise
from workbench.operations.archive import BackupError
from workbench.operations.restore import THERE, restore_backup

SHOWN = 20


class Command(BaseCommand):
    """Exit status 1 where nothing was restored, or where what was restored disagrees with itself.

    3 where all was restored and nothing disagrees, but something could not be checked on this machine.
    """

    help = "Restore a backup into an empty home and database, then verify it."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="what manage.py backup wrote")
        parser.add_argument("--manifest", metavar="SHA256", help="refuse a backup whose manifest has another hash")
        parser.add_argument("--no-replay", action="store_true", help="verify without the environment's replay")
        parser.add_argument("--json", action="store_true", help="print one JSON object on the last line")

    def handle(self, *args: Any, **options: Any) -> None:
        started = time.monotonic()
        with tqdm(unit=" members", file=sys.stderr, disable=not sys.stderr.isatty()) as bar:

            def progress(done: int, size: int) -> None:
                bar.n = done
                bar.set_postfix_str(f"{size / 2**20:.0f} MiB", refresh=False)
                bar.update(0)

            try:
                result = restore_backup(
                    options["file"], settings.HOME, expected_manifest=options["manifest"], on_progress=progress
                )
            except (BackupError, OSError) as error:
                raise CommandError(f"nothing was restored: {error}") from error
        initialise(settings.HOME)  # an older schema is brought up to date
        by, subject = service_actor("command line"), f"backup made at {result['made_at']}"
        with audited_command("restore", by=by, at=timezone.now(), subject=subject) as noted:
            report = self._verify(replay=not options["no_replay"])
            unknown = f", {len(report.unavailable)} not checked here" if report.unavailable else ""
            noted["detail"] = "verified" if report.ok else f"NOT verified: {len(report.faults)} faults{unknown}"
        result.update(verified=report.ok, faults=[str(item) for item in report.faults], unchecked=report.unchecked())
        result["wall_s"] = round(time.monotonic() - started, 2)
        if options["json"]:
            self.stdout.write(json.dumps(result, ensure_ascii=False))
        else:
            self._print(result)
        if not report.ok:
            raise SystemExit(report.exit_status)

    def _verify(self, *, replay: bool) -> Any:
        from worker.audit import recompute

        self.stderr.write("restored; verifying")
        return verify(store=blob_store(), recompute=recompute if replay else None)

    def _print(self, result: dict[str, Any]) -> None:
        self.stdout.write(
            f"{result['home']}: {result['rows']} rows, {result['members']} members ({result['bytes']} bytes) "
            f"of the backup made at {result['made_at']}"
        )
        if result["signing_key"] != THERE and result["signed_by"]:
            self.stdout.write(_key_words(result))
        for line in [*result["faults"][:SHOWN], *result["unchecked"][:SHOWN]]:
            self.stdout.write(line)
        unknown = "" if result["faults"] else ": some of it could not be checked on this machine"
        self.stdout.write(
            "verified" if result["verified"] else f"restored, but NOT verified{unknown}; manage.py verify says more"
        )


def _key_words(result: dict[str, Any]) -> str:
    """What to do about a signing key that did not come along."""
    return (
        f"signing key: {result['signing_key']}. Heads so far are signed by {result['signed_by']}, whose private key is "
        f"not in this home: put the old home's signing_key at {settings.HOME.signing_key} (mode 600) before the server "
        "starts. Otherwise a new key signs from now on: say its fingerprint (manage.py heads key) to whoever checks"
    )
