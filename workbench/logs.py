"""Log lines: one format for every process, and prefixed colours where the supervisor shows them together."""

from __future__ import annotations

import contextlib
import logging
import re
import time
from pathlib import Path
from typing import IO

COLOURS = {"workbench": 1, "web": 36, "broker": 35, "io": 34, "study": 33}
WORKER_COLOURS = (32, 92, 93, 94, 95, 96)
PREFIX_WIDTH = 9
LOG_FILE_BYTES = 8 * 1024 * 1024

# What must not stand in a log: API tokens (their prefix names them), passwords, session and CSRF values, and the
# password of an address such as redis://user:password@host.
_TOKEN = re.compile(r"wb_([A-Za-z0-9]{8})_[A-Za-z0-9]+")
_NAMED = re.compile(
    r"(?i)((?:password\d?|passwd|secret(?:_key)?|csrfmiddlewaretoken|csrftoken|sessionid|authorization)"
    r"[\"']?\s*[=:]\s*(?:bearer\s+|token\s+|basic\s+)?[\"']?)[^\s\"'&,;})\]]+"
)
_ADDRESS = re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://[^\s/:@]*:)[^\s/@]+@")


def redact(text: str) -> str:
    """The text with every secret that has a known form replaced by ``***``; a token keeps its prefix."""
    text = _TOKEN.sub(r"wb_\1_***", text)
    return _ADDRESS.sub(r"\1***@", _NAMED.sub(r"\1***", text))


class LineFormatter(logging.Formatter):
    """``2026-01-31T12:00:00Z INFO runs.jobs message``, in UTC."""

    converter = time.gmtime  # type: ignore[assignment]  # the stub knows the version without an argument only

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s", datefmt="%Y-%m-%dT%H:%M:%SZ")

    def format(self, record: logging.LogRecord) -> str:
        """The line, its traceback included, without secrets."""
        return redact(super().format(record))


def prefix(name: str, *, colour: bool) -> str:
    """``web       | `` padded so that columns line up; coloured by the name of the process."""
    text = f"{name:<{PREFIX_WIDTH}} | "
    if not colour:
        return text
    code = COLOURS.get(name) or WORKER_COLOURS[sum(name.encode()) % len(WORKER_COLOURS)]
    return f"\033[{code}m{text}\033[0m"


class LogFile:
    """A child's log on disk, at most twice ``limit`` bytes. A full disk stops the log, not the child."""

    def __init__(self, path: Path, limit: int = LOG_FILE_BYTES) -> None:
        self.path, self.limit = path, limit
        self._file: IO[str] | None = None
        self._size = 0

    def write(self, text: str) -> None:
        """Append one line with its time (UTC)."""
        with contextlib.suppress(OSError):
            if self._file is None or self._size > self.limit:
                self._open()
            assert self._file is not None
            line = f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text}\n"
            self._file.write(line)
            self._file.flush()
            self._size += len(line.encode())

    def _open(self) -> None:
        self.close()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists() and self.path.stat().st_size > self.limit:
            self.path.replace(self.path.with_name(f"{self.path.name}.1"))
        self._file = self.path.open("a", encoding="utf-8")
        self._size = self.path.stat().st_size

    def close(self) -> None:
        """Close the file; a later line opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None
