"""Configuration of the web server, read by gunicorn: one process, several threads."""

from __future__ import annotations

from typing import Any

from workbench.child import die_with_parent

wsgi_app = "workbench.wsgi:application"
worker_class = "gthread"
workers = 1
threads = 64  # a follower of events holds one while it waits
timeout = 60
graceful_timeout = 2
keepalive = 5
control_socket_disable = True
accesslog = None
errorlog = "-"
loglevel = "warning"


def post_fork(server: Any, worker: Any) -> None:
    """The serving process goes with the one that forked it."""
    die_with_parent(worker.ppid)
