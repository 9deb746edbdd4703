"""The notes page of a study in a language, and the list of its versions with the difference between two."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from evidence.models import NotesVersion
from evidence.notes import read
from evidence.notes.build import NotesPage, build
from evidence.notes.history import flat, versions_of
from evidence.notes.rich import HTML_LANGUAGE
from evidence.presenters.chips import in_language
from runs.access import EVIDENCE_WRITE, can, principal_of, visible_studies
from runs.models import Study
from runs.presenters.frame import Crumb
from runs.views.base import render_page
from runs.views.people.base import study_crumbs

DJANGO_LANGUAGE = {"en": "en", "zh": "zh-hans"}
DIFFERENCES = 500  # lines of a difference on the page; the rest is counted


def get_study(request: HttpRequest, slug: str) -> Study:
    """The visible study. Raises ``Http404`` alike where it is absent and where it is hidden."""
    found = visible_studies(principal_of(request)).filter(slug=slug).first()
    if found is None:
        raise Http404("no study that you can see matches")
    return found


def session_language() -> str:
    """``en`` or ``zh``: the language that the session reads."""
    return "zh" if (translation.get_language() or "en").startswith("zh") else "en"


def whole_number(text: str | None) -> int | None:
    """A version's number; None for nothing. Raises ``Http404`` for anything else."""
    if text is None or text == "":
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise Http404("no such version")
    return int(text)


@require_safe
def notes(request: HttpRequest, study: str, language: str = "") -> HttpResponse:
    """The page in ``language``; without one in the session's. ``?version=`` reads an earlier version."""
    found, chosen = get_study(request, study), language or session_language()
    newest = read.current(found)
    if newest is None:
        return empty(request, found)
    number = whole_number(request.GET.get("version"))
    wanted = newest if number is None else read.version(found, number)
    if wanted is None:
        raise Http404("no such version")
    with translation.override(DJANGO_LANGUAGE[chosen]):
        answer = render_notes(request, build(found, wanted, chosen, newest.number))
    answer.headers["Content-Language"] = HTML_LANGUAGE[chosen]
    return answer


def render_notes(request: HttpRequest, page: NotesPage) -> HttpResponse:
    """The page as HTML, in the language that is active."""
    study = page.study
    return render(
        request,
        "evidence/notes.html",
        {
            "page": page,
            "html_language": HTML_LANGUAGE[page.language],
            "study_title": in_language(study.title_en, study.title_zh, page.language),
            "may_edit": can(principal_of(request), EVIDENCE_WRITE, study),
            "journal_url": reverse("evidence:journal", args=[study.slug]),
            "stale_url": f"{reverse('evidence:stale')}?study={study.slug}",
            "stale_word": _("stale"),
        },
    )


def empty(request: HttpRequest, study: Study) -> HttpResponse:
    """What would fill the page, and how."""
    return render_page(
        request, "evidence/notes_empty.html", section="notes", title=_("Research note"), study=study,
        crumbs=study_crumbs(study, _("Research note")),
        may_edit=can(principal_of(request), EVIDENCE_WRITE, study),
    )  # fmt: skip


@dataclass(frozen=True)
class Change:
    """One place that differs; None where it is absent."""

    path: str
    before: str | None
    after: str | None


def changes(before: Any, after: Any) -> list[Change]:
    """Places of two documents whose text differs, in the order of the later one; places that are gone come last."""
    old, new = dict(flat(before)), dict(flat(after))
    order = [*new, *(path for path in old if path not in new)]
    return [Change(path, old.get(path), new.get(path)) for path in order if old.get(path) != new.get(path)]


def marked(before: str, after: str) -> list[tuple[str, str]]:
    """Pieces of a changed text: (same | gone | new, text), so that a reader sees the words that changed."""
    found: list[tuple[str, str]] = []
    for kind, i, j, k, m in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal":
            found.append(("same", before[i:j]))
        else:
            found.extend((name, text) for name, text in (("gone", before[i:j]), ("new", after[k:m])) if text)
    return found


def _pair(request: HttpRequest, study: Study) -> tuple[NotesVersion | None, NotesVersion | None]:
    """The two versions to compare: ``?from=`` and ``?to=``, else the last two."""
    newest = read.current(study)
    last = newest.number if newest else 0
    to = whole_number(request.GET.get("to")) or last
    begin = whole_number(request.GET.get("from"))
    return read.version(study, begin if begin is not None else to - 1), read.version(study, to)


@require_safe
def versions(request: HttpRequest, study: str) -> HttpResponse:
    """All versions of a study's notes, and what differs between two of them."""
    found = get_study(request, study)
    before, after = _pair(request, found)
    rows: list[Change] = []
    if before is not None and after is not None:
        rows = changes(read.document_of(before), read.document_of(after))
    shown = [
        (row, marked(row.before, row.after) if row.before is not None and row.after is not None else None)
        for row in rows[:DIFFERENCES]
    ]
    return render_page(
        request, "evidence/notes_versions.html", section="notes", title=_("Versions of the research note"),
        study=found, crumbs=[*study_crumbs(found, _("Research note"))[:1],
        Crumb(_("Research note"), reverse("evidence:notes", args=[found.slug])), Crumb(_("Versions"))],
        versions=versions_of(found), before=before, after=after, rows=shown, more=max(0, len(rows) - DIFFERENCES),
    )  # fmt: skip
