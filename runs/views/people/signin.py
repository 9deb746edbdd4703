"""Signing in: the form under the names that browsers know, the throttle's answer, and what a session remembers."""

from __future__ import annotations

from typing import Any

from allauth.account import forms
from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.views import (
    AccountInactiveView,
    LoginView,
    LogoutView,
    PasswordChangeView,
    ReauthenticateView,
    SignupView,
)
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from runs.actions import audit
from runs.actions.actors import person_actor
from runs.models import User
from workbench.middleware import client_address

__all__ = ["AccountInactiveView", "Adapter", "LoginForm", "LogoutView", "SignIn"]

TOO_MANY = "too_many_login_attempts"
REMEMBERED = "signed_in"  # key of what a session says about its beginning


class Adapter(DefaultAccountAdapter):
    """Accounts are made by site admins unless ``WORKBENCH_SIGNUP`` opens the door; no mail is sent."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Whether a stranger may make an account."""
        return bool(settings.WORKBENCH_SIGNUP)

    def get_client_ip(self, request: HttpRequest) -> str:
        """The address that throttles count by; one name for all callers of a unix socket."""
        return client_address(request) or "local"

    def add_message(self, *args: Any, **kwargs: Any) -> None:
        """Nothing: the pages say what happened in their own words."""

    def post_login(self, request: HttpRequest, user: User, **kwargs: Any) -> HttpResponse:
        """Keep with the session when, from where and with what it began, for the list of sessions."""
        request.session[REMEMBERED] = {
            "at": timezone.now().isoformat(timespec="seconds"),
            "address": client_address(request),
            "agent": request.headers.get("User-Agent", "")[:200],
        }
        response: HttpResponse = super().post_login(request, user, **kwargs)
        return response

    def logout(self, request: HttpRequest) -> None:
        """End the session; the audit log still knows whose it was."""
        if isinstance(request.user, User):
            audit.note(actor=person_actor(request.user))
        super().logout(request)


class LoginForm(forms.LoginForm):
    """``username`` and ``password``; ``login`` is taken in the place of ``username``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        data = kwargs.get("data")
        if data is not None and "login" not in data and "username" in data:
            kwargs["data"] = data.copy()
            kwargs["data"]["login"] = data["username"]
        super().__init__(*args, **kwargs)

    @property
    def throttled(self) -> bool:
        """Whether the attempt was not even tried: too many failed before it."""
        return any(error.code == TOO_MANY for error in self.non_field_errors().as_data())


class SignIn(LoginView):
    """The page. Too many failures are answered 429 with the time to wait, right password or not."""

    def form_invalid(self, form: LoginForm) -> HttpResponse:
        """The form again, with what was wrong; 422, so that the log of requests tells it from a sign-in."""
        throttled = form.throttled
        response: HttpResponse = self.render_to_response(
            self.get_context_data(form=form, throttled=throttled), status=429 if throttled else 422
        )
        if throttled:
            response.headers["Retry-After"] = str(settings.LOGIN_FAILURES_WAIT)
        return response

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """What the page shows beside the form."""
        found: dict[str, Any] = super().get_context_data(**kwargs)
        return found | {
            "signup": settings.WORKBENCH_SIGNUP,
            "wait_minutes": settings.LOGIN_FAILURES_WAIT // 60,
            "given_name": self.request.POST.get("username", self.request.POST.get("login", ""))[:150],
        }


class ChangePassword(PasswordChangeView):
    """A new password; every other session of this account ends with it."""

    def get_success_url(self) -> str:
        """Back to the account page."""
        messages.success(self.request, _("The password is changed. Every other session of this account has ended."))
        return reverse("runs:account")


class Reauthenticate(ReauthenticateView):
    """The password once more, before something that could take the site over."""


class SignUp(SignupView):
    """A new account, where the site allows it."""
