"""Pages of figures: the list, one figure with its chain, the form that binds, and what the editor asks for."""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from evidence.actions.figures import bind_figure, check_figure, refresh_figure
from evidence.models import Excerpt, Figure
from evidence.presenters import figure_form as form
from evidence.presenters import figures as shown
from evidence.presenters.chips import HEAVY, RELATED, STATES, Chip, chip_list
from evidence.presenters.troubles import told
from evidence.views.base import refused
from runs.access import EVIDENCE_WRITE, can, get_visible, principal_of, require, visible_studies
from runs.errors import DomainError
from runs.models import Study
from runs.presenters.frame import Crumb
from runs.views.base import paginate, render_page

SECTION = "figures"


def _chip(request: HttpRequest, uid: uuid.UUID) -> Chip:
    rows = Figure.objects.filter(current__isnull=False).select_related("study", *RELATED).defer(*HEAVY)
    return chip_list([get_visible(principal_of(request), rows, "study", uid=uid)])[0]


def _study(request: HttpRequest, slug: str) -> Study:
    found = visible_studies(principal_of(request)).filter(slug=slug[:100]).first()
    if found is None:
        raise Http404("no study that you can see matches")
    return found


def _crumbs(study: Study, *last: Crumb) -> list[Crumb]:
    return [
        Crumb(study.slug, reverse("runs:study", args=[study.slug])),
        Crumb(_("Figures"), f"{reverse('evidence:figures')}?study={study.slug}"),
        *last,
    ]


@require_safe
def listing(request: HttpRequest) -> HttpResponse:
    """Figures of visible studies, by study, kind, state and words."""
    principal, given = principal_of(request), request.GET.dict()
    rows = shown.figure_rows(principal)
    study = _study(request, given["study"]) if given.get("study") else None
    page = paginate(request, shown.filtered(rows, given))
    return render_page(
        request, "evidence/figures.html", section=SECTION, title=_("Figures"), crumbs=[Crumb(_("Figures"))],
        study=study, listing=page, chips=chip_list(page.object_list),
        filters=shown.choices(rows, given), text=given.get("q", ""), own=study, language=get_language(),
        studies=list(visible_studies(principal).order_by("slug").values_list("slug", flat=True)),
        may_write=bool(form.writable_studies(principal)), given=given,
    )  # fmt: skip


@require_safe
def one(request: HttpRequest, uid: uuid.UUID) -> HttpResponse:
    """A figure: its value, how it is bound, what it gives now, its versions, what rests on it."""
    chip = _chip(request, uid)
    study = chip.figure.study
    return render_page(
        request, "evidence/figure.html", section=SECTION, title=chip.key, study=study, own=study,
        crumbs=_crumbs(study, Crumb(chip.key)), language=get_language(),
        may_write=can(principal_of(request), EVIDENCE_WRITE, study), **shown.page_of(chip, get_language()),
    )  # fmt: skip


@require_safe
def card(request: HttpRequest, uid: uuid.UUID) -> HttpResponse:
    """The hover card of a figure as a fragment."""
    chip = _chip(request, uid)
    language = get_language()
    context = {"chip": chip, "rows": chip.rows(language), "title": chip.title(language)}
    return render(request, "evidence/figure_card.html", context)


@require_POST
@login_required
def recompute_now(request: HttpRequest, uid: uuid.UUID) -> HttpResponse:
    """Compute a figure again and keep the state that was found."""
    principal, figure = principal_of(request), _chip(request, uid).figure
    require(principal, EVIDENCE_WRITE, figure.study)
    try:
        found = refresh_figure(figure, by=principal.actor(), at=timezone.now())
        said = _("Computed again: %(state)s. %(trouble)s")
        messages.success(request, said % {"state": STATES[found.state].word, "trouble": told(found.trouble)})
    except DomainError as error:
        refused(request, error)
    return HttpResponseRedirect(reverse("evidence:figure", args=[uid]))


def _initial(request: HttpRequest, study: Study) -> dict[str, str]:
    """What the form begins with: a figure to bind anew, an excerpt, or what its address says."""
    given = {name: str(value)[:4000] for name, value in request.GET.items()}
    key = given.get("figure", "")
    rows = Figure.objects.filter(study=study, key=key, current__isnull=False)
    figure = rows.select_related("current__plan_version").first() if key else None
    if figure is not None:
        return form.initial_of(figure)
    excerpt = given.pop("excerpt", "")
    if excerpt:
        given |= {"type": "excerpt", "excerpt.excerpt": excerpt}
        found = Excerpt.objects.filter(study=study, key=excerpt).first()
        given.setdefault("kind", "mechanism")
        given.setdefault("origin", "imported" if found and found.kind == Excerpt.TRANSCRIBED else "native")
    return given


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def new(request: HttpRequest) -> HttpResponse:
    """The form that binds a figure; its value is read from the binding and never typed."""
    principal = principal_of(request)
    studies = form.writable_studies(principal)
    slug = request.POST.get("study") or request.GET.get("study") or (studies[0].slug if studies else "")
    study = _study(request, slug)
    require(principal, EVIDENCE_WRITE, study)
    data, problem = _initial(request, study), ""
    if request.method == "POST":
        data = request.POST.dict()
        try:
            columns = form.columns(study, data)
            version = bind_figure(
                study, data.get("key", "").strip(), form.binding_of(data), by=principal.actor(), at=timezone.now(),
                **columns,
            )  # fmt: skip
            messages.success(request, _("Bound: %(key)s.") % {"key": version.figure.key})
            return HttpResponseRedirect(reverse("evidence:figure", args=[version.figure.uid]))
        except DomainError as error:
            problem = told(str(error))
    context: dict[str, Any] = {
        "own": study, "studies": [item.slug for item in studies], "data": data, "problem": problem,
        "panels": form.panels(data), "offered": form.offered(study), "kinds": form.KIND_CHOICES,
        "texts": form.TEXT_WORDS,
        "styles": form.STYLE_CHOICES, "origins": form.ORIGIN_CHOICES,
    }  # fmt: skip
    return render_page(
        request, "evidence/figure_form.html", section=SECTION, title=_("Bind a figure"), study=study,
        crumbs=_crumbs(study, Crumb(_("Bind a figure"))), status=422 if problem else 200, **context,
    )  # fmt: skip


@require_safe
def check(request: HttpRequest) -> JsonResponse:
    """What the form would bind now: {"ok": true, "shown", "value", "unit", "state", …} or {"ok": false, "problem"}."""
    study, data = _study(request, request.GET.get("study", "")), request.GET.dict()
    require(principal_of(request), EVIDENCE_WRITE, study)
    try:
        given = form.value_columns(study, data)
        bound = check_figure(study, data.get("key", "").strip() or "unnamed", form.binding_of(data), **given)
    except DomainError as error:
        return JsonResponse({"ok": False, "problem": told(str(error))})
    found = shown.show_bound(bound, given["style"], given["digits"])
    found |= {"word": str(STATES[bound.resolved.state].word), "trouble": told(found["trouble"])}
    return JsonResponse({"ok": True, **found})


@require_safe
def search(request: HttpRequest) -> JsonResponse:
    """Figures and excerpts of ``?study=`` whose key or words hold ``?q=``, for the editor."""
    study = _study(request, request.GET.get("study", ""))
    return JsonResponse(shown.search(study, request.GET.get("q", ""), get_language()))
