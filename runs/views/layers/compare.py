"""Comparison over layers: arms, seeds and runs from elsewhere on one axis, for every quantity that two share."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from runs.access import principal_of, visible
from runs.metrics.read import AXES as KNOWN_AXES
from runs.models import Run
from runs.models.plan import heavy
from runs.presenters.frame import Crumb
from runs.presenters.layers import comparison as shown
from runs.presenters.layers.access import metric_study
from runs.presenters.layers.arms import BEYOND, LAST, Compared, arms_of, compare
from runs.presenters.layers.quantities import quantities_of
from runs.presenters.logged.listing import logged_runs, narrowed
from runs.views.base import render_page
from runs.views.layers.page import AXES

KINDS = {"csv": "CSV", "parquet": "Parquet", "svg": "SVG", "pdf": "PDF", "tex": "LaTeX"}
OFFERED = 120  # runs of each origin on the page that chooses


def chosen_runs(request: HttpRequest) -> list[Run]:
    """The runs that ``?run=`` names (uids, comma-separated or repeated), each once; a hidden one is as absent.

    Raises ``Http404`` naming what is wrong.
    """
    wanted: list[UUID] = []
    for text in (part for item in request.GET.getlist("run") for part in item.split(",") if part):
        try:
            wanted.append(UUID(text))
        except ValueError as error:
            raise Http404(f"run: got {text[:60]!r}, expected a uid") from error
    wanted = list(dict.fromkeys(wanted))
    if len(wanted) > shown.MOST:
        raise Http404(f"run: got {len(wanted)} runs, expected at most {shown.MOST}")
    found = shown.visible_runs(principal_of(request), wanted)
    if len(found) < len(wanted):
        raise Http404("run: expected runs that you can see")
    return [found[uid] for uid in wanted]


def read_axis(request: HttpRequest) -> str:
    """``?axis=``, steps by default. Raises ``Http404`` for an unknown one."""
    axis = request.GET.get("axis") or "step"
    if axis not in KNOWN_AXES:
        raise Http404(f"axis: got {axis[:40]!r}, expected one of {', '.join(KNOWN_AXES)}")
    return axis


def axis_word(axis: str) -> str:
    """What the axis counts."""
    return str(dict(AXES).get(axis, axis))


def compared_of(request: HttpRequest, key: str, axis: str) -> Compared:
    """One shared quantity over the chosen runs. Raises ``Http404`` where the runs do not share it."""
    runs = chosen_runs(request)
    quantity = next((item for item in quantities_of(runs) if item.key == key), None)
    if quantity is None:
        raise Http404(f"key: got {key[:40]!r}, expected a quantity that two of the runs share")
    withheld = quantity.graded and bool(shown.judged_apart(runs))
    return compare(quantity, arms_of(runs), axis, live=shown.live_runs(runs), withheld=withheld)


def _query(runs: list[Run], axis: str) -> str:
    return urlencode([("run", run.uid.hex) for run in runs] + [("axis", axis)])


def _offered(request: HttpRequest, text: str, chosen: list[Run]) -> dict[str, Any]:
    """Runs to choose from: those chosen stay first, whatever the query narrows the others to."""
    principal = principal_of(request)
    native = visible(principal, Run.objects.filter(origin=Run.NATIVE))
    for word in text.split():
        native = native.filter(name__icontains=word)
    here = [run for run in chosen if run.origin == Run.NATIVE]
    heads = [run.tracked for run in chosen if run.origin != Run.NATIVE]
    # keys first: the database would sort every column of ten thousand runs along
    keys = list(
        native.order_by("-plan_version_id", "arm__position", "seed", "pk").values_list("pk", flat=True)[:OFFERED]
    )
    rows = Run.objects.select_related("head", "plan_version__plan__study").defer(*heavy("plan_version__")).in_bulk(keys)
    return {
        "offered": [*here, *(rows[key] for key in keys if rows[key] not in here)],
        "offered_logged": [
            *heads,
            *(head for head in narrowed(logged_runs(principal), text)[:OFFERED] if head not in heads),
        ],
        "most": shown.MOST,
        "offered_most": OFFERED,
        "text": text,
    }


@require_safe
def layers_compare(request: HttpRequest) -> HttpResponse:
    """The comparison; with fewer than two runs the page to choose them."""
    chosen, axis = chosen_runs(request), read_axis(request)
    context: dict[str, Any] = {
        "chosen": chosen,
        "axis": axis,
        "axes": AXES,
        **_offered(request, request.GET.get("q", ""), chosen),
    }
    if len(chosen) > 1:
        arms, quantities = arms_of(chosen), quantities_of(chosen)
        of_arm = {run.pk: arm for arm in arms for run in arm.runs}
        live = shown.live_runs(chosen)
        counts = {run.pk: 0 for run in chosen}
        for item in quantities:
            for pk in {member.run.pk for member in item.members}:
                counts[pk] += 1
        context |= {
            "arms": arms,
            "rows": [(run, of_arm[run.pk], counts[run.pk], run.pk in live, metric_study(run)) for run in chosen],
            "sections": shown.sections_of(quantities),
            "count": len(quantities),
            "apart": shown.judged_apart(chosen),
            "headline": shown.headline(chosen, arms, quantities),
            "runs_query": _query(chosen, axis),
            "ways": shown.WAYS,
            "last": LAST,
        }
    studies = {metric_study(run) for run in chosen}
    return render_page(
        request, "layers/compare.html", section="metrics", title=_("Compare over layers"),
        crumbs=[Crumb(_("Compare over layers"))], study=studies.pop() if len(studies) == 1 else None, **context,
    )  # fmt: skip


@require_safe
def compare_card(request: HttpRequest, key: str) -> HttpResponse:
    """The chart data and the table of one quantity, as a part of the page."""
    axis = read_axis(request)
    found = compared_of(request, key, axis)
    query = _query(list(dict.fromkeys(member.run for member in found.quantity.members)), axis)
    context = {
        "card": shown.card_of(found, axis_word(axis)),
        "axis": axis,
        "axis_word": axis_word(axis),
        "files": [
            (kind, word, f"{reverse('runs:layers_compare_export', args=[key, kind])}?{query}")
            for kind, word in KINDS.items()
        ],
        "last": LAST,
        "beyond": BEYOND,
        "most": shown.LINES_DRAWN,
    }
    return render(request, "layers/parts/compare_card.html", context)
