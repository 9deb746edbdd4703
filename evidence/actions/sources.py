"""Every action on sources: pages, API, commands and tasks call these."""

from __future__ import annotations

from evidence.actions.intake import (
    Scanned,
    add_from_git,
    collect_own,
    scan_folder,
    take_in,
    unwatch_folder,
    watch_folder,
)
from evidence.actions.versions import (
    BytesUnavailable,
    add_source,
    check_all,
    check_version,
    held_digest,
    lying_bytes,
    read_version,
)

__all__ = [
    "BytesUnavailable",
    "Scanned",
    "add_from_git",
    "add_source",
    "check_all",
    "check_version",
    "collect_own",
    "held_digest",
    "lying_bytes",
    "read_version",
    "scan_folder",
    "take_in",
    "unwatch_folder",
    "watch_folder",
]
