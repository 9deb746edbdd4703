"""``docs/import.md`` against the code."""

from __future__ import annotations

import re
from pathlib import Path

from workbench.importers import FORMATS, LIMITS
from workbench.importers.mapping import as_markdown

TEXT = (Path(__file__).parents[2] / "docs" / "import.md").read_text()


def test_every_format_with_its_grades() -> None:
    """The last cell of a format's row names the grades that can occur, in their order."""
    rows = {match[1]: match[2] for match in re.finditer(r"^\| `([a-z-]+)` \|.*\| ([^|]*) \|$", TEXT, re.M)}
    documented = {name: "".join(re.findall(r"\b[ABC]\b", rows[name])) for name in FORMATS}
    assert documented == {name: item.grades for name, item in FORMATS.items()}


def test_the_mapping_tables_are_those_of_the_code() -> None:
    assert TEXT.endswith(as_markdown())


def test_the_bounds_are_those_of_the_code() -> None:
    mebi = 1 << 20
    for said in (
        f"{LIMITS.line // mebi} MiB, {LIMITS.values:,} values, {LIMITS.nesting} levels",
        f"{LIMITS.record // mebi} MiB",
        f"{LIMITS.members:,} members, {LIMITS.member // mebi} MiB each, {LIMITS.archive >> 30} GiB in all, "
        f"{LIMITS.ratio} times its stored size (above {LIMITS.ratio_floor // mebi} MiB)",
        f"{LIMITS.column_chunk // mebi} MiB, {LIMITS.column_values:,} values",
        f"{LIMITS.text // mebi} MiB",
        f"{LIMITS.files:,}",
    ):
        assert said in TEXT, said
