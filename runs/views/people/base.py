"""Shared parts: who is signed in, which study is meant, refusals as messages."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs.access import Principal, principal_of, require, visible_studies
from runs.models import Study, User
from runs.presenters.frame import Crumb

View = Callable[..., HttpResponse]


def me(request: HttpRequest) -> User:
    """The person who is signed in. Raises ``PermissionDenied`` for nobody."""
    if not isinstance(request.user, User):
        raise PermissionDenied("sign in first")
    return request.user


def site_admins_only(view: View) -> View:
    """The page exists for site admins only; everybody else finds nothing there."""

    @functools.wraps(view)
    @login_required
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not principal_of(request).is_site_admin:
            raise Http404("no such page")
        return view(request, *args, **kwargs)

    return wrapped


def open_study(request: HttpRequest, slug: str, capability: str) -> tuple[Principal, Study]:
    """The visible study, in which the person holds the capability: ``Http404`` or ``NotAllowed`` otherwise."""
    principal = principal_of(request)
    study = visible_studies(principal).filter(slug=slug).first()
    if study is None:
        raise Http404("no study that you can see matches")
    require(principal, capability, study)
    return principal, study


def refused(request: HttpRequest, error: Exception) -> None:
    """Say at the top of the next page why nothing was changed."""
    messages.error(request, _("Refused, nothing was changed: %(error)s") % {"error": error})


def study_crumbs(study: Study, word: Any) -> list[Crumb]:
    """Breadcrumb down to a page of a study."""
    return [Crumb(study.slug, reverse("runs:study", args=[study.slug])), Crumb(word)]


def account_crumbs(*words: Any) -> list[Crumb]:
    """Breadcrumb down to a page of the account."""
    return [Crumb(gettext_lazy("Account"), reverse("runs:account")), *(Crumb(word) for word in words)]
