"""Editor of the notes: one part of the document at a time as a form, both languages side by side.

The whole working document travels with the form, so that changing the part, adding a block or a refused save loses
nothing; only ``save`` writes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST

from evidence.actions.notes import accept_contract, check_document, save_notes
from evidence.binding.tokens import check_text
from evidence.models import AcceptanceContract, NotesVersion
from evidence.notes import edits, read, shapes
from evidence.notes.build import build_document
from evidence.notes.form import Form, Node, Reader
from evidence.notes.schema import Fault, NotesInvalid, faults_of
from evidence.presenters.troubles import told
from evidence.views.notes import DJANGO_LANGUAGE, render_notes, session_language
from evidence.wording import check as check_wording
from runs.access import EVIDENCE_WRITE
from runs.errors import DomainError, StaleTransition
from runs.models import Study
from runs.presenters.frame import Crumb
from runs.views.base import render_page
from runs.views.catalogue.base import guarded, open_study
from runs.views.people.base import study_crumbs

PAGE = "page"  # the part that is no section: head, cards, names
PARTS = (PAGE, *shapes.SECTIONS)
MOST_BYTES = 2_000_000


@dataclass
class Working:
    """A document on its way: ``base`` is the version it began from, ``part`` what the form shows."""

    document: dict[str, Any]
    base: int
    part: str
    reason: str = ""
    faults: tuple[Fault, ...] = ()
    changed: bool = False

    @property
    def prefix(self) -> str:
        """Path of the part."""
        return "" if self.part == PAGE else f"sections.{shapes.SECTIONS.index(self.part)}"

    def nodes(self) -> list[Node]:
        """The form of the part."""
        form = Form(self.faults)
        if self.part == PAGE:
            nodes = form.members(self.document, "root", "")
            return [node for node in nodes if node.name not in ("schema", "study", "sections")]
        section = self.document["sections"][shapes.SECTIONS.index(self.part)]
        return [node for node in form.members(section, "section", self.prefix) if node.name != "id"]

    def tabs(self) -> list[tuple[str, str, int]]:
        """(part, its title, how many faults it has)."""
        found = [(PAGE, _("Head of the page"), self._count(""))]
        for at, section in enumerate(self.document["sections"]):
            title = section["title"]
            chosen = title["zh"] if session_language() == "zh" else title["en"]
            found.append((section["id"], chosen or title["en"] or title["zh"], self._count(f"sections.{at}")))
        return found

    def _count(self, prefix: str) -> int:
        if prefix:
            return sum(1 for fault in self.faults if f"{fault.path}.".startswith(f"{prefix}."))
        return sum(1 for fault in self.faults if not fault.path.startswith("sections."))


def _open(request: HttpRequest, study: Study) -> Working:
    """What the editor shows first: the newest version, or a blank document."""
    newest = read.current(study)
    document = edits.blank_document(study, timezone.now().date()) if newest is None else dict(read.document_of(newest))
    part = request.GET.get("part", PAGE)
    return Working(document, newest.number if newest else 0, part if part in PARTS else PAGE)


def _posted(request: HttpRequest, study: Study) -> Working:
    """The working document with the posted part read into it. Raises ``DomainError`` for one that is none."""
    text = request.POST.get("document", "")
    try:
        document = json.loads(text) if len(text) <= MOST_BYTES else None
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or any(fault.structural for fault in faults_of(document)):
        raise DomainError("document: got a text that is no working document of the editor, expected one; reload it")
    part, base = request.POST.get("part", PAGE), request.POST.get("base", "")
    if part not in PARTS or not base.isascii() or not base.isdigit() or len(base) > 9:
        raise DomainError(f"part: got {part[:40]!r} of version {base[:40]!r}, expected a part of the page; reload it")
    reader = Reader(request.POST)
    if part == PAGE:
        sections = document["sections"]
        document = reader.members("root", "")
        document.update(schema=shapes.SCHEMA, study=study.slug, sections=sections)
    else:
        at = shapes.SECTIONS.index(part)
        document["sections"][at] = {**reader.members("section", f"sections.{at}"), "id": part}
    return Working(document, int(base), part, request.POST.get("reason", ""), changed=True)


def _checked(study: Study, work: Working) -> Working:
    """The same with every fault of its form, its names and its texts."""
    try:
        work.faults = tuple(check_document(study, work.document)[1])
    except NotesInvalid as error:
        work.faults = tuple(error.faults)
    return work


def _page(request: HttpRequest, study: Study, work: Working, status: int = 200) -> HttpResponse:
    contract = AcceptanceContract.objects.filter(study=study).order_by("-pk").first()
    return render_page(
        request, "evidence/notes_editor.html", section="notes", title=_("Edit the research note"), study=study,
        crumbs=[*study_crumbs(study, "")[:1], Crumb(_("Research note"), reverse("evidence:notes", args=[study.slug])),
                Crumb(_("Edit"))],
        work=work, nodes=work.nodes(), tabs=work.tabs(), status=status,
        document=json.dumps(work.document, ensure_ascii=False), contract=contract,
        cell_kinds=tuple(shapes.CELLS),
    )  # fmt: skip


@guarded
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, study: str) -> HttpResponse:
    """The editor; ``do`` says what a post asks for: check, save, preview, a part to go to, or a structural edit."""
    _principal, found = open_study(request, study, EVIDENCE_WRITE)
    if request.method != "POST":
        return _page(request, found, _open(request, found))
    try:
        work = _posted(request, found)
    except DomainError as error:
        messages.error(request, told(str(error)))
        return _page(request, found, _open(request, found), 422)
    do = request.POST.get("do", "check")
    if do == "save":
        return _save(request, found, work)
    if do == "preview":
        return _preview(request, found, work)
    if do.startswith("go:"):
        work.part = do[3:] if do[3:] in PARTS else work.part
    elif do != "check":
        try:
            edits.apply(work.document, do)
        except ValueError as error:
            messages.error(request, str(error))
    return _page(request, found, _checked(found, work))


def _save(request: HttpRequest, study: Study, work: Working) -> HttpResponse:
    principal = open_study(request, study.slug, EVIDENCE_WRITE)[0]
    try:
        saved = save_notes(
            study, work.document, by=principal.actor(), at=timezone.now(), reason=work.reason, base=work.base
        )
    except NotesInvalid as error:
        work.faults = tuple(error.faults)
        messages.error(request, _("Not saved, nothing is lost: the places below need another word."))
        return _page(request, study, work, 422)
    except StaleTransition as error:
        messages.error(request, _("Not saved, nothing is lost: %(error)s") % {"error": told(str(error))})
        return _page(request, study, _checked(study, work), 409)
    except DomainError as error:
        messages.error(request, _("Not saved, nothing is lost: %(error)s") % {"error": told(str(error))})
        return _page(request, study, _checked(study, work), 422)
    messages.success(request, _("Saved as version %(n)d.") % {"n": saved.number})
    return HttpResponseRedirect(reverse("evidence:notes", args=[study.slug]))


def _preview(request: HttpRequest, study: Study, work: Working) -> HttpResponse:
    """The page as it would look, not stored; a document without the form of one is shown with its faults instead."""
    _checked(study, work)
    if faults_of(work.document):
        return _page(request, study, work, 422)
    complete = check_document(study, work.document)[0]
    language = session_language()
    now = timezone.now()
    unsaved = NotesVersion(study=study, number=0, document_sha256="", at=now, page_date=now.date())
    with translation.override(DJANGO_LANGUAGE[language]):
        return render_notes(request, build_document(study, unsaved, complete, language, work.base))


@require_POST
@login_required
@guarded
def check(request: HttpRequest, study: str) -> JsonResponse:
    """What one text may not say (``refused``) and what its words claim beyond a description (``caution``)."""
    _principal, found = open_study(request, study, EVIDENCE_WRITE)
    text, language = request.POST.get("text", "")[: shapes.MOST_TEXT], request.POST.get("language", "en")
    language = language if language in ("en", "zh") else "en"
    refused = [
        {"message": trouble.message, "text": trouble.text, "start": trouble.start, "stop": trouble.stop}
        for trouble in check_text(found, text, language)
    ]
    caution = [{"message": str(trouble)} for trouble in check_wording("description", text, language)]
    return JsonResponse({"refused": refused, "caution": caution})


@require_POST
@login_required
@guarded
def contract(request: HttpRequest, study: str) -> HttpResponse:
    """Record an acceptance contract."""
    principal, found = open_study(request, study, EVIDENCE_WRITE)
    given = {name: request.POST.get(name, "").strip() for name in (
        "status", "assurance", "manuscript_sha256", "text_en", "text_zh")}  # fmt: skip
    try:
        accept_contract(found, by=principal.actor(), at=timezone.now(), **given)
        messages.success(request, gettext_lazy("Recorded; the contract stands at the head of the page."))
    except DomainError as error:
        messages.error(request, _("Refused, nothing was changed: %(error)s") % {"error": told(str(error))})
    return HttpResponseRedirect(reverse("evidence:notes_edit", args=[found.slug]))
