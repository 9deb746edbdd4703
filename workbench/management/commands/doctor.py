"""``manage.py doctor``: what is there, what is missing, and the command that mends it."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand

from workbench.examination import examine

SIGNS = {"ok": "ok", "note": "note", "missing": "MISSING", "broken": "BROKEN"}


class Command(BaseCommand):
    """Prints one line for each finding. Exit status 1 only where something required is missing."""

    help = "Check Python, torch, devices, NF4, broker, database and disk, and say how to mend what is missing."
    requires_system_checks: list[str] = []  # it reports what they would stop at

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="one JSON object on the last line of standard output")

    def handle(self, *args: Any, **options: Any) -> None:
        findings = []
        lines = self.stderr if options["json"] else self.stdout
        for finding in examine():
            findings.append(finding)
            lines.write(f"{finding.name:<11} {SIGNS[finding.state]:<8} {finding.value}", lambda text: text)
            if finding.mend:
                lines.write(f"{'':<11} {'':<8} mend: {finding.mend}", lambda text: text)
        is_fit = not any(finding.is_fatal for finding in findings)
        if options["json"]:
            self.stdout.write(json.dumps({"ok": is_fit, "findings": [asdict(finding) for finding in findings]}))
        else:
            self.stdout.write("everything required is there" if is_fit else "something required is missing")
        if not is_fit:
            raise SystemExit(1)
