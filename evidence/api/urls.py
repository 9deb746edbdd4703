"""Addresses of the evidence in the REST API."""

from __future__ import annotations

from evidence.api import urls_claims, urls_figures, urls_notes, urls_outward, urls_reviews, urls_sources, urls_stale

app_name = "evidence_api"
urlpatterns = [
    *urls_sources.urlpatterns,
    *urls_stale.urlpatterns,
    *urls_figures.urlpatterns,
    *urls_claims.urlpatterns,
    *urls_reviews.urlpatterns,
    *urls_notes.urlpatterns,
    *urls_outward.urlpatterns,
]
