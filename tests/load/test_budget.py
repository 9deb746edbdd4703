"""Every page, every list of the API and every key of the query language within 300 ms of server time at full size.

The world is generated in a folder of its own, or taken from WORKBENCH_LOAD_HOME, which must be a copy.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.urls import resolve

from tests.load.generate import SMALL
from tests.load.measure import BUDGET_MS
from tests.load.routes import UNMEASURED, everything, named
from tests.workbench.processes import environment
from workbench.settings import BASE_DIR


@pytest.mark.slow
def test_everything_within_the_budget(tmp_path: Path) -> None:
    """CPU time of the process, which SQLite's work is part of: what other programs do on the machine is not counted."""
    home = Path(os.environ.get("WORKBENCH_LOAD_HOME") or tmp_path / "home")
    done = subprocess.run(
        [sys.executable, "-m", "tests.load.measure", str(home)], env=environment(home), cwd=BASE_DIR,
        capture_output=True, text=True, timeout=3_600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4_000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) > 600 and {row["who"] for row in found} == {"member", "admin"}
    for row in found:  # a member asks for the site admins' pages too; one address leads on to another
        expected = {200, 302} if row["who"] == "admin" else {200, 302, 403, 404}
        assert row["status"] in expected, row
    slow = [f"{row['cpu']} ms {row['who']} {row['name']}" for row in found if row["cpu"] > BUDGET_MS]
    assert not slow, "\n".join(slow)


def test_no_route_is_left_out(filled: None, db: None) -> None:
    """A page or list that is added stands among the measured addresses, or among those that are left out."""
    measured = {resolve(address.partition("?")[0]).view_name for address in everything(SMALL).values()}
    routes = {name for name, _address in named()}
    assert routes - measured - UNMEASURED == set()
    assert routes >= UNMEASURED and not measured & UNMEASURED
