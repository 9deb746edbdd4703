"""Receipt chains, one entry, and verifying again."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST, require_safe

from runs.access import principal_of
from runs.models import Anchor, Receipt
from runs.presenters.frame import Crumb
from runs.presenters.receipts import check_chain, pretty, stream_names, subject_link
from runs.views.base import paginate, render_page
from runs.visibility import get_visible_head, get_visible_receipt, visible_heads, visible_receipts

CHECKED_AT_ONCE = 200


def _page(request: HttpRequest, stream: str, **context: Any) -> HttpResponse:
    principal = principal_of(request)
    heads = visible_heads(principal).order_by("stream")
    rows: QuerySet[Receipt] = Receipt.objects.select_related("actor").defer("bytes").order_by("-at", "-pk")
    crumbs = [Crumb(_("Receipts"), reverse("runs:receipts"))]
    if stream:
        rows = rows.filter(stream=stream).order_by("-seq")
        crumbs.append(Crumb(stream))
    else:
        rows = visible_receipts(principal, rows)
    listing = paginate(request, rows, 40)
    shown = paginate(request, heads, 25) if not stream else None
    streams = (
        {row.stream for row in listing}
        | {row.stream for row in shown or ()}
        | {c.stream for c in context.get("checks", ())}
    )
    return render_page(
        request,
        "runs/receipts.html",
        section="receipts",
        title=_("Receipts"),
        crumbs=crumbs,
        stream=stream,
        head=heads.filter(stream=stream).first(),
        heads=shown,
        names=stream_names(streams | {stream}),
        listing=listing,
        anchor=Anchor.objects.order_by("-seq").first(),
        **context,
    )


@require_safe
def receipts(request: HttpRequest) -> HttpResponse:
    """All chains with their heads, or the chain that ``?stream=`` names."""
    stream = request.GET.get("stream", "")
    if stream:
        get_visible_head(principal_of(request), stream)
    return _page(request, stream)


@require_POST
@login_required
def verify(request: HttpRequest) -> HttpResponse:
    """Walk one chain, or all of them, and show the first broken step of each. Changes nothing."""
    stream = request.POST.get("stream", "")
    if stream:
        get_visible_head(principal_of(request), stream)
    streams = (
        [stream]
        if stream
        else list(
            visible_heads(principal_of(request)).order_by("stream").values_list("stream", flat=True)[:CHECKED_AT_ONCE]
        )
    )
    checks = [check_chain(name) for name in streams]
    return _page(
        request,
        stream,
        checks=checks,
        broken=[c for c in checks if not c.holds],
        checked=sum(c.checked for c in checks),
    )


@require_safe
def receipt(request: HttpRequest, sha256: str) -> HttpResponse:
    """One entry with its canonical bytes."""
    found = get_visible_receipt(principal_of(request), sha256=sha256)
    around = Receipt.objects.filter(stream=found.stream).defer("bytes")
    crumbs = [
        Crumb(_("Receipts"), reverse("runs:receipts")),
        Crumb(found.stream, f"{reverse('runs:receipts')}?stream={found.stream}"),
        Crumb(f"#{found.seq}"),
    ]
    return render_page(
        request,
        "runs/receipt.html",
        section="receipts",
        title=f"{found.kind} #{found.seq}",
        crumbs=crumbs,
        receipt=found,
        text=bytes(found.bytes).decode(),
        readable=pretty(found),
        subject=subject_link(found),
        previous=around.filter(seq=found.seq - 1).first(),
        next=around.filter(seq=found.seq + 1).first(),
    )
