"""``manage.py study``: run a bundled study to its end, or pause, resume and cancel one."""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from runs.actions.actors import service_actor
from runs.actions.audit import audited_command
from runs.actions.execution import recover_execution, recovery_template
from runs.actions.runs_control import cancel_execution, pause_execution, resume_execution
from runs.errors import DomainError
from runs.models import Execution
from workbench.contracts.errors import ContractError
from workbench.home import initialise, running_supervisor
from worker import closing
from worker.study import bundled, load_study, start_study, summary
from worker.terminal import execution_of, recovery_plan, say, summary_text, watch, workers

SCALES = ("tiny", "small", "full")
NOTES_S = 30.0  # that our workers get to write a closed study's sources and notes


class Command(BaseCommand):
    """Works with or without a running server; results on standard output, progress on standard error."""

    help = "Run a bundled study (study run SLUG), or list, pause, resume and cancel."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        listing = actions.add_parser("list", help="name the bundled studies, their scales and where each stands")
        listing.add_argument("--json", action="store_true", help="print one JSON object on the last line")
        for name, text in (
            ("run", "freeze and run to the end, and print what came out"),
            ("pause", "let jobs in flight end and start no other"),
            ("resume", "go on with a paused study"),
            ("cancel", "end a study for good"),
            ("recover", "go on with an interrupted study under a recorded recovery plan"),
        ):
            action = actions.add_parser(name, help=text)
            action.add_argument("slug", help="for example fatal-mask-pair")
            action.add_argument("--scale", default="small", choices=SCALES)
            action.add_argument("--json", action="store_true", help="print one JSON object on the last line")
            if name == "recover":
                given = action.add_mutually_exclusive_group(required=True)
                given.add_argument("--plan", help="JSON file with checkpoint, runtime and termination_evidence")
                given.add_argument(
                    "--template", action="store_true", help="print such a file to fill in, change nothing"
                )
            action.add_argument(
                "--timeout", type=float, default=0, help="give up waiting after so many seconds (0: never)"
            )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["action"] == "list":
            self._list(options["json"])
            return
        initialise(settings.HOME)
        try:
            if options["action"] == "run":
                self._run(options)
            else:
                self._control(options)
        except (DomainError, ContractError) as error:
            raise CommandError(str(error)) from error

    def _list(self, as_json: bool) -> None:
        initialise(settings.HOME)
        states = dict(Execution.objects.values_list("plan_version__plan__slug", "state"))
        found = [
            {"study": slug, "scale": scale, "plan": name, "state": states.get(name, "not started")}
            for slug in bundled()
            for scale in SCALES
            for name in [load_study(slug, scale)[1]["name"]]
        ]
        if as_json:
            self.stdout.write(json.dumps({"studies": found}))
            return
        for item in found:
            self.stdout.write(f"{item['study']} --scale {item['scale']}: {item['state']}")

    def _control(self, options: dict[str, Any]) -> None:
        _, document = load_study(options["slug"], options["scale"])
        if options.get("template"):
            self.stdout.write(json.dumps(recovery_template(execution_of(document["name"]))))
            return
        by, at, action = service_actor("command line"), timezone.now(), options["action"]
        with audited_command(f"study {action}", by=by, at=at, subject=document["name"], study=document["study"]):
            execution = execution_of(document["name"])
            if action == "recover":
                recover_execution(execution, recovery_plan=recovery_plan(options["plan"]), by=by, at=at)
            else:
                {"pause": pause_execution, "resume": resume_execution, "cancel": cancel_execution}[action](
                    execution, by=by, at=at
                )
        execution.refresh_from_db()
        result = {"execution": str(execution.uid), "state": execution.state}
        self.stdout.write(json.dumps(result) if options["json"] else f"{document['name']}: {execution.state}")

    def _run(self, options: dict[str, Any]) -> None:
        started = time.monotonic()
        _, document = load_study(options["slug"], options["scale"])
        by, at, name = service_actor("command line"), timezone.now(), document["name"]
        with workers():
            with audited_command("study run", by=by, at=at, subject=name, study=document["study"]):
                execution = start_study(options["slug"], options["scale"], on_progress=say)
            watch(execution, options["timeout"])
            result = summary(execution, wall_s=round(time.monotonic() - started, 2))
            if result["state"] == "closed":
                closing.await_written(NOTES_S)
        if running_supervisor(settings.HOME) is None:  # our own workers ended with the study: nobody else writes them
            closing.collect_missing()
            closing.write_missing_notes()
        if not options["json"]:
            self.stdout.write(summary_text(result))
        else:
            self.stdout.write(json.dumps(result, ensure_ascii=False))
        if result["state"] != "closed":
            raise SystemExit(1)
