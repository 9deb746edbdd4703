"""What this machine has, without loading torch: cores, memory, disk, CUDA devices, processor flags."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# One compute thread: two threads on busy cores were measured to run many times slower, and the
# number of threads is part of a run's identity.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "RAYON_NUM_THREADS",
)
NF4_TRAP_FLAG = "avx512_bf16"

# Runs in a process of its own, so that nothing that loads torch stays in the caller.
PROBE = """
import json, warnings
warnings.simplefilter("ignore")
found = {"torch": None, "cuda": 0, "names": [], "bitsandbytes": None, "guard": False, "problem": None}
try:
    import torch
    found["torch"] = torch.__version__
    found["cuda"] = torch.cuda.device_count() if torch.cuda.is_available() else 0
    found["names"] = [torch.cuda.get_device_name(i) for i in range(found["cuda"])]
    import bitsandbytes
    found["bitsandbytes"] = bitsandbytes.__version__
    from worker.engine.quantized import guard_nf4
    found["guard"] = callable(guard_nf4)
except Exception as error:
    found["problem"] = f"{type(error).__name__}: {error}"
print(json.dumps(found))
"""


def core_count() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return max(1, os.cpu_count() or 1)


def memory_bytes() -> int | None:
    """Physical memory; None where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return None


def free_disk_bytes(folder: Path) -> int:
    """Free space where ``folder`` lies or would lie."""
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def cuda_count() -> int:
    """CUDA devices by the driver's own listing; 0 where there is no driver."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return 0
    try:
        answer = subprocess.run([program, "--list-gpus"], capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return 0
    return sum(line.startswith("GPU ") for line in answer.stdout.splitlines())


def processor_flags() -> frozenset[str] | None:
    """Instruction-set flags; None where the system does not list them."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return None
    for line in text.splitlines():
        if line.startswith(("flags", "Features")):
            return frozenset(line.partition(":")[2].split())
    return None


def thread_environment(threads: int = 1) -> dict[str, str]:
    """Variables that pin numerical libraries to ``threads`` threads."""
    return {**dict.fromkeys(THREAD_VARIABLES, str(threads)), "TOKENIZERS_PARALLELISM": "false"}


@dataclass(frozen=True)
class TorchProbe:
    """What a fresh process found. ``torch``, ``bitsandbytes``: version, or None where it cannot be imported.

    ``nf4_guard``: the engine has its guard against repacked NF4 weights.
    """

    torch: str | None
    bitsandbytes: str | None
    devices: tuple[str, ...]
    nf4_guard: bool
    problem: str | None


def probe_torch(environment: dict[str, str], timeout_s: float = 120.0) -> TorchProbe:
    """Load torch and bitsandbytes in another process and say what they see."""
    try:
        answer = subprocess.run(
            [sys.executable, "-c", PROBE],
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=True,
            cwd=Path(__file__).resolve().parent.parent,
        )
        found: dict[str, Any] = json.loads(answer.stdout.strip().splitlines()[-1])
    except (subprocess.SubprocessError, OSError, ValueError, IndexError) as error:
        return TorchProbe(None, None, (), False, f"{type(error).__name__}: {error}"[:400])
    return TorchProbe(found["torch"], found["bitsandbytes"], tuple(found["names"]), found["guard"], found["problem"])
