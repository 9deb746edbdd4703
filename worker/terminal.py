"""A study at a terminal: workers for the time of a command, a progress bar, and the summary as text.

Shared by ``manage.py study`` and ``manage.py plan``. Results go to standard output, progress to standard error.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from tqdm import tqdm

from runs.actions.advance import progress_of
from runs.models import Execution
from workbench.contracts.canonical import parse_json
from workbench.home import running_supervisor
from worker.left import said

ENDED = ("closed", "stopped", "cancelled", "interrupted")


def execution_of(plan: str) -> Execution:
    """The execution of the plan with this name. Raises ``CommandError`` where none was started."""
    found = Execution.objects.filter(plan_version__plan__slug=plan).first()
    if found is None:
        raise CommandError(f"{plan}: got no execution, expected one that was started")
    return found


def recovery_plan(path: str) -> dict[str, Any]:
    """The recovery plan in a JSON file. Raises ``CommandError`` where there is no JSON object."""
    try:
        value = parse_json(Path(path).read_bytes())
    except OSError as error:
        raise CommandError(f"--plan: got {path}: {error.strerror}, expected a readable JSON file") from error
    if not isinstance(value, dict):
        raise CommandError(f"--plan: got {type(value).__name__}, expected a JSON object")
    return value


def say(value: Any) -> None:
    """One line about what is being prepared."""
    parts = [str(value[name]) for name in ("stage", "part") if value.get(name)] if isinstance(value, dict) else [value]
    count = f" {value['done']}/{value['total']}" if isinstance(value, dict) and value.get("total") else ""
    sys.stderr.write(f"preparing: {' '.join(parts)}{count}{said(value)}\n")
    sys.stderr.flush()


@contextlib.contextmanager
def workers() -> Iterator[None]:
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


def watch(execution: Execution, timeout: float) -> None:
    """Follow an execution to its end. Raises ``CommandError`` after ``timeout`` seconds (0: never)."""
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
            time.sleep(0.3)


def _interval(item: dict[str, Any]) -> str:
    if item["difference"] is None:
        return f"— ({item['state']})"
    seeds = f"{item['seeds']} seeds" if item["seed_sd"] is None else f"{item['seeds']} seeds, sd {item['seed_sd']:.4f}"
    bounds = f"[{item['low']:+.4f}, {item['high']:+.4f}]" if item["low"] is not None else "no interval"
    return f"{item['difference']:+.4f} {bounds}, {item['tasks']} tasks, {seeds}"


def compared(item: dict[str, Any]) -> str:
    """What a difference subtracts: second arm minus first of a pair, else each arm minus the parent."""
    arms = item["arms"]
    return f"{arms[1]} − {arms[0]}" if item["compare"] == "pair" else f"{', '.join(arms)} − parent"


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _run_line(run: dict[str, Any]) -> str:
    """One run; ``updates`` of the summary are its optimizer steps."""
    parts = [
        f"{run['arm']} seed {run['seed']}: {run['state']}",
        f"{_counted(run['groups'], 'group', 'groups')}, {run['eligible']} eligible, {run['with_signal']} with signal",
        f"{_counted(run['batches'], 'batch', 'batches')}, "
        f"{_counted(run['updates'], 'optimizer step', 'optimizer steps')}",
        f"{_counted(run['masked_tokens'], 'token', 'tokens')} masked",
        run["reason"],
    ]
    return "  " + "; ".join(part for part in parts if part)


def summary_text(result: dict[str, Any]) -> str:
    """A summary as a person reads it."""
    opening = "; ".join(part for part in (result["state"], result["reason"]) if part)
    lines = [f"{result['plan']}: {opening}", f"plan {result['plan_sha256']}"]
    for run in result["runs"]:
        lines.append(_run_line(run))
    for cell in result["evaluation"]:
        name = f"{cell['arm']}-s{cell['seed']}" if cell["arm"] else "parent"
        reward = "—" if cell["reward_mean"] is None else f"{cell['reward_mean']:.4f}"
        lines.append(
            f"  {name} {cell['condition']} {cell['split']}: reward {reward}, "
            f"success {cell['success'][0]}/{cell['success'][1]}, "
            f"finish {cell['finish'][0]}/{cell['finish'][1]}, Fatal {cell['fatal'][0]}/{cell['fatal'][1]}"
        )
    for item in result["endpoints"]:
        lines.append(f"  {item['id']} {compared(item)}: {_interval(item)}")
    if result["closure"]:
        lines.append(f"closure {result['closure']['manifest_sha256']}")
    lines.append(f"{result['wall_s']} s")
    return "\n".join(lines)
