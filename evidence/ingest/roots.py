"""Folders of this machine that the settings allow, and files below them. A link that leads out is refused."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from evidence.ingest.names import source_path
from runs.errors import DomainError


@dataclass(frozen=True)
class Place:
    """A path below an allowed root: ``root`` is its real folder, ``relative`` has no link and no dots."""

    name: str
    root: Path
    relative: str

    @property
    def path(self) -> Path:
        """Where it lies."""
        return self.root / self.relative


def root_names() -> list[str]:
    """Names of the allowed roots."""
    return sorted(settings.WATCH_ROOTS)


def root_folder(name: str) -> Path:
    """The real folder of a root. Raises ``DomainError`` for one that the settings do not allow or that is gone."""
    if name not in settings.WATCH_ROOTS:
        allowed = ", ".join(root_names()) or "none: WORKBENCH_WATCH_ROOTS names no folder"
        raise DomainError(f"root: got {name[:80]!r}, expected one of {allowed}")
    folder = Path(settings.WATCH_ROOTS[name]).resolve()
    if not folder.is_dir():
        raise DomainError(f"root: got {name}, whose folder is not there, expected a folder")
    return folder


def place(name: str, relative: str) -> Place:
    """A path below a root, links followed. Raises ``DomainError`` where it leads out of the root."""
    root = root_folder(name)
    wanted = root / source_path(relative) if relative else root
    try:
        real = wanted.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise DomainError(f"path: got {relative[:120]!r}, expected a path that is there below {name}") from error
    if not real.is_relative_to(root):
        raise DomainError(f"path: got {relative[:120]!r}, which leads out of {name}, expected a path within it")
    return Place(name, root, "" if real == root else real.relative_to(root).as_posix())


def place_of(text: str | Path) -> Place:
    """A place by ``name/path`` or by an absolute path. Raises ``DomainError`` for one below no allowed root."""
    shown = str(text)
    if not shown.startswith("/"):
        name, _slash, relative = shown.partition("/")
        return place(name, relative)
    real = Path(shown).resolve()
    for name in root_names():
        root = root_folder(name)
        if real.is_relative_to(root):
            return place(name, "" if real == root else real.relative_to(root).as_posix())
    raise DomainError(
        f"repository_root: got {shown[:120]!r}, expected a folder below {', '.join(root_names()) or 'a root'}"
    )


def _open(found: Place) -> int:
    """A descriptor, part by part from the root, following no link: what ``place`` judged is what is opened."""
    descriptor = os.open(found.root, os.O_RDONLY | os.O_DIRECTORY)
    *above, last = found.relative.split("/")
    for part in above:
        below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    try:
        return os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=descriptor)
    finally:
        os.close(descriptor)


def read_file(found: Place, limit: int) -> bytes:
    """A regular file of at most ``limit`` bytes. Raises ``DomainError`` for anything else."""
    shown = found.relative[:120]
    try:
        descriptor = _open(found)
    except OSError as error:
        raise DomainError(f"path: got {shown!r}, expected a file that can be read ({error.strerror})") from error
    with os.fdopen(descriptor, "rb") as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode):
            raise DomainError(f"path: got {shown!r}, expected a regular file")
        data = file.read(limit + 1)
    if len(data) > limit:
        raise DomainError(f"path: got {shown!r} of more than {limit} bytes, expected at most {limit}")
    return data


def walk(folder: Place) -> Iterator[tuple[str, Place | str]]:
    """(path relative to ``folder``, its place or why it is refused) in order; names that begin with a dot are left out.

    Links to folders are not entered; a link to a file within the root counts, any other is refused.
    """
    for top, folders, files in os.walk(folder.path, followlinks=False):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        here = Path(top).relative_to(folder.path).as_posix()
        prefix = "" if here == "." else f"{here}/"
        linked = [name for name in folders if (Path(top) / name).is_symlink()]
        for name in linked:
            yield f"{prefix}{name}", "a link to a folder, which is not entered"
        for name in sorted(files):
            if name.startswith("."):
                continue
            relative = f"{prefix}{name}"
            below = f"{folder.relative}/{relative}" if folder.relative else relative
            try:
                yield relative, place(folder.name, below)
            except DomainError as error:
                yield relative, str(error)
