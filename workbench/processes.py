"""Which processes make up a running Workbench: broker, web, compute workers, one worker for input and output."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from workbench import broker, devices
from workbench.paths import Home
from workbench.settings import child_environment
from workbench.supervisor import ChildSpec

WORKERS, WEB, BROKER = 1, 2, 3  # order of stopping
UNREADABLE_AFTER = 3  # failed starts of the broker in a row before its data is set aside
# Warm (the job at hand may end), then cold (it is cut off; its row is queued again).
WORKER_STOP = ((signal.SIGTERM, 3.0), (signal.SIGQUIT, 2.0))


@dataclass(frozen=True)
class Plan:
    """What to start. ``listener``: descriptor of the bound web socket, None without web."""

    home: Home
    instance: str
    workers: int
    listener: int | None
    log_level: str
    program: broker.BrokerProgram | None  # None: a broker is configured elsewhere

    def environment(self, name: str, extra: dict[str, str] | None = None) -> Callable[[int], dict[str, str]]:
        """Environment of a child by its generation."""

        def of(generation: int) -> dict[str, str]:
            return child_environment(
                {
                    "DJANGO_SETTINGS_MODULE": "workbench.settings",
                    "PYTHONUNBUFFERED": "1",
                    "WORKBENCH_HOME": str(self.home.root),
                    "WORKBENCH_PROCESS": self.process_name(name, generation),
                    **(extra or {}),
                }
            )

        return of

    def process_name(self, name: str, generation: int) -> str:
        """First part of the owner of leases: ``<home>/<child>.<start>``."""
        return f"{self.instance}/{name}.{generation}"


def default_workers() -> int:
    """One for each CUDA device, else up to two."""
    return devices.cuda_count() or min(2, devices.core_count())


def broker_child(plan: Plan, say: Callable[[str], None]) -> ChildSpec:
    """The embedded broker. Data that it cannot load is set aside: the database's rows send the messages again."""
    program = plan.program
    assert program is not None

    def before_start(failures: int) -> None:
        if failures and failures % UNREADABLE_AFTER == 0:
            kept = broker.set_aside(plan.home, program, time.strftime("%Y%m%d%H%M%S", time.gmtime()))
            say(f"the broker's data could not be loaded and was moved to {kept}; queued jobs are sent again")
        broker.prepare(plan.home, program)

    return ChildSpec(
        "broker",
        tuple(broker.command(plan.home, program)),
        plan.environment("broker"),
        BROKER,
        quiet=True,  # it greets at length; where it fails, the supervisor names its log
        before_start=before_start,
    )


def web_child(plan: Plan) -> ChildSpec:
    """The web server on a socket that the supervisor holds: a restart refuses no connection."""
    assert plan.listener is not None
    command = (sys.executable, "-m", "gunicorn", "--config", "python:workbench.web", "--no-control-socket")
    return ChildSpec(
        "web",
        (*command, "--bind", f"fd://{plan.listener}"),
        plan.environment("web"),
        WEB,
        pass_fds=(plan.listener,),
    )


def worker_child(
    plan: Plan, name: str, queues: tuple[str, ...], extra: dict[str, str], after_exit: Callable[[int], Awaitable[None]]
) -> ChildSpec:
    """A Celery worker with one pool process, under a node name of its own."""
    celery = (sys.executable, "-m", "celery", "--quiet", "-A", "workbench.celery", "worker")
    options = ("--pool", "prefork", "--concurrency", "1", "--without-gossip", "--without-mingle", "--without-heartbeat")
    return ChildSpec(
        name,
        (
            *celery,
            *options,
            "--hostname",
            f"{name}@{plan.instance}",
            "--queues",
            ",".join(queues),
            "-l",
            plan.log_level,
        ),
        # The checks import every page, which a worker has no use for.
        plan.environment(name, {**devices.thread_environment(), "CELERY_SKIP_CHECKS": "1", **extra}),
        WORKERS,
        stop=WORKER_STOP,
        after_exit=after_exit,
    )


def study_child(plan: Plan, slug: str, scale: str) -> ChildSpec:
    """Submits a study to the workers, once."""
    command = (sys.executable, "-m", "worker.submit", slug, scale)
    return ChildSpec("study", command, plan.environment("study"), WORKERS, once=True)


def records_child(plan: Plan) -> ChildSpec:
    """Imports the bundled reference studies, once; beside the workers, whose jobs it does not hold up."""
    command = (sys.executable, "manage.py", "notes", "import", "bundled:all")
    return ChildSpec("records", command, plan.environment("records"), WORKERS, once=True)


def device_environment(position: int, devices_found: int) -> dict[str, str]:
    """Compute worker ``position`` sees one CUDA device; nothing changes without one."""
    return {"CUDA_VISIBLE_DEVICES": str(position % devices_found)} if devices_found else {}
