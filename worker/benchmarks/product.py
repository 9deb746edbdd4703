"""How much of the benchmarked rollout speed a real study reached, from the receipts of this home."""

from __future__ import annotations

from typing import Any

from runs.models import Execution, Receipt
from workbench.contracts.canonical import parse_canonical

from .measure import summary

COLLECTED = "shard.collected"


def collect_timings(execution: Execution) -> list[dict[str, float]]:
    """Timings of the execution's collect and evaluation jobs, as their receipts hold them."""
    streams = [f"execution:{execution.uid}", *(f"run:{uid}" for uid in execution.runs.values_list("uid", flat=True))]
    found = []
    for data in (
        Receipt.objects.filter(stream__in=streams, kind=COLLECTED).order_by("pk").values_list("bytes", flat=True)
    ):
        timing = parse_canonical(bytes(data))["body"]["machine"]["timing"]
        if timing.get("policy_tokens") and timing.get("seconds"):
            found.append(timing)
    return found


def newest_closed() -> Execution | None:
    """The closed execution of this home that was started last."""
    return Execution.objects.filter(state="closed").order_by("-pk").first()


def product_share(execution: Execution | None, bench_tokens_per_second: float) -> dict[str, Any]:
    """Tokens per second of a study / those of the benchmark; None with the reason where there is no study.

    The spread is that of the single jobs. Smaller shards than the benchmark's lower the share.
    """
    if execution is None:
        return {"median": None, "reason": "no closed execution in this home"}
    timings = collect_timings(execution)
    if not timings:
        return {"median": None, "reason": f"execution {execution.uid}: no receipt with a timing"}
    how = (
        f"policy tokens / seconds of {len(timings)} collect and evaluation jobs of execution {execution.uid}, over the "
        "collect job of this benchmark (32 rows)"
    )
    shares = [item["policy_tokens"] / item["seconds"] / bench_tokens_per_second for item in timings]
    found = summary(shares, "share of the benchmark's tokens per second", how)
    whole = sum(item["policy_tokens"] for item in timings) / sum(item["seconds"] for item in timings)
    return {**found, "study": whole / bench_tokens_per_second}
