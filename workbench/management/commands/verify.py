"""``manage.py verify``: recompute everything that is stored and name each disagreement."""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.utils import timezone

from evidence.report import VerifyReport
from evidence.verify import STEPS, verify
from runs.actions.actors import service_actor
from runs.storage import blob_store
from workbench.home import initialise

SHOWN = 50


class Command(BaseCommand):
    """Changes nothing, unless ``--record``. Tombstoned bytes are no fault.

    Exit status 1 where anything disagrees; 3 where nothing does, but something could not be checked on this machine.
    """

    help = "Recompute chains, records, rows, blobs, captures, numbers, closures and replays; exit 1 on a problem."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object on the last line")
        parser.add_argument("--no-replay", action="store_true", help="leave out step 10, the environment's replay")
        parser.add_argument(
            "--record",
            action="store_true",
            help="first write what has changed in evidence: checks of sources, states, marks; heal what is back",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        initialise(settings.HOME)
        from worker.audit import recompute

        started, current = time.monotonic(), [0]

        def progress(step: int, _: int) -> None:
            if step != current[0]:
                current[0] = step
                sys.stderr.write(f"({step}) {STEPS[step]}\n")

        recorded = self._record() if options["record"] else None
        report = verify(store=blob_store(), recompute=None if options["no_replay"] else recompute, on_progress=progress)
        result = {**report.as_json(), "recorded": recorded, "wall_s": round(time.monotonic() - started, 2)}
        if options["json"]:
            self.stdout.write(json.dumps(result, ensure_ascii=False))
        else:
            self._print(result, report)
        if not report.ok:
            raise SystemExit(report.exit_status)

    def _record(self) -> dict[str, int]:
        from evidence.recording import record_checks

        found = record_checks(store=blob_store(), by=service_actor("verify"), at=timezone.now()).as_json()
        sys.stderr.write("recorded: " + ", ".join(f"{count} {name}" for name, count in found.items()) + "\n")
        return found

    def _print(self, result: dict[str, Any], report: VerifyReport) -> None:
        for step in result["steps"]:
            mark = "ok" if not step["unavailable"] else "no disagreement"
            mark = f"{step['problems']} problems" if step["problems"] else mark
            gone = f", {step['tombstoned']} tombstoned" if step["tombstoned"] else ""
            gone += f", {step['unavailable']} unavailable" if step["unavailable"] else ""
            self.stdout.write(f"({step['step']}) {step['name']}: {step['checked']} checked, {mark}{gone}")
        for line in [str(problem) for problem in report.faults[:SHOWN]]:
            self.stdout.write(line)
        if len(report.faults) > SHOWN:
            self.stdout.write(f"and {len(report.faults) - SHOWN} more; --json prints all of them")
        for line in report.unchecked()[:SHOWN]:
            self.stdout.write(line)
        self.stdout.write(_verdict(report))


def _verdict(report: VerifyReport) -> str:
    if report.ok:
        return "verified"
    unknown = f"{len(report.unavailable)} of it could not be checked on this machine" if report.unavailable else ""
    return f"NOT verified{': ' + unknown if unknown and not report.faults else ''}"
