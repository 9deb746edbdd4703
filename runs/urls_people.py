"""Addresses of accounts, members, tokens and the audit log."""

from __future__ import annotations

from typing import Any

from django.urls import path

from runs.views.people import account, audit, members, users

urlpatterns: list[Any] = [
    path("account/", account.account, name="account"),
    path("account/tokens/", account.issue, name="token_issue"),
    path("account/tokens/<str:prefix>/revoke/", account.revoke, name="token_revoke"),
    path("account/sessions/end/", account.end_sessions, name="sessions_end"),
    path("users/", users.users, name="users"),
    path("users/new/", users.create, name="user_create"),
    path("users/<int:pk>/<str:verb>/", users.change, name="user_change"),
    path("audit/", audit.of_site, name="audit"),
    path("studies/new/", members.new, name="study_new"),
    path("studies/<slug:study>/people/", members.members, name="members"),
    path("studies/<slug:study>/people/add/", members.add, name="member_add"),
    path("studies/<slug:study>/people/remove/", members.remove, name="member_remove"),
    path("studies/<slug:study>/visibility/", members.visibility, name="study_visibility"),
    path("studies/<slug:study>/audit/", audit.of_study, name="study_audit"),
]
