"""Pages of figures."""

from __future__ import annotations

import uuid

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from evidence.models import Figure
from evidence.presenters.chips import HEAVY, RELATED, Chip, chips_of
from runs.access import get_visible, principal_of
from runs.presenters.frame import Crumb
from runs.views.base import render_page


def _chip(request: HttpRequest, uid: uuid.UUID) -> Chip:
    rows = Figure.objects.filter(current__isnull=False).select_related("study", *RELATED).defer(*HEAVY)
    return next(iter(chips_of([get_visible(principal_of(request), rows, "study", uid=uid)]).values()))


@require_safe
def one(request: HttpRequest, uid: uuid.UUID) -> HttpResponse:
    """A figure: its value, how it is bound, and what it gives now."""
    chip = _chip(request, uid)
    return render_page(
        request, "evidence/figure.html", section="figures", title=chip.key, study=chip.figure.study,
        crumbs=[Crumb(_("Figures")), Crumb(chip.key)], chip=chip, rows=chip.rows(get_language()),
    )  # fmt: skip


@require_safe
def card(request: HttpRequest, uid: uuid.UUID) -> HttpResponse:
    """The hover card of a figure as a fragment."""
    chip = _chip(request, uid)
    return render(
        request,
        "evidence/figure_card.html",
        {"chip": chip, "rows": chip.rows(get_language()), "title": chip.title(get_language())},
    )
