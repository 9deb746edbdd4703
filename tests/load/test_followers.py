"""50 clients follow runs for a minute over the API of a server as ``up`` starts it: no error, no lost event."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

from tests.servers import free_port
from tests.workbench.processes import Up, environment, manage
from workbench.settings import BASE_DIR

CLIENTS, SECONDS, EVERY = 50, 60.0, 0.5
PREPARE = """
from django.utils import timezone
from runs.actions.actors import service_actor
from runs.actions.plans import ensure_study
ensure_study("followed", title={"en": "F", "zh": ""}, summary={"en": "", "zh": ""},
    by=service_actor("scheduler"), at=timezone.now(), visibility="public")
"""
WRITE = """
import sys, time
from django.db import transaction
from django.utils import timezone
from runs.actions.actors import service_actor
from runs.actions.receipts import append_receipt
from runs.models import Study
study, end, n = Study.objects.get(slug="followed"), time.monotonic() + float({seconds}), 0
while time.monotonic() < end:
    with transaction.atomic():
        append_receipt(f"study:{{study.uid}}", "study.note", str(study.uid), {{"n": n}},
            actor=service_actor("scheduler"), at=timezone.now())
    n += 1
    time.sleep({every})
print("written", n)
"""


def shell(home: Path, code: str) -> str:
    found = subprocess.run(
        [sys.executable, "manage.py", "shell", "-c", code], env=environment(home), cwd=BASE_DIR,
        capture_output=True, text=True, check=True, timeout=SECONDS + 60,
    )  # fmt: skip
    return found.stdout


@pytest.mark.slow
def test_no_follower_loses_an_event(tmp_path: Path) -> None:
    home, port = tmp_path / "home", free_port()
    assert manage(home, "study", "list").returncode == 0
    shell(home, PREPARE)
    up = Up(home, "--port", str(port))
    try:
        up.wait_ready()
        base, done, problems = f"http://127.0.0.1:{port}/api/v1/events", threading.Event(), []
        seen: list[list[int]] = [[] for _ in range(CLIENTS)]

        def follow(n: int) -> None:
            given: dict[str, str] = {"study": "followed", "wait": "5"}
            with httpx.Client(timeout=60) as client:
                while True:
                    last = done.is_set()
                    answer = client.get(base, params=given)
                    if answer.status_code == 429:
                        time.sleep(float(answer.headers["Retry-After"]))
                        continue
                    if answer.status_code != 200:
                        problems.append(f"{answer.status_code}: {answer.text[:200]}")
                        return
                    body = answer.json()
                    seen[n] += [item["seq"] for item in body["items"]]
                    given["cursor"] = body["cursor"]
                    if last and not body["items"]:
                        return

        threads = [threading.Thread(target=follow, args=(n,), daemon=True) for n in range(CLIENTS)]
        for thread in threads:
            thread.start()
        written = shell(home, WRITE.format(seconds=SECONDS, every=EVERY))
        done.set()
        for thread in threads:
            thread.join(60)
        assert not problems
        last = seen[0][-1]
        assert f"written {last}" in written or last >= int(written.split()[-1]) > 20
        assert all(own == list(range(1, last + 1)) for own in seen), [len(own) for own in seen]
    finally:
        up.interrupt()
        up._reader.join(10)
        up.process.stdout.close()  # type: ignore[union-attr]
