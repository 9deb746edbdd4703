"""``manage.py verify-bundle FILE``: check an exported study with nothing but the file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evidence.outward.check import as_json, as_text, verify_bundle


class Command(BaseCommand):
    """Reads no database and opens no connection. Exit status 1 on any problem."""

    help = "Check a bundle offline: hashes, chains, signed heads, excerpts, figures, claims; exit 1 on a problem."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--key", default="", help="fingerprint that must have signed it, as you have it elsewhere")
        parser.add_argument(
            "--tsa-roots", type=Path, help="PEM file of the certificates that time stamps are trusted by"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object on the last line")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            roots = options["tsa_roots"].read_bytes() if options["tsa_roots"] else b""
        except OSError as error:
            raise CommandError(f"--tsa-roots: {error}") from error
        found = verify_bundle(options["file"], key=options["key"], roots=roots)
        self.stdout.write(as_json(found) if options["json"] else as_text(found))
        if not found.ok:
            raise SystemExit(1)
