"""``manage.py notes``: import a document or a bundled study, export a study's notes, list what there is."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from evidence.actions.notes import save_notes
from evidence.models import NotesVersion
from evidence.notes import read
from evidence.notes.schema import NotesInvalid
from runs.actions.actors import service_actor
from runs.actions.audit import audited_command
from runs.errors import DomainError
from runs.models import Study
from workbench.home import initialise

MOST_BYTES = 5_000_000
BUNDLED = "bundled:"


class Command(BaseCommand):
    """Ends with 0 where it did what was asked, 1 with every fault named where nothing was changed."""

    help = "Research notes: import FILE (YAML or JSON) or bundled:STUDY, export --study S, list."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        begin = verbs.add_parser("import", help="save a document as the next version of a study's notes")
        begin.add_argument("file", help="a notes document (.yaml, .yml, .json), or bundled:STUDY, or bundled:all")
        begin.add_argument("--study", default="", help="slug of the study (default: the one that the document names)")
        begin.add_argument("--reason", default="", help="why the version before is replaced")
        leave = verbs.add_parser("export", help="write the newest document")
        leave.add_argument("--study", required=True, help="slug of the study")
        leave.add_argument("--version", type=int, dest="number", help="an earlier version")
        leave.add_argument("--format", choices=("json", "yaml"), default="yaml")
        leave.add_argument("--output", type=Path, help="file to write (default: standard output)")
        verbs.add_parser("list", help="studies with notes").add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        initialise(settings.HOME)
        try:
            getattr(self, f"_{options['verb']}")(options)
        except NotesInvalid as error:
            for found in error.faults:
                self.stderr.write(str(found))
            raise CommandError(f"nothing was saved: {len(error.faults)} faults, named above") from error
        except DomainError as error:
            raise CommandError(str(error)) from error

    def _import(self, options: dict[str, Any]) -> None:
        by, at = service_actor("command line"), timezone.now()
        if options["file"].startswith(BUNDLED):
            self._bundled(options["file"].removeprefix(BUNDLED))
            return
        document = load(Path(options["file"]))
        study = _study(options["study"] or str(document.get("study", "")))
        with audited_command("notes", by=by, at=at, subject=options["file"], study=study):
            saved = save_notes(study, document, by=by, at=at, reason=options["reason"])
        self.stdout.write(f"{study.slug}: version {saved.number}, sha256 {saved.document_sha256}")

    def _bundled(self, name: str) -> None:
        from evidence.actions.bundle_import import import_bundled, import_reference_study

        by, at = service_actor("bundled records"), timezone.now()
        with audited_command("notes", by=by, at=at, subject=f"{BUNDLED}{name}", study=None):
            done = import_bundled(by=by, at=at) if name == "all" else [import_reference_study(name, by=by, at=at)]
        for row in done:
            counts = ", ".join(f"{value} {key}" for key, value in row.items() if key not in ("study", "changed"))
            self.stdout.write(f"{row['study']}: {'imported' if row['changed'] else 'stood already'}; {counts}")

    def _export(self, options: dict[str, Any]) -> None:
        study, number = _study(options["study"]), options["number"]
        found = read.current(study) if number is None else read.version(study, number)
        if found is None:
            raise CommandError(
                f"--study: got {study.slug!r} without {number or 'any'} version, expected one with notes"
            )
        document = read.document_of(found)
        if options["format"] == "json":
            text = json.dumps(document, ensure_ascii=False, indent=2) + "\n"
        else:
            text = yaml.safe_dump(document, allow_unicode=True, sort_keys=False, width=110)
        if options["output"] is None:
            self.stdout.write(text, ending="")
        else:
            options["output"].write_text(text, encoding="utf-8")

    def _list(self, options: dict[str, Any]) -> None:
        rows = NotesVersion.objects.select_related("study").order_by("study__slug", "-number")
        newest: dict[str, NotesVersion] = {}
        for row in rows:
            newest.setdefault(row.study.slug, row)
        found = [
            {"study": slug, "version": row.number, "page_date": row.page_date.isoformat(), "imported": row.imported,
             "sha256": row.document_sha256}
            for slug, row in newest.items()
        ]  # fmt: skip
        if options["json"]:
            self.stdout.write(json.dumps(found))
            return
        for item in found:
            mark = "  imported record" if item["imported"] else ""
            self.stdout.write(f"{item['study']}  version {item['version']}  {item['page_date']}{mark}")
        if not found:
            self.stdout.write("no study has notes yet; `manage.py notes import bundled:all` brings the bundled ones")


def _study(slug: str) -> Study:
    found = Study.objects.filter(slug=slug).first()
    if found is None:
        raise CommandError(f"--study: got {slug!r}, expected the slug of a study")
    return found


def load(path: Path) -> dict[str, Any]:
    """A document from a YAML or JSON file. Raises ``CommandError`` for a file that is none."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise CommandError(f"file: got {path.stat().st_size} bytes, expected at most {MOST_BYTES}")
        text = path.read_text(encoding="utf-8")
        found = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except (OSError, UnicodeDecodeError, ValueError, yaml.YAMLError) as error:
        raise CommandError(f"file: got {path}, which cannot be read ({error}), expected a notes document") from error
    if not isinstance(found, dict):
        raise CommandError(f"file: got {type(found).__name__} in {path}, expected a notes document")
    return found
