"""The first page."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from runs.presenters.frame import Crumb
from runs.presenters.now import attention, headline, running, study_cards
from runs.views.base import render_page


def _moving() -> dict[str, Any]:
    moving = running()
    return {"moving": moving, "attention": attention(), "headline": headline(moving)}


@require_safe
def now(request: HttpRequest) -> HttpResponse:
    """Running work, what needs attention, studies."""
    return render_page(
        request,
        "runs/now.html",
        section="now",
        title=_("Now"),
        crumbs=[Crumb(_("Now"))],
        cards=study_cards(),
        **_moving(),
    )


@require_safe
def live(request: HttpRequest) -> HttpResponse:
    """The part that moves."""
    return render(request, "runs/parts/now_live.html", _moving())
