"""Watched folders below allowed roots."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from evidence.actions.sources import add_source, check_version, scan_folder, take_in, unwatch_folder, watch_folder
from evidence.models import Source, WatchedFolder
from runs.errors import DomainError
from runs.models import Study
from tests.evidence_sources.conftest import newest


def test_new_files_become_sources(study: Study, root: Path, acting: dict[str, Any]) -> None:
    """Paths begin with the root's name; hidden files are left out."""
    (root / "pilot").mkdir()
    (root / "pilot" / "a.md").write_text("one")
    (root / ".secret").write_text("no")
    folder = watch_folder(study, "papers", "", **acting)
    assert list(Source.objects.values_list("path", "origin", "state")) == [("papers/pilot/a.md", "watched", "verified")]
    assert scan_folder(folder, **acting).unchanged == 1


def test_a_changed_file_is_drift_until_a_person_takes_it_in(study: Study, root: Path, acting: dict[str, Any]) -> None:
    """The scan never replaces a version by itself; taking in asks for a reason."""
    file = root / "a.md"
    file.write_text("one")
    folder = watch_folder(study, "papers", "", **acting)
    file.write_text("two")
    assert scan_folder(folder, **acting).changed == ["papers/a.md"]
    source = Source.objects.get()
    assert (source.state, newest(source).number) == ("drifted", 1)
    with pytest.raises(DomainError, match=r"^reason: "):
        take_in(source, reason="", **acting)
    version = take_in(source, reason="the author corrected it", **acting)
    source = Source.objects.get()
    assert (version.number, source.state) == (2, "verified")
    first = source.versions.get(number=1)
    states = first.checks.order_by("-id").values_list("state", flat=True)
    assert states[0] == "verified"  # its held bytes never changed


def test_a_file_put_back_or_gone(study: Study, root: Path, acting: dict[str, Any]) -> None:
    """Gone is drift with words; put back, the source is verified again."""
    file = root / "a.md"
    file.write_text("one")
    folder = watch_folder(study, "papers", "", **acting)
    file.unlink()
    assert scan_folder(folder, **acting).gone == ["papers/a.md"]
    source = Source.objects.get()
    assert source.state == "drifted" and "is gone" in newest(source).checks.get().note
    file.write_text("one")
    scan_folder(folder, **acting)
    assert Source.objects.get().state == "verified"


def test_a_process_that_cannot_see_the_file_keeps_the_drift(
    study: Study, root: Path, acting: dict[str, Any], settings: Any
) -> None:
    """A worker without the root must not call the source verified."""
    (root / "a.md").write_text("one")
    folder = watch_folder(study, "papers", "", **acting)
    (root / "a.md").write_text("two")
    scan_folder(folder, **acting)
    settings.WATCH_ROOTS = {}
    assert check_version(newest(Source.objects.get()), **acting) == "drifted"


def test_links_that_leave_the_root_are_refused(
    study: Study, root: Path, tmp_path: Path, acting: dict[str, Any]
) -> None:
    """A file link out, a folder link out, and a fifo are named; a link within the root counts."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "key").write_text("secret")
    (root / "a.md").write_text("one")
    (root / "within.md").symlink_to(root / "a.md")
    (root / "out.md").symlink_to(tmp_path / "outside" / "key")
    (root / "folder").symlink_to(tmp_path / "outside")
    os.mkfifo(root / "pipe")
    folder = watch_folder(study, "papers", "", **acting)
    assert set(Source.objects.values_list("path", flat=True)) == {"papers/a.md", "papers/within.md"}
    assert {line.split(":")[0] for line in folder.trouble.splitlines()} == {
        "papers/out.md",
        "papers/folder",
        "papers/pipe",
    }
    with pytest.raises(DomainError, match="leads out of papers"):
        watch_folder(study, "papers", "folder", **acting)


@pytest.mark.parametrize(("name", "path"), [("other", ""), ("papers", "nowhere"), ("papers", "../outside")])
def test_only_allowed_roots_are_watched(study: Study, acting: dict[str, Any], name: str, path: str) -> None:
    """An unknown root, a path that is not there, and one that leads upwards."""
    with pytest.raises(DomainError, match=r"^(root|path): got "):
        watch_folder(study, name, path, **acting)
    assert not WatchedFolder.objects.exists()


def test_limits_and_taken_paths_are_trouble_and_not_an_end(
    study: Study, root: Path, acting: dict[str, Any], settings: Any
) -> None:
    """A file that is too long or whose path an upload has is named; the others are taken in."""
    settings.SOURCE_LIMIT = 4
    add_source(study, "papers/taken.md", b"up", origin="upload", **acting)
    for name, text in (("long.md", "longer"), ("taken.md", "on"), ("ok.md", "ok")):
        (root / name).write_text(text)
    folder = watch_folder(study, "papers", "", **acting)
    assert Source.objects.filter(origin="watched").get().path == "papers/ok.md"
    assert "at most 4" in folder.trouble and "origin upload" in folder.trouble


def test_a_folder_that_is_watched_no_more_is_not_scanned(study: Study, root: Path, acting: dict[str, Any]) -> None:
    """Its sources stay."""
    (root / "a.md").write_text("one")
    folder = watch_folder(study, "papers", "", **acting)
    unwatch_folder(folder, **acting)
    with pytest.raises(DomainError, match=r"^folder: "):
        scan_folder(folder, **acting)
    assert Source.objects.count() == 1
