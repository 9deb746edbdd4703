"""Accounts of the site: who may sign in, and who administers everything. For site admins only."""

from __future__ import annotations

from typing import Any

from allauth.account.decorators import reauthentication_required
from django.contrib import messages
from django.db.models import Count, OuterRef, Q, Subquery
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from runs.actions import members as action
from runs.actions.actors import OWN_FAMILY
from runs.actions.audit import note
from runs.errors import DomainError
from runs.models import Actor, User
from runs.presenters.told import told
from runs.views.base import paginate, refused, render_page
from runs.views.people.base import account_crumbs, me, site_admins_only

fresh_password = reauthentication_required(app="allauth.account")


def _page(request: HttpRequest, *, status: int = 200, **context: Any) -> HttpResponse:
    live = Q(api_tokens__revoked_at__isnull=True, api_tokens__pk__isnull=False)
    rows = User.objects.annotate(
        study_count=Count("memberships__study", distinct=True),
        token_count=Count("api_tokens", filter=live, distinct=True),
        family=Subquery(Actor.objects.filter(user=OuterRef("pk")).exclude(family=OWN_FAMILY).values("family")[:1]),
    ).order_by("username")
    return render_page(
        request,
        "people/users.html",
        section="users",
        title=_("Users"),
        crumbs=account_crumbs(gettext_lazy("Users")),
        status=status,
        listing=paginate(request, rows),
        active=User.objects.filter(is_active=True).count(),
        **{"password": "", "made": None, "typed": "", "typed_family": "", "problem": "", **context},
    )


@never_cache
@require_safe
@site_admins_only
def users(request: HttpRequest) -> HttpResponse:
    """All accounts."""
    return _page(request)


@never_cache
@require_POST
@site_admins_only
@fresh_password
def create(request: HttpRequest) -> HttpResponse:
    """A new account; its generated password stands on this answer and on no other page."""
    name, family = request.POST.get("name", ""), request.POST.get("family", "")
    try:
        user, password = action.create_user(
            name, by=me(request), at=timezone.now(), site_admin=request.POST.get("site_admin") == "1", family=family
        )
    except DomainError as error:
        return _page(request, status=422, typed=name[:64], typed_family=family[:64], problem=told(error))
    note(subject=f"user {user.get_username()}")
    return _page(request, status=201, made=user, password=password)


@never_cache
@require_POST
@site_admins_only
@fresh_password
def change(request: HttpRequest, pk: int, verb: str) -> HttpResponse:
    """Do ``deactivate``, ``activate``, ``make-admin``, ``take-admin`` or ``reset-password``."""
    user = User.objects.filter(pk=pk).first()
    if user is None:
        raise Http404("no such user")
    by, at = me(request), timezone.now()
    note(subject=f"user {user.get_username()}")
    try:
        if verb in ("deactivate", "activate"):
            action.set_active(user, verb == "activate", by=by, at=at)
        elif verb in ("make-admin", "take-admin"):
            action.set_site_admin(user, verb == "make-admin", by=by, at=at)
        elif verb == "reset-password":
            return _page(request, made=user, password=action.reset_password(user, by=by, at=at))
        else:
            raise Http404(f"verb: got {verb[:32]!r}")
    except DomainError as error:
        refused(request, error)
    else:
        messages.success(request, _("Done. The audit log has it."))
    return redirect("runs:users")
