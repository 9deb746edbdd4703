"""The edits of one trajectory."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from runs.access import get_visible, principal_of
from runs.models import Intervention, Trajectory, TrajectoryCredit
from runs.presenters.frame import Crumb
from runs.presenters.trials import blocks as shown
from runs.presenters.trials.links import receipt_of
from runs.presenters.trials.words import NOT_WHAT_D_IS, STATUS
from runs.views.base import render_page
from runs.views.trajectories import group_crumbs

RELATIONS = (
    "group__task",
    "group__plan_version__plan__study",
    "group__run__plan_version__plan__study",
    "group__run__arm",
)


@require_safe
def edits(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Strip of turns, blocks, the chosen difference of files, flipped tests, D. ``?block=`` shows another block."""
    rows = Trajectory.objects.select_related(*RELATIONS).prefetch_related("turns__tool_call")
    found = get_visible(principal_of(request), rows, uid=uid)
    item = (
        Intervention.objects.filter(trajectory=found)
        .select_related("trial_set__group", "trial_set__run", "trial_set__plan_version")
        .first()
    )
    if item is None:
        raise Http404("edits: expected a trajectory of a group that was tried")
    made, blocks, verdicts = item.trial_set, shown.blocks_of(item), shown.verdicts_of(found)
    tests = shown.test_lines(made, verdicts.original, verdicts.without)
    block = next((b for b in blocks if str(b.decision) == request.GET.get("block")), None)
    block = block or next((b for b in blocks if b.is_chosen), blocks[0] if blocks else None)
    files = shown.files_of(block, *shown.snapshots_of(made)) if block is not None else []
    siblings = list(
        Intervention.objects.filter(trial_set=made).select_related("trajectory").defer("blocks").order_by("slot")
    )
    at = next(i for i, row in enumerate(siblings) if row.pk == item.pk)
    own = Crumb(gettext_lazy("slot %(n)s") % {"n": found.slot}, reverse("runs:trajectory", args=[found.uid]))
    return render_page(
        request,
        "trials/edits.html",
        section="trajectories",
        title=_("edits of slot %(n)s") % {"n": found.slot},
        crumbs=[*group_crumbs(found.group), own, Crumb(gettext_lazy("Edits"))],
        study=found.group.plan_version.plan.study,
        trajectory=found,
        group=found.group,
        item=item,
        made=made,
        state=STATUS[item.status],
        statuses={key: word for key, (word, _why) in STATUS.items()},
        blocks=blocks,
        opened=block,
        cells=shown.turn_cells(found, blocks),
        files=files,
        verdicts=verdicts,
        tests=tests,
        flipped=sum(line.flipped for line in tests),
        credit=TrajectoryCredit.objects.filter(trajectory=found).select_related("update").first(),
        receipt=receipt_of(made),
        siblings=siblings,
        previous=siblings[at - 1] if at else None,
        next=siblings[at + 1] if at + 1 < len(siblings) else None,
        headline=shown.headline(item, tests),
        not_what=NOT_WHAT_D_IS,
    )
