"""Lists under the query language: runs, groups, trajectories, evaluations, tasks; the help page of the language."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from runs.access import principal_of, visible
from runs.models import Plan
from runs.presenters.frame import Crumb
from runs.presenters.groups import group_rows
from runs.presenters.trajectories import trajectory_rows
from runs.query.keys import KEYS
from runs.query.listing import Listing, build_listing
from runs.query.lists import LISTS
from runs.views.base import render_page


def list_page(request: HttpRequest, listing: Listing, template: str = "runs/list.html", **context: Any) -> HttpResponse:
    """The page of a list: 400 where the query cannot be understood."""
    spec = listing.spec
    return render_page(
        request,
        template,
        section=context.pop("section", spec.name),
        title=context.pop("title", spec.word),
        crumbs=context.pop("crumbs", [Crumb(spec.word)]),
        status=400 if any(error.term != "after" for error in listing.errors) else 200,
        listing=listing,
        spec=spec,
        **context,
    )


@require_safe
def runs(request: HttpRequest) -> HttpResponse:
    """All runs, newest first."""
    return list_page(request, build_listing("runs", principal_of(request), request.GET), "runs/runs.html")


@require_safe
def groups(request: HttpRequest) -> HttpResponse:
    """All groups, newest first."""
    listing = build_listing("groups", principal_of(request), request.GET)
    return list_page(request, listing, rows=group_rows(listing.rows))


@require_safe
def trajectories(request: HttpRequest) -> HttpResponse:
    """All trajectories, newest first."""
    listing = build_listing("trajectories", principal_of(request), request.GET)
    return list_page(request, listing, rows=trajectory_rows(listing.rows))


@require_safe
def evaluations(request: HttpRequest) -> HttpResponse:
    """Evaluation items: one row per (checkpoint, condition, split, task, repeat)."""
    principal = principal_of(request)
    return list_page(
        request,
        build_listing("evaluations", principal, request.GET),
        "runs/evaluations.html",
        several=visible(principal, Plan.objects.all())[:2].count() > 1,
    )


@require_safe
def tasks(request: HttpRequest) -> HttpResponse:
    """Tasks that visible plans have bound."""
    return list_page(request, build_listing("tasks", principal_of(request), request.GET))


@require_safe
def language(request: HttpRequest) -> HttpResponse:
    """The query language: every key, what it means, and in which lists."""
    rows = [
        (name, key.help, key.example, [(LISTS[at].word, matcher.words or ()) for at, matcher in key.on.items()])
        for name, key in KEYS.items()
    ]
    return render_page(
        request,
        "runs/query_language.html",
        section="query_language",
        title=_("Query language"),
        crumbs=[Crumb(_("Query language"))],
        rows=rows,
        lists=list(LISTS.values()),
    )
