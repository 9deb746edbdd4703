"""Pages of sources: the list, one version with its quotations, its bytes, the difference between two versions."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from evidence.models import Excerpt, Source, SourceVersion
from evidence.presenters import source_difference as differing
from evidence.presenters import source_page as page
from evidence.presenters import sources as shown
from runs.access import EVIDENCE_WRITE, can, get_visible, principal_of, visible_studies
from runs.models import Study
from runs.presenters.frame import Crumb
from runs.storage import blob_store
from runs.views.base import paginate, render_page

SHOWS = (page.CONTEXT, page.WHOLE)
PLACES = {"json": (Excerpt.POINTER,), "jsonl": (Excerpt.POINTER,), "csv": (Excerpt.CELL,)}  # beside a quotation


def get_source(request: HttpRequest, uid: UUID) -> Source:
    """The visible source. Raises ``Http404`` alike where it is absent and where it is hidden."""
    return get_visible(
        principal_of(request), Source.objects.select_related("study", "current__actor"), "study", uid=uid
    )


def get_version(source: Source, number: int) -> SourceVersion:
    """A version by its number. Raises ``Http404``."""
    found = SourceVersion.objects.select_related("actor").filter(source=source, number=number).first()
    if found is None:
        raise Http404(f"version: got {number}, which this source does not have")
    found.source = source
    return found


def whole_number(text: str, default: int) -> int:
    """A number from 1 of an address; anything else is the default."""
    return max(1, int(text)) if text.isascii() and text.isdigit() and len(text) < 10 else default


def source_crumbs(source: Source, *more: Crumb) -> list[Crumb]:
    """Breadcrumb down to a source."""
    return [
        Crumb(source.study.slug, reverse("runs:study", args=[source.study.slug])),
        Crumb(_("Sources"), f"{reverse('evidence:sources')}?study={source.study.slug}"),
        Crumb(str(source), reverse("evidence:source", args=[source.uid])),
        *more,
    ]


def writable(request: HttpRequest) -> list[Study]:
    """Studies whose evidence the caller may write."""
    principal = principal_of(request)
    if principal.user is None:
        return []
    return [study for study in visible_studies(principal).order_by("slug") if can(principal, EVIDENCE_WRITE, study)]


@require_safe
def sources(request: HttpRequest) -> HttpResponse:
    """All visible sources, newest first. ``?study=``, ``?state=``, ``?origin=`` and ``?q=`` narrow them."""
    principal = principal_of(request)
    every, chosen = shown.visible_sources(principal), shown.chosen_from(request.GET)
    rows = shown.narrowed(every, chosen).select_related("current", "study").order_by("-pk")
    listing = paginate(request, rows)
    study = visible_studies(principal).filter(slug=chosen.study).first() if chosen.study else None
    filters = shown.choices(every, chosen)
    return render_page(
        request, "evidence/sources.html", section="sources", title=_("Sources"), crumbs=[Crumb(_("Sources"))],
        study=study, listing=listing, rows=shown.listed(list(listing)), chosen=chosen,
        filters=filters, many=not chosen.study and len(filters["study"]) > 1, may_write=bool(writable(request)),
    )  # fmt: skip


@require_safe
def source(request: HttpRequest, uid: UUID) -> HttpResponse:
    """One version: ``?version=`` (the newest), ``?view=`` lines, values or table, ``?show=`` context or whole,
    ``?line=`` a line of the whole file, ``?from=`` the first one shown, ``?at=`` the pointer of a part of JSON.
    """
    found = get_source(request, uid)
    if found.current is None:
        raise Http404("a source without a version")
    found.current.source = found
    wanted = request.GET.get("version", "")
    version = get_version(found, whole_number(wanted, 1)) if wanted else found.current
    return source_page(request, found, version)


def source_page(
    request: HttpRequest, found: Source, version: SourceVersion, *, problem: str = "",
    typed: dict[str, str] | None = None, status: int = 200,
) -> HttpResponse:  # fmt: skip
    """The page of one version; ``problem`` and ``typed`` of a quotation that was refused."""
    line, first = request.GET.get("line", ""), whole_number(request.GET.get("from", ""), 1)
    show = request.GET.get("show", "")
    if line:
        show, first = page.WHOLE, (whole_number(line, 1) - 1) // page.LINES_MOST * page.LINES_MOST + 1
    excerpts = page.excerpts_of(version)
    body = page.body_of(
        version, excerpts, way=page.LINES if line else request.GET.get("view", ""),
        show=show if show in SHOWS else "", first=first, at=request.GET.get("at", "")[:2000],
    )  # fmt: skip
    versions = list(SourceVersion.objects.filter(source=found).select_related("actor").order_by("-number"))
    context: dict[str, Any] = {
        "source": found,
        "version": version,
        "source_title": shown.title_of(found),
        "state": shown.version_state(version, found),
        "meaning": shown.MEANING[found.state] if version.pk == found.current_id else _("A newer version replaces it."),
        "origin": shown.ORIGINS[found.origin],
        "form": shown.FORMS[found.form],
        "body": body,
        "quotations": page.quotations(excerpts, body),
        "versions": [(item, shown.version_state(item, found)) for item in versions],
        "is_newest": version.pk == found.current_id,
        "may_write": can(principal_of(request), EVIDENCE_WRITE, found.study),
        "is_ours": found.origin in (Source.RECEIPT, Source.CLOSURE, Source.EXPORT),
        "checks": page.checks_of(version),
        "problem": problem,
        "typed": typed or {},
        "places": PLACES.get(found.form, ()),
    }
    return render_page(
        request, "evidence/source.html", section="sources", title=str(found), crumbs=source_crumbs(found),
        study=found.study, status=status, **context,
    )  # fmt: skip


@require_safe
def source_bytes(request: HttpRequest, uid: UUID, number: int) -> HttpResponseBase:
    """The bytes of a version as they lie in the store, as an attachment: never opened by the browser on this site."""
    found = get_source(request, uid)
    version = get_version(found, number)
    if not version.held:
        raise Http404("the bytes of this version are not held here")
    try:
        stream = blob_store().path(version.sha256).open("rb")
    except FileNotFoundError as error:
        raise Http404(f"the store holds no bytes of {version.sha256}") from error
    name = found.path.rpartition("/")[2]
    response = FileResponse(stream, as_attachment=True, filename=name, content_type="application/octet-stream")
    response["X-Data-SHA256"] = version.sha256
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = "sandbox; default-src 'none'"
    response["ETag"] = f'"{version.sha256}"'
    return response


@require_safe
def source_difference(request: HttpRequest, uid: UUID, before: int, after: int) -> HttpResponse:
    """What differs between two versions, each with its hash and reason."""
    found = get_source(request, uid)
    one, two = get_version(found, before), get_version(found, after)
    crumb = Crumb(_("Versions %(a)d and %(b)d") % {"a": before, "b": after})
    return render_page(
        request, "evidence/source_difference.html", section="sources", title=_("Difference"),
        crumbs=source_crumbs(found, crumb), study=found.study, source=found, difference=differing.compare(one, two),
        before_state=shown.version_state(one, found), after_state=shown.version_state(two, found),
    )  # fmt: skip
