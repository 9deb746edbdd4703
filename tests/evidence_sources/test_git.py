"""Files of git commits."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from evidence.actions.sources import add_from_git, read_version
from evidence.models import Source
from runs.errors import DomainError
from runs.models import Study


def git(folder: Path, *arguments: str) -> str:
    """A command in a repository."""
    who = ["-c", "user.name=Mara", "-c", "user.email=mara@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def make(folder: Path) -> str:
    """A repository with one commit; its full id."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    (folder / "sub").mkdir()
    (folder / "sub" / "r.json").write_text('{"n": 244}')
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "one")
    return git(folder, "rev-parse", "HEAD")


def test_the_bytes_of_a_commit_with_its_full_id(study: Study, root: Path, acting: dict[str, Any]) -> None:
    """A short id or a branch is resolved; the work tree is not read."""
    full = make(root / "repo")
    (root / "repo" / "sub" / "r.json").write_text("changed since")
    version = add_from_git(study, "papers/repo", full[:8], "sub/r.json", **acting)
    assert (version.commit, version.source.origin, version.source.path) == (full, "git", "sub/r.json")
    assert read_version(version) == b'{"n": 244}'
    assert add_from_git(study, root / "repo", "main", "sub/r.json", **acting) == version


@pytest.mark.parametrize(
    ("commit", "path", "field"),
    [
        ("--help", "sub/r.json", "commit"),
        ("HEAD^{tree}", "sub/r.json", "commit"),
        ("a..b", "sub/r.json", "commit"),
        ("f" * 40, "sub/r.json", "git"),
        ("main", "nowhere", "git"),
        ("main", "sub", "path"),
        ("main", "../x", "path"),
        ("main", "-x", "git"),
    ],
)
def test_what_git_does_not_have_is_refused(
    study: Study, root: Path, acting: dict[str, Any], commit: str, path: str, field: str
) -> None:
    """Options, expressions, absent commits and files, folders."""
    make(root / "repo")
    with pytest.raises(DomainError, match=rf"^{field}: got "):
        add_from_git(study, "papers/repo", commit, path, **acting)
    assert not Source.objects.exists()


def test_a_repository_outside_the_roots_is_refused(
    study: Study, root: Path, tmp_path: Path, acting: dict[str, Any]
) -> None:
    """By its path, by a link to it, by a git folder that lies elsewhere, and by borrowed objects."""
    outside = tmp_path / "outside"
    make(outside)
    (root / "link").symlink_to(outside)
    (root / "pointer").mkdir()
    (root / "pointer" / ".git").write_text(f"gitdir: {outside / '.git'}\n")
    git(root, "clone", "-q", "--shared", str(outside), str(root / "borrowed"))
    for place in (outside, "papers/link", "papers/pointer", "papers/borrowed", "other/repo"):
        with pytest.raises(DomainError, match=r"^(repository_root|path|root): got "):
            add_from_git(study, place, "main", "sub/r.json", **acting)
    assert not Source.objects.exists()


def test_configuration_of_a_repository_runs_nothing(
    study: Study, root: Path, tmp_path: Path, acting: dict[str, Any]
) -> None:
    """Filters, monitors and pagers that a repository names are not started."""
    make(root / "repo")
    touched = tmp_path / "touched"
    for name in ("core.fsmonitor", "core.pager", "filter.x.smudge", "diff.x.textconv", "core.sshCommand"):
        git(root / "repo", "config", name, f"touch {touched}")
    (root / "repo" / ".git" / "info" / "attributes").write_text("* filter=x diff=x\n")
    add_from_git(study, "papers/repo", "main", "sub/r.json", **acting)
    assert not touched.exists()


def test_a_file_above_the_limit_is_not_read(study: Study, root: Path, acting: dict[str, Any], settings: Any) -> None:
    """Its size is asked first."""
    make(root / "repo")
    settings.SOURCE_LIMIT = 4
    with pytest.raises(DomainError, match="of 10 bytes, expected at most 4"):
        add_from_git(study, "papers/repo", "main", "sub/r.json", **acting)


def test_borrowed_objects_are_refused_wherever_they_lie(
    study: Study, root: Path, tmp_path: Path, acting: dict[str, Any]
) -> None:
    """A neighbour that borrows from outside would lead out of the root; a repository with its own objects is read."""
    full = make(tmp_path / "outside")
    git(root, "clone", "-q", "--shared", str(tmp_path / "outside"), str(root / "near"))
    git(root, "clone", "-q", "--shared", str(root / "near"), str(root / "far"))
    (root / "far" / ".git" / "objects" / "info" / "alternates").write_text("../../../near/.git/objects\n")
    with pytest.raises(DomainError, match="borrows objects of another repository"):
        add_from_git(study, "papers/far", full, "sub/r.json", **acting)
    git(root / "far", "repack", "-a", "-d", "-q")
    (root / "far" / ".git" / "objects" / "info" / "alternates").unlink()
    assert read_version(add_from_git(study, "papers/far", full, "sub/r.json", **acting)) == b'{"n": 244}'
