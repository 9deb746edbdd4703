"""Pages of what is stale: the list with chains from cause to effect, a graph, and the form that confirms."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_POST, require_safe

from evidence.actions.stale import settle
from evidence.models import StaleMark
from evidence.presenters import stale as shown
from evidence.propagation import TARGETS, study_of_cause
from evidence.recording import request_recording
from evidence.views.base import refused
from runs.access import EVIDENCE_WRITE, can, principal_of, require, visible_studies
from runs.errors import DomainError, NotAllowed
from runs.models import Study
from runs.presenters.frame import Crumb
from runs.views.base import paginate, render_page

MOST = 200  # marks that one form settles


def _study(request: HttpRequest, slug: str) -> Study | None:
    if not slug:
        return None
    found = visible_studies(principal_of(request)).filter(slug=slug[:100]).first()
    if found is None:
        raise Http404("no such study")
    return found


def _crumbs(study: Study | None, *more: Crumb) -> list[Crumb]:
    found = [Crumb(gettext_lazy("Stale"), reverse("evidence:stale")), *more]
    return [Crumb(study.slug, reverse("runs:study", args=[study.slug])), *found] if study else found


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    """Open marks, oldest first. ``?study=``, ``?kind=`` of what is stale, ``?state=settled`` for those that were."""
    principal = principal_of(request)
    study = _study(request, request.GET.get("study", ""))
    kind, state = request.GET.get("kind", ""), request.GET.get("state", shown.OPEN)
    if (kind and kind not in TARGETS) or state not in (shown.OPEN, shown.SETTLED):
        raise Http404("kind or state: expected figure, claim or section; open or settled")
    every = shown.marks(principal)
    if study is not None:
        every = every.filter(study=study)
    counts = shown.counts(every)
    lost = shown.broken(principal, study)
    rows = every.filter(resolution__isnull=state == shown.OPEN).order_by("pk" if state == shown.OPEN else "-pk")
    page = paginate(request, rows.filter(target_kind=kind) if kind else rows)
    writes = {mark.study_id: mark.study for mark in page}
    may = {pk for pk, found in writes.items() if principal.user is not None and can(principal, EVIDENCE_WRITE, found)}
    return render_page(
        request, "evidence/stale.html", section="stale", title=_("Stale"), crumbs=_crumbs(study), study=study,
        headline=shown.headline(counts, lost), lost=any(lost),
        counts=counts, listing=page, rows=shown.rows(list(page)), kind=kind,
        state=state, kinds=[(name, shown.MANY[name], counts[name]) for name in TARGETS], may=may, of_study=study,
        many=study is None, may_record=study is not None and can(principal, EVIDENCE_WRITE, study),
    )  # fmt: skip


@require_safe
def graph(request: HttpRequest, kind: str, uid: UUID) -> HttpResponse:
    """What rests on one thing, drawn and as a list."""
    try:
        study = study_of_cause(kind, uid)
    except DomainError as error:
        raise Http404(str(error)) from error
    if not visible_studies(principal_of(request)).filter(pk=study.pk).exists():
        raise Http404("no such study")
    found = shown.graph(kind, uid, study)
    title = _("What rests on %s") % found.cause.name
    return render_page(
        request, "evidence/stale_graph.html", section="stale", title=title, study=study, graph=found,
        crumbs=_crumbs(study, Crumb(found.cause.name)), count=found.count, more=found.count - len(found.chains),
    )  # fmt: skip


def _back(request: HttpRequest) -> HttpResponseRedirect:
    """To where the form stood."""
    target = request.POST.get("next", "")
    safe = url_has_allowed_host_and_scheme(target, {request.get_host()}, require_https=request.is_secure())
    return HttpResponseRedirect(target if target and safe else reverse("evidence:stale"))


def _chosen(request: HttpRequest) -> list[StaleMark]:
    """The marks that the form names. Raises ``DomainError`` for none or too many, ``Http404`` for a hidden one."""
    try:
        uids = [UUID(text) for text in dict.fromkeys(request.POST.getlist("mark"))]
    except ValueError as error:
        raise Http404("mark: expected a UUID") from error
    if not 1 <= len(uids) <= MOST:
        raise DomainError(f"mark: got {len(uids)}, expected 1 to {MOST}; choose what you confirm")
    principal = principal_of(request)
    found = list(shown.marks(principal).filter(uid__in=uids).order_by("pk"))
    if len(found) != len(uids):
        raise Http404("no such mark")
    for study in {mark.study_id: mark.study for mark in found}.values():
        require(principal, EVIDENCE_WRITE, study)
    return found


@require_POST
@login_required
def confirm(request: HttpRequest) -> HttpResponse:
    """A person confirms that what is chosen still holds, with one note for all of it; all or nothing."""
    try:
        chosen = _chosen(request)
        by, at = principal_of(request).actor(), timezone.now()
        with transaction.atomic():
            for mark in chosen:
                settle(mark, "confirmed", request.POST.get("note", ""), by=by, at=at)
        text = ngettext("%d mark is settled.", "%d marks are settled.", len(chosen))
        messages.success(request, text % len(chosen))
    except NotAllowed:
        raise
    except DomainError as error:
        refused(request, error)
    return _back(request)


@require_POST
@login_required
def record(request: HttpRequest) -> HttpResponse:
    """Have a study's evidence looked at now, and what has changed written down."""
    study = _study(request, request.POST.get("study", ""))
    if study is None:
        raise Http404("study: got nothing, expected a slug")
    principal = principal_of(request)
    require(principal, EVIDENCE_WRITE, study)
    request_recording(study, by=principal.actor())
    messages.success(request, _("The evidence is being looked at; what has changed appears here."))
    return _back(request)
