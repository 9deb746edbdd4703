"""``manage.py backup FILE``: database and blobs, while the server runs."""

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

from runs.storage import blob_store
from workbench.operations.archive import BackupError
from workbench.operations.backup import make_backup


class Command(BaseCommand):
    """Changes nothing but the new file or folder."""

    help = "Write the database and every blob that it names to FILE.tar.zst, or to a new folder."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="new file that ends in .tar.zst, or a new folder")
        parser.add_argument(
            "--with-secret-key", action="store_true", help="include the key that signs sessions; keep such a file safe"
        )
        parser.add_argument(
            "--with-signing-key",
            action="store_true",
            help="include the private key that signs heads and bundles; who has it can sign in this server's name",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object on the last line")

    def handle(self, *args: Any, **options: Any) -> None:
        started = time.monotonic()
        with tqdm(unit=" blobs", file=sys.stderr, disable=not sys.stderr.isatty()) as bar:

            def progress(done: int, total: int, size: int) -> None:
                bar.total, bar.n = total, done
                bar.set_postfix_str(f"{size / 2**20:.0f} MiB", refresh=False)
                bar.update(0)

            try:
                result = make_backup(
                    options["file"],
                    store=blob_store(),
                    at=timezone.now(),
                    with_secret_key=options["with_secret_key"],
                    with_signing_key=options["with_signing_key"],
                    on_progress=progress,
                )
            except (BackupError, OSError) as error:
                raise CommandError(str(error)) from error
        result["wall_s"] = round(time.monotonic() - started, 2)
        if options["json"]:
            self.stdout.write(json.dumps(result, ensure_ascii=False))
            return
        self.stdout.write(
            f"{result['backup']}: {result['rows']} rows, {result['blobs']} blobs ({result['blob_bytes']} bytes), "
            f"{result['tombstoned']} tombstoned, {result['streams']} receipt streams"
        )
        self.stdout.write(f"manifest SHA-256 {result['manifest_sha256']}: keep it elsewhere; restore can be given it")
        self.stdout.write(result["note"])
        if not result["secret_key_included"]:
            self.stdout.write("The secret key is not included: after a restore elsewhere everybody signs in again.")
        if not result["signing_key_included"]:
            self.stdout.write(
                f"The signing key is not included: keep a copy of {settings.HOME.signing_key} elsewhere. Without it a "
                "restored server signs heads and bundles with a new key."
            )
