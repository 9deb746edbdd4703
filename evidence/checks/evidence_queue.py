"""Step 15: the review queue holds what links, reviews and answers say, no more and no less."""

from __future__ import annotations

from evidence.report import StepLog
from evidence.waiting import expected, stored
from runs.models import Study


def check_waiting(log: StepLog) -> None:
    """Rows of ``Waiting`` against the queries that they stand for, by study."""
    for study in Study.objects.order_by("pk"):
        log.count()
        wanted, there = expected(study), stored(study)
        for kind, key in sorted(wanted.keys() - there.keys()):
            log.problem("evidence_waiting", f"{kind} {key}", "kind", expected="a row: it waits", got=None)
        for kind, key in sorted(there.keys() - wanted.keys()):
            log.problem("evidence_waiting", f"{kind} {key}", "kind", expected=None, got="a row: it waits no more")
