"""The tree that a program is given, as arguments of bwrap: it writes small trees itself, ``cp`` copies the others."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

PAGE = 4096
MOST_GIVEN = 64  # files whose descriptors bwrap inherits
COPIES = ("/bin/sh", "-c", 'cp -r /in/. /w && exec "$@"', "sh")


@dataclass(frozen=True)
class Given:
    """A workspace as it is found. ``size``: bytes that its copy takes in memory.

    ``folders`` and ``files``: (relative path, mode), parents first. ``is_plain``: few files and nothing else.
    """

    size: int
    folders: tuple[tuple[str, int], ...]
    files: tuple[tuple[str, int], ...]
    is_plain: bool


def found_in(workspace: Path) -> Given:
    """Whole pages of every file count, and one for every name."""
    size, is_plain = PAGE, True
    folders: list[tuple[str, int]] = []
    files: list[tuple[str, int]] = []
    top = str(workspace)
    for at, names, others in os.walk(top):
        size += PAGE * (len(names) + len(others))
        for group, kept in ((names, folders), (others, files)):
            for name in group:
                place = os.path.join(at, name)
                seen = os.lstat(place)
                if kept is files:
                    size += -(-seen.st_size // PAGE) * PAGE
                wanted = stat.S_ISREG if kept is files else stat.S_ISDIR
                is_plain = is_plain and wanted(seen.st_mode)
                kept.append((os.path.relpath(place, top), seen.st_mode & 0o777))
    return Given(size, tuple(folders), tuple(files), is_plain and len(files) <= MOST_GIVEN)


def opened(workspace: Path, given: Given) -> list[int]:
    """A descriptor of every file, in order. Raises ``OSError``; none is left open then."""
    found: list[int] = []
    try:
        for path, _ in given.files:
            found.append(os.open(workspace / path, os.O_RDONLY | os.O_NOFOLLOW))
    except OSError:
        closed(found)
        raise
    return found


def closed(descriptors: list[int]) -> None:
    """Close them all."""
    for descriptor in descriptors:
        os.close(descriptor)


def arguments(given: Given, descriptors: list[int], place: str) -> list[str]:
    """Arguments of bwrap that make the tree at ``place``, a file system that is there already."""
    found: list[str] = []
    for path, mode in given.folders:
        found += ["--perms", f"{mode:04o}", "--dir", f"{place}/{path}"]
    for (path, mode), descriptor in zip(given.files, descriptors, strict=True):
        found += ["--perms", f"{mode:04o}", "--file", str(descriptor), f"{place}/{path}"]
    return found
