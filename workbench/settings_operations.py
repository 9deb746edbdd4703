"""Settings of operations: limits of requests, readiness, metrics, log lines.

Variables: WORKBENCH_LOG_FORMAT (text or json), WORKBENCH_METRICS_PUBLIC (1: /metrics answers this machine
without signing in), WORKBENCH_MIN_FREE_MB (free disk below which the server says that it is not ready).
"""

from __future__ import annotations

import os

from django.core.exceptions import ImproperlyConfigured

from workbench.settings_accounts import read_number


def log_format() -> str:
    """Form of log lines: text by default."""
    value = os.environ.get("WORKBENCH_LOG_FORMAT", "").strip() or "text"
    if value not in ("text", "json"):
        raise ImproperlyConfigured(f"WORKBENCH_LOG_FORMAT: got {value!r}, expected text or json")
    return value


LOG_FORMAT = log_format()

REQUEST_BODY_LIMIT = 4 * 1024 * 1024  # bytes; more is answered 413 before it is read
ARTIFACT_LIMIT = 1024 * 1024 * 1024  # bytes of one file that a logged run brings, streamed to disk
DATA_UPLOAD_MAX_MEMORY_SIZE = REQUEST_BODY_LIMIT
FILE_UPLOAD_MAX_MEMORY_SIZE = REQUEST_BODY_LIMIT
DATA_UPLOAD_MAX_NUMBER_FIELDS = 2_000
DATA_UPLOAD_MAX_NUMBER_FILES = 10

READINESS_KEPT_SECONDS = 1.0  # one answer serves everybody who asks within this time
MINIMUM_FREE_BYTES = read_number("WORKBENCH_MIN_FREE_MB", 256, 10**9) * 2**20

METRICS_PUBLIC = read_number("WORKBENCH_METRICS_PUBLIC", 0, 1) == 1
METRICS_KEPT_SECONDS = 10.0  # the database is read at most once in this time, however many scrape
