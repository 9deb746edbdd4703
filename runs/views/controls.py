"""Environment controls: records by environment version, and one record with its tasks."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from runs.access import principal_of
from runs.presenters import controls as shown
from runs.presenters.frame import Crumb
from runs.tasksets import visible_controls
from runs.views.base import paginate, render_page


@require_safe
def controls(request: HttpRequest) -> HttpResponse:
    """Every visible record, newest first."""
    listing = paginate(request, visible_controls(principal_of(request)).order_by("-pk"), 25)
    return render_page(
        request, "controls/list.html", section="controls", title=_("Environment controls"),
        crumbs=[Crumb(_("Environment controls"))], listing=listing, rows=[shown.overview(row) for row in listing],
        categories=shown.CATEGORY_WORDS, kinds=shown.KIND_WORDS,
    )  # fmt: skip


@require_safe
def one_controls(request: HttpRequest, uid: UUID) -> HttpResponse:
    """One record: overlapping categories with their denominators, then slots by task, filtered."""
    found = visible_controls(principal_of(request)).filter(uid=uid).first()
    if found is None:
        raise Http404("no record of controls that you can see matches")
    chosen = shown.chosen_filters(request.GET)
    listing = paginate(request, shown.chosen_tasks(found, chosen), 25)
    listing.object_list = shown.task_rows(found, list(listing.object_list))
    return render_page(
        request, "controls/one.html", section="controls", title=_("Environment controls"),
        crumbs=[
            Crumb(_("Environment controls"), reverse("runs:controls")),
            Crumb(f"{found.environment} {found.environment_version} · {found.ordinal}"),
        ],
        own=found, view=shown.overview(found), table=shown.counts_table(found), later=shown.later_of(found),
        filters=shown.filters(found, chosen), listing=listing,
        kinds=shown.present_kinds(found), kind_words=shown.KIND_WORDS, chosen=chosen, words=shown.VERDICT_WORDS,
        categories=shown.CATEGORY_WORDS,
    )  # fmt: skip
