"""Which part may load what: shown by importing each module where the forbidden packages cannot be imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from workbench.settings import BASE_DIR

DJANGO = ("django", "celery", "kombu", "redis")
TORCH = ("torch", "transformers", "peft", "bitsandbytes")
# A module set to None in sys.modules raises ImportError when anybody imports it.
CODE = """
import importlib, pkgutil, sys
blocked, roots, setup, skipped = {blocked!r}, {roots!r}, {setup!r}, {skipped!r}
sys.modules.update(dict.fromkeys(blocked))
if setup:
    import django
    django.setup()
for root in roots:
    package = importlib.import_module(root)
    found = pkgutil.walk_packages(package.__path__, root + ".") if hasattr(package, "__path__") else ()
    for module in found:
        if not module.name.startswith(skipped):
            importlib.import_module(module.name)
print(len(sys.modules))
"""


def import_all(
    home: Path,
    roots: tuple[str, ...],
    blocked: tuple[str, ...],
    *,
    setup: bool = False,
    skipped: tuple[str, ...] = ("-",),
) -> None:
    """Import every module below ``roots`` with ``blocked`` out of reach; the error is the assertion's text."""
    code = CODE.format(blocked=blocked, roots=roots, setup=setup, skipped=skipped)
    environment = {**os.environ, "WORKBENCH_HOME": str(home), "DJANGO_SETTINGS_MODULE": "workbench.settings"}
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=BASE_DIR, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr[-3000:]


def test_contracts_need_neither_torch_nor_django(tmp_path: Path) -> None:
    import_all(tmp_path, ("workbench.contracts",), (*DJANGO, *TORCH, "numpy", "zstandard"))


@pytest.mark.parametrize("module", ["workbench.blobs", "workbench.capturefile", "workbench.paths", "workbench.broker"])
def test_plain_modules_need_neither_torch_nor_django(tmp_path: Path, module: str) -> None:
    import_all(tmp_path, (module,), ("django", "celery", *TORCH))


def test_environments_need_neither_torch_nor_django(tmp_path: Path) -> None:
    import_all(tmp_path, ("worker.environments",), (*DJANGO, *TORCH))


def test_engine_needs_no_django(tmp_path: Path) -> None:
    import_all(tmp_path, ("worker.engine", "worker.runner"), DJANGO)


def test_pages_and_records_need_no_torch_and_no_worker(tmp_path: Path) -> None:
    """``worker`` stays installed as an app; none of its modules below may be loaded by runs or evidence."""
    blocked = (*TORCH, "worker.engine", "worker.tasks", "worker.lifecycle", "worker.handoff", "worker.runner_client")
    import_all(tmp_path, ("runs", "evidence", "workbench.urls"), blocked, setup=True)


def test_processes_that_fork_load_no_torch(tmp_path: Path) -> None:
    """The Celery worker and the supervisor: torch before a fork hangs, so they never load it."""
    roots = ("workbench", "worker.tasks", "worker.submit", "worker.runner_client")
    import_all(tmp_path, roots, TORCH, setup=True)


def test_blocking_works(tmp_path: Path) -> None:
    """The method itself: a module that needs Django is caught."""
    with pytest.raises(AssertionError, match=r"No module named 'django\.core'"):
        import_all(tmp_path, ("workbench.settings",), ("django",))


def test_contracts_of_pyproject_hold() -> None:
    result = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
        cwd=BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(BASE_DIR)},
    )
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-1000:]
    assert "0 broken" in result.stdout
