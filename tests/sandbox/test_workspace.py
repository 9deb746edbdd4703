"""Trees in and out of a workspace."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.sandbox.workspace import TreeRefused, checked_path, read_tree, remove, sweep, workspace

NAMES = st.text("abcXYZ_-.é中 ", min_size=1, max_size=8).filter(lambda name: name not in (".", ".."))


@pytest.mark.parametrize(
    "path", ["", ".", "/etc/passwd", "../x", "a/../b", "a//b", "./a", "a/", "a\x00b", "a\\b", "x" * 301]
)
def test_paths_that_leave_or_are_ambiguous(path: str) -> None:
    with pytest.raises(TreeRefused, match="expected a relative path inside the tree"):
        checked_path(path)


@given(st.dictionaries(st.lists(NAMES, min_size=1, max_size=3).map("/".join), st.binary(max_size=50), max_size=6))
def test_what_goes_in_comes_out(files: dict[str, bytes]) -> None:
    """Unless one path is a folder of another."""
    names = set(files)
    if any(other.startswith(name + "/") for name in names for other in names):
        return
    with workspace(files) as folder:
        assert read_tree(folder) == dict(sorted(files.items()))
    assert not folder.exists()


def test_links_and_pipes_are_refused(tmp_path: Path) -> None:
    os.symlink("/etc", tmp_path / "folder")
    with pytest.raises(TreeRefused, match="folder: got no regular file"):
        read_tree(tmp_path)
    (tmp_path / "folder").unlink()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TreeRefused, match="pipe: got no regular file"):
        read_tree(tmp_path)


def test_a_folder_without_rights_is_removed(tmp_path: Path) -> None:
    place = tmp_path / "tree"
    (place / "a" / "b").mkdir(parents=True)
    (place / "a" / "b" / "file").write_bytes(b"x")
    (place / "a" / "b").chmod(0)
    (place / "a").chmod(0)
    remove(place)
    assert not place.exists()


def test_a_workspace_that_a_killed_process_left_is_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old ones of ours alone: not a new one, another folder, or what a link of that name leads to."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for name in ("workbench-trial-old", "workbench-trial-new", "other"):
        (tmp_path / name / "a").mkdir(parents=True)
    (tmp_path / "workbench-trial-link").symlink_to(tmp_path / "other")
    for name in ("workbench-trial-old", "other"):
        os.utime(tmp_path / name, (0, 0))
    assert sweep() == 1
    assert sorted(item.name for item in tmp_path.iterdir()) == ["other", "workbench-trial-link", "workbench-trial-new"]


def test_a_workspace_in_use_is_not_swept_however_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process holds the lock, and with the process the lock ends."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code = (
        "import os, signal, sys; sys.path.insert(0, sys.argv[1])\n"
        "from worker.sandbox.workspace import workspace\n"
        "with workspace({'a': b'x'}) as folder:\n"
        "    os.utime(folder, (0, 0)); print(folder, flush=True); sys.stdin.read()\n"
    )
    root = str(Path(__file__).resolve().parents[2])
    process = subprocess.Popen(
        [sys.executable, "-c", code, root], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={"TMPDIR": str(tmp_path)},
    )  # fmt: skip
    with process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        assert folder.parent == tmp_path and sweep() == 0 and (folder / "a").exists()
        process.kill()
    assert sweep() == 1 and list(tmp_path.iterdir()) == []
