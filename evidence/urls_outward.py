"""Addresses of the pages of what leaves the house, and of the journal."""

from __future__ import annotations

from django.urls import URLPattern, path

from evidence.views import journal, outward

_STUDY = "studies/<slug:study>"
urlpatterns: list[URLPattern] = [
    path(f"{_STUDY}/export/", outward.exports, name="exports"),
    path(f"{_STUDY}/export/<slug:form>/", outward.export, name="export"),
    path(f"{_STUDY}/journal/", journal.journal, name="journal"),
    path(f"{_STUDY}/journal/draft/", journal.draft, name="journal_draft"),
    path(f"{_STUDY}/journal/note/", journal.note, name="journal_note"),
    path(f"{_STUDY}/journal/<slug:day>/", journal.journal_day, name="journal_day"),
]
