"""``manage.py heads``: export the signed heads to keep elsewhere, and check a kept copy against what is here."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from evidence.actions.signing import anchor_now, check_copy, exported
from evidence.outward.keys import fingerprint, public_pem, signing_key
from evidence.outward.timestamps import StampRefused, stamp_head
from runs.errors import DomainError
from workbench.contracts.canonical import parse_json
from workbench.contracts.errors import ContractError
from workbench.home import initialise

SHOWN = 50


class Command(BaseCommand):
    """``export`` anchors and signs what stands now; ``check`` changes nothing and exits 1 on any disagreement."""

    help = "Export signed receipt heads (heads export FILE), check a kept copy (heads check FILE), or print the key."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        export = actions.add_parser("export", help="sign the heads of all streams now and write them to a new file")
        export.add_argument("file", type=Path)
        check = actions.add_parser("check", help="find a truncated tail or a forged head against a kept copy")
        check.add_argument("file", type=Path)
        check.add_argument("--key", default="", help="fingerprint that must have signed; by default this home's own")
        key = actions.add_parser("key", help="print the public key and its fingerprint")
        for action in (export, check, key):
            action.add_argument("--json", action="store_true", help="print one JSON object on the last line")

    def handle(self, *args: Any, **options: Any) -> None:
        initialise(settings.HOME)
        try:
            getattr(self, f"_{options['action']}")(options)
        except (DomainError, ContractError, OSError) as error:
            raise CommandError(str(error)) from error

    def _say(self, options: dict[str, Any], found: dict[str, Any], text: str) -> None:
        self.stdout.write(json.dumps(found, ensure_ascii=False) if options["json"] else text)

    def _export(self, options: dict[str, Any]) -> None:
        at = timezone.now()
        head = anchor_now(at=at)
        stamp = "no time stamp server is configured"
        if settings.TSA_URL:
            try:
                stamp = f"stamped by {stamp_head(head, at=at).server}"
            except StampRefused as error:
                stamp = f"not stamped: {error}"
        value = exported(head)
        with options["file"].open("x", encoding="utf-8") as file:
            file.write(json.dumps(value, ensure_ascii=False, indent=1) + "\n")
        receipts = json.loads(value["heads"][0]["signed"])["receipts"]
        found = {
            "file": str(options["file"]), "anchor": head.anchor.seq, "receipts": receipts,
            "fingerprint": head.fingerprint, "time_stamp": stamp,
        }  # fmt: skip
        self._say(
            options, found,
            f"{options['file']}: anchor {head.anchor.seq} over {receipts} receipts, signed by {head.fingerprint}; "
            f"{stamp}.\n"
            "Keep it elsewhere: heads check finds a tail that was cut off since.",
        )  # fmt: skip

    def _check(self, options: dict[str, Any]) -> None:
        troubles = check_copy(parse_json(options["file"].read_bytes()), key=options["key"].lower())
        found = {"ok": not troubles, "problems": [vars(item) for item in troubles]}
        lines = [str(item) for item in troubles[:SHOWN]]
        if len(troubles) > SHOWN:
            lines.append(f"and {len(troubles) - SHOWN} more; --json prints all of them")
        self._say(options, found, "\n".join(lines) if troubles else "every kept head is still a receipt of its stream")
        if troubles:
            raise SystemExit(1)

    def _key(self, options: dict[str, Any]) -> None:
        public = signing_key(settings.HOME).public_key()
        found = {"fingerprint": fingerprint(public), "public_key": public_pem(public)}
        self._say(options, found, f"{found['fingerprint']}\n{found['public_key'].strip()}")
