"""``manage.py environment`` and ``manage.py plan check``: output, exit status, refusals."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from tests.own.example import CAREFUL, ENVIRONMENT


def said(*arguments: str) -> str:
    """What a command prints."""
    out = io.StringIO()
    call_command(*arguments, stdout=out)
    return out.getvalue()


def test_check_prints_one_object_with_the_codes_identity() -> None:
    found = json.loads(said("environment", "check", ENVIRONMENT, "--reward", CAREFUL, "--json"))
    assert found["ok"] is True and len(found["checks"]) == 16 and len(found["code_sha256"]) == 64
    assert {"environment.py", "reward.py", "world.py"} <= set(found["code"]["files"])
    assert found["reward"] == CAREFUL and found["path"] == ENVIRONMENT


def test_check_names_what_failed_and_exits_with_1() -> None:
    out = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("environment", "check", "tests.own.broken:NeverEnds", stdout=out)
    assert ended.value.code == 1
    assert "FAILED  budget and end: task" in out.getvalue() and "of 16 checks failed" in out.getvalue()


@pytest.mark.parametrize("config", ["{", "[]", '{"a": 1, "a": 2}'])
def test_a_config_that_is_no_object_is_refused(config: str) -> None:
    with pytest.raises(CommandError, match="--config: got"):
        call_command("environment", "check", ENVIRONMENT, "--config", config)


def test_a_refused_configuration_is_a_finding() -> None:
    out = io.StringIO()
    with pytest.raises(SystemExit):
        call_command("environment", "check", ENVIRONMENT, "--config", '{"budget": 0}', stdout=out)
    assert "config.budget: got 0, expected a positive integer" in out.getvalue()


def test_list_names_what_is_bundled() -> None:
    found = json.loads(said("environment", "list", "--json"))
    assert found["environments"]["evidence_search"].endswith(":EvidenceSearch")


@pytest.mark.parametrize("name", ["plan.yaml", "plan-chat.yaml"])
def test_the_examples_plans_are_legal(name: str, inventory: Path) -> None:
    assert "every field is legal" in said("plan", "check", str(inventory / name))


def test_plan_check_names_every_fault(inventory: Path, tmp_path: Path) -> None:
    text = (
        (inventory / "plan.yaml")
        .read_text()
        .replace("batches: 12", "batches: many")
        .replace("repeats: 4", "repeats: 0")
    )
    place = tmp_path / "plan.yaml"
    place.write_text(text)
    with pytest.raises(CommandError, match=r"(?s)budget.batches: got 'many'.*evaluation.repeats: got 0"):
        call_command("plan", "check", str(place))
    with pytest.raises(CommandError, match="expected a readable plan document"):
        call_command("plan", "check", str(tmp_path / "absent.yaml"))
