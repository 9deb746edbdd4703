"""What ``manage.py up`` does once home, port and broker program are certain: start, watch, stop."""

from __future__ import annotations

import asyncio
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from workbench import broker, celery
from workbench.home import write_state
from workbench.processes import (
    Plan,
    broker_child,
    device_environment,
    records_child,
    study_child,
    web_child,
    worker_child,
)
from workbench.supervisor import Child, Output, Supervisor

REAP_EVERY_S, REAP_EXPIRES_S = 2.0, 4.0
BROKER_WAIT_S, WEB_WAIT_S, PAGE_WAIT_S = 30.0, 120.0, 30.0
GIVE_UP_AFTER = 6  # failed starts in a row of something that has never answered


class StartFailed(RuntimeError):
    """Something that must answer does not; the message names it and its log."""


@dataclass(frozen=True)
class Options:
    """``address``: of the pages, None without web. ``study``: slug to submit, or None."""

    address: str | None
    study: str | None
    scale: str
    cuda_devices: int


class Workbench:
    """One run of the supervisor over the processes of ``plan``."""

    def __init__(self, plan: Plan, output: Output, options: Options) -> None:
        self.plan, self.options = plan, options
        self.started_at = time.time()
        self.ready = False
        self.supervisor = Supervisor(
            output=output, logs=plan.home.logs, cwd=settings.BASE_DIR, on_change=self._write_state
        )
        self.say = self.supervisor.say
        # One thread: database and broker calls of the supervisor follow one another.
        self.aside = ThreadPoolExecutor(1, thread_name_prefix="aside")

    def _write_state(self) -> None:
        write_state(
            self.plan.home,
            {
                "pid": os.getpid(),
                "address": self.options.address,
                "ready": self.ready,
                "started_at": self.started_at,
                "workers": self.plan.workers,
                "processes": self.supervisor.processes(),
            },
        )

    async def _aside(self, function: Any, *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self.aside, function, *arguments)

    async def expire_leases(self, owner: str) -> None:
        """End the leases of a dead process: its jobs are queued again without waiting for them to run out."""
        try:
            count = await self._aside(celery.expire_leases_of, f"{owner}/")
        except Exception as error:  # the leases then run out by themselves
            self.say(f"leases of {owner} could not be ended now: {error}")
            return
        if count:
            self.say(f"{count} unfinished job{'s' if count > 1 else ''} of {owner} will run again")

    async def start(self) -> None:
        """Start all children. The web comes before the workers, so that the first page is early."""
        if self.plan.program is not None:
            self.supervisor.start(broker_child(self.plan, self.say))
        if self.plan.listener is not None:
            self.supervisor.start(web_child(self.plan))
        if self.plan.program is not None and not await self._until(
            self._broker_answers, self.supervisor.children["broker"], BROKER_WAIT_S
        ):
            return
        await self.expire_leases(self.plan.instance)  # of a supervisor that was killed: nothing of it lives
        if self.options.address is not None and not await self._announce_page():
            return
        self._start_worker("io", ("io",), {})
        for position in range(self.plan.workers):
            environment = device_environment(position, self.options.cuda_devices)
            self._start_worker(f"compute{position + 1}", celery.COMPUTE_QUEUES, environment)

    def _start_worker(self, name: str, queues: tuple[str, ...], extra: dict[str, str]) -> None:
        async def after_exit(generation: int) -> None:
            await self.expire_leases(self.plan.process_name(name, generation))

        self.supervisor.start(worker_child(self.plan, name, queues, extra, after_exit))

    async def _until(self, probe: Any, child: Child, seconds: float) -> bool:
        """Wait until ``probe`` is true; False when the supervisor stops first. Raises ``StartFailed``."""
        end = time.monotonic() + seconds
        while not self.supervisor.stop.is_set():
            if await probe():
                return True
            if child.failures >= GIVE_UP_AFTER or time.monotonic() > end:
                raise StartFailed(f"{child.spec.name} does not answer; see {child.log.path}")
            await asyncio.sleep(0.05)
        return False

    async def _broker_answers(self) -> bool:
        try:
            await self._aside(broker.ping, settings.CELERY_BROKER_URL)
        except broker.BrokerUnavailable:
            return False
        return True

    async def _web_answers(self) -> bool:
        """The web process answers its liveness address."""
        return await self._status("/healthz") == 200

    async def _status(self, path: str) -> int | None:
        """HTTP status of a path; None where nothing answers."""
        assert self.options.address is not None
        parts = urlsplit(self.options.address)
        writer = None
        try:
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
            writer.write(f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n".encode())
            words = (await asyncio.wait_for(reader.readline(), PAGE_WAIT_S)).split()
        except (OSError, TimeoutError):
            return None
        finally:
            if writer is not None:
                writer.close()
        return int(words[1]) if len(words) >= 2 and words[1].isdigit() else None

    async def _announce_page(self) -> bool:
        """Say where the pages are as soon as the first one answers; False when the stop came first."""
        web = self.supervisor.children["web"]
        if not await self._until(self._web_answers, web, WEB_WAIT_S):
            return False
        status = await self._status("/")
        if status is None or status >= 500:
            self.say(f"the first page answers with an error (status {status}); see {web.log.path}")
        self.say(f"open {self.options.address}")
        return True

    async def schedule(self) -> None:
        """Send the reaper's message every two seconds; one that nobody took in time expires."""
        reachable = True
        while True:
            try:
                await self._aside(send_reap)
                reachable = True
            except Exception as error:  # any transport error: the broker is being started again
                if reachable:
                    self.say(f"the broker did not take a message: {error}")
                reachable = False
            await asyncio.sleep(REAP_EVERY_S)

    async def submit_study(self) -> None:
        """Submit the study that the command line names, once."""
        assert self.options.study is not None
        child = self.supervisor.start(study_child(self.plan, self.options.study, self.options.scale))
        status = await child.finished()
        if status and not self.supervisor.stop.is_set():
            self.say(f"{self.options.study} was not started (status {status}); see {child.log.path}")

    async def import_records(self) -> None:
        """Import the bundled reference studies where pages are served that lack them."""
        try:
            if not await self._aside(missing_records):
                return
        except Exception as error:  # the pages do without; the next start looks again
            self.say(f"bundled records could not be looked up: {error}")
            return
        child = self.supervisor.start(records_child(self.plan))
        status = await child.finished()
        if status and not self.supervisor.stop.is_set():
            self.say(f"bundled records were not imported (status {status}); see {child.log.path}")

    async def run(self) -> int:
        """Start, wait for the stop, stop in order. Returns the exit status."""
        self.supervisor.handle_signals()
        status, tasks = 0, []
        try:
            await self.start()
            if not self.supervisor.stop.is_set():
                self.ready = True
                self._write_state()
                tasks.append(asyncio.create_task(self.schedule()))
                if self.options.study:
                    tasks.append(asyncio.create_task(self.submit_study()))
                if self.options.address is not None:
                    tasks.append(asyncio.create_task(self.import_records()))
            await self.supervisor.stop.wait()
        except StartFailed as error:
            self.say(str(error))
            status = 1
        finally:
            self.ready = False
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.supervisor.stop_all()
            self.aside.shutdown(wait=False, cancel_futures=True)
        self.say("stopped")
        return status


def send_reap() -> None:
    """Ask the worker for input and output to look for leases that ran out."""
    celery.app.send_task(celery.REAP, queue="io", expires=REAP_EXPIRES_S, retry=False, ignore_result=True)


def missing_records() -> list[str]:
    """Slugs of the bundled reference studies that are not imported yet."""
    from django.db import close_old_connections

    from evidence.actions.bundle_import import missing

    try:
        return missing()
    finally:
        close_old_connections()


async def run(plan: Plan, output: Output, options: Options) -> int:
    """Run until stopped; exit status."""
    return await Workbench(plan, output, options).run()
