"""Verdicts on readings: confirmed or dismissed with a reason; never changed, the newest counts."""

from __future__ import annotations

from datetime import datetime

from runs.errors import DomainError
from runs.models import Actor, ReadingVerdict, Run
from runs.readings.fire import readings_of
from runs.readings.rules import FIRED
from runs.readings.table import BY_ID

REASON_LEAST, REASON_MOST = 3, 4000


def judge_reading(
    run: Run, rule: str, fired_sha256: str, verdict: str, reason: str, *, by: Actor, at: datetime
) -> ReadingVerdict:
    """Append a verdict on the reading as it stands now. Raises ``DomainError`` naming the field that is wrong.

    ``fired_sha256`` is what the judge saw; where the run has gone on since, the verdict is refused.
    """
    if rule not in BY_ID:
        raise DomainError(f"rule: got {rule[:80]!r}, expected one of {', '.join(BY_ID)}")
    if verdict not in (ReadingVerdict.CONFIRMED, ReadingVerdict.DISMISSED):
        raise DomainError(f"verdict: got {verdict[:80]!r}, expected confirmed or dismissed")
    text = reason.strip()
    if not REASON_LEAST <= len(text) <= REASON_MOST or "\x00" in text:
        raise DomainError(f"reason: got {len(text)} characters, expected {REASON_LEAST} to {REASON_MOST}")
    (found,) = readings_of(run, readings=[BY_ID[rule]])
    if found.outcome.state != FIRED:
        raise DomainError(
            f"rule: got {rule}, which is {found.outcome.state} on this run, expected a reading that fired"
        )
    if found.fired_sha256 != fired_sha256:
        raise DomainError(
            f"fired_sha256: got {fired_sha256[:64]!r}, expected {found.fired_sha256}: the run has gone on, look again"
        )
    return ReadingVerdict.objects.create(
        run=run, rule=rule, fired_sha256=fired_sha256, verdict=verdict, reason=text, actor=by, at=at
    )
