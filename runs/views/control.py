"""Pause, resume and cancel a run: people who hold the right in its study, one action each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from runs.access import RUN_CONTROL, get_visible, principal_of, require, study_of
from runs.actions import runs_control
from runs.errors import DomainError, NotAllowed
from runs.models import Run
from runs.views.base import refused

# Verb of the address: what it does, and the word for what was done.
VERBS: dict[str, tuple[Callable[..., None], Any]] = {
    "pause": (runs_control.pause_run, gettext_lazy("paused")),
    "resume": (runs_control.resume_run, gettext_lazy("resumed")),
    "cancel": (runs_control.cancel_run, gettext_lazy("cancelled")),
}


@require_POST
@login_required
def control(request: HttpRequest, uid: UUID, verb: str) -> HttpResponse:
    """Do ``pause``, ``resume`` or ``cancel`` and go back to the run; a refusal is shown, not hidden."""
    if verb not in VERBS:
        raise Http404(f"verb: got {verb!r}, expected pause, resume or cancel")
    principal = principal_of(request)
    run = get_visible(principal, Run.objects.select_related("plan_version__plan__study"), uid=uid)
    try:
        if run.plan_version is not None:  # one without a plan has no study: a site admin alone sees it
            require(principal, RUN_CONTROL, study_of(run))
    except NotAllowed as error:
        raise PermissionDenied(str(error)) from error
    try:
        action, word = VERBS[verb]
        action(run, by=principal.actor())
    except DomainError as error:
        refused(request, error)
    else:
        messages.success(request, _("Done: %(verb)s. A receipt was written.") % {"verb": word})
    return redirect("runs:run", uid=uid)
