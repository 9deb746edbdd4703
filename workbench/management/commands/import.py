"""``manage.py import``: another trainer's logs into a study, from the command line of the machine that holds them."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from runs.actions.actors import service_actor
from runs.actions.audit import audited_command
from runs.actions.imports import begin_import, run_import
from runs.errors import DomainError
from runs.models import LogImport, Study
from workbench.home import initialise
from workbench.importers import FORMATS

PARTIAL_CODE = 3
SHOWN = 20


class Command(BaseCommand):
    """Ends with 0 for a whole import, 3 for a partial one, 1 where nothing could be imported."""

    help = "Import logs of another trainer: metrics, rollouts and settings, with every problem named."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("path", type=Path, help="a file or a run directory")
        parser.add_argument("--study", required=True, help="slug of the study")
        parser.add_argument("--format", choices=sorted(FORMATS), help="default: recognised from the files")
        parser.add_argument("--run", default="", help="name of the imported run (default: name of the path)")
        parser.add_argument("--json", action="store_true", help="print one JSON object on the last line")

    def handle(self, *args: Any, **options: Any) -> None:
        initialise(settings.HOME)
        by, slug = service_actor("command line"), options["study"]
        study = Study.objects.filter(slug=slug).first()
        if study is None:
            raise CommandError(f"--study: got {slug!r}, expected the slug of a study")
        with audited_command("import", by=by, at=timezone.now(), subject=options["path"].name, study=study):
            try:
                begun = begin_import(
                    study, options["path"], by=by, at=timezone.now(), format=options["format"], name=options["run"]
                )
                ended = run_import(begun.pk, clock=timezone.now, progress=self._progress)
            except DomainError as error:
                raise CommandError(str(error)) from error
        self._report(ended, as_json=options["json"])
        if ended.state == LogImport.PARTIAL:
            raise CommandError(
                "the import is partial: what is sound is in, the rest is named above", returncode=PARTIAL_CODE
            )

    def _progress(self, head: LogImport) -> None:
        counts = head.counts
        share = 100 * counts["bytes_done"] // max(counts["bytes"], 1)
        self.stderr.write(f"{share:3d} %  {counts.get('metrics', 0)} points, {counts.get('rollouts', 0)} rollouts")

    def _report(self, ended: LogImport, *, as_json: bool) -> None:
        for row in ended.problems[:SHOWN]:
            times = f" ({row['count']} times)" if row["count"] > 1 else ""
            self.stderr.write(
                f"{row['kind']}: {row['file']}, {row['unit']} {row['number']} (byte {row['offset']}): "
                f"{row['what']}: got {row['got']}, expected {row['expected']}{times}"
            )
        listed = sum(row["count"] for row in ended.problems[:SHOWN])
        rest = sum(ended.counts.get("problems", {}).values()) - listed
        if rest:
            self.stderr.write(f"… and {rest} more problems")
        assert ended.run is not None  # set when the import began
        found = {
            "uid": str(ended.uid), "run": str(ended.run.uid), "state": ended.state, "format": ended.format,
            "source_sha256": ended.source_sha256, "counts": ended.counts,
        }  # fmt: skip
        if as_json:
            self.stdout.write(json.dumps({**found, "problems": ended.problems}))
            return
        counts = ended.counts
        grades = ", ".join(f"{count} {grade}" for grade, count in sorted(counts.get("grades", {}).items())) or "none"
        self.stdout.write(
            f"{ended.state}: {ended.format}, {counts.get('metrics', 0)} points, "
            f"{counts.get('rollouts', 0)} rollouts (grades: {grades}), {counts.get('parameters', 0)} settings"
        )
