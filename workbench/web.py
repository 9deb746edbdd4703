"""Configuration of the web server, read by gunicorn: one process, several threads."""

from __future__ import annotations

from typing import Any

from workbench.child import die_with_parent

wsgi_app = "workbench.wsgi:application"
worker_class = "workbench.operations.server.Worker"  # gthread with deadlines for slow clients
workers = 1
threads = 64  # a follower of events holds one while it waits
timeout = 60
graceful_timeout = 2
keepalive = 5
limit_request_line = 8190  # bytes; a search query may be long
limit_request_fields = 64
limit_request_field_size = 8190
worker_connections = 512
backlog = 256
control_socket_disable = True
accesslog = None
errorlog = "-"
loglevel = "warning"


def post_fork(server: Any, worker: Any) -> None:
    """The serving process goes with the one that forked it."""
    die_with_parent(worker.ppid)
