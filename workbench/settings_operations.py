"""Settings of operations: limits of requests, metrics."""

from __future__ import annotations

DATA_UPLOAD_MAX_MEMORY_SIZE = 4 * 1024 * 1024  # bytes of a request body that is held in memory
