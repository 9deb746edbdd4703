"""Strict pairs: what differs between two arms, and which run is a run's counterpart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from runs.models import Run


@dataclass(frozen=True)
class Treatment:
    """How a run differs from its counterpart of the same seed; ``other`` None where that run does not exist.

    ``arms`` in the order of the frozen pair.
    """

    other_arm: str
    other: Run | None
    different: list[tuple[str, Any, Any]]
    equal: int
    arms: tuple[str, str] = ("", "")

    @property
    def link(self) -> SafeString:
        """The counterpart by name, linked where it exists."""
        if self.other is None:
            return format_html("{}", self.other_arm)
        return format_html('<a href="{}">{}</a>', reverse("runs:run", args=[self.other.uid]), self.other.name)

    @property
    def total(self) -> int:
        """Fields compared."""
        return self.equal + len(self.different)


def oriented(pair: dict[str, Any], arm: str) -> list[tuple[str, Any, Any]]:
    """Different fields as (path, value of ``arm``, value of the other arm)."""
    flip = pair["arms"][0] != arm
    return [(path, b, a) if flip else (path, a, b) for path, a, b in pair["different"]]


def treatment_of(run: Run) -> Treatment | None:
    """The run's strict pair, from the frozen comparison; None where its arm is in no pair."""
    if run.plan_version is None or run.arm is None:
        return None
    pair = next((p for p in run.plan_version.strict_pairs if run.arm.key in p["arms"]), None)
    if pair is None:
        return None
    other_arm = pair["arms"][1] if pair["arms"][0] == run.arm.key else pair["arms"][0]
    other = Run.objects.filter(plan_version=run.plan_version, arm__key=other_arm, seed=run.seed).first()
    return Treatment(
        other_arm, other, oriented(pair, run.arm.key), len(pair["equal"]), (pair["arms"][0], pair["arms"][1])
    )
