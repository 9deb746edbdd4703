"""What follows the closing of an execution: its records become sources, and of them the bundled study's notes.

It runs after the closing has committed: an error here changes no result, is logged, and is made good by the reaper.
"""

from __future__ import annotations

import logging
import time
from datetime import timedelta

from django.utils import timezone

from evidence.actions.figures import fill_pending
from evidence.actions.sources import collect_own
from evidence.models import Claim, Figure, Source
from evidence.notes.generated import generate_notes, without_notes
from runs.actions.actors import service_actor
from runs.models import Execution, Study

logger = logging.getLogger(__name__)
WAIT_S = 0.2  # between two looks at whether a worker has written


def collect_sources(study: Study) -> int:
    """Take the records of a study's closed executions in; how many versions were added, 0 where that failed."""
    try:
        return collect_own(study, by=service_actor("worker"), at=timezone.now())
    except Exception:  # what has been committed stands
        logger.exception("sources of study %s were not collected", study.slug)
        return 0


def _uncollected() -> bool:
    closed = Execution.objects.filter(state="closed").count()
    return closed > Source.objects.filter(origin=Source.CLOSURE).count()


def await_written(seconds: float) -> bool:
    """Let the worker that closed an execution finish what follows; False where something is missing after ``seconds``.

    A command that ends its workers at once would interrupt that one, and do the same again itself.
    """
    end = time.monotonic() + seconds
    while _uncollected() or without_notes():
        if time.monotonic() > end:
            return False
        time.sleep(WAIT_S)
    return True


def collect_missing(*, settled_s: float = 0.0) -> int:
    """Collect where a closed execution has no source yet, because a worker ended between closing and collecting.

    Nothing while one was closed less than ``settled_s`` ago: the worker that closed it is at it.
    """
    if not _uncollected() or _closed_lately(settled_s):
        return 0
    closed = Execution.objects.filter(state="closed")
    studies = Study.objects.filter(plans__versions__execution__in=closed).distinct()
    return sum(collect_sources(study) for study in studies)


def _closed_lately(seconds: float) -> bool:
    since = timezone.now() - timedelta(seconds=seconds)
    return seconds > 0 and Execution.objects.filter(state="closed", updated_at__gt=since).exists()


AGAIN_S = 60.0  # after which notes that could not be written are tried again
_TRIED: dict[int, float] = {}  # execution -> when this process last tried to make its notes good


def write_notes(execution: Execution) -> bool:
    """Fill what waited for a closed execution, and generate the notes of a bundled study; False where that failed.

    A failure is logged. The generated figures are filled by what generates them; people's own after that.
    """
    try:
        generate_notes(execution, by=service_actor("worker"), at=timezone.now())
        _fill(execution)
    except Exception:  # what has been committed stands
        logger.exception("notes from execution %s were not written", execution.uid)
        return False
    return True


def _fill(execution: Execution) -> None:
    """Pending effect figures of the closed plan, and what people claim on it; the worker wrote its own just now."""
    version, worker = execution.plan_version, service_actor("worker")
    if not Execution.objects.filter(pk=execution.pk, state="closed").exists():
        return
    figures = Figure.objects.filter(current__plan_version=version, state=Figure.PENDING)
    claims = Claim.objects.filter(current__plan_version=version).exclude(current__actor=worker)
    if figures.exists() or claims.exists():
        fill_pending(version, by=worker, at=timezone.now())


def write_missing_notes(*, settled_s: float = 0.0) -> int:
    """Generate where an execution of a bundled study has no notes yet, closed or with an ended pilot; how many.

    One that was closed less than ``settled_s`` ago is left to the worker that closed it: twice the work is no gain.
    """
    now, since = time.monotonic(), timezone.now() - timedelta(seconds=settled_s)
    found = [
        item
        for item in without_notes()
        if now - _TRIED.get(item.pk, -AGAIN_S) >= AGAIN_S and not (item.state == "closed" and item.updated_at > since)
    ]
    _TRIED.update((item.pk, now) for item in found)
    return sum(write_notes(item) for item in found)
