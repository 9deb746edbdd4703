"""The client as a package of its own: builds from its folder, and imports with nothing but what it declares."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from django.conf import settings

# What the installed client is asked, by an interpreter that sees its folder and the standard library only.
ASKED = """
import importlib.util, json, pkgutil, sys
sys.path.insert(0, sys.argv[1])
import workbench.client
names = [item.name for item in pkgutil.iter_modules(workbench.client.__path__, "workbench.client.")]
for name in names:
    importlib.import_module(name)
there = {}
for name in ("django", "celery", "torch", "runs", "worker", "evidence", "workbench.settings"):
    try:
        there[name] = importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        there[name] = False
from workbench.client import ConnectionFailed, Workbench
try:
    Workbench("http://127.0.0.1:9", token="x", retries=0).me()
    said = "an answer"
except ConnectionFailed:
    said = "ConnectionFailed"
print(json.dumps({"names": names, "there": there, "said": said}))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built in a copy: a build leaves files beside what it builds from."""
    folder = tmp_path_factory.mktemp("client")
    for name in ("client", "contracts"):
        source = Path(settings.BASE_DIR) / "workbench" / name
        shutil.copytree(source, folder / "workbench" / name, ignore=shutil.ignore_patterns("__pycache__", "build"))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "wheel", "-q"]
    offline = ["--no-deps", "--no-build-isolation", "--no-index", "-w", str(folder / "out")]
    done = subprocess.run(
        [*pip, *offline, "./workbench/client"], cwd=folder, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    (built,) = (folder / "out").iterdir()
    return built


def _declared(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        name = next(item for item in archive.namelist() if item.endswith(".dist-info/METADATA"))
        lines = archive.read(name).decode().splitlines()
    return [line.partition(": ")[2] for line in lines if line.startswith("Requires-Dist: ") and "extra ==" not in line]


def _with_dependencies(requirements: list[str], target: Path) -> set[str]:
    """Copy the named distributions and all that they need to ``target``; their names."""
    done: set[str] = set()
    waiting = list(requirements)
    while waiting:
        name = re.split(r"[^A-Za-z0-9._-]", waiting.pop().strip())[0].lower()
        if name in done:
            continue
        done.add(name)
        found = metadata.distribution(name)
        for file in found.files or ():
            if ".." not in file.parts and "__pycache__" not in file.parts:
                (target / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(str(file.locate()), target / file)
        waiting += [item for item in found.requires or () if "extra ==" not in item and "python_version" not in item]
    return done


def test_the_wheel_holds_the_client_and_the_contracts_alone(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {"/".join(name.split("/")[:2]) for name in names if ".dist-info/" not in name} == {
        "workbench/client",
        "workbench/contracts",
    }
    there = {path.name for path in (Path(settings.BASE_DIR) / "workbench" / "client").glob("*.py")}
    assert {Path(name).name for name in names if name.startswith("workbench/client/")} == there
    assert sorted(re.split(r"[<>=]", item)[0] for item in _declared(wheel)) == ["httpx", "rfc8785"]


def test_it_imports_and_speaks_with_what_it_declares_and_no_server_beside(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path)
    brought = _with_dependencies(_declared(wheel), tmp_path)
    assert {"httpx", "httpcore", "rfc8785"} <= brought and not brought & {"django", "celery", "torch"}
    interpreter = getattr(sys, "_base_executable", sys.executable)
    done = subprocess.run(
        [interpreter, "-I", "-S", "-c", ASKED, str(tmp_path)], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    assert not any(answer["there"].values()), answer["there"]
    assert "workbench.client.logger" in answer["names"] and answer["said"] == "ConnectionFailed"


def test_it_has_the_version_and_the_python_of_the_whole() -> None:
    """And admits the versions of its dependencies that the server pins."""
    base = Path(settings.BASE_DIR)
    whole, alone = (
        tomllib.loads((base / path).read_text())["project"]
        for path in ("pyproject.toml", "workbench/client/pyproject.toml")
    )
    assert all(whole[key] == alone[key] for key in ("version", "requires-python", "license"))
    from packaging.requirements import Requirement

    pinned = dict(line.split("==") for line in (base / "requirements.txt").read_text().splitlines() if "==" in line)
    for item in map(Requirement, alone["dependencies"]):
        assert item.specifier.contains(pinned[item.name].split()[0])
