"""The sentence that opens a job's page."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.models import Job
from runs.presenters.states import TABLES

WORK: dict[str, Any] = {
    "collect_shard": gettext_lazy("Collecting a shard of rollouts"),
    "apply_update": gettext_lazy("Applying an update"),
    "evaluate_shard": gettext_lazy("Evaluating a shard of items"),
    "close_execution": gettext_lazy("Closing an execution"),
    "inspect_plan": gettext_lazy("Looking at what a draft would bind"),
}


def headline(job: Job) -> str:
    """What the job does and how far it is; a kind without words of its own is named as it is stored."""
    words = {"what": WORK.get(job.kind, job.kind), "state": TABLES["job"][job.state].word}
    if job.attempt == 0:
        return _("%(what)s: %(state)s.") % words
    return _("%(what)s: %(state)s at attempt %(n)d of at most %(of)d.") % {
        **words,
        "n": job.attempt,
        "of": job.max_attempts,
    }
