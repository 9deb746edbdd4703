"""Addresses: pages, the REST API under /api/v1/, and the endpoint of MLflow clients."""

from __future__ import annotations

from django.urls import include, path

from runs.api import docs
from workbench import urls_accounts, urls_operations

urlpatterns = [
    *urls_operations.urlpatterns,
    *urls_accounts.urlpatterns,
    path("i18n/", include("django.conf.urls.i18n")),
    path("api/", docs.page, name="api_docs"),
    path("api/v1/", include("evidence.api.urls")),
    path("api/v1/", include("runs.api.urls")),
    path("", include("runs.mlflow.urls")),
    path("", include("evidence.urls")),
    path("", include("runs.urls")),
]
handler400 = "runs.api.handlers.bad_request"
handler403 = "runs.api.handlers.permission_denied"
handler404 = "runs.api.handlers.page_not_found"
handler500 = "runs.api.handlers.server_error"
