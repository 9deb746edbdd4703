"""``manage.py doctor``: the real report, and each finding that is worse than the real one."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import call_command

from tests.runs.conftest import sqlite_template as sqlite_template
from tests.workbench.processes import environment, manage
from workbench import broker, devices, examination
from workbench.devices import TorchProbe
from workbench.settings import BASE_DIR


def report(home: Path, **extra: str) -> tuple[int, dict[str, dict[str, object]]]:
    """Exit status and findings by name of a real run; the last line of standard output is the whole object."""
    result = manage(home, "doctor", "--json", **extra)
    value = json.loads(result.stdout.splitlines()[-1])
    assert value["ok"] is (result.returncode == 0), result.stderr
    return result.returncode, {finding["name"]: finding for finding in value["findings"]}


def test_real_report_of_a_fresh_home(tmp_path: Path) -> None:
    status, found = report(tmp_path / "home")
    assert status == 0
    assert set(found) >= {
        "python",
        "packages",
        "torch",
        "devices",
        "nf4",
        "broker",
        "database",
        "disk",
        "chromium",
        "fonts",
    }
    assert str(found["torch"]["value"]).startswith("2.")
    assert "guard is on" in str(found["nf4"]["value"])
    assert "made at the first start" in str(found["database"]["value"])
    assert not (tmp_path / "home" / "db.sqlite3").exists(), "looking changes nothing"


def findings_of(home: Path, *checks: str, **extra: str) -> dict[str, dict[str, object]]:
    """Findings of some checks in a process of its own, by name."""
    calls = ", ".join(f"*examination.{check}()" for check in checks)
    code = (
        "import json, django; from dataclasses import asdict; django.setup(); from workbench import examination\n"
        f"print(json.dumps([asdict(found) | {{'fatal': found.is_fatal}} for found in ({calls},)]))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=BASE_DIR,
        env=environment(home, DJANGO_SETTINGS_MODULE="workbench.settings", **extra),
        capture_output=True,
        text=True,
        check=True,
    )
    return {finding["name"]: finding for finding in json.loads(result.stdout)}


def test_missing_trigger_is_named_and_fatal(tmp_path: Path, sqlite_template: Path) -> None:
    shutil.copy(sqlite_template, tmp_path / "db.sqlite3")
    assert findings_of(tmp_path, "check_database")["triggers"]["state"] == "ok"
    with sqlite3.connect(tmp_path / "db.sqlite3") as database:
        (name,) = database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger' ORDER BY name").fetchone()
        database.execute(f'DROP TRIGGER "{name}"')
    found = findings_of(tmp_path, "check_database")["triggers"]
    assert found["fatal"] and name in str(found["value"]) and "migrate" in str(found["mend"])


def test_unreachable_services_are_fatal_and_named(tmp_path: Path) -> None:
    variables = {"REDIS_URL": "redis://127.0.0.1:1/0", "DATABASE_URL": "postgres://u@127.0.0.1:1/d"}
    found = findings_of(tmp_path, "check_broker", "check_database", **variables)
    assert found["broker"]["fatal"] and "REDIS_URL" in str(found["broker"]["mend"])
    assert found["database"]["fatal"] and "DATABASE_URL" in str(found["database"]["mend"])


@pytest.mark.parametrize("is_required", [True, False])
def test_exit_status_is_1_only_where_something_required_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], is_required: bool
) -> None:
    finding = examination.Finding("moon", "missing", "no view", is_required=is_required, mend="look up")
    monkeypatch.setattr(examination, "CHECKS", (lambda: iter([finding]),))
    status = 0
    try:
        call_command("doctor")
    except SystemExit as error:
        status = int(error.code or 0)
    assert status == int(is_required)
    assert "moon        MISSING  no view" in capsys.readouterr().out


PROBE = TorchProbe("2.13.0", "0.50.2", (), True, None)
TRAP = frozenset({"avx2", devices.NF4_TRAP_FLAG})


@pytest.mark.parametrize(
    ("probe", "flags", "state", "text"),
    [
        (PROBE, TRAP, "ok", "silently wrong; guard is on"),
        (PROBE, frozenset({"avx2"}), "ok", "no AVX512_BF16: weights are not repacked; guard is on"),
        (PROBE, None, "ok", "processor flags unknown; guard is on"),
        (TorchProbe("2.13.0", "0.50.2", (), False, None), TRAP, "broken", "guard is off"),
        (TorchProbe("2.13.0", None, (), False, "ImportError: no"), TRAP, "missing", "ImportError: no"),
    ],
)
def test_nf4_trap_is_told_in_words(probe: TorchProbe, flags: frozenset[str] | None, state: str, text: str) -> None:
    finding = examination.nf4(probe, flags)
    assert finding.state == state and text in finding.value
    assert finding.is_fatal is (state == "broken"), "bitsandbytes is needed by NF4 models only"


def test_torch_that_cannot_be_imported_comes_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = TorchProbe(None, None, (), False, "ImportError: no")
    monkeypatch.setattr(devices, "probe_torch", lambda environment: broken)
    (finding,) = examination.check_torch()
    assert finding.is_fatal and finding.mend == f"{sys.executable} -m pip install -r requirements.txt"


def test_wrong_version_is_told_with_both(monkeypatch: pytest.MonkeyPatch) -> None:
    """A local suffix is no difference: 2.13.0+cpu satisfies 2.13.0; 4.0 does not satisfy the pin of celery."""
    versions = {"celery": "4.0", "torch": "2.13.0+cpu"}
    real = examination.importlib.metadata.version
    monkeypatch.setattr(examination.importlib.metadata, "version", lambda name: versions.get(name) or real(name))
    (finding,) = examination.check_packages()
    assert finding.is_fatal and finding.value.startswith("celery: got 4.0, expected ") and "torch" not in finding.value


@pytest.mark.parametrize(("free", "state"), [(2**40, "ok"), (2**30, "note"), (2**20, "broken")])
def test_disk(monkeypatch: pytest.MonkeyPatch, free: int, state: str) -> None:
    monkeypatch.setattr(devices, "free_disk_bytes", lambda folder: free)
    assert [finding.state for finding in examination.check_disk()] == [state, state]


def test_test_tools_are_never_fatal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examination.shutil, "which", lambda name: None)
    found = [*examination.check_test_tools()]
    assert {finding.state for finding in found} == {"missing"}
    assert not any(finding.is_fatal for finding in found)
    assert all(finding.mend and finding.mend.startswith("apt-get install ") for finding in found)


def test_a_check_that_fails_is_itself_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def check_moon() -> object:
        raise OSError("no view")

    monkeypatch.setattr(examination, "CHECKS", (check_moon,))
    (finding,) = examination.examine()
    assert (finding.name, finding.state, finding.value) == ("moon", "broken", "OSError: no view")


def test_no_broker_program_is_fatal(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_server() -> object:
        raise broker.BrokerUnavailable("broker: none")

    monkeypatch.setattr(broker, "find_server", find_server)
    (finding,) = examination.check_broker()
    assert finding.is_fatal and finding.mend


def test_facts_of_this_machine_are_plausible(tmp_path: Path) -> None:
    assert devices.core_count() >= 1
    assert devices.free_disk_bytes(tmp_path / "not" / "there") > 0
    memory = devices.memory_bytes()
    assert memory is None or memory > 2**28
    assert devices.thread_environment(2)["OMP_NUM_THREADS"] == "2"


def test_cuda_devices_are_counted_from_the_driver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'GPU 0: A (UUID: x)'; echo 'GPU 1: A (UUID: y)'; echo '  MIG 1g: z'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert devices.cuda_count() == 2
    program.write_text("#!/bin/sh\necho 'NVIDIA-SMI has failed'; exit 9\n")
    assert devices.cuda_count() == 0
