"""Every attack is found by the check that it names; without that check it goes unfound; the clean world passes."""

from __future__ import annotations

import importlib
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection

from evidence.attacks.attack import TRIGGERS, Attack, Guard
from evidence.attacks.listing import listing
from evidence.attacks.suite import ATTACKS, clean, run_attack
from evidence.attacks.world import AttackWorld
from evidence.verify import verify
from workbench.db import drop_triggers

BY_KEY = {attack.key: attack for attack in ATTACKS}


def test_clean_world_passes(world: AttackWorld) -> None:
    """No fault in any step, each of which has something to look at."""
    assert clean(world) == []
    report = verify(store=world.store)
    assert report.problems == []
    assert {step for step, count in report.checked.items() if count} == {*range(1, 10), *range(11, 18)}


def test_keys_are_unique_and_each_attack_can_be_switched_on_and_off() -> None:
    assert [key for key, count in Counter(attack.key for attack in ATTACKS).items() if count > 1] == []
    assert [attack.key for attack in ATTACKS if not attack.guards and attack.by != TRIGGERS] == []


@pytest.mark.parametrize("key", BY_KEY)
def test_attack_is_found(world: AttackWorld, key: str) -> None:
    """Found, by the check that is named, with a message; and undone afterwards."""
    outcome = run_attack(world, BY_KEY[key])
    assert outcome.found, outcome.message or "nothing was said"
    assert outcome.message
    assert world.changed == {}


def switched_off(monkeypatch: pytest.MonkeyPatch, guard: Guard) -> None:
    """Replace a check by one that does nothing."""
    module, _, path = guard.where.partition(":")
    target: Any = importlib.import_module(module)
    *parents, name = path.split(".")
    for parent in parents:
        target = getattr(target, parent)
    assert hasattr(target, name) or name in getattr(target, "__annotations__", {}), guard.where

    def nothing(*args: Any, **kwargs: Any) -> Any:
        return guard.gives

    replacement: Any | Callable[..., Any] = guard.gives if guard.plain else nothing
    monkeypatch.setattr(target, name, replacement)


@pytest.mark.gate
@pytest.mark.parametrize("key", BY_KEY)
def test_without_its_check_an_attack_goes_unfound(
    world: AttackWorld, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    attack = BY_KEY[key]
    for guard in attack.guards:
        switched_off(monkeypatch, guard)
    if attack.by == TRIGGERS:
        drop_triggers(connection)
    outcome = run_attack(world, attack)
    assert not outcome.found, outcome.message


def test_what_an_attack_does_is_undone(world: AttackWorld) -> None:
    """After attacks on bytes, rows and chains the world is what it was."""
    for key in ("rewritten-source", "reordered-receipts", "edited-capture", "forged-claim", "deleted-review"):
        assert run_attack(world, BY_KEY[key]).found
    assert clean(world) == []


def test_an_attack_that_breaks_down_is_no_success(world: AttackWorld) -> None:
    """A refusal for another reason than the one that is named counts as unfound, and says what was said."""
    attack = BY_KEY["self-review"]
    other = Attack(attack.key, attack.title, attack.attempt, attack.by, "another reason", attack.guards)
    outcome = run_attack(world, other)
    assert not outcome.found
    assert "expected somebody who wrote none" in outcome.message


def test_documentation_lists_what_is_tried() -> None:
    """docs/attacks.md is the table itself."""
    written = (settings.BASE_DIR / "docs" / "attacks.md").read_text("utf-8")
    assert written == listing()


@pytest.mark.slow
def test_command_works_on_a_home_of_its_own(capfd: pytest.CaptureFixture[str]) -> None:
    """A child process with a temporary home; this database is not looked at (no mark allows it)."""
    call_command("attack", "--json")
    result = json.loads(capfd.readouterr().out.strip().splitlines()[-1])
    assert result["ok"]
    assert (result["attacks"], result["unfound"], result["clean_world"]) == (len(ATTACKS), [], [])
    assert {item["key"] for item in result["results"]} == set(BY_KEY)


def test_command_refuses_a_home_that_is_not_its_own(db: None, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="expected the temporary home"):
        call_command("attack", "--inside", str(tmp_path))
