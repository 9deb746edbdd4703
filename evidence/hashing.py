"""Hashes of held bytes: streamed from disk by ``hashlib.file_digest``, one thread for each core.

``hashlib`` lets go of the interpreter's lock while it hashes, so that threads use every core.
"""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from workbench.blobs import BlobStore

AHEAD = 4  # files that wait for a thread, for each thread


@dataclass(frozen=True)
class Held:
    """What lies under a name. ``found``: the SHA-256 of the bytes, None where none could be read; ``trouble`` says why.
    ``gone``: there is no file of that name.

    ``size``: bytes that were hashed, 0 where there are none.
    """

    sha256: str
    found: str | None
    size: int
    trouble: str = ""
    gone: bool = False

    @property
    def intact(self) -> bool:
        """The bytes are there and hash to their name."""
        return self.found == self.sha256


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def file_sha256(path: Path) -> tuple[str, int]:
    """(SHA-256, bytes) of a file, in a buffer of fixed size however large it is. Raises ``OSError``."""
    with path.open("rb", buffering=0) as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
        return found, file.tell()


def _held(store: BlobStore, sha256: str) -> Held:
    try:
        found, size = file_sha256(store.path(sha256))
    except FileNotFoundError:
        return Held(sha256, None, 0, "no file of that name in the store", gone=True)
    except (OSError, ValueError) as error:
        return Held(sha256, None, 0, f"{type(error).__name__}: {error}")
    return Held(sha256, found, size)


def hash_held(store: BlobStore, names: Iterable[str], *, threads: int | None = None) -> Iterator[Held]:
    """Hash blobs again, in the order given, on every core. An unreadable file is a result, no error."""
    workers = threads or cores()
    waiting: deque[Future[Held]] = deque()
    with ThreadPoolExecutor(workers, thread_name_prefix="hash") as pool:
        for name in names:
            waiting.append(pool.submit(_held, store, name))
            if len(waiting) >= workers * AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
