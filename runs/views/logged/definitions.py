"""The table of metrics."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from runs.presenters.frame import Crumb
from runs.presenters.layers.page import SECTION_TITLES
from runs.presenters.logged import definitions as shown
from runs.views.base import render_page
from workbench.contracts.metrics import METRIC_DEFINITIONS


@require_safe
def metrics_table(request: HttpRequest) -> HttpResponse:
    """Every definition and every mapped name; ``?q=`` narrows both."""
    text = request.GET.get("q", "")[: shown.QUERY_MOST]
    rows, trainers = shown.definition_rows(text), shown.trainers(text)
    return render_page(
        request, "logged/metrics.html", section="metrics", title=_("Metrics"), crumbs=[Crumb(_("Metrics"))],
        layers=rows, trainers=trainers, text=text, total=len(METRIC_DEFINITIONS), count=shown.counted(rows),
        names=sum(len(item.lines) for item in trainers), all_names=sum(item.total for item in trainers),
        directions=shown.DIRECTIONS, titles=SECTION_TITLES,
    )  # fmt: skip
