"""Addresses of signing in and out, of the password, and of a new account.

``login`` and ``logout`` are the names that pages use; the ``account_`` names are those that the account
library looks up.
"""

from __future__ import annotations

from django.urls import path

from runs.views.people import signin

_login, _logout = signin.SignIn.as_view(), signin.LogoutView.as_view()

urlpatterns = [
    path("accounts/login/", _login, name="login"),
    path("accounts/logout/", _logout, name="logout"),
    path("accounts/login/", _login, name="account_login"),
    path("accounts/logout/", _logout, name="account_logout"),
    path("accounts/inactive/", signin.AccountInactiveView.as_view(), name="account_inactive"),
    path("accounts/signup/", signin.SignUp.as_view(), name="account_signup"),
    path("accounts/password/", signin.ChangePassword.as_view(), name="account_change_password"),
    path("accounts/reauthenticate/", signin.Reauthenticate.as_view(), name="account_reauthenticate"),
]
