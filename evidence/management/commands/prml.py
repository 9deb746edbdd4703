"""``manage.py prml``: a frozen plan's endpoints as PRML manifests, and a manifest as the beginning of a draft."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from evidence.outward.prml import from_prml, to_prml
from runs.actions.actors import service_actor
from runs.actions.audit import audited_command
from runs.actions.plans import save_draft
from runs.errors import DomainError
from runs.models import Plan, Study
from workbench.contracts.errors import ContractError
from workbench.home import initialise


class Command(BaseCommand):
    """Names what maps and what does not; never overwrites a file or another draft."""

    help = "Write a plan's endpoints as *.prml.yaml (prml export STUDY PLAN FOLDER), or read one (prml import FILE)."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        export = actions.add_parser("export", help="one manifest for each endpoint that registers a direction")
        export.add_argument("study")
        export.add_argument("plan")
        export.add_argument("folder", type=Path)
        take = actions.add_parser("import", help="the beginning of a draft from a manifest")
        take.add_argument("file", type=Path)
        take.add_argument("--study", required=True, help="slug of the study that gets the draft")
        take.add_argument("--name", required=True, help="name of the plan")
        take.add_argument("--sha256", default="", help="published hash of the manifest, which must hold")
        for action in (export, take):
            action.add_argument("--json", action="store_true", help="print one JSON object on the last line")

    def handle(self, *args: Any, **options: Any) -> None:
        initialise(settings.HOME)
        try:
            found = self._export(options) if options["action"] == "export" else self._import(options)
        except (DomainError, ContractError, OSError, UnicodeDecodeError) as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps(found, ensure_ascii=False))
            return
        for name, value in found.items():
            self.stdout.write(f"{name}: {', '.join(value) if isinstance(value, list) else value}")

    def _export(self, options: dict[str, Any]) -> dict[str, Any]:
        rows = Plan.objects.select_related("current_version")
        plan = rows.filter(study__slug=options["study"], slug=options["plan"]).first()
        if plan is None or plan.current_version is None:
            got = f"{options['study']}/{options['plan']}"
            raise CommandError(f"plan: got {got!r}, expected a frozen plan")
        manifests, left = to_prml(plan.current_version)
        options["folder"].mkdir(parents=True, exist_ok=True)
        for item in manifests:
            with (options["folder"] / item.name).open("x", encoding="utf-8", newline="\n") as file:
                file.write(item.text)
        return {
            "written": [item.name for item in manifests],
            "sha256": [item.sha256 for item in manifests],
            "without a manifest": left,
            "not in a manifest": list(manifests[0].unmapped) if manifests else [],
        }

    def _import(self, options: dict[str, Any]) -> dict[str, Any]:
        study = Study.objects.filter(slug=options["study"]).first()
        if study is None:
            raise CommandError(f"study: got {options['study']!r}, expected the slug of a study")
        if Plan.objects.filter(study=study, slug=options["name"]).exists():
            raise CommandError(f"name: got {options['name']!r}, which is taken in {study.slug}, expected another")
        text = options["file"].read_text(encoding="utf-8")
        draft = from_prml(text, study=study.slug, name=options["name"], sha256=options["sha256"])
        by, at = service_actor("command line"), timezone.now()
        with audited_command("prml import", by=by, at=at, subject=options["name"], study=study):
            save_draft(study, options["name"], draft.text, by=by, at=at)
        return {
            "draft": f"{study.slug}/{options['name']}", "sha256": draft.sha256,
            "mapped": [f"{name} -> {place}" for name, place in draft.mapped.items()],
            "no place in a plan": list(draft.unmapped), "still missing": list(draft.missing),
        }  # fmt: skip
