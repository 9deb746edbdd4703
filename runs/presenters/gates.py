"""The gate of a run: the frozen rule, and what the receipt of its decision says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from runs.models import Receipt, Run
from workbench.contracts.canonical import parse_canonical

DECISIONS = ("gate.met", "gate.refused")


@dataclass(frozen=True)
class GateView:
    """``cases`` and ``met`` None until the gate has been decided; ``receipt`` then proves it."""

    rule: str
    counted_over: str
    minimum: int
    cases: int | None
    met: bool | None
    receipt: Receipt | None


def gate_of(run: Run) -> GateView | None:
    """The run's gate; None for an arm without one. Needs ``arm`` and ``execution`` loaded."""
    if run.arm is None or run.arm.gate is None:
        return None
    receipt = None
    if run.execution is not None:
        receipt = (
            Receipt.objects.filter(stream=f"execution:{run.execution.uid}", kind__in=DECISIONS, subject_uid=run.uid)
            .order_by("-seq")
            .first()
        )
    body: dict[str, Any] = {} if receipt is None else parse_canonical(bytes(receipt.bytes))["body"]
    gate = run.arm.gate
    return GateView(
        body.get("rule", gate["rule"]),
        body.get("counted_over", gate["counted_over"]),
        body.get("minimum", gate["minimum"]),
        body.get("cases"),
        body.get("met"),
        receipt,
    )
