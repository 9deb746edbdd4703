"""Ways in other than an upload: watched folders, git commits, and the records of our own executions."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path

from django.conf import settings
from django.db import transaction

from evidence.actions.record import lock_evidence
from evidence.actions.versions import add_source, check_version, watched_bytes
from evidence.ingest import git, own
from evidence.ingest.names import OWN
from evidence.ingest.roots import Place, place, place_of, read_file, walk
from evidence.models import Source, SourceVersion, WatchedFolder
from runs.errors import DomainError
from runs.models import Actor, Study

REWRITTEN = "the same record, written anew"


@dataclass
class Scanned:
    """What a scan met: paths of sources, and files that were refused with the reason."""

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    unchanged: int = 0
    gone: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


def watch_folder(study: Study, root: str, path: str, *, by: Actor, at: datetime) -> WatchedFolder:
    """Watch a folder below an allowed root, and scan it. Raises ``DomainError`` for one that is none."""
    found = place(root, path.strip().strip("/"))
    if not found.path.is_dir():
        raise DomainError(f"path: got {path[:120]!r}, expected a folder below {root}")
    with transaction.atomic():
        lock_evidence(study)
        folder, _made = WatchedFolder.objects.update_or_create(
            study=study, root=root, path=found.relative, defaults={"enabled": True}
        )
    scan_folder(folder, by=by, at=at)
    return folder


def unwatch_folder(folder: WatchedFolder, *, by: Actor, at: datetime) -> None:
    """Look at a folder no more; its sources and their versions stay."""
    with transaction.atomic():
        lock_evidence(folder.study)
        folder.enabled = False
        folder.save(update_fields=["enabled"])


def scan_folder(folder: WatchedFolder, *, by: Actor, at: datetime) -> Scanned:
    """Take in new files and check known ones. A changed file makes its source drifted: a person takes it in.

    Raises ``DomainError`` where the folder is not watched, not allowed or gone.
    """
    if not folder.enabled:
        raise DomainError(f"folder: got {folder.root}/{folder.path}, which is not watched, expected a watched one")
    found = Scanned()
    top = place(folder.root, folder.path)
    prefix = f"{folder.root}/{top.relative}/" if top.relative else f"{folder.root}/"
    known = {
        source.path: source
        for source in Source.objects.filter(study=folder.study, path__startswith=prefix).select_related("current")
        if source.path.startswith(prefix)  # SQLite compares letters of a prefix without their case
    }
    met = set()
    for count, (relative, item) in enumerate(walk(top)):
        if count >= settings.WATCH_MOST:
            found.refused[relative] = f"more than {settings.WATCH_MOST} files; this one and later ones were left out"
            break
        path = prefix + relative
        met.add(path)
        try:
            _meet(folder, path, item, known.get(path), found, by=by, at=at)
        except DomainError as error:
            found.refused[path] = str(error)
    for path in sorted(set(known) - met):
        source = known[path]
        if source.origin == Source.WATCHED and source.current is not None:
            check_version(source.current, by=by, at=at)
            found.gone.append(path)
    folder.scanned_at = at
    folder.trouble = "\n".join(f"{path}: {why}" for path, why in sorted(found.refused.items()))[:20_000]
    folder.save(update_fields=["scanned_at", "trouble"])
    return found


def _meet(
    folder: WatchedFolder, path: str, item: Place | str, source: Source | None, found: Scanned, *, by: Actor,
    at: datetime,
) -> None:  # fmt: skip
    if isinstance(item, str):
        raise DomainError(item)
    if source is not None and source.origin != Source.WATCHED:
        raise DomainError(
            f"path: got {path[:120]!r}, which is a source of origin {source.origin}, expected a free path"
        )
    data = read_file(item, settings.SOURCE_LIMIT)
    if source is None or source.current is None:
        add_source(folder.study, path, data, origin=Source.WATCHED, by=by, at=at)
        found.added.append(path)
        return
    check_version(source.current, by=by, at=at)
    if hashlib.sha256(data).hexdigest() == source.current.sha256:
        found.unchanged += 1
    else:
        found.changed.append(path)


def take_in(source: Source, *, reason: str, by: Actor, at: datetime) -> SourceVersion:
    """Take what the watched file holds now as the next version. Raises ``DomainError`` for a source of other origin."""
    if source.origin != Source.WATCHED:
        raise DomainError(f"origin: got {source.origin}, expected a watched file; upload the new bytes instead")
    data = watched_bytes(source)
    if data is None:
        raise DomainError(f"path: got {source.path[:120]!r}, whose file is gone, expected a file to take in")
    return add_source(source.study, source.path, data, origin=Source.WATCHED, by=by, at=at, reason=reason)


def add_from_git(
    study: Study,
    repository_root: str | Path,
    commit: str,
    path: str,
    *,
    by: Actor,
    at: datetime,
    source_path: str = "",
    reference: str = "",
    title_en: str = "",
    title_zh: str = "",
    cutoff: date | None = None,
    note: str = "",
    reason: str = "",
) -> SourceVersion:
    """A file as it stands in a commit of a local repository. ``repository_root``: ``root/folder``, or its full path.

    The commit's full id is stored. Raises ``DomainError`` for a repository outside the allowed roots, and for a
    commit or file that it does not have.
    """
    data, full = git.read_commit(place_of(repository_root), commit, path, settings.SOURCE_LIMIT)
    return add_source(
        study, source_path or path, data, origin=Source.GIT, by=by, at=at, commit=full, reference=reference,
        title_en=title_en, title_zh=title_zh, cutoff=cutoff, note=note, reason=reason,
    )  # fmt: skip


def collect_own(study: Study, *, by: Actor, at: datetime) -> int:
    """Make sources of what the study's closed executions recorded; how many versions were added. Idempotent."""
    known = dict(Source.objects.filter(study=study, path__startswith=f"{OWN}/").values_list("path", "current__sha256"))
    added = 0
    for item in own.records(study):
        if known.get(item.path) == item.sha256:
            continue
        add_source(
            study, item.path, item.data, origin=item.origin, by=by, at=at, form=item.form, title_en=item.title_en,
            title_zh=item.title_zh, reason=REWRITTEN if item.path in known else "",
        )  # fmt: skip
        added += 1
    return added
