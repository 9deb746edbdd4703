"""Log lines: one format for every process, and prefixed colours where the supervisor shows them together."""

from __future__ import annotations

import contextlib
import json
import logging
import re
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from workbench.logcontext import current_fields

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
# A whole Cookie or Set-Cookie header, as text or as an entry of a printed dict; a scheme with its secret anywhere.
_COOKIE = re.compile(r"(?i)(\b(?:http_|set-)?cookie[\"']?\s*[=:]\s*)(\"[^\"\n]*\"|'[^'\n]*'|[^\n\"']+)")
_SCHEME = re.compile(r"(?i)\b(bearer|basic)\s+(?!\*)[A-Za-z0-9._~+/=-]{8,}")
_ADDRESS = re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://[^\s/:@]*:)[^\s/@]+@")


def redact(text: str) -> str:
    """The text with every secret that has a known form replaced by ``***``; a token keeps its prefix."""
    text = _SCHEME.sub(r"\1 ***", _COOKIE.sub(r"\1***", _TOKEN.sub(r"wb_\1_***", text)))
    return _ADDRESS.sub(r"\1***@", _NAMED.sub(r"\1***", text))


class LineFormatter(logging.Formatter):
    """``2026-01-31T12:00:00Z INFO runs.jobs message``, in UTC."""

    converter = time.gmtime  # type: ignore[assignment]  # the stub knows the version without an argument only

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s", datefmt="%Y-%m-%dT%H:%M:%SZ")

    def format(self, record: logging.LogRecord) -> str:
        """The line, its traceback included, without secrets."""
        return redact(super().format(record))


class JsonFormatter(logging.Formatter):
    """One JSON object on one line: time, level, logger, message, what it belongs to, and the traceback if any."""

    def format(self, record: logging.LogRecord) -> str:
        """The line without secrets, each text redacted before it is quoted."""
        # A record about a request's answer is written after the request's own context has ended.
        fields = current_fields(getattr(getattr(record, "request", None), "log_fields", None))
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": redact(record.getMessage()),
            **{name: redact(value) if isinstance(value, str) else value for name, value in fields.items()},
        }
        if record.exc_info:
            line["exception"] = redact(self.formatException(record.exc_info))
        if record.stack_info:
            line["stack"] = redact(self.formatStack(record.stack_info))
        return json.dumps(line)  # ASCII: a lone surrogate or a line break in a message cannot break the line


def formatter(form: str) -> logging.Formatter:
    """The formatter of ``settings.LOG_FORMAT``: text or json."""
    return {"text": LineFormatter, "json": JsonFormatter}[form]()


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
        """Close the file; a later line opens it again. What no longer fits on the disk is lost."""
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(OSError):
                file.close()
