"""Visibility of rows that reach their study over a detour: checkpoints, receipt streams, counts of all kinds.

``runs.access`` narrows everything that has a path to its study. A parent checkpoint has none (it is seen
through the runs, groups and items that use it), and a receipt names its stream only, whose head names the study.
"""

from __future__ import annotations

from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Substr
from django.http import Http404

from runs.access import Principal, sees_everything, study_ids, version_ids, visible_jobs
from runs.models import Checkpoint, EvaluationItem, Group, Job, Receipt, Run, StreamHead

TROUBLED_JOBS = ("failed", "errored")
INSPECTION = "inspect_plan"
_OF_PLAN = len("inspect:") + 36 + len(":")  # of an inspection's key: what names its plan


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


def troubled_jobs(principal: Principal) -> QuerySet[Job]:
    """Visible jobs that failed. An inspection counts until its plan has been inspected again."""
    again = Job.objects.filter(kind=INSPECTION, study=OuterRef("study"), pk__gt=OuterRef("pk")).annotate(
        plan_key=Substr("key", 1, _OF_PLAN)
    )
    done = Exists(again.filter(plan_key=Substr(OuterRef("key"), 1, _OF_PLAN)))
    return visible_jobs(principal).filter(state__in=TROUBLED_JOBS).exclude(Q(kind=INSPECTION) & Q(done))


def visible_heads(principal: Principal) -> QuerySet[StreamHead]:
    """Heads of the visible streams that hold something. A stream of no study is the site's administrators' alone."""
    rows = StreamHead.objects.filter(seq__gt=0)
    return rows if sees_everything(principal) else rows.filter(study__in=study_ids(principal))


def visible_receipts(principal: Principal, rows: QuerySet[Receipt] | None = None) -> QuerySet[Receipt]:
    """Receipts of the visible streams."""
    rows = Receipt.objects.all() if rows is None else rows
    if sees_everything(principal):
        return rows
    # A condition on each row and no list of names: the newest are found by their index, without a sort.
    heads = StreamHead.objects.filter(stream=OuterRef("stream"), study__in=study_ids(principal))
    return rows.filter(Exists(heads))


def stream_visible(principal: Principal, stream: str) -> bool:
    """Whether a stream may be read; one that nothing was written to is nobody's but the administrators'."""
    if sees_everything(principal):
        return True
    return StreamHead.objects.filter(stream=stream, study__in=study_ids(principal)).exists()


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
