"""The audit log of a study and of the site: newest first, narrowed, a cursor to go on."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from runs.access import AUDIT_READ
from runs.models import AuditEntry, Study
from runs.presenters.people import audit_lines
from runs.views.base import render_page
from runs.views.catalogue.base import open_study
from runs.views.people.base import account_crumbs, site_admins_only, study_crumbs

SIZE = 50
CHANNELS = ("page", "api", "command")
OUTCOMES: dict[str, tuple[Any, Q]] = {
    "refused": (
        gettext_lazy("refused"),
        Q(status__gte=400, status__lt=500) | Q(method__in=("change", "command"), status=1),
    ),
    "failed": (gettext_lazy("failed"), Q(status__gte=500)),
}
_BIGGEST = 2**63 - 1


def _narrowed(request: HttpRequest, rows: QuerySet[AuditEntry]) -> tuple[QuerySet[AuditEntry], dict[str, str]]:
    chosen = {name: request.GET.get(name, "").strip()[:100] for name in ("who", "channel", "outcome", "about")}
    if "\0" in "".join(chosen.values()):
        return rows.none(), chosen
    if chosen["who"]:
        rows = rows.filter(actor__name__iexact=chosen["who"])
    if chosen["channel"] in CHANNELS:
        rows = rows.filter(channel=chosen["channel"])
    if chosen["outcome"] in OUTCOMES:
        rows = rows.filter(OUTCOMES[chosen["outcome"]][1])
    if chosen["about"]:
        about = chosen["about"]
        rows = rows.filter(
            Q(subject__icontains=about)
            | Q(route__icontains=about)
            | Q(request_id=about)
            | Q(token_prefix=about.removeprefix("wb_"))
        )
    return rows, chosen


def _page(request: HttpRequest, rows: QuerySet[AuditEntry], **context: Any) -> HttpResponse:
    rows, chosen = _narrowed(request, rows.select_related("actor", "study").order_by("-pk"))
    before = request.GET.get("before", "")
    cursor = int(before) if before.isascii() and before.isdigit() and len(before) < 19 else None
    if cursor is not None:
        rows = rows.filter(pk__lt=min(cursor, _BIGGEST))
    found = list(rows[: SIZE + 1])
    query: dict[str, str | int] = {name: str(value) for name, value in chosen.items() if value}
    older = urlencode({**query, "before": str(found[SIZE - 1].pk)}) if len(found) > SIZE else ""
    return render_page(
        request,
        "people/audit.html",
        title=_("Audit log"),
        lines=audit_lines(found[:SIZE]),
        chosen=chosen,
        channels=CHANNELS,
        outcomes=[(key, word) for key, (word, _where) in OUTCOMES.items()],
        older=older,
        newest=urlencode(query),
        at_newest=cursor is None,
        **context,
    )


@require_safe
@login_required
def of_study(request: HttpRequest, study: str) -> HttpResponse:
    """What was asked for in one study."""
    _principal, found = open_study(request, study, AUDIT_READ)
    rows = AuditEntry.objects.filter(study=found)
    return _page(
        request, rows, section="study", crumbs=study_crumbs(found, gettext_lazy("Audit log")), study=found, own=found
    )


@require_safe
@site_admins_only
def of_site(request: HttpRequest) -> HttpResponse:
    """What was asked for anywhere; ``?study=`` narrows to one."""
    rows = AuditEntry.objects.all()
    slug = request.GET.get("study", "").strip()[:100]
    if slug:
        rows = rows.filter(study__in=Study.objects.filter(slug=slug)) if "\0" not in slug else rows.none()
    return _page(
        request, rows, section="audit", crumbs=account_crumbs(gettext_lazy("Audit log")), own=None, narrowed=slug
    )
