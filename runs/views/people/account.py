"""My account: API tokens, sessions, studies and roles."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.sessions.models import Session
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from runs.actions.audit import note, record_change
from runs.actions.tokens import issue_token, revoke_token
from runs.errors import DomainError
from runs.models import ApiToken
from runs.presenters import people as shown
from runs.presenters.told import told
from runs.views.base import render_page
from runs.views.people.base import account_crumbs, me

# What the form offers: name of the choice, words, days (None: the token does not expire).
EXPIRIES: dict[str, tuple[Any, int | None]] = {
    "30": (gettext_lazy("30 days"), 30),
    "90": (gettext_lazy("90 days"), 90),
    "365": (gettext_lazy("a year"), 365),
    "never": (gettext_lazy("never"), None),
}


def _page(request: HttpRequest, *, status: int = 200, **context: Any) -> HttpResponse:
    person, now = me(request), timezone.now()
    return render_page(
        request,
        "people/account.html",
        section="account",
        title=_("Account"),
        crumbs=account_crumbs(),
        status=status,
        person=person,
        tokens=shown.token_views(person, now),
        sessions=shown.sessions_of(person, request.session.session_key, now),
        studies=shown.studies_of(person),
        scopes=shown.SCOPE_MEANINGS.items(),
        expiries=[(key, word) for key, (word, _days) in EXPIRIES.items()],
        **{"secret": "", "issued": None, "typed": {"expiry": "90", "scopes": ["read"]}, "problem": "", **context},
    )


@never_cache
@require_safe
@login_required
def account(request: HttpRequest) -> HttpResponse:
    """Everything of mine."""
    return _page(request)


@never_cache
@require_POST
@login_required
def issue(request: HttpRequest) -> HttpResponse:
    """A new token; its secret stands on this answer and on no other page."""
    person, now = me(request), timezone.now()
    name, scopes = request.POST.get("name", ""), request.POST.getlist("scopes")
    expiry = request.POST.get("expiry", "")
    typed = {"name": name[:100], "scopes": scopes, "expiry": expiry}
    try:
        if expiry not in EXPIRIES:
            raise DomainError(f"expiry: got {expiry[:32]!r}, expected one of {', '.join(EXPIRIES)}")
        mine = [view.token.name for view in shown.token_views(person, now) if view.active]
        if name.strip() in mine:  # also what a reload of the answer would send
            raise DomainError(_("name: an active token of yours has it already; choose another"))
        days = EXPIRIES[expiry][1]
        token, secret = issue_token(
            person,
            name=name,
            scopes=scopes,
            expires_at=None if days is None else now + timedelta(days=days),
            at=now,
        )
    except DomainError as error:
        return _page(request, status=422, typed=typed, problem=told(error))
    note(subject=f"token {token.prefix}")
    return _page(request, status=201, issued=token, secret=secret)


@require_POST
@login_required
def revoke(request: HttpRequest, prefix: str) -> HttpResponse:
    """End one of my tokens."""
    person = me(request)
    token = ApiToken.objects.filter(user=person, prefix=prefix).first()
    if token is None:
        raise Http404("no token of yours has this prefix")
    revoke_token(token, by=person, at=timezone.now())
    messages.success(request, _("Revoked: %(name)s. It opens nothing any more.") % {"name": token.name})
    return redirect("runs:account")


@require_POST
@login_required
def end_sessions(request: HttpRequest) -> HttpResponse:
    """Sign out everywhere else."""
    person, now = me(request), timezone.now()
    others = [view.key for view in shown.sessions_of(person, request.session.session_key, now) if not view.current]
    Session.objects.filter(session_key__in=others).delete()
    record_change("sessions.ended", by=person, at=now, subject=person.get_username(), detail=str(len(others)))
    messages.success(request, _("Signed out elsewhere: %(n)d sessions ended.") % {"n": len(others)})
    return redirect("runs:account")
