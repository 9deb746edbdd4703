"""Saved filters of the person who is signed in."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from runs.actions.filters import delete_filter, save_filter
from runs.errors import DomainError
from runs.models import SavedFilter
from runs.query.listing import address
from runs.query.lists import LISTS
from runs.query.parse import parse
from runs.views.base import refused
from runs.views.people.base import me


@require_POST
@login_required
def save(request: HttpRequest) -> HttpResponse:
    """Keep the query of a list under a name."""
    page, query = request.POST.get("page", ""), request.POST.get("query", "")
    try:
        if parse(query).errors:
            raise DomainError(f"query: {parse(query).errors[0].message}")
        found = save_filter(
            me(request), page, request.POST.get("name", ""), query, pages=tuple(LISTS), at=timezone.now()
        )
        messages.success(request, _("Saved as “%(name)s”.") % {"name": found.name})
    except DomainError as error:
        refused(request, error)
    target = address(LISTS[page], q=query.strip()) if page in LISTS else reverse("runs:now")
    return HttpResponseRedirect(target)


@require_safe
@login_required
def apply(request: HttpRequest, pk: int) -> HttpResponse:
    """Open the list under a saved filter."""
    found = get_object_or_404(SavedFilter, pk=pk, user=me(request))
    return HttpResponseRedirect(address(LISTS[found.page], q=found.query))


@require_POST
@login_required
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Forget a saved filter."""
    found = SavedFilter.objects.filter(pk=pk, user=me(request)).first()
    if found is None:
        raise Http404("no such filter of yours")
    delete_filter(me(request), pk)
    messages.success(request, _("Deleted “%(name)s”.") % {"name": found.name})
    return HttpResponseRedirect(address(LISTS[found.page]) if found.page in LISTS else reverse("runs:now"))
