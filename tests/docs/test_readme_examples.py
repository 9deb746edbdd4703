"""The examples for Python and curl: legal here and now, and executed as written against a server with workers."""

from __future__ import annotations

import ast
import json
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from django.urls import resolve

from tests.client.conftest import Connect
from tests.client.conftest import connect as connect
from tests.runs.scripted import Lab
from tests.runs.scripted import lab as lab
from tests.warm import warm_cache
from tests.workbench.processes import environment, up
from tests.worker.test_inspection import found
from workbench import client
from workbench.contracts.canonical import sha256_hex
from workbench.settings import BASE_DIR
from worker import lifecycle

HEADING = re.compile(r"^## .*from Python and curl$", re.MULTILINE | re.IGNORECASE)
FENCE = re.compile(r"^```(sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CLIENT = BASE_DIR / "docs" / "client.md"


def examples(document: Path) -> list[tuple[str, str]]:
    """(language, text) of each fence of the section, in order; none where there is no such section."""
    text = document.read_text(encoding="utf-8")
    start = HEADING.search(text)
    return FENCE.findall(text[start.end() :].split("\n## ")[0]) if start else []


def test_the_readme_shows_what_the_clients_document_shows() -> None:
    """One text to execute, letter by letter the same in both."""
    shown = examples(CLIENT)
    assert [language for language, _ in shown] == ["sh", "python", "sh"]
    assert examples(BASE_DIR / "README.md") == shown


def test_curl_examples_are_legal_and_their_addresses_exist() -> None:
    text = "\n".join(block for language, block in examples(CLIENT) if language == "sh")
    subprocess.run(["/bin/bash", "-n"], input=text, text=True, check=True)
    paths = re.findall(r"\$WORKBENCH_URL(/[\w/.-]+)", text)
    assert len(paths) == 4
    assert all(resolve(path).url_name != "not_found" for path in paths)


@pytest.mark.django_db
def test_the_python_example_runs_against_the_real_application(
    lab: Lab, connect: Connect, monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path, capsys: Any
) -> None:
    """The text itself, in this process; a scripted engine works whenever the client waits."""
    from runs.models import Execution, Job, Study, User

    engine = lifecycle.engine_client(1)
    bound = {**found(settings, tmp_path), "runtime": lab.script.runtime, "harness_code_sha256": sha256_hex(b"harness")}
    answer = engine.call
    monkeypatch.setattr(
        engine, "call", lambda op, spec, **more: bound if op == "describe" else answer(op, spec, **more)
    )
    monkeypatch.setattr(lifecycle, "engine_client", lambda threads: engine)
    Study.objects.create(
        uid="00000000-0000-4000-8000-000000000001", slug="first-steps", title_en="First", title_zh="", summary_en="",
        summary_zh="", created_at="2026-01-01T00:00:00Z", created_by=lab.actor,
    )  # fmt: skip
    wb = connect("mara")
    assert User.objects.filter(username="mara").exists()

    def work(seconds: float) -> None:
        execution = Execution.objects.first()
        if execution is None:
            lifecycle.execute(Job.objects.get(state="queued").pk)
        else:
            lab.step(execution)

    monkeypatch.setattr(wb._transport, "sleep", work)
    monkeypatch.setattr(client, "Workbench", lambda: wb)
    ((_, text),) = [item for item in examples(CLIENT) if item[0] == "python"]
    plan = BASE_DIR / "docs" / "examples" / "first-plan.yaml"
    text = text.replace('"docs/examples/first-plan.yaml"', repr(str(plan)))
    here, kept = tmp_path / "here", tmp_path / "kept"
    here.mkdir()
    kept.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr(tempfile, "tempdir", str(kept))
    exec(compile(ast.parse(text), "README", "exec"), {})
    said = capsys.readouterr().out
    assert "Checked(valid=True, problems=[])" in said and "fault=None" in said
    run = Execution.objects.get().runs.get()
    (adapter,) = kept.rglob("first-plan.adapter")
    assert sha256_hex(adapter.read_bytes()) == run.head.checkpoint.sha256
    assert list(here.iterdir()) == [], "the folder that it runs in stays as it was"


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.slow
def test_every_example_runs_as_written_against_a_server_with_workers(tmp_path: Path) -> None:
    """One shell for all of it, as a reader would type it; only the port is another."""
    home, port = tmp_path / "data", free_port()
    script = ["set -euo pipefail"]
    for language, text in examples(CLIENT):
        here = text.replace(".venv/bin/python", sys.executable)
        script += [here] if language == "sh" else [f"'{sys.executable}' - <<'END'", text.rstrip(), "END"]
    whole = "\n".join(script).replace(":8000", f":{port}")
    extra = {"WORKBENCH_CACHE_HOME": str(warm_cache())}
    kept = tmp_path / "kept"
    kept.mkdir()
    with up(home, "--port", str(port), "--stop-with-parent", **extra) as server:
        server.wait_ready()
        done = subprocess.run(
            ["/bin/bash", "-c", whole], env=environment(home, **extra, PYTHONPATH=str(BASE_DIR), TMPDIR=str(kept)),
            cwd=BASE_DIR, capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    assert '"user":"admin"' in done.stdout.replace('": ', '":') and "Checked(valid=True" in done.stdout
    assert "fault=None" in done.stdout and '"state":"completed"' in done.stdout
    events = json.loads(done.stdout[done.stdout.rindex('{"items"') :])
    assert len(events["items"]) == 3 and events["more"] is True
    (adapter,) = kept.rglob("first-plan.adapter")
    assert adapter.stat().st_size > 0 and not (BASE_DIR / adapter.name).exists()
