"""Shared part of the pages of evidence: refusals in the reader's language."""

from __future__ import annotations

from django.http import HttpRequest

from evidence.presenters.troubles import told
from runs.views import base


def refused(request: HttpRequest, error: Exception) -> None:
    """Say at the top of the next page why nothing was changed."""
    base.refused(request, told(str(error)))
