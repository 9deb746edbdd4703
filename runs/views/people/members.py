"""People of a study: who they are, what they may do, who may read it. And founding a study."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from runs.access import AUDIT_READ, MEMBER_MANAGE, READ, can, may_create_study, principal_of
from runs.actions import members as action
from runs.actions.studies import create_study, set_visibility
from runs.errors import DomainError, NotAllowed
from runs.models import Study, User
from runs.presenters import people as shown
from runs.presenters.frame import Crumb
from runs.presenters.told import told
from runs.views.base import refused, render_page
from runs.views.catalogue.base import open_study
from runs.views.people.base import me, study_crumbs


@require_safe
@login_required
def members(request: HttpRequest, study: str) -> HttpResponse:
    """Members and visibility; admins change both here."""
    principal, found = open_study(request, study, READ)
    people = shown.members_of(found)
    return render_page(
        request,
        "people/members.html",
        section="study",
        title=_("People of %(study)s") % {"study": found.slug},
        crumbs=study_crumbs(found, gettext_lazy("People")),
        study=found,
        own=found,
        members=people,
        roles=shown.role_choices(),
        visibilities=shown.visibility_choices(),
        visibility=shown.VISIBILITY_WORDS[found.visibility],
        meaning=shown.VISIBILITY_MEANINGS[found.visibility],
        may_manage=can(principal, MEMBER_MANAGE, found),
        may_audit=can(principal, AUDIT_READ, found),
    )


def _changed(request: HttpRequest, study: Study) -> HttpResponse:
    messages.success(request, _("Done. A receipt was written."))
    return redirect("runs:members", study.slug)


@require_POST
@login_required
def add(request: HttpRequest, study: str) -> HttpResponse:
    """Give a person a role."""
    _principal, found = open_study(request, study, MEMBER_MANAGE)
    try:
        user = action.find_user(request.POST.get("user", ""))
        action.add_role(found, user, request.POST.get("role", ""), by=me(request), at=timezone.now())
    except DomainError as error:
        refused(request, error)
        return redirect("runs:members", found.slug)
    return _changed(request, found)


@require_POST
@login_required
def remove(request: HttpRequest, study: str) -> HttpResponse:
    """Take a role from a person."""
    _principal, found = open_study(request, study, MEMBER_MANAGE)
    user = User.objects.filter(username=request.POST.get("user", "")).first()
    try:
        if user is None:
            raise DomainError(_("user: no account has this name"))
        action.remove_role(found, user, request.POST.get("role", ""), by=me(request), at=timezone.now())
    except DomainError as error:
        refused(request, error)
        return redirect("runs:members", found.slug)
    if not can(principal_of(request), READ, found):
        messages.success(request, _("You have left %(study)s.") % {"study": found.slug})
        return redirect("runs:account")
    return _changed(request, found)


@require_POST
@login_required
def visibility(request: HttpRequest, study: str) -> HttpResponse:
    """Say who may read the study."""
    _principal, found = open_study(request, study, MEMBER_MANAGE)
    try:
        set_visibility(found, request.POST.get("visibility", ""), by=me(request), at=timezone.now())
    except DomainError as error:
        refused(request, error)
        return redirect("runs:members", found.slug)
    return _changed(request, found)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def new(request: HttpRequest) -> HttpResponse:
    """Found a study; its founder is its admin."""
    if not may_create_study(principal_of(request)):
        raise NotAllowed("study: got a token without the scope write, expected one with it")
    typed: dict[str, Any] = {"visibility": Study.PRIVATE}
    problem, status = "", 200
    if request.method == "POST":
        names = ("slug", "title_en", "title_zh", "summary_en", "summary_zh", "visibility")
        typed = {name: request.POST.get(name, "").strip() for name in names}
        try:
            found = create_study(
                typed["slug"],
                title={"en": typed["title_en"], "zh": typed["title_zh"]},
                summary={"en": typed["summary_en"], "zh": typed["summary_zh"]},
                visibility=typed["visibility"],
                by=me(request),
                at=timezone.now(),
            )
        except DomainError as error:
            problem, status = told(error), 422
        else:
            messages.success(request, _("Founded. You are its admin. A receipt was written."))
            return redirect("runs:study", found.slug)
    return render_page(
        request,
        "people/study_new.html",
        section="study",
        title=_("New study"),
        crumbs=[Crumb(gettext_lazy("New study"))],
        status=status,
        typed=typed,
        problem=problem,
        visibilities=shown.visibility_choices(),
    )
