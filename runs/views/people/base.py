"""Shared parts: who is signed in, which study is meant, refusals as messages."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext_lazy

from runs.access import principal_of
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


def study_crumbs(study: Study, word: Any) -> list[Crumb]:
    """Breadcrumb down to a page of a study."""
    return [Crumb(study.slug, reverse("runs:study", args=[study.slug])), Crumb(word)]


def account_crumbs(*words: Any) -> list[Crumb]:
    """Breadcrumb down to a page of the account."""
    return [Crumb(gettext_lazy("Account"), reverse("runs:account")), *(Crumb(word) for word in words)]
