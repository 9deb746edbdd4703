"""Interleaved measurement: every arm once a repeat, a ratio within each repeat, the median with its spread.

Seconds are CPU seconds of this process. On an idle machine with one thread they equal wall seconds;
under load they hold better, and interleaving lets what remains hit all arms alike.
"""

from __future__ import annotations

import gc
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

Report = Callable[[str], None]


@dataclass(frozen=True)
class Timed:
    """One timed call. ``amount``: what it produced (tokens, operations), in the unit of its arm."""

    cpu_seconds: float
    wall_seconds: float
    amount: float

    @property
    def rate(self) -> float:
        """Amount per CPU second."""
        return self.amount / self.cpu_seconds


def timed(call: Callable[[], float]) -> Timed:
    """Run ``call`` once; it returns its amount."""
    gc.collect()
    cpu, wall = time.process_time(), time.perf_counter()
    amount = call()
    return Timed(time.process_time() - cpu, time.perf_counter() - wall, amount)


def interleave(
    arms: Mapping[str, Callable[[], float]], repeats: int, report: Report, what: str
) -> dict[str, list[Timed]]:
    """``repeats`` rounds over all arms after one untimed round; the order turns by one each round."""
    names = list(arms)
    for name in names:
        arms[name]()
    found: dict[str, list[Timed]] = {name: [] for name in names}
    for repeat in range(repeats):
        for name in names[repeat % len(names) :] + names[: repeat % len(names)]:
            found[name].append(timed(arms[name]))
        latest = ", ".join(f"{name} {found[name][-1].cpu_seconds:.3f} s" for name in names)
        report(f"{what} {repeat + 1}/{repeats}: {latest}")
    return found


def summary(values: Sequence[float], unit: str, how: str) -> dict[str, Any]:
    """Median with its spread: ``low`` and ``high`` are the smallest and the greatest repeat."""
    return {
        "median": statistics.median(values),
        "low": min(values),
        "high": max(values),
        "repeats": len(values),
        "unit": unit,
        "how": how,
    }


def cpu_ratio(ours: Sequence[Timed], theirs: Sequence[Timed], how: str) -> dict[str, Any]:
    """Our CPU seconds / theirs, repeat by repeat; lower is better."""
    values = [mine.cpu_seconds / other.cpu_seconds for mine, other in zip(ours, theirs, strict=True)]
    return summary(values, "our CPU seconds / theirs, lower is better", how)


def rate_ratio(ours: Sequence[Timed], theirs: Sequence[Timed], how: str) -> dict[str, Any]:
    """Our amount per second / theirs, repeat by repeat; higher is better."""
    values = [mine.rate / other.rate for mine, other in zip(ours, theirs, strict=True)]
    return summary(values, "our tokens per second / theirs, higher is better", how)


def machine() -> dict[str, Any]:
    """Facts of the machine that the numbers depend on; the load is that of the last minute."""
    return {
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "load": round(os.getloadavg()[0], 2),
    }
