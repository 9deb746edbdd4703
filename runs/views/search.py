"""Search: runs, plans and tasks by name; every hash and uid by prefix."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from runs.access import principal_of
from runs.presenters.frame import Crumb
from runs.presenters.search import find
from runs.views.base import render_page


@require_safe
def search(request: HttpRequest) -> HttpResponse:
    """Hits for ``?q=``."""
    query = request.GET.get("q", "").strip()[:100]
    return render_page(
        request,
        "runs/search.html",
        section="",
        title=_("Search"),
        crumbs=[Crumb(_("Search"))],
        query=query,
        hits=find(principal_of(request), query),
    )
