"""docs/own.md as a newcomer follows it: every command runs, in order; then a file changes in the middle of a run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.e2e.tiny import jobs_done, last_object, none_left, state_of
from tests.servers import wait_until
from tests.warm import warm_cache
from tests.workbench.processes import environment, manage
from workbench.settings import BASE_DIR

pytestmark = pytest.mark.slow
TUTORIAL = BASE_DIR / "docs" / "own.md"
FENCE = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECONDS = 600.0


def commands() -> list[str]:
    """Each line of each ``sh`` fence."""
    return [line for block in FENCE.findall(TUTORIAL.read_text()) for line in block.splitlines() if line.strip()]


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment of a user whose packages go to a folder of their own and who has an empty home."""
    root = tmp_path_factory.mktemp("newcomer")
    packages = root / "packages"
    return environment(
        root / "data",
        HOME=str(root),
        WORKBENCH_CACHE_HOME=str(warm_cache()),
        PIP_TARGET=str(packages),
        PIP_NO_BUILD_ISOLATION="0",  # pip's way to say: use what is installed here
        PIP_NO_DEPS="1",
        PIP_NO_INDEX="1",
        PIP_DISABLE_PIP_VERSION_CHECK="1",
        PYTHONPATH=str(packages),
        INVENTORY_MODEL=str(root / "model"),
    )


def run(command: str, env: dict[str, str]) -> str:
    """A command as written, with the interpreter of this test in the place of the repository's."""
    text = command.replace(".venv/bin/python", sys.executable)
    done = subprocess.run(
        ["/bin/sh", "-c", text], env=env, cwd=BASE_DIR, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def test_every_command_of_the_tutorial_runs(newcomer: dict[str, str]) -> None:
    """Environment found, checked, trained on, verified; then the user's own model through the same path."""
    said = {command: run(command, newcomer) for command in commands()}
    assert len(said) == 10, list(said)
    listed = next(out for command, out in said.items() if command.endswith("environment list"))
    assert all(name in listed for name in ("inventory ", "inventory.careful ", "inventory-tiny-chat "))
    assert sum(out.rstrip().endswith("passed") for out in said.values()) == 2
    trained = next(out for command, out in said.items() if command.endswith("run ~/my-inventory/plan.yaml"))
    assert "inventory-careful: closed" in trained
    updates = re.search(r"48 groups, 48 eligible, \d+ with signal; \d+ batch(?:es)?, (\d+) optimizer step", trained)
    assert updates is not None and int(updates[1]) > 0, trained
    assert any(out.rstrip().endswith("verified") for out in said.values())
    own = next(out for command, out in said.items() if command.endswith("plan-chat.yaml"))
    assert "inventory-own-model: closed" in own
    none_left(Path(newcomer["WORKBENCH_HOME"]), 30)


def test_a_file_changed_in_mid_run_interrupts_and_is_named(newcomer: dict[str, str], tmp_path: Path) -> None:
    """The run stops with the file's name; put back and recovered, it ends and its records verify."""
    home, plan = tmp_path / "data", tmp_path / "plan.yaml"
    package = Path(newcomer["PYTHONPATH"]) / "workbench_inventory" / "world.py"
    if not package.exists():
        for command in commands()[:2]:
            run(command, newcomer)
    plan.write_text((BASE_DIR / "docs" / "examples" / "inventory" / "plan.yaml").read_text())
    extra = {name: newcomer[name] for name in ("PYTHONPATH", "WORKBENCH_CACHE_HOME")}
    original = package.read_text()
    out = (tmp_path / "out").open("w")
    process = subprocess.Popen(
        [sys.executable, "manage.py", "plan", "run", str(plan), "--json"],
        env=environment(home, **extra), cwd=BASE_DIR, stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    try:
        wait_until(lambda: jobs_done(home) >= 8, "eight jobs", SECONDS)
        package.write_text(original + "\n# a remark\n")
        assert process.wait(SECONDS) == 1
    finally:
        package.write_text(original)
        if process.poll() is None:
            process.kill()
            process.wait()
        out.close()
    assert state_of(home) == "interrupted"
    found = last_object((tmp_path / "out").read_text())
    assert "environment 'inventory': world.py changed" in found["reason"], found["reason"]
    before = jobs_done(home)
    time.sleep(0.1)
    template = last_object(manage(home, "plan", "recover", str(plan), "--template", **extra).stdout)
    recovery = tmp_path / "recovery.json"
    recovery.write_text(json.dumps({**template, "termination_evidence": "the file was put back"}))
    assert manage(home, "plan", "recover", str(plan), "--plan", str(recovery), **extra).returncode == 0
    done = manage(home, "plan", "run", str(plan), "--json", timeout_s=SECONDS, **extra)
    assert done.returncode == 0 and last_object(done.stdout)["state"] == "closed", done.stderr[-3000:]
    assert jobs_done(home) > before
    assert manage(home, "verify", timeout_s=300, **extra).returncode == 0
    package.write_text(original + "\n# a remark\n")
    try:
        changed = manage(home, "verify", timeout_s=300, **extra)
    finally:
        package.write_text(original)
    assert changed.returncode == 3 and "environment 'inventory': world.py changed" in changed.stdout, changed.stdout
    gone = manage(home, "verify", timeout_s=300, WORKBENCH_CACHE_HOME=extra["WORKBENCH_CACHE_HOME"])
    assert gone.returncode == 3 and "put its package on PYTHONPATH" in gone.stdout, gone.stderr[-3000:]
    none_left(home, 30)
