"""``manage.py controls``: run the controls of an environment here and record them, or print the newest record."""

from __future__ import annotations

import argparse
import json
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.utils import timezone

from runs.actions.actors import service_actor
from runs.actions.audit import audited_command
from runs.actions.documents import AlreadyRecorded
from runs.actions.record_controls import record_controls
from runs.errors import DomainError
from runs.models import ControlSet, Document, Study
from runs.storage import blob_store
from workbench.contracts.canonical import parse_json
from workbench.contracts.controls import CONTROLS, ControlsSpec, admission, counts, parse_controls
from workbench.contracts.errors import CanonicalError, ContractError, EnvironmentFault
from workbench.home import initialise


class Command(BaseCommand):
    """Needs no running server and loads no model; results on standard output, progress on standard error."""

    help = "Run the controls of an environment's tasks and record what came of them (controls run NAME)."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        run = actions.add_parser("run", help="try every control of every task in a fresh sandbox and record it")
        show = actions.add_parser("show", help="print the newest record of an environment")
        for action in (run, show):
            action.add_argument("environment", help="an id, a registered name, or package.module:Class")
            action.add_argument("--json", action="store_true", help="print one JSON object on the last line")
        run.add_argument("--config", default="{}", help="the plan's environment.config as a JSON object")
        run.add_argument("--split", action="append", default=[], help="tasks of this split alone; may be repeated")
        run.add_argument("--study", help="slug of the study whose record it is; none: the installation's")

    def handle(self, *args: Any, **options: Any) -> None:
        initialise(settings.HOME)
        try:
            made = self._run(options) if options["action"] == "run" else _newest(options["environment"])
        except (DomainError, ContractError, CanonicalError, EnvironmentFault, AlreadyRecorded) as error:
            raise CommandError(" ".join(str(error).split())) from error
        found = summary(made)
        self.stdout.write(json.dumps(found) if options["json"] else text(found))
        if found["counts"]["expectation_mismatch"][0] or found["counts"]["unresolved"][0]:
            raise SystemExit(1)

    def _run(self, options: dict[str, Any]) -> ControlSet:
        from worker.engine.controls import controls  # loads the environment's code

        study = _study(options["study"])
        config = parse_json(options["config"])
        if not isinstance(config, dict):
            raise CommandError(f"--config: got {type(config).__name__}, expected a JSON object")
        by, name = service_actor("command line"), options["environment"]
        with audited_command("controls run", by=by, at=timezone.now(), subject=name, study=study):
            spec = ControlsSpec(name, config, tuple(options["split"]))
            result = controls(spec, blob_store(), progress=self._say)
            with transaction.atomic():
                return record_controls(result, study=study, by=by, at=timezone.now())

    def _say(self, value: dict[str, Any]) -> None:
        if value["done"] % 10 == 0 or value["done"] == value["total"]:
            self.stderr.write(f"controls: {value['done']} of {value['total']} tasks")


def _study(slug: str | None) -> Study | None:
    if slug is None:
        return None
    found = Study.objects.filter(slug=slug).first()
    if found is None:
        raise CommandError(f"--study: got {slug!r}, expected the slug of a study")
    return found


def _newest(environment: str) -> ControlSet:
    found = ControlSet.objects.filter(environment=environment).order_by("-pk").first()
    if found is None:
        raise CommandError(f"controls: got no record of {environment!r}, expected one: controls run {environment}")
    return found


def summary(made: ControlSet) -> dict[str, Any]:
    """What a record says, as plain values: overlapping counts [count, of], admitted tasks, mismatches by slot."""
    record = parse_controls(bytes(Document.objects.get(kind=CONTROLS, subject_uid=made.uid).bytes))
    tasks: dict[str, list[Any]] = {}
    for slot in record.slots:
        tasks.setdefault(slot.task_uid, []).append(slot)
    admitted = [admission(slots) for slots in tasks.values()]
    return {
        "controls": record.uid,
        "record_sha256": made.record_sha256,
        "environment": record.environment,
        "version": record.environment_version,
        "task_set": record.task_set_sha256,
        "verifier": record.verifier,
        "ordinal": record.ordinal,
        "tasks": len(tasks),
        "slots": len(record.slots),
        "counts": {item.category: [item.count, item.of] for item in counts(record.slots) if item.kind is None},
        "by_kind": {
            kind: {item.category: [item.count, item.of] for item in counts(record.slots) if item.kind == kind}
            for kind in dict.fromkeys(slot.kind for slot in record.slots)
        },
        "admitted": {"yes": admitted.count(True), "no": admitted.count(False), "unknown": admitted.count(None)},
        "mismatches": [f"{slot.task_key} {slot.kind}" for slot in record.slots if slot.as_expected is False][:50],
    }


def text(found: dict[str, Any]) -> str:
    """The summary for a terminal."""
    lines = [
        f"{found['environment']} {found['version']}, {found['verifier']}: {found['tasks']} tasks, "
        f"{found['slots']} slots, record {found['ordinal']}"
    ]
    lines += [f"  {name.replace('_', ' '):<22} {count} of {of}" for name, (count, of) in found["counts"].items()]
    lines.append("  (overlapping categories: their sum is no number of slots)")
    yes, no, unknown = (found["admitted"][name] for name in ("yes", "no", "unknown"))
    lines.append(f"tasks admitted {yes}, refused {no}, unknown {unknown}")
    lines += [f"  mismatch: {item}" for item in found["mismatches"]]
    return "\n".join(lines)
