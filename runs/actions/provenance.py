"""Where code came from: repository commit and difference, as a receipt names them."""

from __future__ import annotations

import subprocess
from typing import Any

from django.conf import settings

from workbench.contracts.canonical import sha256_hex


def provenance() -> dict[str, Any]:
    """Repository commit and dirty difference, where there is a repository. Goes into a receipt, never into a plan."""

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", *arguments], cwd=settings.BASE_DIR, capture_output=True, text=True, timeout=20
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout if done.returncode == 0 else None

    commit, difference = git("rev-parse", "HEAD"), git("diff", "HEAD")
    return {
        "commit": commit.strip() if commit else None,
        "dirty": None if difference is None else bool(difference),
        "difference_sha256": sha256_hex(difference.encode()) if difference else None,
    }
