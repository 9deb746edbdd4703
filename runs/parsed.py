"""Canonical documents that pages read again and again, parsed once a process.

The key is the SHA-256 of the bytes: one hash names one content for ever, whichever row or database it stands in.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from runs.errors import DomainError
from workbench.contracts.canonical import parse_canonical, sha256_hex


class Parsed:
    """The last ``most`` documents of one kind. What is given out is shared: treat it as read-only."""

    def __init__(self, kind: str, most: int) -> None:
        self.kind, self.most = kind, most
        self._kept: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, sha256: str, read: Callable[[], bytes]) -> dict[str, Any]:
        """The document with this hash. ``read`` is called where it is not kept, and what it gives is checked.

        Raises ``DomainError`` for bytes of another hash, ``CanonicalError`` for bytes that are not canonical.
        """
        with self._lock:
            if sha256 in self._kept:
                self._kept.move_to_end(sha256)
                return self._kept[sha256]
        data = read()
        if sha256_hex(data) != sha256:
            raise DomainError(f"{self.kind}: its bytes hash to {sha256_hex(data)}, expected {sha256}")
        found: dict[str, Any] = parse_canonical(data)
        with self._lock:
            self._kept[sha256] = found
            while len(self._kept) > self.most:
                self._kept.popitem(last=False)
        return found
