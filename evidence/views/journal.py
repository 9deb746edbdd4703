"""The journal of a study: its days, one day, drafting and notes."""

from __future__ import annotations

import datetime
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST, require_safe

from evidence.actions.journal import NOTE_MOST, add_note, draft_day
from evidence.presenters.chips import shown_for
from evidence.presenters.journal import DayView, day_views, days_of
from evidence.views.base import refused
from evidence.views.notes import get_study, session_language
from runs.access import EVIDENCE_WRITE, REVIEW_WRITE, Principal, capabilities, principal_of, require
from runs.errors import DomainError
from runs.models import Study
from runs.presenters.frame import Crumb
from runs.views.base import render_page
from runs.views.people.base import study_crumbs

DAYS = 10  # on one page


def may_note(principal: Principal, study: Study) -> bool:
    """Who works on a study's evidence or reviews it."""
    return bool({EVIDENCE_WRITE, REVIEW_WRITE} & capabilities(principal, study))


def read_day(text: str) -> datetime.date:
    """A day such as 2026-11-30. Raises ``DomainError``."""
    try:
        if len(text) != 10:
            raise ValueError(text)
        return datetime.date.fromisoformat(text)
    except ValueError as error:
        raise DomainError(f"day: got {text[:40]!r}, expected a day such as 2026-11-30") from error


def _page(request: HttpRequest, study: Study, views: list[DayView], **context: Any) -> HttpResponse:
    principal = principal_of(request)
    texts = [note.text for view in views for note in view.notes]
    return render_page(
        request, "evidence/journal.html", section="journal", study=study, of_study=study, days=views,
        shown=shown_for(study, texts), today=timezone.now().date(), note_most=NOTE_MOST,
        may_note=may_note(principal, study), may_draft=EVIDENCE_WRITE in capabilities(principal, study),
        typed=request.GET.get("day", ""), language=session_language(), **context,
    )  # fmt: skip


@require_safe
def journal(request: HttpRequest, study: str) -> HttpResponse:
    """Days with a draft or a note, newest first."""
    found = get_study(request, study)
    listing = Paginator(days_of(found), DAYS).get_page(request.GET.get("page"))
    views = day_views(found, listing, session_language())
    return _page(
        request, found, views, title=_("Journal"), crumbs=study_crumbs(found, _("Journal")), listing=listing, one=None,
    )  # fmt: skip


@require_safe
def journal_day(request: HttpRequest, study: str, day: str) -> HttpResponse:
    """One day, with earlier drafts. ``Http404`` for a day without either draft or note."""
    found = get_study(request, study)
    try:
        wanted = read_day(day)
    except DomainError as error:
        raise Http404(str(error)) from error
    days = days_of(found)
    if wanted not in days:
        raise Http404("no draft and no note of this day")
    at = days.index(wanted)
    crumbs = [
        *study_crumbs(found, _("Journal"))[:-1], Crumb(_("Journal"), reverse("evidence:journal", args=[found.slug])),
        Crumb(str(wanted)),
    ]  # fmt: skip
    return _page(
        request, found, day_views(found, [wanted], session_language()), title=str(wanted), crumbs=crumbs, listing=None,
        one=wanted, later=days[at - 1] if at else None, before=days[at + 1] if at + 1 < len(days) else None,
    )  # fmt: skip


def _back(study: Study, day: datetime.date | None) -> HttpResponseRedirect:
    base = reverse("evidence:journal", args=[study.slug])
    return HttpResponseRedirect(base if day is None else f"{base}#day-{day}")


@require_POST
@login_required
def draft(request: HttpRequest, study: str) -> HttpResponse:
    """Draft a day from its receipts."""
    found = get_study(request, study)
    require(principal_of(request), EVIDENCE_WRITE, found)
    try:
        day = read_day(request.POST.get("day", ""))
        row = draft_day(found, day, by=principal_of(request).actor(), at=timezone.now())
    except DomainError as error:
        refused(request, error)
        return _back(found, None)
    text = ngettext("%(day)s: draft %(n)d, %(lines)d line.", "%(day)s: draft %(n)d, %(lines)d lines.", len(row.lines))
    messages.success(request, text % {"day": day, "n": row.number, "lines": len(row.lines)})
    return _back(found, day)


@require_POST
@login_required
def note(request: HttpRequest, study: str) -> HttpResponse:
    """Add a note to a day."""
    found = get_study(request, study)
    principal = principal_of(request)
    if not may_note(principal, found):
        require(principal, EVIDENCE_WRITE, found)
    try:
        day = read_day(request.POST.get("day", ""))
        add_note(
            found, day, request.POST.get("text", ""), request.POST.get("language", ""), by=principal.actor(),
            at=timezone.now(),
        )  # fmt: skip
    except DomainError as error:
        refused(request, error)
        return _back(found, None)
    messages.success(request, gettext("The note was added; it stays as it is."))
    return _back(found, day)
