"""Submit a bundled study to the running workers and follow it: ``python -m worker.submit SLUG SCALE``."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any

from worker.left import said as said_left

if TYPE_CHECKING:
    from runs.models import Execution

EVERY_SECONDS = 10.0
ENDED = ("closed", "stopped", "cancelled", "interrupted")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _stages() -> Any:
    """A progress callback that says each stage once, and every tenth of a long one."""
    said: set[tuple[str, int]] = set()

    def report(value: dict[str, Any]) -> None:
        name = str(value.get("part") or value.get("stage"))
        done, total = value.get("done"), value.get("total")
        tenth = int(10 * done / total) if done is not None and total else 0
        if (name, tenth) not in said:
            said.add((name, tenth))
            _say(f"preparing: {name}" + (f" {done}/{total}{said_left(value)}" if total else ""))

    return report


def follow(execution: Execution, address: str | None) -> None:
    """Say every ten seconds how far the execution is, and at its end where its results are."""
    from runs.actions.advance import progress_of

    version = execution.plan_version
    where = f"{address or ''}studies/{version.plan.study.slug}/plans/{version.plan.slug}/results/"
    started, first, said = time.monotonic(), progress_of(execution)["done"], 0.0
    while True:
        execution.refresh_from_db()
        progress = progress_of(execution)
        if execution.state in ENDED:
            _say(f"{version.plan.slug} is {execution.state}: {execution.reason}. Results: {where}")
            return
        if time.monotonic() - said >= EVERY_SECONDS:
            said = time.monotonic()
            done, total = progress["done"], progress["expected"]
            rate = (done - first) / max(said - started, 1e-9)
            left = f", about {(total - done) / rate:.0f} s left" if rate > 0 else ""
            _say(f"{version.plan.slug}: {done} of at most {total} jobs, {progress['phase']}{left}")
        time.sleep(1.0)


def main(arguments: list[str]) -> int:
    """Entry point. Exit status 2 for wrong arguments; what the study refuses passes on as an error."""
    if len(arguments) != 2:
        sys.stderr.write("usage: python -m worker.submit SLUG SCALE\n")
        return 2
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "workbench.settings")
    import django

    django.setup()
    from django.conf import settings
    from django.utils import timezone

    from runs.actions.actors import service_actor
    from runs.actions.audit import audited_command
    from workbench.home import running_supervisor
    from worker.study import start_study

    slug, scale = arguments
    by, at = service_actor("command line"), timezone.now()
    with audited_command(f"up --study {slug}", by=by, at=at, subject=f"scale {scale}", study=slug):
        execution = start_study(slug, scale, on_progress=_stages())
    name = execution.plan_version.plan.slug
    _say(f"{name}: " + ("ended before" if execution.state in ENDED else "started"))
    follow(execution, (running_supervisor(settings.HOME) or {}).get("address"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
