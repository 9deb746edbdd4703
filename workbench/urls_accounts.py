"""Addresses of signing in and out."""

from __future__ import annotations

from django.contrib.auth import views as auth
from django.urls import path

urlpatterns = [
    path("accounts/login/", auth.LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("accounts/logout/", auth.LogoutView.as_view(), name="logout"),
]
