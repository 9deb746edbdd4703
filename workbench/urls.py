"""Addresses. Pages and API live in ``runs.urls``; signing in, language and liveness stand here."""

from __future__ import annotations

from django.contrib.auth import views as auth
from django.http import HttpRequest, HttpResponse
from django.urls import include, path
from django.views.decorators.http import require_safe


@require_safe
def alive(request: HttpRequest) -> HttpResponse:
    """Says that the web process answers; touches no database."""
    return HttpResponse("ok\n", content_type="text/plain")


urlpatterns = [
    path("healthz", alive, name="alive"),
    path("accounts/login/", auth.LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("accounts/logout/", auth.LogoutView.as_view(), name="logout"),
    path("i18n/", include("django.conf.urls.i18n")),
    path("", include("runs.urls")),
]
