"""What follows the closing of an execution: its records become sources that pages can cite.

It runs after the closing has committed: an error here changes no result, is logged, and is made good by the reaper.
"""

from __future__ import annotations

import logging

from django.utils import timezone

from evidence.actions.sources import collect_own
from evidence.models import Source
from runs.actions.actors import service_actor
from runs.models import Execution, Study

logger = logging.getLogger(__name__)


def collect_sources(study: Study) -> int:
    """Take the records of a study's closed executions in; how many versions were added, 0 where that failed."""
    try:
        return collect_own(study, by=service_actor("worker"), at=timezone.now())
    except Exception:  # what has been committed stands
        logger.exception("sources of study %s were not collected", study.slug)
        return 0


def collect_missing() -> int:
    """Collect where a closed execution has no source yet, because a worker ended between closing and collecting."""
    closed = Execution.objects.filter(state="closed")
    if closed.count() <= Source.objects.filter(origin=Source.CLOSURE).count():
        return 0
    studies = Study.objects.filter(plans__versions__execution__in=closed).distinct()
    return sum(collect_sources(study) for study in studies)
