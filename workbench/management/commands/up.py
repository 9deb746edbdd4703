"""``manage.py up``: start everything and keep it running until Ctrl-C."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import socket
import sys
from contextlib import ExitStack
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from workbench import broker, devices
from workbench.child import die_with_parent
from workbench.home import AlreadyRunning, Initialised, acquire_supervisor_lock, initialise
from workbench.processes import Plan, default_workers
from workbench.running import Options, run
from workbench.supervisor import Output


def bind(host: str, port: int) -> socket.socket:
    """A listening socket. Raises ``CommandError`` in plain words where the port cannot be had."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise CommandError(f"Host {host!r} is unknown: {error.strerror}. Use --host 127.0.0.1") from error
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
    except OSError as error:
        listener.close()
        hint = f"Choose another: make run PORT={port + 1}, or manage.py up --port {port + 1}"
        raise CommandError(f"Port {port} on {host} cannot be used: {error.strerror}. {hint}") from error
    return listener


def port_number(text: str) -> int:
    """A TCP port; 0 lets the system choose."""
    if not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"got {text!r}, expected a port from 0 to 65535")
    return int(text)


def worker_number(text: str) -> int:
    """How many compute workers; none is possible, since other machines may have them."""
    if not text.isdigit() or int(text) > 256:
        raise argparse.ArgumentTypeError(f"got {text!r}, expected a number from 0 to 256")
    return int(text)


class Command(BaseCommand):
    """Migrates a fresh home, makes its first user, starts broker, web and workers, and restarts what crashes."""

    help = "Start the web pages, the workers and the broker; stop all of them with Ctrl-C."
    requires_system_checks: list[str] = []  # the tables that they look at may not exist yet

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
        parser.add_argument("--port", type=port_number, default=8000, help="port of the pages (0: any free one)")
        parser.add_argument("--no-web", action="store_true", help="workers and broker only")
        parser.add_argument("--workers", type=worker_number, help="compute workers (default: one a device, or two)")
        parser.add_argument("--study", metavar="SLUG", help="submit this bundled study once the workers are up")
        parser.add_argument("--scale", choices=("tiny", "small", "full"), default="small", help="scale of the study")
        parser.add_argument("--stop-with-parent", action="store_true", help="stop when the calling process ends")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["stop_with_parent"]:
            die_with_parent(os.getppid(), signum=signal.SIGTERM)
        try:
            status = self._run(options)
        except KeyboardInterrupt:  # before the first child: nothing has to be stopped
            self.stderr.write("stopped before the start")
            status = 130
        if status:
            raise SystemExit(status)

    def _run(self, options: dict[str, Any]) -> int:
        """Take home and port, initialise, run until stopped; exit status."""
        with ExitStack() as stack:
            try:
                stack.enter_context(acquire_supervisor_lock(settings.HOME))
            except AlreadyRunning as error:
                raise CommandError(str(error)) from error
            listener = None if options["no_web"] else stack.enter_context(bind(options["host"], options["port"]))
            program = self._broker()
            output = Output(sys.stdout, colour=settings.LOG_COLOUR and sys.stdout.isatty())
            made = initialise(settings.HOME)
            connections.close_all()
            self._announce(made, output)
            plan = Plan(
                home=settings.HOME,
                instance=settings.HOME.ensure_instance(),
                workers=default_workers() if options["workers"] is None else options["workers"],
                listener=listener.fileno() if listener else None,
                log_level=settings.LOG_LEVEL.lower(),
                program=program,
            )
            address = f"http://{shown_host(options['host'])}:{listener.getsockname()[1]}/" if listener else None
            wanted = Options(address, options["study"], options["scale"], devices.cuda_count())
            return asyncio.run(run(plan, output, wanted))

    def _broker(self) -> broker.BrokerProgram | None:
        """The program to start; None where a broker is configured, which must answer."""
        try:
            if settings.CONFIGURED_BROKER_URL:
                broker.ping(settings.CONFIGURED_BROKER_URL, timeout_s=5)
                return None
            return broker.find_server()
        except broker.BrokerUnavailable as error:
            raise CommandError(str(error)) from error

    def _announce(self, made: Initialised, output: Output) -> None:
        if made.migrated:
            output.line("workbench", f"the database in {settings.HOME.root} is ready")
        if made.password:
            output.line("workbench", f"first user: admin, password {made.password} (shown this once)")


def shown_host(host: str) -> str:
    """How a browser on this machine reaches a server that listens on ``host``."""
    if host in ("", "0.0.0.0", "::"):
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host
