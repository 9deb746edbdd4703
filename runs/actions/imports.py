"""Import of foreign logs: begin, run to the end in batches, say how it ended.

Each batch commits with the cursor behind it, so a killed import goes on where it stood and nothing is
stored twice. The same source in the same study is the same import. Imported runs are exploratory:
they fill no pending figure, and only grades A and B may feed claims about training.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.db import transaction

from runs.actions.audit import record_change
from runs.actions.import_batch import is_partial, rollouts_sha256, write_batch
from runs.actions.members import stream_of
from runs.actions.receipts import append_receipt
from runs.actions.tracking import create_logged_run, set_framework, set_status
from runs.errors import DomainError, StaleTransition
from runs.models import Actor, LogImport, MetricSeries, Run, Study, TrackedRun
from workbench.celery import app
from workbench.contracts.canonical import derive_uid, digest
from workbench.importers import (
    FORMATS,
    LIMITS,
    Cursor,
    ImportRefused,
    Item,
    Limits,
    ProblemItem,
    RolloutItem,
    detect,
    open_import,
)
from workbench.importers.body import source_identity, source_signature
from workbench.importers.items import TRUNCATED
from workbench.importers.mapping import guess_framework

logger = logging.getLogger(__name__)
TASK = "worker.tasks.import_log"
ENDED = (LogImport.DONE, LogImport.PARTIAL)
BATCH_ITEMS = 5000
BATCH_ROLLOUTS = 50  # a rollout may be megabytes
STALE = timedelta(seconds=60)
SLICE_SECONDS = 10.0
NAME_LENGTH = 200
Clock = Callable[[], datetime]


class SourceChanged(DomainError):
    """The files are not those that the import began with."""


def find_import(study: Study, source_sha256: str, format: str) -> LogImport | None:
    """The import of a source in a study, if it was begun."""
    return LogImport.objects.filter(uid=_uid(study, source_sha256, format)).first()


def _uid(study: Study, source_sha256: str, format: str) -> Any:
    return derive_uid(study.uid, f"import:{format}:{source_sha256}")


def _checked_format(path: Path, format: str | None, limits: Limits) -> str:
    try:
        found = format or detect(path, limits)
    except ImportRefused as error:
        raise DomainError(str(error)) from error
    if found is None:
        raise DomainError(f"path: got {path.name!r} of no known format, expected one of {', '.join(FORMATS)}")
    if found not in FORMATS:
        raise DomainError(f"format: got {found[:40]!r}, expected one of {', '.join(FORMATS)}")
    return found


def _target(study: Study, name: str, is_asked: bool, format: str, sha256: str, by: Actor, at: datetime) -> Run:
    """The imported run of a name that was asked for, or a new one: equal file names are no reason to merge."""
    known = TrackedRun.objects.select_related("run").filter(
        study=study, name=name, deleted=False, run__origin=Run.IMPORTED
    )
    found = known.order_by("id").first() if is_asked else None
    if found is not None:
        return found.run
    made = create_logged_run(
        study, name, by=by, at=at, origin=Run.IMPORTED, framework=FORMATS[format].framework,
        key=f"import:{format}:{sha256}:{name}",
    )  # fmt: skip
    return made.run


def begin_import(
    study: Study, path: Path, *, by: Actor, at: datetime, format: str | None = None, name: str = "",
    limits: Limits = LIMITS,
) -> LogImport:  # fmt: skip
    """The import of ``path`` into a run of ``study``; the standing one where the same source was begun before.

    ``name``: of the run; an imported run of that name takes several sources (metrics and completions of one
    training, say). "" is the name of the file or folder, and a run of its own. Nothing is read in yet.
    Raises ``DomainError`` for an unknown format or a path that is not there. Callers check ``log.write`` first.
    """
    chosen = _checked_format(path, format, limits)
    signature, sizes = source_signature(path, limits)  # before the bytes are read: a later change shows
    sha256 = source_identity(path, limits)
    label = (name or path.name).strip()
    if not label or len(label) > NAME_LENGTH or any(ord(letter) < 32 for letter in label):
        raise DomainError(
            f"name: got {label[:80]!r}, expected 1 to {NAME_LENGTH} characters without control characters"
        )
    with transaction.atomic():
        standing = find_import(study, sha256, chosen)
        if standing is not None:
            if standing.state not in ENDED:
                standing.cursor = {**standing.cursor, "source": str(path.resolve()), "signature": signature}
                standing.save(update_fields=["cursor"])
            return standing
        run = _target(study, label, bool(name), chosen, sha256, by, at)
        log_import = LogImport(
            uid=_uid(study, sha256, chosen), study=study, run=run, format=chosen, source_name=path.name[:1000],
            source_sha256=sha256, cursor={"source": str(path.resolve()), "signature": signature, "after": None},
            counts={"bytes": sum(sizes.values()), "bytes_done": 0, "files": len(sizes)},
            actor=by, created_at=at, updated_at=at,
        )  # fmt: skip
        log_import.save(force_insert=True)
        body = {"format": chosen, "source_sha256": sha256, "run": str(run.uid)}
        append_receipt(stream_of(study), "import.begun", log_import.uid, body, actor=by, at=at)
        record_change("import.begun", by=by, at=at, subject=f"import {log_import.uid} {path.name}", study=study)
    return log_import


def dispatch_import(log_import: LogImport) -> None:
    """Hand an import to a worker when the transaction commits. A lost message is sent again by ``resend_stale``."""
    import_id = log_import.pk
    transaction.on_commit(lambda: _send(import_id), robust=True)


def _send(import_id: int) -> None:
    try:
        app.send_task(TASK, args=[import_id], queue="io", retry=False)
    except Exception as error:  # any transport error: the row stays queued and is sent again
        logger.warning("import %s was not sent: %s", import_id, error)


def resend_stale(at: datetime) -> int:
    """Send imports again that nobody has moved for a minute; returns how many. Two workers on one do no harm."""
    stale = LogImport.objects.filter(state__in=[LogImport.QUEUED, LogImport.RUNNING], updated_at__lt=at - STALE)
    found = list(stale.values_list("pk", flat=True))
    LogImport.objects.filter(pk__in=found).update(updated_at=at)
    for import_id in found:
        _send(import_id)
    return len(found)


def _batches(items: Iterator[Item]) -> Iterator[list[Item]]:
    batch: list[Item] = []
    rollouts = 0
    for item in items:
        batch.append(item)
        rollouts += isinstance(item, RolloutItem)
        if len(batch) >= BATCH_ITEMS or rollouts >= BATCH_ROLLOUTS:
            yield batch
            batch, rollouts = [], 0
    if batch:
        yield batch


def _is_said(item: Item, resume: Cursor | None) -> bool:
    """Whether an item is the cut-off end at which the import stood: it was counted then."""
    return isinstance(item, ProblemItem) and item.kind == TRUNCATED and item.cursor == resume


def _bytes_done(sizes: dict[str, int], cursor: Cursor) -> int:
    """Bytes of the files before the cursor's, and its own offset: progress for people."""
    done, own = 0, cursor.file.partition("!")[0]
    for name, size in sizes.items():
        if name == own:
            return done + min(cursor.offset, size)
        done += size
    return 0


def _commit(
    log_import: LogImport, batch: list[Item], sizes: dict[str, int], standing: dict[str, Any] | None, at: datetime
) -> tuple[LogImport, dict[str, Any]]:
    """Store a batch behind cursor ``standing``. Raises ``StaleTransition`` where another process moved it."""
    with transaction.atomic():
        head = LogImport.objects.select_for_update().get(pk=log_import.pk)
        if head.state in ENDED or head.cursor.get("after") != standing:
            raise StaleTransition(f"import {head.uid}: another process goes on with it")
        write_batch(head, batch, by=head.actor, at=at)
        after = batch[-1].cursor
        head.cursor = {**head.cursor, "after": after.to_json()}
        head.counts["bytes_done"] = max(head.counts.get("bytes_done", 0), _bytes_done(sizes, after))
        head.state, head.error, head.updated_at = LogImport.RUNNING, "", at
        head.save(update_fields=["cursor", "counts", "problems", "state", "error", "updated_at"])
    return head, after.to_json()


def run_import(
    import_id: int,
    *,
    clock: Clock,
    progress: Callable[[LogImport], None] | None = None,
    enough: Callable[[], bool] | None = None,
    limits: Limits = LIMITS,
) -> LogImport:
    """Read a begun import to its end, from where it stands; an ended one is returned as it is.

    ``progress`` is called after each batch; where ``enough`` then says so, the import is returned as it
    stands, running. Raises ``SourceChanged``, ``DomainError`` for a source that
    cannot be read, ``StaleTransition`` where another process is at it; the first two leave it failed,
    and it can be run again.
    """
    log_import = LogImport.objects.select_related("study", "run", "actor").get(pk=import_id)
    if log_import.state in ENDED:
        return log_import
    try:
        return _read(log_import, clock, progress, enough, limits)
    except StaleTransition:
        raise
    except ImportRefused as error:
        _fail(log_import, str(error), clock())
        raise DomainError(str(error)) from error
    except Exception as error:
        _fail(log_import, str(error) or type(error).__name__, clock())
        raise


def continue_import(import_id: int, *, clock: Clock, seconds: float = SLICE_SECONDS) -> None:
    """A worker's part of an import: read for a while, then hand it on, so that short work is not kept waiting."""
    end = time.monotonic() + seconds
    try:
        head = run_import(import_id, clock=clock, enough=lambda: time.monotonic() >= end)
    except (DomainError, StaleTransition) as error:  # the row says it
        logger.warning("import %s: %s", import_id, error)
        return
    if head.state not in ENDED:
        dispatch_import(head)


def _read(
    log_import: LogImport,
    clock: Clock,
    progress: Callable[[LogImport], None] | None,
    enough: Callable[[], bool] | None,
    limits: Limits,
) -> LogImport:
    path = Path(str(log_import.cursor.get("source", "")))
    if not path.exists():
        raise SourceChanged(f"source: got {log_import.source_name!r} no longer in its place, expected it unchanged")
    signature, sizes = source_signature(path, limits)
    unchanged = signature == log_import.cursor.get("signature")
    if not unchanged and (sha256 := source_identity(path, limits)) != log_import.source_sha256:
        raise SourceChanged(f"source: got SHA-256 {sha256}, expected {log_import.source_sha256}; import it anew")
    after = log_import.cursor.get("after")
    resume = None if after is None else Cursor.from_json(after)
    head = log_import
    items = open_import(path, log_import.format, resume, limits)
    for batch in _batches(item for item in items if not _is_said(item, resume)):
        head, after = _commit(head, batch, sizes, after, clock())
        if progress is not None:
            progress(head)
        if enough is not None and enough():
            return head
    if source_signature(path, limits)[0] != signature and source_identity(path, limits) != log_import.source_sha256:
        raise SourceChanged(f"source: got {log_import.source_name!r} changed while it was read, expected it unchanged")
    return _finish(head, after, sum(sizes.values()), clock())


def _finish(log_import: LogImport, standing: dict[str, Any] | None, size: int, at: datetime) -> LogImport:
    with transaction.atomic():
        head = LogImport.objects.select_for_update(of=("self",)).select_related("study", "run", "actor").get(
            pk=log_import.pk
        )  # fmt: skip
        if head.state in ENDED or head.cursor.get("after") != standing:
            raise StaleTransition(f"import {head.uid}: another process goes on with it")
        head.state = LogImport.PARTIAL if is_partial(head) else LogImport.DONE
        head.counts["bytes_done"], head.error, head.updated_at = size, "", at
        head.cursor = {"after": standing}  # where the files lay is nobody's business any more
        head.save(update_fields=["state", "counts", "error", "updated_at", "cursor"])
        _close_run(head, at)
        body = {
            "state": head.state, "format": head.format, "source_sha256": head.source_sha256, "counts": head.counts,
            "problems_sha256": digest(head.problems), "rollouts_sha256": rollouts_sha256(head),
            "run": str(head.run.uid),
        }  # fmt: skip
        append_receipt(stream_of(head.study), "import.ended", head.uid, body, actor=head.actor, at=at)
        record_change(
            "import.ended", by=head.actor, at=at, subject=f"import {head.uid} {head.source_name}", study=head.study,
            detail=head.state,
        )  # fmt: skip
    return head


def _close_run(log_import: LogImport, at: datetime) -> None:
    """End the run (which seals its points), mark it partial, and say whose names it uses where that stands out."""
    run = log_import.run
    assert run is not None  # set when the import began
    tracked = TrackedRun.objects.get(run=run)
    if log_import.state == LogImport.PARTIAL and not tracked.partial:
        TrackedRun.objects.filter(pk=tracked.pk).update(partial=True)
    if not tracked.framework:
        names = list(MetricSeries.objects.filter(run=run).order_by("name").values_list("name", flat=True)[:500])
        framework = FORMATS[log_import.format].framework or guess_framework(names)
        if framework:
            set_framework(run, framework, at=at)
    if not tracked.deleted:
        set_status(run, TrackedRun.FINISHED, by=log_import.actor, at=at, reason=f"imported: {log_import.state}")


def _fail(log_import: LogImport, error: str, at: datetime) -> None:
    LogImport.objects.filter(pk=log_import.pk).exclude(state__in=ENDED).update(
        state=LogImport.FAILED, error=error[:2000], updated_at=at
    )
