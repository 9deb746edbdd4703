"""Checkpoints: lineage, what retention removed, and the bytes of what is held."""

from __future__ import annotations

from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from runs.access import principal_of
from runs.models import Checkpoint
from runs.presenters.checkpoints import adapter_filename, holdings, tombstones_of
from runs.presenters.frame import Crumb
from runs.query.listing import build_listing
from runs.storage import blob_store
from runs.views.base import render_page
from runs.views.lists import list_page
from runs.visibility import visible_checkpoints


@require_safe
def checkpoints(request: HttpRequest) -> HttpResponse:
    """Every policy with its parent, newest first."""
    listing = build_listing("checkpoints", principal_of(request), request.GET)
    return list_page(request, listing, "runs/checkpoints.html", rows=holdings(listing.rows))


@require_safe
def adapter(request: HttpRequest, sha256: str) -> HttpResponseBase:
    """The adapter's bytes from the store; 410 with the recipe where retention removed them."""
    rows = visible_checkpoints(principal_of(request), Checkpoint.objects.filter(sha256=sha256))
    found = rows.select_related("run").order_by("pk").first()
    if found is None:
        raise Http404(f"checkpoint: got {sha256!r}, expected the hash of a stored checkpoint")
    tombstone = tombstones_of([sha256]).get(sha256)
    if tombstone is not None:
        return render_page(
            request,
            "runs/removed.html",
            section="checkpoints",
            title=_("Removed by retention"),
            crumbs=[Crumb(_("Checkpoints"), reverse("runs:checkpoints")), Crumb(f"v{found.policy_version}")],
            status=410,
            checkpoint=found,
            tombstone=tombstone,
        )
    try:
        file = blob_store().path(sha256).open("rb")
    except (ValueError, FileNotFoundError) as error:
        raise Http404(f"checkpoint: the store holds no bytes of {sha256}") from error
    response = FileResponse(
        file, as_attachment=True, filename=adapter_filename(found), content_type="application/octet-stream"
    )
    response["X-Data-SHA256"] = sha256
    response["X-Content-Type-Options"] = "nosniff"
    response["ETag"] = f'"{sha256}"'
    return response
