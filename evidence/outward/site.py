"""A study as pages that open from disk: no server, no other host, no raw trajectories, in both languages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.contrib.staticfiles import finders
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils import translation

from evidence.journal.shown import shown_lines
from evidence.models import Claim, Excerpt, Figure, JournalDay, JournalNote, Link, Review, Source
from evidence.notes import read
from evidence.notes.build import build
from evidence.outward.archive import BundleError
from evidence.outward.keys import fingerprint, signing_key
from evidence.outward.localise import localise
from runs.access import Principal
from runs.models import Study

LANGUAGES = {"en": "en", "zh": "zh-hans"}
_URL = re.compile(rb"url\(\"\.\./([^\"#?]+)\"\)")


@dataclass(frozen=True)
class Page:
    """A page of the site."""

    name: str
    html: str


def write_site(study: Study, folder: Path) -> dict[str, Any]:
    """Write a new folder. Raises ``BundleError`` where it holds something already. Returns counts."""
    if folder.exists() and any(folder.iterdir()):
        raise BundleError(f"folder: got {folder}, which holds files, expected a new or an empty one")
    pages, files = [], set[str]()
    ids = _ids(study)
    for language in LANGUAGES:
        for page in _pages(study, language):
            text, needed = localise(page.html, language, ids)
            pages.append(Page(f"{page.name}.{language}.html", text))
            files |= needed
    folder.mkdir(parents=True, exist_ok=True)
    for page in pages:
        (folder / page.name).write_text(page.html, encoding="utf-8")
    first = next(page for page in pages if page.name == "index.en.html")
    (folder / "index.html").write_text(first.html, encoding="utf-8")
    copied = _copy_static(files, folder / "static")
    return {"pages": len(pages) + 1, "files": copied}


def _ids(study: Study) -> set[str]:
    found: set[str] = set()
    for model in (Claim, Figure, Source):
        found |= {str(uid) for uid in model._default_manager.filter(study=study).values_list("uid", flat=True)}
    return found


def _copy_static(files: Iterable[str], folder: Path) -> int:
    """Copy files and what style sheets among them name."""
    wanted, done = list(files), set[str]()
    while wanted:
        path = wanted.pop()
        found = finders.find(path)
        if path in done or not isinstance(found, str):
            continue
        done.add(path)
        data = Path(found).read_bytes()
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        if path.endswith(".css"):
            wanted += [name.decode() for name in _URL.findall(data)]
    return len(done)


def _pages(study: Study, language: str) -> Iterable[Page]:
    """Every page in one language."""
    with translation.override(LANGUAGES[language]):
        context = _context(study, language)
        notes = read.current(study)
        if notes is not None:
            yield Page("notes", _notes(study, notes, language))
        for name in ("index", "claims", "figures", "sources", "journal"):
            yield Page(name, render_to_string(f"evidence/site/{name}.html", {**context, "page": name}))


def _notes(study: Study, notes: Any, language: str) -> str:
    """The notes page as the workbench renders it, for nobody who is signed in."""
    from evidence.views.notes import render_notes

    request = HttpRequest()
    request.method, request.path, request.user = "GET", f"/studies/{study.slug}/notes/{language}/", AnonymousUser()
    request.META.update(SERVER_NAME="localhost", SERVER_PORT="80")
    request.principal = Principal(None)  # type: ignore[attr-defined]
    text: str = render_notes(request, build(study, notes, language)).content.decode()
    return text


def _context(study: Study, language: str) -> dict[str, Any]:
    figures = list(Figure.objects.filter(study=study).select_related("current__source_version__source").order_by("key"))
    excerpts: dict[int, list[Excerpt]] = {}
    for item in Excerpt.objects.filter(study=study).select_related("head", "version").order_by("key"):
        excerpts.setdefault(item.version.source_id, []).append(item)
    sources = list(Source.objects.filter(study=study).select_related("current").order_by("reference", "path"))
    return {
        "study": study, "language": language, "html_language": "zh-Hans" if language == "zh" else "en",
        "has_notes": read.current(study) is not None,
        "fingerprint": fingerprint(signing_key(settings.HOME).public_key()),
        "claims": _claims(study), "figures": figures,
        "sources": [(row, excerpts.get(row.pk, [])) for row in sources],
        "days": _days(study, language),
    }  # fmt: skip


def _claims(study: Study) -> list[dict[str, Any]]:
    links: dict[int, list[Link]] = {}
    rows = Link.objects.filter(study=study, withdrawal__isnull=True).select_related("excerpt", "figure")
    for link in rows.order_by("pk"):
        links.setdefault(link.claim_id, []).append(link)
    reviews: dict[int, list[Review]] = {}
    for review in Review.objects.filter(study=study).select_related("actor").order_by("pk"):
        reviews.setdefault(review.claim_id, []).append(review)
    claims = Claim.objects.filter(study=study, current__isnull=False).select_related("current").order_by("key")
    return [
        {"claim": row, "version": row.current, "links": links.get(row.pk, []), "reviews": reviews.get(row.pk, [])}
        for row in claims
    ]


def _days(study: Study, language: str) -> list[dict[str, Any]]:
    newest: dict[Any, JournalDay] = {}
    for row in JournalDay.objects.filter(study=study).order_by("day", "number"):
        newest[row.day] = row
    notes: dict[Any, list[JournalNote]] = {}
    for note in JournalNote.objects.filter(study=study).select_related("actor").order_by("pk"):
        notes.setdefault(note.day, []).append(note)
    return [
        {
            "day": day,
            "lines": shown_lines(newest[day].lines, language) if day in newest else [],
            "notes": notes.get(day, []),
        }
        for day in sorted({*newest, *notes}, reverse=True)
    ]  # fmt: skip
