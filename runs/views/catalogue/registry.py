"""Catalogue: environments and models."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from runs.access import principal_of
from runs.presenters.catalogue import registered
from runs.presenters.catalogue.bound import bound_versions
from runs.presenters.frame import Crumb
from runs.views.base import render_page


@require_safe
def environments(request: HttpRequest) -> HttpResponse:
    """Environments that are registered here, and those that visible plans have bound."""
    found = registered.environments(bound_versions(principal_of(request)))
    return render_page(
        request, "catalogue/environments.html", section="environments", title=_("Environments"),
        crumbs=[Crumb(_("Environments"))], environments=found, group=registered.GROUP,
        rewards=registered.installed(registered.REWARDS),
    )  # fmt: skip


@require_safe
def models(request: HttpRequest) -> HttpResponse:
    """Policies that visible plans have bound, and the computed fit of the large profile."""
    found = registered.models(bound_versions(principal_of(request)))
    return render_page(
        request, "catalogue/models.html", section="models", title=_("Models"), crumbs=[Crumb(_("Models"))],
        models=found, fit=registered.fit(), profiles=registered.installed(registered.MODELS),
    )  # fmt: skip
