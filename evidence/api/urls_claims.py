"""Addresses of the REST API of claims, under /api/v1/. No trailing slash."""

from __future__ import annotations

from django.urls import URLPattern, path

from evidence.api import claims

urlpatterns: list[URLPattern] = [
    path("claims", claims.Claims.as_view(), name="claims"),
    path("claims/<uuid:uid>", claims.OneClaim.as_view(), name="claim"),
    path("claims/<uuid:uid>/status", claims.ClaimStatus.as_view(), name="claim_status"),
    path("claims/<uuid:uid>/revise", claims.ReviseClaim.as_view(), name="claim_revise"),
    path("claims/<uuid:uid>/lower", claims.LowerClaim.as_view(), name="claim_lower"),
    path("claims/<uuid:uid>/withdraw", claims.WithdrawClaim.as_view(), name="claim_withdraw"),
    path("claims/<uuid:uid>/links", claims.CreateLink.as_view(), name="link_create"),
    path("links", claims.Links.as_view(), name="links"),
    path("links/<uuid:uid>", claims.OneLink.as_view(), name="link"),
    path("links/<uuid:uid>/withdraw", claims.WithdrawLink.as_view(), name="link_withdraw"),
    path("studies/<slug:slug>/claims", claims.CreateClaim.as_view(), name="claim_create"),
    path("studies/<slug:slug>/claims/check", claims.CheckClaim.as_view(), name="claim_check"),
]
