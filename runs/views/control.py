"""Pause, resume and cancel a run: signed-in people only, one action each."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from runs.actions import runs_control
from runs.actions.actors import person_actor
from runs.errors import DomainError
from runs.models import Run


@require_POST
@login_required
def control(request: HttpRequest, uid: UUID, verb: str) -> HttpResponse:
    """Do ``pause``, ``resume`` or ``cancel`` and go back to the run; a refusal is shown, not hidden."""
    action = {
        "pause": runs_control.pause_run,
        "resume": runs_control.resume_run,
        "cancel": runs_control.cancel_run,
    }.get(verb)
    if action is None:
        raise Http404(f"verb: got {verb!r}, expected pause, resume or cancel")
    run = get_object_or_404(Run, uid=uid)
    try:
        action(run, by=person_actor(request.user))  # type: ignore[arg-type]
    except DomainError as error:
        messages.error(request, _("Refused, nothing was changed: %(error)s") % {"error": error})
    else:
        messages.success(request, _("Done: %(verb)s. A receipt was written.") % {"verb": verb})
    return redirect("runs:run", uid=uid)
