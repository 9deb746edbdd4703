"""Addresses of sources, figures, claims, reviews, notes and what leaves the house."""

from __future__ import annotations

from evidence import urls_claims, urls_figures, urls_notes, urls_outward, urls_reviews, urls_sources, urls_stale

app_name = "evidence"
urlpatterns = [
    *urls_sources.urlpatterns,
    *urls_stale.urlpatterns,
    *urls_figures.urlpatterns,
    *urls_claims.urlpatterns,
    *urls_reviews.urlpatterns,
    *urls_notes.urlpatterns,
    *urls_outward.urlpatterns,
]
