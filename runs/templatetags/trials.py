"""Filters of the pages of trials."""

from __future__ import annotations

from typing import Any

from django import template

from runs.models import Trial
from runs.presenters.trials.log import TrialView, view_of
from runs.presenters.trials.words import CAUSE
from runs.templatetags.ui import format_number

register = template.Library()


@register.filter
def trial_view(trial: Trial) -> TrialView:
    """``{% with v=t|trial_view %}``: words and counts of one trial."""
    return view_of(trial)


LEAST_S = 0.001  # what a column of seconds with three places still shows


@register.filter
def seconds(value: float | None) -> str:
    """Seconds with three places; what is less says so and keeps the notation; an em dash where there are none."""
    return f"< {LEAST_S}" if value is not None and 0 < value < LEAST_S / 2 else format_number(value, 3)


@register.filter
def exact(value: float | None) -> str:
    """Nine significant digits with the sign of what is negative; an em dash where there is no number."""
    return "—" if value is None else f"{value + 0.0:.9g}".replace("-", "−")


@register.filter
def cause_word(value: str | None) -> Any:
    """The cause of a failed test in the reader's language; None where it passed."""
    return CAUSE.get(value, value) if value else None
