"""A file of a git commit, read with ``git cat-file`` from a local repository below an allowed root.

No shell, no network, no configuration but the repository's own, and only commands that run no hook or filter.
A repository whose data lies outside the root (a linked git folder, borrowed objects) is refused.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from evidence.ingest.names import source_path
from evidence.ingest.roots import Place
from runs.errors import DomainError

SECONDS = 20
_REVISION = re.compile(r"[0-9A-Za-z][0-9A-Za-z._/-]{0,199}")
_FULL = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def _environment() -> dict[str, str]:
    return {
        "PATH": os.defpath,
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_NO_REPLACE_OBJECTS": "1",
    }


def _git(folder: Path, *arguments: str) -> bytes:
    command = ["git", "-c", f"safe.directory={folder}", "-c", "core.fsmonitor=false", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(
            command, env=_environment(), stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False
        )
    except FileNotFoundError as error:
        raise DomainError("git: got no such program on this machine, expected git") from error
    except subprocess.TimeoutExpired as error:
        raise DomainError(f"git: got no answer within {SECONDS} s, expected one; nothing was changed") from error
    if done.returncode:
        shown = done.stderr.decode("utf-8", "replace").strip()[:200]
        raise DomainError(f"git: got {shown!r} from {arguments[0]}, expected a commit and a file of this repository")
    return done.stdout


def _contained(repository: Place) -> Path:
    """The repository's folder, once its data is known to lie below the root too."""
    folder = repository.path
    if not folder.is_dir():
        raise DomainError(f"repository_root: got {repository.relative[:120]!r}, expected a folder")
    common = _git(folder, "rev-parse", "--path-format=absolute", "--git-common-dir").decode().strip()
    data = Path(common).resolve()
    objects = (data / "objects").resolve()
    if any(os.path.lexists(objects / "info" / name) for name in ("alternates", "http-alternates")):
        raise DomainError(
            f"repository_root: got {repository.relative[:120]!r}, which borrows objects of another repository "
            "(objects/info/alternates), expected one that holds its own: run git repack -a -d there and remove "
            "that file"
        )
    for item in (data, objects):
        if not item.is_relative_to(repository.root):
            raise DomainError(
                f"repository_root: got {repository.relative[:120]!r}, whose data lies outside {repository.name}, "
                "expected a repository that lies within it whole"
            )
    return folder


def read_commit(repository: Place, revision: str, path: str, limit: int) -> tuple[bytes, str]:
    """(bytes of the file, full id of the commit). Raises ``DomainError`` naming what is wrong."""
    if not _REVISION.fullmatch(revision) or ".." in revision:
        raise DomainError(f"commit: got {revision[:80]!r}, expected a commit id, a branch or a tag")
    wanted = source_path(path)
    folder = _contained(repository)
    full = _git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    commit = full.decode("ascii", "replace").strip()
    if not _FULL.fullmatch(commit):
        raise DomainError(f"commit: got {revision[:80]!r}, expected one commit of this repository")
    kind = _git(folder, "cat-file", "-t", f"{commit}:{wanted}").decode().strip()
    if kind != "blob":
        raise DomainError(f"path: got {wanted[:120]!r}, which is a {kind} of that commit, expected a file")
    size = int(_git(folder, "cat-file", "-s", f"{commit}:{wanted}"))
    if size > limit:
        raise DomainError(f"path: got {wanted[:120]!r} of {size} bytes, expected at most {limit}")
    return _git(folder, "cat-file", "blob", f"{commit}:{wanted}"), commit
