"""A command killed with signal 9 in the middle, and run again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.importers.samples import write_lines

ROOT = Path(__file__).parents[2]
ROWS = 4000
STUDY = """
from django.conf import settings
from django.utils import timezone
from runs.actions.actors import service_actor
from runs.models import Study
from workbench.contracts.canonical import derive_uid
from workbench.home import initialise
initialise(settings.HOME)
Study.objects.create(uid=derive_uid(None, "killed"), slug="killed", title_en="Killed", created_at=timezone.now(),
                     created_by=service_actor("tests"))
"""
COUNT = """
from runs.models import ImportedRollout, LogImport, TrackedRun
rows = ImportedRollout.objects.order_by("position")
hashes = set(rows.values_list("sha256", flat=True))
print(rows.count(), len(hashes), LogImport.objects.count(), TrackedRun.objects.count(),
      list(rows.values_list("position", flat=True)) == list(range(rows.count())))
"""


def _command(place: dict[str, str], *words: str) -> subprocess.Popen[str]:
    environment = os.environ | {"OMP_NUM_THREADS": "1"} | place
    return subprocess.Popen(
        [sys.executable, "manage.py", *words], cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip


def _whole(place: dict[str, str], *words: str) -> str:
    with _command(place, *words) as process:
        out, error = process.communicate(timeout=240)
    assert process.returncode == 0, error
    return out


@pytest.mark.slow
@pytest.mark.kill
@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def test_killed_twice_and_finished(database: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """4000 rollouts in batches of 50: killed after 3 and after 10 more, then whole; none twice, none missing."""
    place = {"WORKBENCH_HOME": str(tmp_path / "home")}
    if database == "postgresql":
        place["DATABASE_URL"] = request.getfixturevalue("fresh_postgres_url")
    rows = ({"input": "q", "output": f"a{place}", "score": 1.0, "step": place // 8} for place in range(ROWS))
    source = write_lines(tmp_path / "1.jsonl", rows)
    _whole(place, "shell", "-c", STUDY)
    for batches in (3, 10):
        with _command(place, "import", str(source), "--study", "killed") as process:
            assert process.stderr is not None
            for _ in range(batches):
                assert "rollouts" in process.stderr.readline()
            process.send_signal(signal.SIGKILL)
        assert process.returncode == -signal.SIGKILL
    out = _whole(place, "import", str(source), "--study", "killed", "--json")
    found = json.loads(out.splitlines()[-1])
    assert found["state"] == "done" and found["counts"]["rollouts"] == ROWS
    assert _whole(place, "shell", "-c", COUNT).splitlines()[-1].split() == [str(ROWS), str(ROWS), "1", "1", "True"]
