"""Addresses of the pages of claims."""

from __future__ import annotations

from django.urls import URLPattern, path

from evidence.views import claims

urlpatterns: list[URLPattern] = [
    path("claims/", claims.claims, name="claims"),
    path("claims/new/", claims.new, name="claim_new"),
    path("claims/check.json", claims.check, name="claim_check"),
    path("claims/<uuid:uid>/", claims.claim, name="claim"),
    path("claims/<uuid:uid>/revise/", claims.revise, name="claim_revise"),
    path("claims/<uuid:uid>/lower/", claims.lower, name="claim_lower"),
    path("claims/<uuid:uid>/withdraw/", claims.withdraw, name="claim_withdraw"),
    path("claims/<uuid:uid>/links/", claims.link, name="claim_link"),
    path("claims/links/<uuid:uid>/withdraw/", claims.withdraw_one_link, name="link_withdraw"),
]
