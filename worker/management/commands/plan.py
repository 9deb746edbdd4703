"""``manage.py plan``: check a plan file, or run it to its end, or go on with one that was interrupted."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from runs.actions.actors import service_actor
from runs.actions.audit import audited_command
from runs.actions.execution import recover_execution, recovery_template
from runs.actions.plans import parse_plan_text, plan_body
from runs.errors import DomainError
from runs.models import PlanVersion
from workbench.contracts.errors import ContractError, PlanInvalid
from workbench.contracts.spec import check_pairs, complete_plan
from workbench.home import initialise
from worker.study import freeze_document, start_version, summary
from worker.terminal import execution_of, recovery_plan, say, summary_text, watch, workers


class Command(BaseCommand):
    """Works with or without a running server; results on standard output, progress on standard error."""

    help = "Check a plan file (plan check FILE), run it (plan run FILE), or recover its execution."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        for name, text in (
            ("check", "read the file and name every fault in it; loads no model and changes nothing"),
            ("run", "freeze what the file says and run it to the end; again: go on with it"),
            ("recover", "go on with an interrupted execution of this plan under a recorded recovery plan"),
        ):
            action = actions.add_parser(name, help=text)
            action.add_argument("file", help="a YAML or JSON plan document, schema workbench.plan/1")
            action.add_argument("--json", action="store_true", help="print one JSON object on the last line")
            if name == "recover":
                given = action.add_mutually_exclusive_group(required=True)
                given.add_argument("--plan", help="JSON file with checkpoint, runtime and termination_evidence")
                given.add_argument("--template", action="store_true", help="print such a file, change nothing")
            if name == "run":
                action.add_argument("--timeout", type=float, default=0, help="give up waiting after seconds (0: never)")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            document = _read(options["file"])
            complete = complete_plan(document)
            check_pairs(complete)
            if options["action"] == "check":
                self._checked(complete, options["json"])
            elif options["action"] == "run":
                self._run(document, options)
            else:
                self._recover(complete, options)
        except PlanInvalid as error:
            raise CommandError("\n".join(str(item) for item in error.problems)) from error
        except (DomainError, ContractError) as error:
            raise CommandError(str(error)) from error

    def _checked(self, plan: dict[str, Any], as_json: bool) -> None:
        found = {"study": plan["study"], "plan": plan["name"], "arms": [arm["key"] for arm in plan["arms"]], "ok": True}
        self.stdout.write(json.dumps(found) if as_json else f"{plan['name']}: every field is legal")

    def _run(self, document: dict[str, Any], options: dict[str, Any]) -> None:
        started = time.monotonic()
        initialise(settings.HOME)
        by, at, plan = service_actor("command line"), timezone.now(), complete_plan(document)
        with workers():
            with audited_command("plan run", by=by, at=at, subject=plan["name"], study=plan["study"]):
                version = freeze_document(document, by=by, on_progress=say)
                self._bound(version)
                execution = start_version(version, by=by)
            watch(execution, options["timeout"])
        result = summary(execution, wall_s=round(time.monotonic() - started, 2))
        self.stdout.write(json.dumps(result, ensure_ascii=False) if options["json"] else summary_text(result))
        if result["state"] != "closed":
            raise SystemExit(1)

    def _bound(self, version: PlanVersion) -> None:
        """Say whose code the freeze bound."""
        for name, owner, sha in bound_code(version):
            self.stderr.write(f"bound: {name} {owner} {sha[:12]}")

    def _recover(self, plan: dict[str, Any], options: dict[str, Any]) -> None:
        initialise(settings.HOME)
        if options["template"]:
            self.stdout.write(json.dumps(recovery_template(execution_of(plan["name"]))))
            return
        by, at = service_actor("command line"), timezone.now()
        with audited_command("plan recover", by=by, at=at, subject=plan["name"], study=plan["study"]):
            found = execution_of(plan["name"])
            recover_execution(found, recovery_plan=recovery_plan(options["plan"]), by=by, at=at)
        found.refresh_from_db()
        result = {"execution": str(found.uid), "state": found.state}
        self.stdout.write(json.dumps(result) if options["json"] else f"{plan['name']}: {found.state}")


def _read(path: str) -> dict[str, Any]:
    try:
        return parse_plan_text(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path}: {error}, expected a readable plan document") from error


def bound_code(version: PlanVersion) -> list[tuple[str, str, str]]:
    """(what, its distribution and version, code hash) of everything with code that a frozen plan binds."""
    bindings = plan_body(version)["bindings"]
    reward = bindings["reward"] if bindings["reward"].get("code") else {}  # else it is the environment's own
    profile = bindings["policy"].get("profile") or {}
    found = [("environment", bindings["environment"]), ("reward", reward), ("model profile", profile)]
    rows = []
    for name, bound in found:
        code = bound.get("code") or bound
        if bound.get("code_sha256"):
            owner = f"{code['distribution']} {code['version']}" if code.get("distribution") else "without distribution"
            rows.append((name, owner, str(bound["code_sha256"])))
    return rows
