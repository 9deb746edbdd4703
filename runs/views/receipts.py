"""Receipt chains, one entry, and verifying again."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST, require_safe

from runs.access import principal_of
from runs.models import Anchor, Receipt
from runs.presenters.frame import Crumb
from runs.presenters.receipts import check_chain, pretty, stream_names, subject_link
from runs.query.listing import build_listing
from runs.query.parse import Query
from runs.views.base import paginate, render_page
from runs.views.lists import list_page
from runs.visibility import get_visible_head, get_visible_receipt, visible_heads

CHECKED_AT_ONCE = 200
CHAINS = 25


def _asked(query: Query) -> str:
    """The one stream that a query names in full; empty where it names none, several or a beginning."""
    terms = [term for term in query.terms if term.key == "stream"]
    if len(terms) != 1 or terms[0].negated or len(terms[0].values) != 1 or terms[0].values[0].endswith("*"):
        return ""
    return terms[0].values[0]


def _page(request: HttpRequest, given: QueryDict, **context: Any) -> HttpResponse:
    principal = principal_of(request)
    listing = build_listing("receipts", principal, given)
    heads, asked = visible_heads(principal).order_by("stream"), _asked(listing.query)
    head = heads.filter(stream=asked).first() if asked else None
    crumbs = [Crumb(_("Receipts"), reverse("runs:receipts") if head else None)]
    chains = paginate(request, heads, CHAINS) if not listing.text and not context else None
    streams = {row.stream for row in listing} | {row.stream for row in chains or ()}
    streams |= {check.stream for check in context.get("checks", ())} | {asked}
    names = stream_names(streams)
    return list_page(
        request,
        listing,
        "runs/receipts.html",
        crumbs=[*crumbs, Crumb(names.get(head.stream, head.stream))] if head else crumbs,
        head=head,
        heads=chains,
        names=names,
        anchor=Anchor.objects.order_by("-seq").defer("bytes").first(),
        **context,
    )


@require_safe
def receipts(request: HttpRequest) -> HttpResponse:
    """All chains with their heads and every entry, or what the query asks for; ``?stream=`` names one chain."""
    stream = request.GET.get("stream", "")
    if stream:
        get_visible_head(principal_of(request), stream)
    return _page(request, request.GET)


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
        QueryDict(urlencode({"stream": stream})),
        checks=checks,
        broken=[c for c in checks if not c.holds],
        checked=sum(c.checked for c in checks),
    )


@require_safe
def receipt(request: HttpRequest, sha256: str) -> HttpResponse:
    """One entry with its canonical bytes."""
    found = get_visible_receipt(principal_of(request), sha256=sha256)
    around = Receipt.objects.filter(stream=found.stream).defer("bytes")
    name = stream_names([found.stream]).get(found.stream, found.stream)
    crumbs = [
        Crumb(_("Receipts"), reverse("runs:receipts")),
        Crumb(name, f"{reverse('runs:receipts')}?{urlencode({'stream': found.stream})}"),
        Crumb(f"#{found.seq}"),
    ]
    return render_page(
        request,
        "runs/receipt.html",
        section="receipts",
        title=f"{found.kind} #{found.seq}",
        crumbs=crumbs,
        receipt=found,
        chain=name,
        text=bytes(found.bytes).decode(),
        readable=pretty(found),
        subject=subject_link(found),
        previous=around.filter(seq=found.seq - 1).first(),
        next=around.filter(seq=found.seq + 1).first(),
    )
