"""Settings of what leaves the house.

Variables: WORKBENCH_TSA_URL (an RFC 3161 server that stamps signed heads; none by default) and
WORKBENCH_TSA_ROOTS (PEM file of the certificates that it is trusted by; needed with the address).
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured


def time_stamp_server() -> tuple[str, Path | None]:
    """(address, file of trusted roots); ("", None) where none is configured. Raises ``ImproperlyConfigured``."""
    url = os.environ.get("WORKBENCH_TSA_URL", "").strip()
    roots = os.environ.get("WORKBENCH_TSA_ROOTS", "").strip()
    if not url:
        return "", None
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ImproperlyConfigured(f"WORKBENCH_TSA_URL: got {url!r}, expected an http or https address")
    if not roots or not Path(roots).is_file():
        raise ImproperlyConfigured(
            f"WORKBENCH_TSA_ROOTS: got {roots!r}, expected a PEM file: a stamp that nobody can check says nothing"
        )
    return url, Path(roots).resolve()


TSA_URL, TSA_ROOTS = time_stamp_server()
TSA_TIMEOUT_S = 10.0
EXPORT_BYTES_LIMIT = 256 * 1024 * 1024  # of one bundle that a page or the API makes; the command has no limit
