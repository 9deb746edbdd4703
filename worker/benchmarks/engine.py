"""``bench engine``: every comparison in one process, on one thread, in a folder that is thrown away."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch

from .measure import Report, machine
from .rollout import against_generate
from .trl_step import require_trl
from .update import against_ideal, against_trl
from .world import BenchWorld, Sizes

GOALS: dict[str, tuple[str, float]] = {
    "update_vs_trl_cpu": ("at most", 0.5),
    "loss_difference": ("at most", 1e-6),
    "rollout_vs_generate_one": ("at least", 6.0),
    "rollout_vs_generate_batched": ("at least", 2.0),
    "update_vs_ideal": ("at most", 2.5),
}


def is_met(name: str, median: float) -> bool:
    """Whether a median reaches its goal."""
    kind, value = GOALS[name]
    return median <= value if kind == "at most" else median >= value


def benchmark(plan: dict[str, Any], sizes: Sizes, cache_dir: Path, report: Report) -> dict[str, Any]:
    """Measure everything but ``product_share``. Raises ``TrlMissing`` before any work where TRL is not installed."""
    require_trl()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with tempfile.TemporaryDirectory(prefix="workbench-bench-") as name:
            folder = Path(name)
            report("loading the policy (the first time its warm start is built)")
            world = BenchWorld(plan, sizes, folder, cache_dir, progress=lambda value: report(str(value)))
            before = machine()
            found = {
                **against_trl(world, folder, report),
                **against_generate(world, report),
                **against_ideal(world, report),
            }
    finally:
        torch.set_num_threads(threads)
    goals = {
        name: {"goal": f"{kind} {value:g}", "met": is_met(name, found[name]["median"])}
        for name, (kind, value) in GOALS.items()
    }
    return {**found, "goals": goals, "machine": {**before, "load_after": machine()["load"]}}
