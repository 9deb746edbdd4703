"""One foreign rollout."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from runs.models import ImportedRollout
from runs.presenters.frame import Crumb
from runs.presenters.logged import rollout as shown
from runs.presenters.logged.run import body_of
from runs.views.base import render_page
from runs.views.logged.run import get_logged, logged_crumbs


@require_safe
def rollout(request: HttpRequest, uid: UUID, rollout: UUID) -> HttpResponse:
    """What one rollout says; bytes that are not those of their hash are named and the page stays."""
    head = get_logged(request, uid)
    row = ImportedRollout.objects.filter(run=head.run, uid=rollout).select_related("log_import").first()
    if row is None:
        raise Http404("no rollout of this run matches")
    body, trouble = body_of(row)
    before, after = shown.neighbours_of(row)
    return render_page(
        request, "logged/rollout.html", section="logged", title=_("Rollout %(n)d of %(run)s")
        % {"n": row.position, "run": head.name}, study=head.study,
        crumbs=[*logged_crumbs(head), Crumb(_("Rollout %(n)d") % {"n": row.position})],
        head=head, row=row, view=None if body is None else shown.view_of(body), trouble=trouble,
        grade_word=shown.GRADES[row.grade], siblings=shown.siblings_of(row), before=before, after=after,
        most=shown.TOKENS_SHOWN,
    )  # fmt: skip
