"""Fresh workspaces: a tree of files by path, written into a new folder and read back without following a link."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from .base import SandboxFault

MOST_FILES, MOST_BYTES = 5_000, 64 << 20
PREFIX = "workbench-trial-"
CLAIM_SECONDS = 10.0  # more than a new folder waits for its lock


class TreeRefused(ValueError):
    """A tree that holds what no tree may: a path that leaves it, a link, a device, too much."""


def checked_path(path: str) -> str:
    """A relative POSIX path inside the tree. Raises ``TreeRefused``."""
    pure = PurePosixPath(path)
    bad = not pure.parts or pure.is_absolute() or ".." in pure.parts or "\x00" in path or "\\" in path
    if bad or str(pure) != path or len(path) > 300:
        raise TreeRefused(f"path: got {path[:100]!r}, expected a relative path inside the tree")
    return path


@contextmanager
def workspace(files: Mapping[str, bytes], *, below: Path | None = None) -> Iterator[Path]:
    """A new folder with these files, removed afterwards whatever the program left in it.

    It is locked as long as this process lives, so that ``sweep`` knows a folder that nobody will remove any more.
    """
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=below))
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):  # a file system without locks: there nothing is swept
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for path, data in files.items():
            place = folder / checked_path(path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        yield folder
    finally:
        try:
            remove(folder)
        finally:
            os.close(lock)


def remove(folder: Path) -> None:
    """Remove a folder, also where a program took rights away. Raises ``SandboxFault`` where something stays."""

    def again(function: object, path: str, error: object) -> None:
        parent = os.path.dirname(path)
        for item in (parent, path):
            if not os.path.islink(item) and os.path.isdir(item):
                os.chmod(item, 0o700)
        if os.path.islink(path) or not os.path.isdir(path):
            os.unlink(path)
        else:
            shutil.rmtree(path)

    for at, folders, _ in os.walk(folder):  # top down: a folder must be open before its own folders can be seen
        for name in folders:
            if not os.path.islink(place := os.path.join(at, name)):
                os.chmod(place, 0o700)
    try:
        shutil.rmtree(folder, onerror=again)
    except OSError as error:
        raise SandboxFault(f"sandbox: the workspace could not be removed ({error})") from error
    if folder.exists():
        raise SandboxFault("sandbox: the workspace could not be removed")


def sweep(*, older_s: float = CLAIM_SECONDS) -> int:
    """Remove workspaces that a killed process left below the temporary folder. How many there were."""
    found = 0
    for place in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError, SandboxFault):  # in use, another user's, or removed meanwhile
            if not place.is_symlink() and time.time() - place.stat().st_mtime > older_s:
                _remove_abandoned(place)
                found += 1
    return found


def _remove_abandoned(place: Path) -> None:
    """Raises ``OSError`` where the process that made it is alive."""
    lock = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove(place)
    finally:
        os.close(lock)


def read_tree(folder: Path) -> dict[str, bytes]:
    """Every regular file by path, sorted. Links are refused, not followed. Raises ``TreeRefused``."""
    found: dict[str, bytes] = {}
    size = 0
    for at, folders, names in os.walk(folder, followlinks=False):
        folders.sort()
        for name in sorted([*names, *[item for item in folders if os.path.islink(os.path.join(at, item))]]):
            place = os.path.join(at, name)
            path = os.path.relpath(place, folder)
            mode = os.lstat(place).st_mode
            if not stat.S_ISREG(mode):
                raise TreeRefused(f"{path}: got no regular file, expected one: links and devices are not taken")
            size += os.lstat(place).st_size
            if len(found) >= MOST_FILES or size > MOST_BYTES:
                raise TreeRefused(f"tree: got more than {MOST_FILES} files or {MOST_BYTES} bytes")
            descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW)
            with os.fdopen(descriptor, "rb") as file:
                found[checked_path(path.replace(os.sep, "/"))] = file.read()
    return dict(sorted(found.items()))
