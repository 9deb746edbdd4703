"""Addresses of the REST API of notes, under /api/v1/. No trailing slash."""

from __future__ import annotations

from django.urls import URLPattern, path

from evidence.api import notes

_NOTES = "studies/<slug:slug>/notes"
urlpatterns: list[URLPattern] = [
    path(_NOTES, notes.CurrentNotes.as_view(), name="notes"),
    path(f"{_NOTES}/versions", notes.NotesVersions.as_view(), name="notes_versions"),
    path(f"{_NOTES}/versions/<int:number>", notes.OneVersion.as_view(), name="notes_version"),
    path(f"{_NOTES}/check", notes.CheckNotes.as_view(), name="notes_check"),
    path(f"{_NOTES}/contracts", notes.Contracts.as_view(), name="notes_contracts"),
]
