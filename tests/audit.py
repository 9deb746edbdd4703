"""Known vulnerabilities of every installed package: ``python -m tests.audit``.

Exit status 0: none known. 1: at least one, named with the version that mends it. 3: could not be looked up
(no network, or an index without such data), so that nothing is known; this is no pass.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

NONE, FOUND, UNKNOWN = 0, 1, 3
TIMEOUT_S = 300
# Vulnerabilities that do not concern us: id -> reason. Empty is the aim.
ACCEPTED: dict[str, str] = {}


def look_up() -> tuple[dict[str, Any] | None, str]:
    """(pip-audit's report, what it complained about); None where it gave none."""
    command = [sys.executable, "-m", "pip_audit", "--local", "--skip-editable", "--progress-spinner", "off"]
    try:
        done = subprocess.run(
            [*command, "--format", "json", "--timeout", "10"],
            capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None, f"no answer within {TIMEOUT_S} s"
    try:
        report = json.loads(done.stdout)
    except ValueError:
        lines = done.stderr.strip().splitlines()
        return None, lines[-1][:300] if lines else f"pip-audit ended with status {done.returncode}"
    return report, ""


def judge(report: dict[str, Any] | None, complaint: str, say: Callable[[str], Any] = print) -> int:
    """Say what was found; the exit status. A local build such as +cpu is on no index and is listed only."""
    if report is None:
        say(f"audit: COULD NOT RUN ({complaint}); nothing is known about vulnerabilities")
        return UNKNOWN
    packages = report["dependencies"]
    known = [
        (package["name"], package["version"], item["id"], ", ".join(item["fix_versions"]) or "no version yet")
        for package in packages
        for item in package.get("vulns", [])
        if item["id"] not in ACCEPTED
    ]
    for name, version, identity, mended in known:
        say(f"audit: {name} {version}: {identity}, mended in {mended}")
    skipped = [package for package in packages if "skip_reason" in package]
    local = [package["name"] for package in skipped if "+" in package["skip_reason"]]
    unknown = [package["name"] for package in skipped if "+" not in package["skip_reason"]]
    if local:
        say(f"audit: local builds, looked up nowhere: {', '.join(sorted(local))}")
    if known:
        return FOUND
    if unknown or not packages:
        shown = ", ".join(sorted(unknown)[:5])
        say(
            f"audit: COULD NOT RUN for {len(unknown)} of {len(packages)} packages ({shown} ...): the index does not "
            "answer or has no such data; nothing is known about them"
        )
        return UNKNOWN
    say(f"audit: {len(packages) - len(skipped)} packages, no known vulnerability")
    return NONE


if __name__ == "__main__":
    sys.exit(judge(*look_up()))
