"""Load of this machine's processors and GPUs; None where it cannot be known."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

STAT = Path("/proc/stat")
_before: list[tuple[int, int]] = []


def cpu_times() -> tuple[int, int] | None:
    """(busy, all) ticks of all processors since start-up; None where the system has no such file."""
    try:
        first = STAT.read_text().split("\n", 1)[0].split()
    except OSError:
        return None
    if first[:1] != ["cpu"] or len(first) < 6:
        return None
    ticks = [int(item) for item in first[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)  # without idle and waiting for disks


def cpu_busy_share() -> float | None:
    """Share in use since the last call; None at the first one."""
    now = cpu_times()
    if now is None:
        return None
    last = _before[-1] if _before else None
    _before[:] = [now]
    if last is None or now[1] <= last[1]:
        return None
    return min(1.0, max(0.0, (now[0] - last[0]) / (now[1] - last[1])))


def gpu_busy_shares() -> list[float] | None:
    """Share in use of each GPU as the driver tells it; None without a driver."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    query = [program, "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=3, check=True).stdout
        return [int(line) / 100 for line in answer.split()]
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
