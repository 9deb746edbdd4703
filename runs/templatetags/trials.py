"""Filters of the pages of trials."""

from __future__ import annotations

from typing import Any

from django import template

from runs.models import Trial
from runs.presenters.trials.log import TrialView, view_of
from runs.presenters.trials.words import CAUSE

register = template.Library()


@register.filter
def trial_view(trial: Trial) -> TrialView:
    """``{% with v=t|trial_view %}``: words and counts of one trial."""
    return view_of(trial)


@register.filter
def cause_word(value: str | None) -> Any:
    """The cause of a failed test in the reader's language; None where it passed."""
    return CAUSE.get(value, value) if value else None
