"""Shared parts of the catalogue's views: what a person may open, and refusals as answers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from runs.access import Principal, get_visible, principal_of, require
from runs.errors import NotAllowed
from runs.models import Plan, Study
from runs.presenters.frame import Crumb

View = Callable[..., HttpResponse]


def guarded(view: View) -> View:
    """A missing right is answered 403."""

    @functools.wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except NotAllowed as error:
            raise PermissionDenied(str(error)) from error

    return wrapped


def open_study(request: HttpRequest, slug: str, capability: str | None = None) -> tuple[Principal, Study]:
    """The visible study, in which the person holds ``capability``."""
    principal = principal_of(request)
    study = get_visible(principal, Study.objects.all(), "pk", slug=slug)
    if capability is not None:
        require(principal, capability, study)
    return principal, study


def open_plan(request: HttpRequest, study: str, slug: str, capability: str | None = None) -> tuple[Principal, Plan]:
    """The visible plan, in whose study the person holds ``capability``."""
    principal = principal_of(request)
    rows = Plan.objects.select_related("study", "current_version__created_by")
    plan = get_visible(principal, rows, study__slug=study, slug=slug)
    if capability is not None:
        require(principal, capability, plan.study)
    return principal, plan


def crumbs_of(plan: Plan, *last: Any) -> list[Crumb]:
    """Breadcrumb down to a page of a plan."""
    return [
        Crumb(plan.study.slug, reverse("runs:study", args=[plan.study.slug])),
        Crumb(_("Plans"), reverse("runs:plans")),
        Crumb(plan.slug, reverse("runs:plan", args=[plan.study.slug, plan.slug])),
        *(Crumb(word) for word in last),
    ]
