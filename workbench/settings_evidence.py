"""Settings of evidence: how large a source may be, and which folders of this machine sources may be read from.

Variable: WORKBENCH_WATCH_ROOTS, ``name=/absolute/folder`` separated by commas. Watched folders and git
repositories lie below one of these; without it nothing of this machine is read.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")


def watch_roots() -> dict[str, Path]:
    """Name -> folder. Raises ``ImproperlyConfigured`` for a name or a path that is none, and for a repeated name."""
    found: dict[str, Path] = {}
    for item in os.environ.get("WORKBENCH_WATCH_ROOTS", "").split(","):
        if not item.strip():
            continue
        name, equals, folder = item.strip().partition("=")
        if not equals or not _NAME.fullmatch(name) or not folder.startswith("/") or name in found:
            raise ImproperlyConfigured(
                f"WORKBENCH_WATCH_ROOTS: got {item.strip()!r}, expected name=/absolute/folder, each name once, of "
                "lower-case letters, digits or dashes"
            )
        found[name] = Path(folder)
    return found


WATCH_ROOTS = watch_roots()
SOURCE_LIMIT = 32 * 1024 * 1024  # bytes of one source
WATCH_MOST = 5_000  # files of one watched folder
