"""The shape of the repository: top level, requirements, and what no module may use."""

from __future__ import annotations

import ast
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from workbench.settings import BASE_DIR

TOP_LEVEL = {
    *("manage.py", "workbench", "runs", "evidence", "worker", "templates", "static", "requirements.txt", "tests"),
    *("README.md", "Makefile", "pyproject.toml", "CHANGELOG.md", "LICENSE", "docs"),
}
PRODUCT = ("workbench", "runs", "evidence", "worker")
UNSAFE_MODULES = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "marshal", "shelve", "joblib"}
ENVIRONMENT_READERS = {
    "workbench/settings.py",  # the only reader, with its parts
    "workbench/settings_accounts.py",
    "workbench/settings_api.py",
    "workbench/settings_evidence.py",
    "workbench/settings_operations.py",
    "workbench/settings_outward.py",
    "workbench/client/workbench.py",  # runs in other people's programs, without the settings
    "worker/sandbox/choose.py",  # in the engine's process, without the settings
    "workbench/faults.py",  # crash tests only; used by code without Django
}
PIN = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.-]*(\[[a-z]+\])?==\d[0-9a-zA-Z.]*$")


def tracked() -> list[str]:
    """Files under version control, or all files where the copy is none of its own."""
    if (BASE_DIR / ".git").exists() and shutil.which("git"):
        command = ["git", "-c", f"safe.directory={BASE_DIR}", "ls-files", "-z"]
        answer = subprocess.run(command, cwd=BASE_DIR, capture_output=True, text=True, check=True)
        return [name for name in answer.stdout.split("\0") if name]
    return [str(path.relative_to(BASE_DIR)) for path in BASE_DIR.rglob("*") if path.is_file()]


def sources() -> Iterator[tuple[str, ast.Module]]:
    """Product modules as syntax trees."""
    for package in PRODUCT:
        for path in sorted((BASE_DIR / package).rglob("*.py")):
            yield str(path.relative_to(BASE_DIR)), ast.parse(path.read_text())


def test_top_level_holds_the_announced_names_only() -> None:
    names = {name.partition("/")[0] for name in tracked()}
    unexpected = {name for name in names if not name.startswith(".")} - TOP_LEVEL
    assert not unexpected


def test_commands_can_be_executed() -> None:
    for name in ("manage.py", ".ci/run", ".ci/setup"):
        assert stat.S_IMODE((BASE_DIR / name).stat().st_mode) & 0o100, name


@pytest.mark.parametrize("file", ["requirements.txt", "tests/requirements.txt"])
def test_each_requirement_is_pinned_exactly_and_has_its_reason(file: str) -> None:
    """``name==1.2.3`` without a local suffix, and a comment line above (one comment may stand over a pair)."""
    lines = (BASE_DIR / file).read_text().splitlines()
    wrong = [line for line in lines if line and not line.startswith("#") and not PIN.match(line)]
    assert not wrong
    for position, line in enumerate(lines):
        if line.startswith("# "):
            assert not lines[position + 1].startswith(("-", " ")), line
    requirements = [line for line in lines if line and not line.startswith("#")]
    assert len([line for line in lines if line.startswith("#")]) >= len(requirements) - 1
    assert "torch==2.13.0" in requirements or file != "requirements.txt"
    assert not any("index" in line or "://" in line for line in lines), "where packages come from is the user's choice"


def test_no_pickle_anywhere() -> None:
    """Stored bytes are data: nothing that runs code while it is read."""
    found = []
    for name, tree in sources():
        for node in ast.walk(tree):
            modules: list[str] = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                modules = [node.module or ""]
            found += [f"{name}:{node.lineno} {module}" for module in modules if module.split(".")[0] in UNSAFE_MODULES]
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("torch.load", "torch.save"):
                found.append(f"{name}:{node.lineno} {ast.unparse(node.func)}")
    assert not found


def test_environment_is_read_in_one_place() -> None:
    """``os.environ`` and ``os.getenv``: settings alone. Setting a value for a library is no reading."""
    found = []
    for name, tree in sources():
        if name in ENVIRONMENT_READERS:
            continue
        for node in ast.walk(tree):
            reads = isinstance(node, ast.Call) or (isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load))
            text = ast.unparse(node) if reads else ""
            if re.match(r"os\.(environ|getenv)\b(?!\.setdefault)", text):
                found.append(f"{name}:{node.lineno} {text[:60]}")
    assert not found


def test_celery_takes_json_only() -> None:
    """A pickled message is refused before it is read."""
    import pickle

    from kombu.exceptions import ContentDisallowed
    from kombu.serialization import loads, prepare_accept_content

    from workbench.celery import QUEUES, app

    assert app.conf.accept_content == ["json"] and app.conf.task_serializer == "json"
    accepted = prepare_accept_content(app.conf.accept_content)
    with pytest.raises(ContentDisallowed):
        loads(pickle.dumps({"job": 7}), "application/x-python-serialize", "binary", accept=accepted)
    assert loads(b'{"job": 7}', "application/json", "utf-8", accept=accepted) == {"job": 7}
    assert tuple(queue.name for queue in app.conf.task_queues) == QUEUES
    assert app.conf.task_acks_late and app.conf.worker_prefetch_multiplier == 1 and app.conf.task_ignore_result
    assert app.conf.broker_transport_options["visibility_timeout"] == 86_400
    app.loader.import_default_modules()
    assert set(app.tasks) >= {"worker.tasks.run_job", "worker.tasks.reap"}


def test_lost_pool_process_ends_its_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a lost process does; a task that raised keeps the lease until its own code ends it."""
    from types import SimpleNamespace

    from billiard.einfo import ExceptionInfo
    from billiard.exceptions import WorkerLostError
    from celery.worker.request import Request
    from django.conf import settings

    from workbench import celery

    ended: list[str] = []
    passed: list[object] = []
    monkeypatch.setattr(celery, "expire_leases_of", ended.append)
    monkeypatch.setattr(Request, "on_failure", lambda self, info, *rest: passed.append(info))
    request = celery.JobRequest.__new__(celery.JobRequest)
    request.on_failure(SimpleNamespace(exception=ValueError("task")))
    assert ended == []
    request.on_failure(SimpleNamespace(exception=WorkerLostError("killed")))
    assert ended == [settings.PROCESS_NAME] and len(passed) == 2
    try:
        raise WorkerLostError("killed")
    except WorkerLostError:
        request.on_failure(ExceptionInfo())  # as the pool hands it over: wrapped with its traceback
    assert ended == [settings.PROCESS_NAME] * 2 and len(passed) == 3


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_old_python_is_refused_in_plain_words(tmp_path: Path) -> None:
    """A copy of the set-up with a ``python3`` that says 3.9 and nothing newer on PATH."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(BASE_DIR / ".ci" / "setup", tmp_path / ".ci" / "setup")
    (tmp_path / "requirements.txt").write_text("")
    programs = tmp_path / "bin"
    programs.mkdir()
    old = programs / "python3"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "Python 3.9.2" && exit 0\nexit 1\n')
    old.chmod(0o755)
    for name in ("sh", "dirname", "cat", "rm"):
        found = shutil.which(name)
        assert found
        (programs / name).symlink_to(found)
    result = subprocess.run(
        ["/bin/sh", str(tmp_path / ".ci" / "setup"), "runtime"],
        env={"PATH": str(programs), "HOME": os.environ.get("HOME", "/")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1
    assert "needs Python 3.11 or newer, found Python 3.9.2" in result.stderr
