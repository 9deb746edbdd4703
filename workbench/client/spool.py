"""What a logger could not send yet: one file of JSON lines a run, and beside it how many of them the server has.

A line is written before it is sent, so that neither an outage nor the end of the process loses it. Lines
are sent in order. Sending one twice is harmless: the server stores a batch once.
"""

from __future__ import annotations

import json
import re
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .errors import WorkbenchError

SCHEMA = "workbench.spool/1"


class Spool:
    """One run's file. ``delivered`` lines of it have reached the server."""

    def __init__(self, path: Path):
        self.path = path
        self._mark = path.with_suffix(".sent")
        self._lock = threading.Lock()
        self.delivered, self._offset = self._read_mark()

    @classmethod
    def create(cls, folder: Path, name: str, header: dict[str, Any]) -> Spool:
        """A new file whose first line says which run it is of."""
        folder.mkdir(parents=True, exist_ok=True)
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:60].strip("-.") or "run"
        spool = cls(folder / f"{plain}-{uuid.uuid4().hex[:12]}.jsonl")
        spool.append({"schema": SCHEMA, "kind": "open", **header})
        return spool

    def _read_mark(self) -> tuple[int, int]:
        try:
            count, offset = self._mark.read_text(encoding="ascii").split()
            return int(count), int(offset)
        except (OSError, ValueError):
            return 0, 0

    def append(self, line: dict[str, Any]) -> None:
        """Add a line, on disk before this returns. Raises ``OSError`` where the disk is full."""
        data = json.dumps(line, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        with self._lock, self.path.open("ab") as file:
            file.write(data)
            file.flush()

    def waiting(self) -> Iterator[tuple[dict[str, Any], int]]:
        """(line, offset after it) of each line that is not marked, oldest first. Raises ``WorkbenchError``.

        A last line without its end is one that a killed process was writing: it is left out.
        """
        offset = self._offset
        while True:
            with self._lock, self.path.open("rb") as file:
                file.seek(offset)
                data = file.readline()
            if not data.endswith(b"\n"):
                return
            offset += len(data)
            try:
                line = json.loads(data)
            except ValueError as error:
                raise WorkbenchError(f"{self.path}: got a line at {offset} that is no JSON ({error})") from error
            if not isinstance(line, dict):
                raise WorkbenchError(f"{self.path}: got {type(line).__name__} at {offset}, expected an object")
            yield line, offset

    def mark(self, offset: int) -> None:
        """Remember that everything before ``offset`` has been delivered."""
        self.delivered, self._offset = self.delivered + 1, offset
        part = self._mark.with_suffix(".part")
        part.write_text(f"{self.delivered} {offset}", encoding="ascii")
        part.replace(self._mark)

    def is_empty(self) -> bool:
        """Whether everything has been delivered."""
        return next(self.waiting(), None) is None

    def remove(self) -> None:
        """Delete the file and its mark."""
        self.path.unlink(missing_ok=True)
        self._mark.unlink(missing_ok=True)


def spools(folder: Path) -> list[Spool]:
    """Spools of a folder, oldest first."""
    return [Spool(path) for path in sorted(folder.glob("*.jsonl"), key=lambda path: (path.stat().st_mtime, path.name))]
