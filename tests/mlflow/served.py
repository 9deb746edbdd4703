"""The product's own web server over a home of its own, and programs that log into it as a user's would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.servers import bound_to_us, free_port, wait_until

ROOT = Path(__file__).resolve().parents[2]
PREPARE = """
import json
from django.utils import timezone
from runs.actions.tokens import issue_token
from runs.models import User
def token(name):
    user = User.objects.create_user(name)
    return issue_token(user, name="t", scopes=("read", "write", "log"), expires_at=None, at=timezone.now())[1]
print(json.dumps([token("mara"), token("ada")]))
"""


@dataclass(frozen=True)
class Served:
    """A running server. ``mara`` and ``ada``: tokens of two people."""

    url: str
    mara: str
    ada: str
    home: Path

    def run(self, program: str, *arguments: str, timeout: float = 120, **environment: str) -> Any:
        """Run a Python program as mara; what it prints on its last line, as JSON."""
        given = {
            **os.environ, "MLFLOW_TRACKING_URI": self.url, "MLFLOW_TRACKING_TOKEN": self.mara,
            "MLFLOW_DISABLE_TELEMETRY": "true", "WORKBENCH_URL": self.url, "WORKBENCH_TOKEN": self.mara,
            "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
            "GIT_PYTHON_REFRESH": "quiet", "PYTHONPATH": str(ROOT), **environment,
        }  # fmt: skip
        for name in ("DJANGO_SETTINGS_MODULE", "WORKBENCH_HOME"):
            given.pop(name, None)
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            env=given, cwd=self.home, capture_output=True, text=True, timeout=timeout,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.strip().splitlines()[-1])


@contextmanager
def serve(home: Path) -> Iterator[Served]:
    """Migrate, make two people, serve until the block ends."""
    environment = {**os.environ, "WORKBENCH_HOME": str(home)}
    manage = [sys.executable, str(ROOT / "manage.py")]
    subprocess.run([*manage, "migrate", "-v0"], env=environment, cwd=ROOT, check=True, capture_output=True, timeout=120)
    made = subprocess.run(
        [*manage, "shell", "--no-imports", "-c", PREPARE],
        env=environment, cwd=ROOT, check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    mara, ada = json.loads(made.stdout.decode().strip().splitlines()[-1])
    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "-c", str(ROOT / "workbench" / "web.py"), "-b", f"127.0.0.1:{port}"]
    with (home / "log").open("wb") as out:
        process = subprocess.Popen(bound_to_us(command), env=environment, cwd=ROOT, stdout=out, stderr=out)
    found = Served(f"http://127.0.0.1:{port}", mara, ada, home)
    try:
        wait_until(lambda: _answers(found.url), "the server", 60)
        yield found
    finally:
        process.terminate()
        process.wait(20)


def _answers(url: str) -> bool:
    import httpx

    try:
        return httpx.get(f"{url}/health", timeout=5).text == "OK"
    except httpx.TransportError:
        return False
