"""``manage.py journal``: draft a day, print the days of a study, add a note."""

from __future__ import annotations

import argparse
import datetime
import json
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from evidence.actions.journal import draft_day
from evidence.journal.lines import check_line
from evidence.journal.shown import shown_lines
from evidence.models import JournalDay, JournalNote
from runs.actions.actors import service_actor
from runs.actions.audit import audited_command
from runs.errors import DomainError
from runs.models import Study
from workbench.home import initialise


class Command(BaseCommand):
    """Notes are of people and are written on the page or through the API, under their own names."""

    help = "Draft a day of a study's journal from receipts (journal draft SLUG), or print it (journal show SLUG)."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        for name, text in (
            ("draft", "draft a day from its receipts; the same lines again are no new draft"),
            ("show", "print a day's newest draft with its notes; changes nothing"),
            ("check", "compare every value of every draft with its receipt; exit 1 on a difference"),
        ):
            action = actions.add_parser(name, help=text)
            action.add_argument("study", help="the study's slug")
            if name != "check":
                action.add_argument("--day", type=_day, help="as 2026-11-30; by default today (UTC)")
            if name == "show":
                action.add_argument("--language", choices=("en", "zh"), default="en")
            action.add_argument("--json", action="store_true", help="print one JSON object on the last line")

    def handle(self, *args: Any, **options: Any) -> None:
        initialise(settings.HOME)
        study = Study.objects.filter(slug=options["study"]).first()
        if study is None:
            raise CommandError(f"study: got {options['study']!r}, expected the slug of a study")
        at = timezone.now()
        day = options.get("day") or at.date()
        match options["action"]:
            case "draft":
                self._draft(study, day, at, options["json"])
            case "show":
                self._show(study, day, options["language"], options["json"])
            case _:
                self._check(study, options["json"])

    def _draft(self, study: Study, day: datetime.date, at: datetime.datetime, as_json: bool) -> None:
        by = service_actor("command line")
        try:
            with audited_command("journal draft", by=by, at=at, subject=str(day), study=study):
                row = draft_day(study, day, by=by, at=at)
        except DomainError as error:
            raise CommandError(str(error)) from error
        found = {"study": study.slug, "day": str(day), "draft": row.number, "lines": len(row.lines)}
        text = f"{study.slug} {day}: draft {row.number} with {len(row.lines)} lines"
        self.stdout.write(json.dumps(found) if as_json else text)

    def _show(self, study: Study, day: datetime.date, language: str, as_json: bool) -> None:
        row = JournalDay.objects.filter(study=study, day=day).order_by("-number").first()
        if row is None:
            raise CommandError(f"day: got {day}, of which there is no draft; journal draft {study.slug} --day {day}")
        notes = list(JournalNote.objects.filter(study=study, day=day).select_related("actor").order_by("pk"))
        if as_json:
            told = [{"text": note.text, "language": note.language, "by": note.actor.name} for note in notes]
            found = {"study": study.slug, "day": str(day), "draft": row.number, "lines": row.lines, "notes": told}
            self.stdout.write(json.dumps(found, ensure_ascii=False))
            return
        for line in shown_lines(row.lines, language):
            words = "".join(piece.words for piece in line.pieces)
            about = " ".join(part for part in (line.about, line.where) if part)
            self.stdout.write(f"{line.kind}: {words} {about} ({line.receipt[:12]})")
        for note in notes:
            self.stdout.write(f"note of {note.actor.name}: {note.text}")

    def _check(self, study: Study, as_json: bool) -> None:
        problems, count = [], 0
        for row in JournalDay.objects.filter(study=study).order_by("day", "number"):
            for line in row.lines:
                count += 1
                wrong = check_line(line)
                if wrong:
                    problems.append(f"{row.day} draft {row.number}: {wrong}")
        found = {"study": study.slug, "lines": count, "problems": problems, "ok": not problems}
        self.stdout.write(json.dumps(found) if as_json else "\n".join([*problems, f"{count} lines checked"]))
        if problems:
            raise SystemExit(1)


def _day(text: str) -> datetime.date:
    try:
        return datetime.date.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"got {text!r}, expected a day as 2026-11-30") from error
