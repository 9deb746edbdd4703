"""``manage.py export-study SLUG``: a study as a bundle, an RO-Crate or a static site."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from evidence.actions.signing import anchor_now
from evidence.outward.bundle import write_bundle
from evidence.outward.crate import write_crate
from evidence.outward.site import write_site
from runs.actions.actors import service_actor
from runs.actions.audit import audited_command
from runs.errors import DomainError
from runs.models import Study
from workbench.contracts.errors import ContractError
from workbench.home import initialise


class Command(BaseCommand):
    """Anchors and signs what stands now first, so that the export is covered to its last receipt."""

    help = "Export a study: --bundle FILE (checked by verify-bundle), --ro-crate DIR, --site DIR (opens from disk)."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("study", help="the study's slug")
        forms = parser.add_mutually_exclusive_group(required=True)
        forms.add_argument("--bundle", type=Path, help="a new file")
        forms.add_argument("--ro-crate", type=Path, help="a new or empty folder")
        forms.add_argument("--site", type=Path, help="a new or empty folder")
        parser.add_argument(
            "--with-captures", action="store_true",
            help="raw trajectories and test labels too (bundle and crate); never publish such a file",
        )  # fmt: skip
        parser.add_argument("--json", action="store_true", help="print one JSON object on the last line")

    def handle(self, *args: Any, **options: Any) -> None:
        initialise(settings.HOME)
        study = Study.objects.filter(slug=options["study"]).first()
        if study is None:
            raise CommandError(f"study: got {options['study']!r}, expected the slug of a study")
        if options["site"] and options["with_captures"]:
            raise CommandError("--with-captures: got it with --site, expected it with a bundle or a crate: "
                               "a published page carries no raw trajectories")  # fmt: skip
        by, at = service_actor("command line"), timezone.now()
        try:
            with audited_command("export-study", by=by, at=at, subject=study.slug, study=study):
                anchor_now(at=at)
                found = self._write(study, options)
        except (DomainError, ContractError, OSError) as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps(found, ensure_ascii=False))
            return
        for name, value in found.items():
            lines = value if isinstance(value, list | tuple) else [value]
            for line in lines:
                self.stdout.write(f"{name.replace('_', ' ')}: {line}")

    def _write(self, study: Study, options: dict[str, Any]) -> dict[str, Any]:
        captures = bool(options["with_captures"])
        if options["bundle"]:
            done = write_bundle(study, options["bundle"], with_captures=captures)
            return {"bundle": str(options["bundle"]), **vars(done), "left_out": list(done.left_out)}
        if options["ro_crate"]:
            return {
                "ro_crate": str(options["ro_crate"]),
                **write_crate(study, options["ro_crate"], with_captures=captures),
            }
        return {"site": str(options["site"]), **write_site(study, options["site"])}
