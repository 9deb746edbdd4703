"""Pages of the review queue: the list, one item beside its source, verdicts, answers, reservations."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST, require_safe

from evidence import queue as waiting
from evidence.actions import reviews as actions
from evidence.models import ClaimVersion, Review
from evidence.presenters import review_item as item_page
from evidence.presenters import reviews as shown
from evidence.presenters.troubles import told
from evidence.views.base import refused
from runs.access import EVIDENCE_WRITE, REVIEW_WRITE, can, get_visible, principal_of, require, visible_studies
from runs.errors import DomainError
from runs.models import Study
from runs.presenters.frame import Crumb
from runs.views.base import render_page


def _study(request: HttpRequest, slug: str) -> Study | None:
    """The visible study of that slug, None for no slug. Raises ``Http404``."""
    if not slug:
        return None
    found = visible_studies(principal_of(request)).filter(slug=slug[:64]).first()
    if found is None:
        raise Http404("no such study")
    return found


def _kind(text: str) -> str | None:
    if text and text not in actions.KINDS:
        raise Http404(f"kind: got {text[:40]!r}, expected one of {', '.join(actions.KINDS)}")
    return text or None


def _crumbs(study: Study | None, *more: Crumb) -> list[Crumb]:
    found = [Crumb(gettext_lazy("Reviews"), reverse("evidence:reviews")), *more]
    return [Crumb(study.slug, reverse("runs:study", args=[study.slug])), *found] if study else found


@require_safe
def queue(request: HttpRequest) -> HttpResponse:
    """What waits, by kind. ``?kind=`` one kind, ``?study=`` one study, ``?after=`` the page behind a row."""
    principal, at = principal_of(request), timezone.now()
    study, kind = _study(request, request.GET.get("study", "")), _kind(request.GET.get("kind", ""))
    after = request.GET.get("after", "0")
    behind = int(after) if kind and after.isascii() and after.isdigit() and len(after) < 19 else 0
    counts, me = waiting.counts(principal, study), waiting.actor_of(principal)
    found = waiting.queue_items(principal, study, kind, at=at, after=behind, limit=waiting.LISTED + 1)
    more = len(found) > waiting.LISTED
    found = found[: waiting.LISTED]
    last = found[-1] if more else None
    return render_page(
        request, "evidence/reviews.html", section="reviews", title=_("Reviews"), crumbs=_crumbs(study), study=study,
        headline=shown.headline(counts), tabs=shown.tabs(counts, kind, study.slug if study else ""), kind=kind,
        strip=shown.strip(counts, shown.done_today(me, at)), done=shown.done_today(me, at), more=last,
        lines=shown.lines(found, me), total=sum(counts.values()), empty=shown.EMPTY.get(kind or ""),
        may_review=_may_review(request, study), of_study=study, minutes=actions.HELD_MINUTES,
    )  # fmt: skip


def _may_review(request: HttpRequest, study: Study | None) -> bool:
    """Whether the caller may review in the study, or in any where none is named."""
    principal = principal_of(request)
    if principal.user is None:
        return False
    if study is not None:
        return can(principal, REVIEW_WRITE, study)
    return any(can(principal, REVIEW_WRITE, found) for found in visible_studies(principal))


@require_POST
@login_required
def take_next(request: HttpRequest) -> HttpResponse:
    """Reserve the first item that nobody else holds, and open it."""
    principal = principal_of(request)
    study, kind = _study(request, request.POST.get("study", "")), _kind(request.POST.get("kind", ""))
    if study is not None:
        require(principal, REVIEW_WRITE, study)
    return _go_on(request, study, kind)


def _go_on(request: HttpRequest, study: Study | None, kind: str | None, skip: str = "") -> HttpResponseRedirect:
    """To the next free item, reserved for the caller; to the queue where none is left."""
    principal = principal_of(request)
    found = waiting.take(principal, study, kind, by=principal.actor(), at=timezone.now(), skip=skip)
    if found is None:
        messages.success(request, _("Nothing that you may review waits here."))
        return redirect("evidence:reviews")
    return redirect("evidence:review_item", found.item)


@require_safe
def item(request: HttpRequest, name: str) -> HttpResponse:
    """One item: the claim at the left, the source at the right. ``?whole=1``: every line of the source."""
    return _item(request, name)


def _item(
    request: HttpRequest, name: str, *, status: int = 200, typed: dict[str, object] | None = None, problem: str = ""
) -> HttpResponse:
    principal, at = principal_of(request), timezone.now()
    found = waiting.get_item(principal, name, at=at)
    view = item_page.build(principal, found, at=at, whole=request.GET.get("whole") == "1")
    return render_page(
        request, "evidence/review_item.html", section="reviews", title=view.title, study=found.study, status=status,
        crumbs=_crumbs(found.study, Crumb(view.crumb)), item=found, view=view, typed=typed or {}, problem=problem,
        minutes=actions.HELD_MINUTES,
    )  # fmt: skip


@require_POST
@login_required
def hold(request: HttpRequest, name: str) -> HttpResponse:
    """Reserve the item for the caller. For htmx: the line that says so; 409 where another was first."""
    principal, at = principal_of(request), timezone.now()
    found = waiting.get_item(principal, name, at=at)
    require(principal, REVIEW_WRITE, found.study)
    fragment = request.headers.get("HX-Request") == "true"
    try:
        row = actions.reserve(found.study, name, by=principal.actor(), at=at)
    except DomainError as error:
        if fragment:
            return HttpResponse(told(str(error)), status=409, content_type="text/plain; charset=utf-8")
        refused(request, error)
        return redirect("evidence:review_item", name)
    if fragment:
        return render(request, "evidence/review_held.html", {"held": row, "mine": True})
    return redirect("evidence:review_item", name)


@require_POST
@login_required
def let_go(request: HttpRequest, name: str) -> HttpResponse:
    """Release the item and go on to the next one."""
    principal, at = principal_of(request), timezone.now()
    found = waiting.get_item(principal, name, at=at)
    require(principal, REVIEW_WRITE, found.study)
    actions.release(found.study, name, by=principal.actor(), at=at)
    return _go_on(request, found.study, found.kind, name)


@require_POST
@login_required
def record(request: HttpRequest, name: str) -> HttpResponse:
    """Record a verdict on a link or a claim, then open the next item. A refusal keeps what was typed."""
    principal, at = principal_of(request), timezone.now()
    found = waiting.get_item(principal, name, at=at)
    require(principal, REVIEW_WRITE, found.study)
    if found.kind not in ("link", "claim") or found.claim is None:
        raise Http404("no verdict is given on this item; open a claim that rests on it")
    verdict, reason = request.POST.get("verdict", ""), request.POST.get("reason", "")
    looked = request.POST.getlist("looked_at")
    try:
        row = actions.review(
            found.claim, link=found.row if found.kind == "link" else None, verdict=verdict, reason=reason,
            looked_at=looked, by=principal.actor(), at=at,
        )  # fmt: skip
    except DomainError as error:
        status = 409 if isinstance(error, actions.Reserved) else 403 if isinstance(error, actions.OwnWork) else 422
        typed: dict[str, object] = {"verdict": verdict, "reason": reason, "looked_at": looked}
        return _item(request, name, status=status, typed=typed, problem=told(str(error)))
    status_word = shown.STATUSES[row.claim.status].word
    messages.success(
        request,
        _("Recorded: %(verdict)s, %(independence)s. Claim %(claim)s: %(status)s.")
        % {
            "verdict": shown.verdict_view(row).word, "independence": item_page.INDEPENDENCE[row.independence],
            "claim": row.claim.key, "status": status_word,
        },
    )  # fmt: skip
    return _go_on(request, found.study, found.kind, name)


@require_POST
@login_required
def answer(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Answer a dispute or a request for evidence, then go back to where the form stood."""
    principal = principal_of(request)
    row = get_visible(principal, Review.objects.select_related("claim__study", "claim_version"), "study", uid=uid)
    require(principal, EVIDENCE_WRITE, row.claim.study)
    number = request.POST.get("claim_version", "")
    version = None
    if number.isascii() and number.isdigit() and len(number) < 10:
        version = ClaimVersion.objects.filter(claim=row.claim, number=int(number)).first()
    try:
        if number and version is None:
            raise DomainError(f"claim_version: got {number[:20]!r}, expected the number of a version of this claim")
        actions.answer(
            row, request.POST.get("text", ""), claim_version=version, by=principal.actor(), at=timezone.now()
        )
        messages.success(request, _("Answered. The claim stays lowered until a reviewer accepts."))
    except DomainError as error:
        refused(request, error)
    target = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(target, allowed_hosts=None):
        target = reverse("evidence:review_item", args=[actions.item_of("answer", row.uid)])
    return HttpResponseRedirect(target)
