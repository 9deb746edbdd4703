"""Shared parts of the views: rendering inside the frame, pagination, whole numbers from the query."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from runs.access import principal_of
from runs.models import Study
from runs.presenters.frame import Crumb, build_frame
from runs.presenters.told import told

PAGE_SIZE = 50


def render_page(
    request: HttpRequest,
    template: str,
    *,
    section: str,
    title: Any,
    crumbs: list[Crumb],
    study: Study | None = None,
    status: int = 200,
    **context: Any,
) -> HttpResponse:
    """One whole page: ``context`` beside the frame."""
    frame = build_frame(principal_of(request), section, study, crumbs)
    return render(request, template, {"frame": frame, "title": title, **context}, status=status)


def paginate(request: HttpRequest, rows: QuerySet[Any] | list[Any], size: int = PAGE_SIZE) -> Page[Any]:
    """The page that ``?page=`` names; a number out of range gives the nearest one."""
    return Paginator(rows, size).get_page(request.GET.get("page"))


def run_crumbs(run: Any) -> list[Crumb]:
    """Breadcrumb down to a run."""
    found = [Crumb(_("Runs"), reverse("runs:runs"))]
    if run.plan_version is not None:
        study = run.plan_version.plan.study
        found.insert(0, Crumb(study.slug, reverse("runs:study", args=[study.slug])))
    return [*found, Crumb(run.name, reverse("runs:run", args=[run.uid]))]


def refused(request: HttpRequest, error: Exception | str) -> None:
    """Say at the top of the next page why nothing was changed."""
    messages.error(request, gettext("Refused, nothing was changed: %(error)s") % {"error": told(error)})
