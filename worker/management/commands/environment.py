"""``manage.py environment``: list what a plan may name, and check an environment and its reward before a plan does."""

from __future__ import annotations

import argparse
import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from workbench.contracts.canonical import parse_json
from workbench.contracts.errors import CanonicalError
from worker.environments import loading
from worker.environments.conformance.examine import Report, examine
from worker.environments.conformance.processes import children_ended
from worker.environments.conformance.subject import Subject
from worker.environments.registry import environment_names, environment_path

MARKS = {True: "ok", False: "FAILED", None: "-"}


class Command(BaseCommand):
    """Loads neither a model nor a database."""

    help = "List environments, rewards and models that a plan may name, or check one environment."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        listing = actions.add_parser("list", help="ids of bundled and registered environments, rewards and models")
        check = actions.add_parser("check", help="run the conformance suite on an environment")
        check.add_argument("environment", help="an id, a registered name, or package.module:Class")
        check.add_argument("--config", default="{}", help="the plan's environment.config as a JSON object")
        check.add_argument("--reward", help="a reward from outside: a registered name or package.module:Class")
        for action in (listing, check):
            action.add_argument("--json", action="store_true", help="print one JSON object on the last line")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["action"] == "list":
            self._list(options["json"])
        else:
            self._check(options)

    def _list(self, as_json: bool) -> None:
        found: dict[str, dict[str, str | None]] = {
            "environments": {name: environment_path(name) for name in environment_names()},
            "rewards": _registered(loading.REWARDS),
            "models": _registered(loading.MODELS),
        }
        if as_json:
            self.stdout.write(json.dumps(found))
            return
        for kind, names in found.items():
            self.stdout.write(f"{kind}: " + ("none registered" if not names else ""))
            for name, path in names.items():
                self.stdout.write(f"  {name}  {path}")

    def _check(self, options: dict[str, Any]) -> None:
        subject = Subject(options["environment"], _config(options["config"]), options["reward"])
        with children_ended():
            report = examine(subject)
        self.stdout.write(json.dumps(as_value(report)) if options["json"] else as_text(report))
        if not report.ok:
            raise SystemExit(1)


def _registered(group: str) -> dict[str, str | None]:
    return {name: loading.entry_point_path(group, name) for name in loading.entry_point_names(group)}


def _config(text: str) -> dict[str, Any]:
    try:
        value = parse_json(text)
    except CanonicalError as error:
        raise CommandError(f"--config: got {text[:80]!r}, expected a JSON object ({error})") from error
    if not isinstance(value, dict):
        raise CommandError(f"--config: got {type(value).__name__}, expected a JSON object")
    return value


def as_value(report: Report) -> dict[str, Any]:
    """The report as one JSON object."""
    checks = [{"name": item.name, "title": item.title, "ok": item.ok, "detail": item.detail} for item in report.results]
    return {
        "environment": report.environment,
        "path": report.path,
        "reward": report.reward,
        "code_sha256": report.code_sha256,
        "code": report.code,
        "checks": checks,
        "ok": report.ok,
    }


def as_text(report: Report) -> str:
    """The report for a terminal: what was checked, then whose code it is."""
    lines = [f"{MARKS[item.ok]:>6}  {item.title}: {item.detail}" for item in report.results]
    if report.code is not None:
        owner = report.code["distribution"]
        whose = f"{owner} {report.code['version']}" if owner else "no installed distribution"
        lines.append(f"code {report.code_sha256} ({whose}, {len(report.code['files'])} files)")
    failed = len(report.failures())
    lines.append("passed" if report.ok else f"{failed} of {len(report.results)} checks failed")
    return "\n".join(lines)
