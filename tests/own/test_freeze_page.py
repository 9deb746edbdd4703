"""The freeze page's identities name the distribution and every file of code from outside."""

from __future__ import annotations

from typing import Any

from runs.presenters.catalogue.freezing import identities

CODE = {"distribution": "workbench-inventory", "version": "1.0.0", "files": {"world.py": "b" * 64}}


def body(**bindings: Any) -> dict[str, Any]:
    """A frozen body as far as its identities read it."""
    plan = {
        "policy": {"model": "m", "formatter": "chat"},
        "environment": {"id": "inventory"},
        "reward": {"id": "r", "version": "1"},
    }
    return {"plan": plan, "bindings": bindings, "failure_schedule": {}}


def test_distribution_and_files_are_shown_once() -> None:
    profile = {"code_sha256": "d" * 64, **CODE}
    found = identities(
        body(
            environment={"version": "1.0.0", "code_sha256": "a" * 64, "code": CODE},
            reward={"code_sha256": "c" * 64, "code": CODE},
            policy={"profile": profile},
        )
    )
    rows = {str(item.name): (item.sha256, item.text) for item in found}
    assert rows["environment"] == ("a" * 64, "inventory 1.0.0 (workbench-inventory 1.0.0)")
    assert rows["reward"] == ("c" * 64, "r 1 (workbench-inventory 1.0.0)")
    assert rows["model profile"] == ("d" * 64, "(workbench-inventory 1.0.0)")
    assert [item.name for item in found].count("world.py") == 1 and rows["world.py"][0] == "b" * 64


def test_bundled_code_has_no_such_rows() -> None:
    bundled = {"distribution": None, "version": None, "files": {"tasks.py": "b" * 64}}
    found = identities(
        body(environment={"version": "1", "code_sha256": "a" * 64, "code": bundled}, reward={"code": {}})
    )
    names = [str(item.name) for item in found]
    assert "model profile" not in names and "tasks.py" not in names
