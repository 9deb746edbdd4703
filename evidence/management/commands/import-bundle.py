"""``manage.py import-bundle FILE``: take in a study that was exported elsewhere."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from evidence.actions.bundles import import_bundle
from runs.actions.actors import service_actor
from runs.actions.audit import audited_command
from runs.errors import DomainError
from workbench.contracts.errors import ContractError
from workbench.home import initialise


class Command(BaseCommand):
    """Checks the bundle first; a conflict leaves everything as it was."""

    help = "Import a bundle: the same uids and hashes as where it was written, or nothing."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--key", default="", help="fingerprint that must have signed it")
        parser.add_argument("--json", action="store_true", help="print one JSON object on the last line")

    def handle(self, *args: Any, **options: Any) -> None:
        initialise(settings.HOME)
        by, at = service_actor("command line"), timezone.now()
        try:
            with audited_command("import-bundle", by=by, at=at, subject=options["file"].name):
                done = import_bundle(options["file"], by=by, at=at, key=options["key"])
        except (DomainError, ContractError, OSError) as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps(vars(done), ensure_ascii=False))
            return
        self.stdout.write(
            f"{done.study}: {done.receipts} receipts, {done.records} records, {done.plans} plans, {done.blobs} blobs"
        )
        self.stdout.write("Runs, their records and the anchors stay in the bundle: keep it.")
