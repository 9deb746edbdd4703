"""Commands and variables as the documents write them: the parser knows every verb and flag, the settings every name."""

from __future__ import annotations

import argparse
import re
from functools import cache
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

from tests.operations.test_commands import CHANGES

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
VARIABLE = re.compile(r"\b(?:WORKBENCH_[A-Z_]+[A-Z]|DATABASE_URL|REDIS_URL)\b")
OF_TESTS = {"WORKBENCH_FAULT_DIR", "WORKBENCH_PROCESS"}  # set by tests, and by the supervisor for its children


@cache
def parser_of(name: str) -> tuple[frozenset[str], frozenset[str]]:
    """(verbs, flags) of a command; flags of its verbs too."""
    parser = load_command_class(get_commands()[name], name).create_parser("manage.py", name)
    verbs: set[str] = set()
    flags: set[str] = set()
    waiting: list[argparse.ArgumentParser] = [parser]
    while waiting:
        for action in waiting.pop()._actions:
            flags.update(action.option_strings)
            if isinstance(action, argparse._SubParsersAction):
                verbs.update(action.choices)
                waiting.extend(action.choices.values())
    return frozenset(verbs), frozenset(flags)


def written(document: Path) -> list[tuple[str, str]]:
    """(command, what follows it on the line up to a remark) of each mention; brackets go, ``a X | b`` are two."""
    text = re.sub(r"[\[\]…]", "", document.read_text(encoding="utf-8"))
    lines = re.findall(r"manage\.py ([a-z][\w-]*[^`\n#>;)]*)", text)
    parts = [part.strip() for line in lines for part in line.split(" | ")]
    return [(name, rest) for name, _, rest in (part.partition(" ") for part in parts)]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_has_the_verbs_and_flags_that_are_written(document: Path) -> None:
    for name, rest in written(document):
        assert name in get_commands(), f"{document.name}: manage.py {name}"
        verbs, flags = parser_of(name)
        assert set(re.findall(r"(?<![\w-])--[a-z][\w-]*", rest)) <= flags, f"{document.name}: manage.py {name}{rest}"
        first = rest.split()[:1]
        if verbs and first:
            assert set(first[0].split("|")) <= verbs, f"{document.name}: manage.py {name}{rest}"


def test_a_wrong_flag_and_a_wrong_verb_would_be_seen() -> None:
    verbs, flags = parser_of("plan")
    assert {"check", "run", "recover"} <= verbs and "--template" in flags and "--scale" not in flags


def test_the_readme_lists_every_command_of_ours() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8").partition("## The command line")[2].partition("\n## ")[0]
    ours = {name for name, app in get_commands().items() if app in ("workbench", "worker", "runs", "evidence")}
    listed = set(re.findall(r"(?:manage\.py|\|) ([a-z][\w-]*)", readme))
    assert len(ours) > 15 and ours - listed == set()


def test_rights_name_every_command_that_leaves_a_line() -> None:
    text = (ROOT / "docs" / "rights.md").read_text(encoding="utf-8")
    sentence = " ".join(text.partition("of `manage.py` that change something (")[2].partition(")")[0].split())
    assert {name.split()[0] for name in re.findall(r"`([^`]+)`", sentence)} - {"recover"} == CHANGES


def test_every_variable_is_documented_and_no_other() -> None:
    """Settings and the client say which there are; the table of operations names each."""
    sources = [*(ROOT / "workbench").glob("settings*.py"), *(ROOT / "workbench" / "client").glob("*.py")]
    read = {name for file in sources for name in VARIABLE.findall(file.read_text(encoding="utf-8"))} - OF_TESTS
    table = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8").partition("| variable | meaning |")[2]
    assert set(VARIABLE.findall(table.partition("\n\n")[0])) == read
    for document in DOCUMENTS:
        assert set(VARIABLE.findall(document.read_text(encoding="utf-8"))) <= read, document.name
