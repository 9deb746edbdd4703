"""Addresses of the REST API of what leaves the house, and of the journal, under /api/v1/. No trailing slash."""

from __future__ import annotations

from django.urls import URLPattern, path

from evidence.api import outward

urlpatterns: list[URLPattern] = [
    path("signing-key", outward.SigningKey.as_view(), name="signing_key"),
    path("heads", outward.Heads.as_view(), name="heads"),
    path("studies/<slug:slug>/export/bundle", outward.ExportBundle.as_view(), name="export_bundle"),
    path("studies/<slug:slug>/export/crate", outward.ExportCrate.as_view(), name="export_crate"),
    path("studies/<slug:slug>/export/site", outward.ExportSite.as_view(), name="export_site"),
    path("studies/<slug:slug>/journal", outward.JournalDays.as_view(), name="journal"),
    path("studies/<slug:slug>/journal/notes", outward.JournalNotes.as_view(), name="journal_notes"),
]
