"""Plan, files and turns of the small world with trials; every number follows from a seed, none is a result."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from typing import Any

from tests.pages.episodes import Episode, Step
from workbench.contracts.canonical import sha256_hex

UNITS = "stock/units.py"
ORDERS = "stock/orders.py"
TESTS = "tests/test_units.py"
FAIL_TO_PASS = ("units.per_box", "units.round_up")
PASS_TO_PASS = ("orders.total", "orders.empty")
INITIAL = {
    UNITS: 'BOX = 12\n\n\ndef per_box(count):\n    return count / BOX\n\n\ndef label(text="<b>"):\n    return text\n',
    ORDERS: "def total(lines):\n    found = 0\n    for line in lines:\n        found += line\n    return found\n",
    TESTS: "def test_label():\n    assert True\n",
}
ARMS = [("o", "vanilla"), ("b", "edit_broadcast"), ("m", "edit_localised"), ("e", "edit_terminal")]


def document(batches: int) -> dict[str, Any]:
    """The plan of the world: four arms, a pilot with replays and repeats."""
    return {
        "schema": "workbench.plan/1",
        "study": "edit-credit",
        "name": "tried",
        "scale": "small",
        "title": {"en": "Edit credit, four arms", "zh": "编辑信用，四个臂"},
        "question": {"en": "Does the difference of one edit help?", "zh": "一次编辑的差值有帮助吗？"},
        "policy": {"model": "embedded-code-repair"},
        "environment": {"id": "code_repair"},
        "reward": {"id": "code_repair", "version": "1"},
        "rollout": {"groups_per_batch": 2, "group_size": 4},
        "optimizer": {"learning_rate": 0.003},
        "budget": {"batches": batches, "max_steps": batches},
        "seeds": ["17"],
        "arms": [
            {
                "key": key,
                "title": {"en": f"Arm {key.upper()}", "zh": f"臂 {key.upper()}"},
                "role": "pair",
                "overrides": {"objective": {"credit": credit, "zero_variance": "train_if_credit"}},
            }
            for key, credit in ARMS
        ],
        "strict_pairs": [{"arms": ["b", "m"], "treatment": ["objective.credit"]}],
        "preflight": {"groups": 4},
        "trials": {"seed": "29", "replays": 1, "repeats": 1, "pilot": True, "every_arm": False},
        "evaluation": {"conditions": ["standard"], "splits": [{"split": "test", "tasks": 2}], "repeats": 2},
        "endpoints": [
            {
                "id": "m_minus_b",
                "definition": "code_repair.success/1",
                "metric": "success",
                "direction": "increase",
                "unit": "share",
                "margin": 0.1,
                "split": "test",
                "condition": "standard",
                "compare": {"kind": "pair", "arms": ["b", "m"]},
            }
        ],
        "claims": {
            "reach": {"en": "this task set, this policy", "zh": "此任务集、此策略"},
            "cannot_show": {"en": "general ability", "zh": "一般能力"},
        },
    }


def tasks() -> list[dict[str, Any]]:
    """Two training and two test tasks."""
    return [
        {
            "key": f"units-{split}-{n}",
            "split": split,
            "family": f"units-{split}-{n}",
            "prompt": "Boxes hold twelve. The number of boxes must be rounded up.",
            "initial_state": {"n": n, "split": split},
            "hidden": {"fail_to_pass": list(FAIL_TO_PASS), "pass_to_pass": list(PASS_TO_PASS)},
            "tools": ["read", "edit", "submit"],
        }
        for split in ("train", "test")
        for n in range(2)
    ]


@dataclass(frozen=True)
class Repair:
    """One scripted trajectory: turns with trees and the original's statuses. ``broken``: no verdict is known."""

    episode: Episode
    trees: list[dict[str, str]]
    contents: dict[str, bytes]
    utility: float | None


def _tree(files: dict[str, str], contents: dict[str, bytes]) -> dict[str, str]:
    for text in files.values():
        contents[sha256_hex(text.encode())] = text.encode()
    return {path: sha256_hex(text.encode()) for path, text in sorted(files.items())}


EDITS = (
    (UNITS, "return count / BOX", "return -(-count // BOX)"),
    (ORDERS, "found = 0", "found = 0  # of all lines"),
    (UNITS, "BOX = 12", "BOX = 12  # pieces"),
    (TESTS, "assert True", "assert 1 == 1"),
    ("stock/notes.py", "", 'NOTE = "<script>alert(1)</script>"\n'),
)
UTILITIES = (1.0, 1.0, 0.5, 0.0, 0.0, -0.5, -1.0)


def repair(rng: random.Random) -> Repair:
    """Two to five turns: readings, edits of one or two files, a submission or an unparseable end."""
    files, contents = dict(INITIAL), {}
    trees, steps = [_tree(files, contents)], []
    for _ in range(rng.choice([1, 2, 3, 4])):
        if rng.random() < 0.25:
            arguments: dict[str, Any] = {"path": UNITS}
            steps.append(Step("Look first.", f"read {UNITS}", "read", arguments, "ok", files[UNITS]))
        else:
            for path, old, new in rng.sample(EDITS, rng.choice([1, 1, 2])):
                files[path] = files.get(path, "").replace(old, new, 1) if old else new
            arguments = {"path": path, "old": old, "new": new}
            steps.append(Step("Round up.", json.dumps(["edit", arguments]), "edit", arguments, "ok", "done"))
        trees.append(_tree(files, contents))
    wrong = rng.random() < 0.15
    error = "action: got an unfinished edit, expected one" if wrong else None
    finish = None if wrong else {"answer": "submitted", "citations": []}
    steps.append(Step("Done.", "edit {" if wrong else "submit", None, {}, None, "", finish=finish, error=error))
    trees.append(trees[-1])
    utility = None if rng.random() < 0.06 else rng.choice(UTILITIES)
    reward = min(0.0, utility or 0.0) if wrong else (utility or 0.0)
    components = [
        ("fail_to_pass", 1.0, utility if utility is None or utility >= 0 else 1 + utility),
        ("regression", -1.0, None if utility is None else float(utility < 0)),
    ]
    terminal = "policy_error" if wrong else "finish"
    episode = Episode(steps, terminal, [], None, None, components, 1.0, reward, utility == 1, 0, None)
    return Repair(episode, trees, contents, utility)


def statuses(utility: float) -> dict[str, str]:
    """Statuses of the four tests that give a utility."""
    broken = utility < 0
    passed = round((utility + broken) * len(FAIL_TO_PASS))
    found = {name: "PASSED" if at < passed else "FAILED" for at, name in enumerate(FAIL_TO_PASS)}
    return found | {name: "FAILED" if broken and not at else "PASSED" for at, name in enumerate(PASS_TO_PASS)}
