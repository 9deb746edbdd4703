"""Receipt streams by name: ``run:<uid>`` tells of that run, and belongs to the run's study."""

from __future__ import annotations

import uuid
from typing import Any

from runs.models import Execution, Plan, Run, Study

# Kind of a stream, as in ``run:<uid>`` -> its subject, and the path from there to the study.
STREAMS: dict[str, tuple[type[Any], str]] = {
    "study": (Study, "pk"),
    "evidence": (Study, "pk"),
    "plan": (Plan, "study"),
    "execution": (Execution, "plan_version__plan__study"),
    "run": (Run, "plan_version__plan__study"),
}


def study_of_stream(stream: str) -> Study | None:
    """The study that a stream tells of; None for a stream of no study. Readers look at ``StreamHead.study``."""
    kind, _colon, tail = stream.partition(":")
    if kind not in STREAMS:
        return None
    try:
        uid = uuid.UUID(tail)
    except ValueError:
        return None
    model, path = STREAMS[kind]
    found = model._default_manager.filter(uid=uid).values_list(path, flat=True).first()
    return None if found is None else Study.objects.filter(pk=found).first()
