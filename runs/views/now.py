"""The first page."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.templatetags.static import static
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from runs.access import Principal, principal_of, visible, visible_studies
from runs.models import Execution, Study
from runs.presenters.executions import execution_lines, inspections, read_preparing, stage_word
from runs.presenters.frame import Crumb
from runs.presenters.now import asks_of, attention, expected, headline, open_states, running, study_cards, warned
from runs.views.base import render_page
from runs.views.plans import writable_studies


def _moving(principal: Principal) -> dict[str, Any]:
    moving, executions, open_ones = running(principal), execution_lines(principal), open_states(principal)
    concerns = warned(moving)
    preparing = read_preparing(settings.HOME.root / "run" / "preparing.json", timezone.now())
    if preparing and Study.objects.filter(slug=preparing.study).exclude(pk__in=visible_studies(principal)).exists():
        preparing = None
    asks, inspecting = asks_of(principal), inspections(principal)
    busy = bool(moving or executions or preparing or inspecting)
    asked = sum(ask.count for ask in asks)
    return {
        "moving": moving,
        "idle": not busy,
        "begun": not busy and visible(principal, Execution.objects.all()).exists(),
        "asks": asks,
        "executions": executions,
        "executions_beyond": len(open_ones) - len(executions),
        "preparing": preparing,
        "stage": stage_word(preparing.stage) if preparing else "",
        "attention": attention(principal),
        "expected": expected(principal),
        "inspecting": inspecting,
        "headline": headline(principal, moving, open_ones, preparing, len(concerns), asked, inspecting),
        "warned": concerns,
        "every": 2 if busy else 5,
    }


@require_safe
def now(request: HttpRequest) -> HttpResponse:
    """Running work, what needs attention, studies."""
    principal = principal_of(request)
    return render_page(
        request,
        "runs/now.html",
        section="now",
        title=_("Now"),
        crumbs=[Crumb(_("Now"))],
        cards=study_cards(principal),
        writable=writable_studies(principal, 3),
        **_moving(principal),
    )


@require_safe
def favicon(request: HttpRequest) -> HttpResponse:
    """The mark, for browsers that ask at the root whatever the page links."""
    return redirect(static("mark.svg"), permanent=True)


@require_safe
def live(request: HttpRequest) -> HttpResponse:
    """The part that moves."""
    return render(request, "runs/parts/now_live.html", _moving(principal_of(request)))
