"""Skips that are refused in continuous integration: shown on a small test file of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sweeps import sweep
from workbench.settings import BASE_DIR

CASES = """
import pytest

def test_passes(): pass

def test_skips(): pytest.skip("no such program")

@pytest.mark.gpu
def test_gpu(): pytest.skip("no CUDA device")

@pytest.mark.xfail(reason="known", strict=True)
def test_known(): raise AssertionError
"""
MODULE = "import pytest\npytest.importorskip('a_module_that_is_not_there')\n"


@pytest.mark.parametrize(
    ("flag", "outcome"), sweep([("1", "1 passed, 1 skipped, 1 xfailed"), ("0", "1 passed, 3 skipped, 1 xfailed")], 1)
)
def test_skips_are_printed_or_refused(tmp_path: Path, flag: str, outcome: str) -> None:
    """Four tests and one module. Allowed: three skips. Refused: the program's and the module's fail, the GPU's not."""
    (tmp_path / "test_cases.py").write_text(CASES)
    (tmp_path / "test_module.py").write_text(MODULE)
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-c", str(BASE_DIR / "pyproject.toml")]
    result = subprocess.run(
        [
            *command,
            "--rootdir",
            str(tmp_path),
            "-p",
            "no:cacheprovider",
            "--continue-on-collection-errors",
            str(tmp_path),
        ],
        cwd=BASE_DIR,
        env={**os.environ, "WORKBENCH_TEST_NO_SKIPS": flag},
        capture_output=True,
        text=True,
        check=False,
    )
    last = re.sub(r" in \d.*", "", result.stdout.strip().splitlines()[-1]).strip("= ")
    if flag == "0":
        assert (result.returncode, last) == (0, outcome)
        assert "3 tests were skipped on this machine" in result.stdout
    else:
        assert result.returncode == 1
        assert outcome in last and "1 failed" in last and "1 error" in last
        assert "skips are refused here (WORKBENCH_TEST_NO_SKIPS=1)" in result.stdout
        assert "no such program" in result.stdout and "a_module_that_is_not_there" in result.stdout
