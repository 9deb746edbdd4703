"""Addresses of the notes pages: one for each language, the editor, the versions."""

from __future__ import annotations

from django.urls import URLPattern, path

from evidence.views import notes, notes_editor

_NOTES = "studies/<slug:study>/notes"
urlpatterns: list[URLPattern] = [
    path(f"{_NOTES}/", notes.notes, name="notes"),
    path(f"{_NOTES}/en/", notes.notes, {"language": "en"}, name="notes_en"),
    path(f"{_NOTES}/zh/", notes.notes, {"language": "zh"}, name="notes_zh"),
    path(f"{_NOTES}/versions/", notes.versions, name="notes_versions"),
    path(f"{_NOTES}/edit/", notes_editor.edit, name="notes_edit"),
    path(f"{_NOTES}/check/", notes_editor.check, name="notes_check"),
    path(f"{_NOTES}/contract/", notes_editor.contract, name="notes_contract"),
]
