"""The documents say what the code does: links, commands, variables, plan fields."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.core.management import get_commands

from workbench.contracts.plan_schema import PLAN, Field, ListOf, Optional

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])


def schema_paths(spec: object, prefix: str = "") -> list[str]:
    """Every leaf of the plan schema, lists marked with ``[]``."""
    if isinstance(spec, Optional):
        spec = spec.item
    if isinstance(spec, dict):
        return [path for name, item in spec.items() for path in schema_paths(item, f"{prefix}.{name}".lstrip("."))]
    if isinstance(spec, ListOf):
        return [f"{prefix}[]"] if isinstance(spec.item, Field) else schema_paths(spec.item, f"{prefix}[]")
    return [prefix]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_and_named_files_exist(document: Path) -> None:
    """Relative links resolve; a path in code marks that has a folder of ours in front names a file."""
    text = document.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if "://" not in target:
            assert (document.parent / target).exists(), f"{document.name}: link to {target}"
    for path in re.findall(r"`((?:workbench|runs|evidence|worker|tests|docs)/[\w./-]+)`", text):
        assert (ROOT / path).exists(), f"{document.name}: names {path}"


def test_plan_document_lists_exactly_the_fields_of_the_schema() -> None:
    """docs/plan.md names every field of the schema and no other."""
    text = (ROOT / "docs" / "plan.md").read_text(encoding="utf-8").split("## Fields")[1]
    listed = set(re.findall(r"^\| `([^`]+)` \|", text, flags=re.MULTILINE))
    expected = set(schema_paths(PLAN))
    assert expected - listed == set()
    assert all(any(path.startswith(name) for path in expected) for name in listed - expected)


def test_readme_names_only_commands_and_targets_that_exist() -> None:
    """Every ``manage.py X`` and ``make X`` of the README can be called."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = set(re.findall(r"manage\.py ([\w-]+)", text))
    assert commands and commands <= set(get_commands())
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([\w-]+):", makefile, flags=re.MULTILINE))
    named = set(re.findall(r"(?:`|^)make ([a-z][\w-]*)", text, flags=re.MULTILINE))
    assert named and named <= targets


def test_readme_names_every_variable_of_the_settings() -> None:
    """A variable that the settings document stands in the README or in the settings' own list, spelled alike."""
    settings = (ROOT / "workbench" / "settings.py").read_text(encoding="utf-8")
    for name in re.findall(r"`((?:WORKBENCH_\w+)|DATABASE_URL|REDIS_URL)`", (ROOT / "README.md").read_text("utf-8")):
        assert name in settings, f"README names {name}"


def test_architecture_names_every_room() -> None:
    """Each package of the product has a row, or its parent's row names it; templates and migrations are no rooms."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:workbench|runs|evidence|worker)/\w+)`", text))
    rooms = {
        f"{top}/{folder.name}"
        for top in ("workbench", "runs", "evidence", "worker")
        for folder in (ROOT / top).iterdir()
        if (folder / "__init__.py").exists() and folder.name not in ("migrations", "management", "templatetags")
    }
    assert len(rooms) > 25 and rooms - named == set() and all((ROOT / name).exists() for name in named - rooms)
