"""Log lines: one format for every process, and prefixed colours where the supervisor shows them together."""

from __future__ import annotations

import logging
import time

COLOURS = {"web": 36, "broker": 35, "io": 34, "scheduler": 90}
WORKER_COLOURS = (32, 33, 92, 93, 94, 95, 96)
PREFIX_WIDTH = 9


class LineFormatter(logging.Formatter):
    """``2026-01-31T12:00:00Z INFO runs.jobs message``, in UTC."""

    converter = time.gmtime

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s", datefmt="%Y-%m-%dT%H:%M:%SZ")


def prefix(name: str, *, colour: bool) -> str:
    """``web       | `` padded so that columns line up; coloured by the name of the process."""
    text = f"{name:<{PREFIX_WIDTH}} | "
    if not colour:
        return text
    code = COLOURS.get(name) or WORKER_COLOURS[sum(name.encode()) % len(WORKER_COLOURS)]
    return f"\033[{code}m{text}\033[0m"
