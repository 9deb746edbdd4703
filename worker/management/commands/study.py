"""``manage.py study``: run a bundled study to its end, or pause, resume and cancel one."""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from tqdm import tqdm

from runs.actions.actors import service_actor
from runs.actions.advance import progress_of
from runs.actions.execution import recover_execution, recovery_template
from runs.actions.runs_control import cancel_execution, pause_execution, resume_execution
from runs.errors import DomainError
from runs.models import Execution
from workbench.contracts.canonical import parse_json
from workbench.contracts.errors import ContractError
from workbench.home import initialise, running_supervisor
from worker.study import bundled, load_study, start_study, summary

SCALES = ("tiny", "small", "full")
ENDED = ("closed", "stopped", "cancelled", "interrupted")


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
        execution = Execution.objects.filter(plan_version__plan__slug=document["name"]).first()
        if execution is None:
            raise CommandError(f"{document['name']}: got no execution, expected one that was started")
        by = service_actor("command line")
        if options.get("template"):
            self.stdout.write(json.dumps(recovery_template(execution)))
            return
        if options["action"] == "recover":
            recover_execution(execution, recovery_plan=_recovery_plan(options["plan"]), by=by, at=timezone.now())
        else:
            {"pause": pause_execution, "resume": resume_execution, "cancel": cancel_execution}[options["action"]](
                execution, by=by
            )
        execution.refresh_from_db()
        result = {"execution": str(execution.uid), "state": execution.state}
        self.stdout.write(json.dumps(result) if options["json"] else f"{document['name']}: {execution.state}")

    def _run(self, options: dict[str, Any]) -> None:
        started = time.monotonic()
        load_study(options["slug"], options["scale"])
        with _workers():
            execution = start_study(options["slug"], options["scale"], on_progress=_say)
            _watch(execution, options["timeout"])
        result = summary(execution, wall_s=round(time.monotonic() - started, 2))
        if not options["json"]:
            self.stdout.write(_text(result))
        else:
            self.stdout.write(json.dumps(result, ensure_ascii=False))
        if result["state"] != "closed":
            raise SystemExit(1)


def _recovery_plan(path: str) -> dict[str, Any]:
    try:
        value = parse_json(Path(path).read_bytes())
    except OSError as error:
        raise CommandError(f"--plan: got {path}: {error.strerror}, expected a readable JSON file") from error
    if not isinstance(value, dict):
        raise CommandError(f"--plan: got {type(value).__name__}, expected a JSON object")
    return value


def _say(value: Any) -> None:
    parts = [str(value[name]) for name in ("stage", "part") if value.get(name)] if isinstance(value, dict) else [value]
    count = f" {value['done']}/{value['total']}" if isinstance(value, dict) and value.get("total") else ""
    sys.stderr.write(f"preparing: {' '.join(parts)}{count}\n")
    sys.stderr.flush()


@contextlib.contextmanager
def _workers() -> Iterator[None]:
    """Workers for the time of this command: those of the running server, else our own without web."""
    if running_supervisor(settings.HOME) is not None:
        yield
        return
    command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "up", "--no-web", "--stop-with-parent"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, start_new_session=True)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _interval_of(stream: Any) -> float:
    """Seconds between two drawings of the bar: seldom where nobody looks at a terminal."""
    return 0.2 if stream.isatty() else 10.0


def _watch(execution: Execution, timeout: float) -> None:
    end = time.monotonic() + timeout if timeout else None
    bar = tqdm(
        total=0, unit="job", file=sys.stderr, dynamic_ncols=True, smoothing=0.1, mininterval=_interval_of(sys.stderr)
    )
    with bar:
        while True:
            execution.refresh_from_db()
            progress = progress_of(execution)
            bar.total = progress["expected"]
            bar.set_description(f"{progress['state']} {progress['phase']}", refresh=False)
            now = " · ".join(f"{item['kind']} {item['run'] or 'parent'}" for item in progress["now"])
            bar.set_postfix_str(now[:60], refresh=False)
            bar.update(progress["done"] - bar.n)
            if progress["state"] in ENDED:
                return
            if end is not None and time.monotonic() > end:
                raise CommandError(
                    f"the study is still {progress['state']} after {timeout:g} s; it goes on at the next start"
                )
            time.sleep(1.0)


def _interval(item: dict[str, Any]) -> str:
    if item["difference"] is None:
        return f"— ({item['state']})"
    seeds = f"{item['seeds']} seeds" if item["seed_sd"] is None else f"{item['seeds']} seeds, sd {item['seed_sd']:.4f}"
    bounds = f"[{item['low']:+.4f}, {item['high']:+.4f}]" if item["low"] is not None else "no interval"
    return f"{item['difference']:+.4f} {bounds}, {item['tasks']} tasks, {seeds}"


def _text(result: dict[str, Any]) -> str:
    lines = [f"{result['plan']}: {result['state']} {result['reason']}", f"plan {result['plan_sha256']}"]
    for run in result["runs"]:
        lines.append(
            f"  {run['arm']} seed {run['seed']}: {run['state']}, {run['groups']} groups, {run['eligible']} eligible, "
            f"{run['with_signal']} with signal, {run['updates']} updates, "
            f"{run['masked_tokens']} tokens masked {run['reason']}"
        )
    for cell in result["evaluation"]:
        name = f"{cell['arm']}-s{cell['seed']}" if cell["arm"] else "parent"
        reward = "—" if cell["reward_mean"] is None else f"{cell['reward_mean']:.4f}"
        lines.append(
            f"  {name} {cell['condition']} {cell['split']}: reward {reward}, "
            f"success {cell['success'][0]}/{cell['success'][1]}, "
            f"finish {cell['finish'][0]}/{cell['finish'][1]}, Fatal {cell['fatal'][0]}/{cell['fatal'][1]}"
        )
    for item in result["endpoints"]:
        lines.append(f"  {item['id']} {'-'.join(item['arms'])}: {_interval(item)}")
    if result["closure"]:
        lines.append(f"closure {result['closure']['manifest_sha256']}")
    lines.append(f"{result['wall_s']} s")
    return "\n".join(lines)
