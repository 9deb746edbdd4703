"""Pages of claims: the list, one claim, and the forms that write, revise, lower and withdraw claims and links."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from evidence.actions import claims as action
from evidence.actions import links as linking
from evidence.claim_form import Typed, evidence_of_form, evidence_options, plan_of, save, typed_of
from evidence.models import Claim, ClaimVersion, Link
from evidence.presenters import claims as shown
from evidence.presenters import reviews as words
from evidence.presenters.claim_parents import marks_of
from evidence.status import rank
from runs.access import EVIDENCE_WRITE, READ, REVIEW_WRITE, can, get_visible, principal_of, require, visible_studies
from runs.errors import DomainError
from runs.models import Study
from runs.presenters.frame import Crumb
from runs.views.base import paginate, render_page
from runs.views.catalogue.base import guarded

CHECKED_MOST = 200_000  # bytes of a request that is checked live


def _get(request: HttpRequest, uid: UUID, capability: str | None = None) -> Claim:
    """The visible claim, in whose study the person holds ``capability``."""
    principal = principal_of(request)
    rows = Claim.objects.select_related("study", "author", "current__actor").filter(current__isnull=False)
    found = get_visible(principal, rows, "study", uid=uid)
    if capability is not None:
        require(principal, capability, found.study)
    return found


def _crumbs(study: Study | None, *last: Any) -> list[Crumb]:
    found = [Crumb(gettext_lazy("Claims"), reverse("evidence:claims")), *(Crumb(word) for word in last)]
    return [Crumb(study.slug, reverse("runs:study", args=[study.slug])), *found] if study else found


def _choice(request: HttpRequest, name: str, known: Any) -> str:
    text = request.GET.get(name, "")
    if text and text not in known:
        raise Http404(f"{name}: got {text[:40]!r}, expected one of {', '.join(known)}")
    return text


@require_safe
def claims(request: HttpRequest) -> HttpResponse:
    """All claims, newest first. ``?study= status= flag= kind= q=`` narrow; counts beside the choices."""
    principal = principal_of(request)
    studies = {item.slug: item for item in visible_studies(principal).order_by("slug")}
    narrowed = shown.Narrowed(
        _choice(request, "study", studies), _choice(request, "status", Claim.STATUSES),
        _choice(request, "kind", ClaimVersion.KINDS), _choice(request, "flag", shown.FLAGS),
        request.GET.get("q", "").replace("\x00", "")[: shown.SEARCH_MOST],
    )  # fmt: skip
    rows = narrowed.rows(principal)
    tabs = shown.tabs_of(rows, narrowed)
    page = paginate(request, narrowed.chosen(rows).select_related("study", "current", "author").order_by("-pk"))
    study = studies.get(narrowed.study)
    return render_page(
        request, "evidence/claims.html", section="claims", title=_("Claims"), study=study, crumbs=_crumbs(study),
        listing=page, rows=shown.listed(page), tabs=tabs, narrowed=narrowed, studies=list(studies),
        kinds=list(words.CLAIM_KINDS.items()),
        writable=shown.writable_studies(principal, study),
    )  # fmt: skip


def _show(
    request: HttpRequest, claim: Claim, *, typed: Typed | None = None, form: str = "", status: int = 200
) -> HttpResponse:
    """The page of a claim; ``form`` names the one that was refused, which stays open with what was typed."""
    principal = principal_of(request)
    view = shown.claim_view(claim)
    may = can(principal, EVIDENCE_WRITE, claim.study) and claim.status != Claim.WITHDRAWN
    lower = [name for name in action.SETTABLE if rank(name) <= rank(view.derived.cap) and name != view.derived.status]
    return render_page(
        request, "evidence/claim.html", section="claims", title=claim.key, study=claim.study, status=status,
        crumbs=_crumbs(claim.study, claim.key), view=view, claim=claim, may=may, shown=view.shown,
        may_answer=may, may_review=can(principal, REVIEW_WRITE, claim.study), typed=typed or Typed(), form=form,
        lower=[(name, words.STATUSES[name].word) for name in reversed(lower)],
        relations=list(words.RELATIONS.items()), marks=marks_of(claim) if claim.stale else [],
        options=evidence_options(claim.study) if may else None,
    )  # fmt: skip


@require_safe
def claim(request: HttpRequest, uid: UUID) -> HttpResponse:
    """One claim with everything that it rests on."""
    return _show(request, _get(request, uid))


def _form_page(request: HttpRequest, study: Study, typed: Typed, found: Claim | None, status: int) -> HttpResponse:
    title = _("Revise %(key)s") % {"key": found.key} if found is not None else _("New claim")
    return render_page(
        request, "evidence/claim_form.html", section="claims", title=title, study=study, status=status,
        crumbs=_crumbs(study, title), own=study, typed=typed, claim=found,
        kinds=[(name, word, shown.KIND_HELP[name]) for name, word in words.CLAIM_KINDS.items()],
        plans=shown.plan_choices(study),
    )  # fmt: skip


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@guarded
def new(request: HttpRequest) -> HttpResponse:
    """Write a claim in ``?study=``."""
    principal = principal_of(request)
    slug = request.POST.get("study") or request.GET.get("study", "")
    study = get_visible(principal, Study.objects.all(), "pk", slug=slug[:64])
    require(principal, EVIDENCE_WRITE, study)
    typed = typed_of(request.POST)
    if request.method != "POST":
        return _form_page(request, study, Typed(), None, 200)
    if Claim.objects.filter(study=study, key=typed.get("key")).exists():
        typed.refuse("key", _("a claim of this key exists: open it to revise it"))
        return _form_page(request, study, typed, None, 422)
    version = save(study, typed, by=principal.actor(), at=timezone.now())
    if version is None:
        return _form_page(request, study, typed, None, 422)
    messages.success(request, _("Written. A receipt was added; link the evidence that supports it."))
    return redirect("evidence:claim", version.claim.uid)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@guarded
def revise(request: HttpRequest, uid: UUID) -> HttpResponse:
    """The next version of a claim, with a reason."""
    found = _get(request, uid, EVIDENCE_WRITE)
    if request.method != "POST":
        if found.status == Claim.WITHDRAWN:
            messages.error(request, _("This claim was withdrawn; a new one needs a new key."))
            return redirect("evidence:claim", found.uid)
        return _form_page(request, found.study, Typed.of_version(found), found, 200)
    typed = typed_of(request.POST, key=found.key)
    number = found.current.number if found.current is not None else 0
    version = save(found.study, typed, by=principal_of(request).actor(), at=timezone.now())
    if version is None:
        return _form_page(request, found.study, typed, found, 409 if typed.moved else 422)
    if version.number == number:
        messages.success(request, _("These are the words that it has; nothing was changed."))
    else:
        messages.success(request, _("Revised. Acceptances of other words no longer count."))
    return redirect("evidence:claim", found.uid)


def _refused(request: HttpRequest, found: Claim, form: str, error: DomainError) -> HttpResponse:
    typed = typed_of(request.POST)
    typed.refuse_all(error)
    return _show(request, found, typed=typed, form=form, status=422)


def _changed(request: HttpRequest, uid: UUID, form: str, said: Any, change: Callable[..., object]) -> HttpResponse:
    """Call ``change(claim, by=, at=)`` and go back to the claim; a refusal shows beside the form that asked."""
    found, by = _get(request, uid, EVIDENCE_WRITE), principal_of(request).actor()
    try:
        change(found, by=by, at=timezone.now())
    except DomainError as error:
        return _refused(request, found, form, error)
    messages.success(request, said)
    return redirect("evidence:claim", found.uid)


def _reason(request: HttpRequest) -> str:
    return request.POST.get("reason", "")


@require_POST
@login_required
@guarded
def lower(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Set the status by hand, at or below its cap."""
    change = partial(action.lower_claim, status=request.POST.get("status", ""), reason=_reason(request))
    return _changed(request, uid, "lower", _("Set. A receipt was written."), change)


@require_POST
@login_required
@guarded
def withdraw(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Take the claim back for good."""
    said = _("Withdrawn. Its words, links and reviews stay readable.")
    return _changed(request, uid, "withdraw", said, partial(action.withdraw_claim, reason=_reason(request)))


@require_POST
@login_required
@guarded
def link(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Link an excerpt or a figure, named by its key."""

    def change(found: Claim, **who: Any) -> object:
        words: dict[str, Any] = {name: request.POST.get(name, "") for name in ("relation", "reach_en", "reach_zh")}
        return linking.add_link(found, **evidence_of_form(found.study, request.POST), **words, **who)

    return _changed(request, uid, "link", _("Linked. It waits in the review queue."), change)


@require_POST
@login_required
@guarded
def withdraw_one_link(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Take a link back."""
    row = get_visible(principal_of(request), Link.objects.select_related("study", "claim"), "study", uid=uid)

    def change(found: Claim, **who: Any) -> object:
        return linking.withdraw_link(row, reason=_reason(request), **who)

    said = _("Withdrawn; the link and its reviews stay readable.")
    return _changed(request, row.claim.uid, f"unlink-{row.uid}", said, change)


@require_POST
@login_required
def check(request: HttpRequest) -> JsonResponse:
    """What a sentence may not say, while it is written: {text, kind, language, study} -> {"troubles": [...]}.

    ``plan_version`` and ``endpoint`` may be given; ``kind`` empty looks at a description.
    """
    try:
        given = json.loads(request.body[:CHECKED_MOST] or b"{}")
    except ValueError:
        given = None
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        return JsonResponse({"error": "body: got something else, expected an object of texts"}, status=400)
    principal = principal_of(request)
    study = get_visible(principal, Study.objects.all(), "pk", slug=given.get("study", "")[:64])
    require(principal, READ, study)
    language = given.get("language", "en")
    if language not in action.LANGUAGES:
        return JsonResponse({"error": f"language: got {language[:20]!r}, expected en or zh"}, status=400)
    field = f"text_{language}"
    faults = action.check_claim(
        study, {field: given.get("text", "")}, given.get("kind") or "description",
        plan_of(study, given.get("plan_version", "")), given.get("endpoint", ""),
    )  # fmt: skip
    troubles = [
        {"field": "text" if item.field == field else item.field, "code": item.code, "text": item.got,
         "message": item.message, "start": item.start, "stop": item.stop}
        for item in faults if item.code != "empty"
    ]  # fmt: skip
    return JsonResponse({"troubles": troubles})
