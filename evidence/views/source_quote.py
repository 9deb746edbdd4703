"""Quoting a place of a source from its page: the excerpt that figures and links rest on."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from evidence.actions.excerpts import add_excerpt
from evidence.models import Excerpt
from evidence.presenters.troubles import told
from evidence.views.sources import get_source, get_version, source_page, whole_number
from runs.access import EVIDENCE_WRITE, principal_of, require
from runs.errors import DomainError

MOST = 5000  # characters of a field
MEMBERS = {
    Excerpt.QUOTE: ("exact", "prefix", "suffix"), Excerpt.POINTER: ("pointer",),
    Excerpt.CELL: ("column", "key_column", "row"),
}  # fmt: skip


def typed_of(request: HttpRequest) -> dict[str, str]:
    """Every field of the form as it was typed; line ends as files have them, since browsers send CR LF."""
    names = ("key", "form", "note", "text", *(name for found in MEMBERS.values() for name in found))
    return {name: request.POST.get(name, "")[: MOST + 1].replace("\r\n", "\n") for name in names}


def selector_of(typed: dict[str, str], form: str) -> dict[str, Any]:
    """The selector of a form; what was left empty is no member, but for the one that the form needs."""
    found = {"key" if name == "row" else name: typed[name] for name in MEMBERS.get(form, ())}
    return {name: value for name, value in found.items() if value or name not in ("prefix", "suffix")}


@require_POST
@login_required
def source_quote(request: HttpRequest, uid: UUID) -> HttpResponse:
    """Take an excerpt of a version. A refusal shows the page again with what was typed."""
    found = get_source(request, uid)
    principal = principal_of(request)
    require(principal, EVIDENCE_WRITE, found.study)
    version = get_version(found, whole_number(request.POST.get("version", ""), 1))
    typed = typed_of(request)
    form = typed["form"] or Excerpt.QUOTE
    selector, text = selector_of(typed, form), "" if version.held else typed["text"]
    if form == Excerpt.QUOTE and not version.held:
        text = typed["exact"]
    try:
        excerpt = add_excerpt(
            found.study, version, typed["key"].strip(), form, selector, text=text, note=typed["note"].strip(),
            by=principal.actor(), at=timezone.now(),
        )  # fmt: skip
    except DomainError as error:
        return source_page(request, found, version, problem=told(str(error)), typed=typed, status=422)
    messages.success(request, _("Quoted as %(key)s. A receipt was written.") % {"key": excerpt.key})
    answer = redirect("evidence:source", uid=found.uid)
    answer["Location"] += f"?version={version.number}#e-{excerpt.key}"
    return answer
