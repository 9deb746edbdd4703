"""Other runs that a chart draws beside its own: seeds of the same arm, and the strict-pair partner."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from django.urls import reverse

from runs.models import Run

OVERLAID = ("reward", "loss", "entropy")
MAX_OTHERS = 8


@dataclass(frozen=True)
class Overlay:
    """``seeds`` at most eight of ``total`` other seeds of the arm; ``partner`` None without a strict pair."""

    seeds: list[Run]
    total: int
    partner: Run | None

    def addresses(self, key: str) -> dict[str, str]:
        """Attributes of a chart: JSON of [name, address] pairs; empty strings for a chart without overlay."""
        if key not in OVERLAID:
            return {"seeds": "", "partner": ""}
        return {"seeds": _pairs(self.seeds, key), "partner": _pairs([self.partner] if self.partner else [], key)}

    @property
    def by_chart(self) -> dict[str, dict[str, str]]:
        """``addresses`` of every overlaid chart."""
        return {key: self.addresses(key) for key in OVERLAID}


def _pairs(runs: Iterable[Run], key: str) -> str:
    found = [[run.name, reverse("runs:series_json", args=[run.uid, key])] for run in runs]
    return json.dumps(found) if found else ""


def overlay_of(run: Run, partner: Run | None) -> Overlay:
    """Other seeds of the run's arm under the same plan version, by name."""
    if run.arm is None:
        return Overlay([], 0, partner)
    others = list(Run.objects.filter(arm=run.arm).exclude(pk=run.pk).order_by("name", "pk"))
    return Overlay(others[:MAX_OTHERS], len(others), partner)
