"""Visibility of rows that reach their study over a detour: checkpoints, receipt streams, counts of all kinds.

``runs.access`` narrows everything that has a path to its study. A parent checkpoint has none (it is seen
through the runs, groups and items that use it), and a receipt names its stream only.
"""

from __future__ import annotations

import uuid
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import Http404

from runs.access import Principal, study_ids
from runs.models import Checkpoint, EvaluationItem, Execution, Group, Plan, PlanVersion, Receipt, Run, StreamHead, Study

# Kind of a stream, as in ``run:<uid>`` -> its subject, and the path from there to the study.
STREAMS: dict[str, tuple[type[Any], str]] = {
    "study": (Study, "pk"),
    "plan": (Plan, "study"),
    "execution": (Execution, "plan_version__plan__study"),
    "run": (Run, "plan_version__plan__study"),
}


def sees_everything(principal: Principal) -> bool:
    """A signed-in site admin: rows without a study included."""
    return principal.user is not None and principal.user.is_superuser and principal.token is None


def version_ids(principal: Principal) -> list[int]:
    """Keys of the frozen versions of visible plans."""
    rows = PlanVersion.objects.filter(plan__study__in=study_ids(principal)).values_list("pk", flat=True)
    found: list[int] = principal.once("version_ids", lambda: list(rows))
    return found


def visible_checkpoints(principal: Principal, rows: QuerySet[Checkpoint] | None = None) -> QuerySet[Checkpoint]:
    """Checkpoints of visible runs, and the parents that visible work starts from."""
    rows = Checkpoint.objects.all() if rows is None else rows
    if sees_everything(principal):
        return rows
    versions = version_ids(principal)
    here = Q(plan_version__in=versions)
    parents = Checkpoint.objects.filter(run__isnull=True).filter(
        Exists(Run.objects.filter(here, parent_checkpoint=OuterRef("pk")))
        | Exists(Group.objects.filter(here, checkpoint=OuterRef("pk")))
        | Exists(EvaluationItem.objects.filter(here, checkpoint=OuterRef("pk")))
    )
    return rows.filter(Q(run__plan_version__in=versions) | Q(pk__in=parents))


def visible_streams(principal: Principal) -> list[str] | None:
    """Names of the visible streams; None for all of them."""
    if sees_everything(principal):
        return None
    studies = study_ids(principal)
    found: list[str] = principal.once("streams", lambda: _streams(studies))
    return found


def _streams(studies: list[int]) -> list[str]:
    return [
        f"{kind}:{uid}"
        for kind, (model, path) in STREAMS.items()
        for uid in model.objects.filter(**{f"{path}__in": studies}).values_list("uid", flat=True)
    ]


def visible_heads(principal: Principal) -> QuerySet[StreamHead]:
    """Heads of the visible streams that hold something."""
    rows, names = StreamHead.objects.filter(seq__gt=0), visible_streams(principal)
    return rows if names is None else rows.filter(stream__in=names)


def visible_receipts(principal: Principal, rows: QuerySet[Receipt] | None = None) -> QuerySet[Receipt]:
    """Receipts of the visible streams."""
    rows, names = Receipt.objects.all() if rows is None else rows, visible_streams(principal)
    return rows if names is None else rows.filter(stream__in=names)


def study_of_stream(stream: str) -> Study | None:
    """The study that a stream tells of; None for a stream of no study."""
    kind, _colon, tail = stream.partition(":")
    if kind not in STREAMS:
        return None
    try:
        uid = uuid.UUID(tail)
    except ValueError:
        return None
    model, path = STREAMS[kind]
    found = model.objects.filter(uid=uid).values_list(path, flat=True).first()
    return None if found is None else Study.objects.filter(pk=found).first()


def stream_visible(principal: Principal, stream: str) -> bool:
    """Whether a stream may be read."""
    if sees_everything(principal):
        return True
    study = study_of_stream(stream)
    return study is not None and study.pk in study_ids(principal)


def get_visible_head(principal: Principal, stream: str) -> StreamHead:
    """The stream's head. Raises ``Http404`` alike where there is none and where it is hidden."""
    head = StreamHead.objects.filter(stream=stream).first() if "\0" not in stream else None
    if head is None or not stream_visible(principal, stream):
        raise Http404("no receipt stream that you can see matches")
    return head


def get_visible_receipt(principal: Principal, **lookup: Any) -> Receipt:
    """The one receipt that matches. Raises ``Http404`` alike where it is absent and where it is hidden."""
    found = Receipt.objects.select_related("actor").filter(**lookup).first()
    if found is None or not stream_visible(principal, found.stream):
        raise Http404("no receipt that you can see matches")
    return found
