"""Search: names, beginnings of uids and hashes, terms of the query language."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from runs.access import principal_of
from runs.presenters.frame import Crumb
from runs.presenters.search import search as look_up
from runs.views.base import render_page


@require_safe
def search(request: HttpRequest) -> HttpResponse:
    """Hits for ``?q=``; 400 where its terms cannot be understood."""
    query = request.GET.get("q", "").strip()[:500]
    found = look_up(principal_of(request), query)
    return render_page(
        request,
        "runs/search.html",
        section="",
        title=_("Search"),
        crumbs=[Crumb(_("Search"))],
        status=400 if found.errors else 200,
        query=query,
        found=found,
        hits=found.hits,
    )
