"""The document names every reason, kind and status that the code has, and no other."""

from __future__ import annotations

import ast
import re

from django.conf import settings

from evidence.models import ClaimVersion
from evidence.status import ORDER

DOCUMENT = (settings.BASE_DIR / "docs" / "claims.md").read_text(encoding="utf-8")


def codes() -> set[str]:
    """First arguments of every ``Reason(…)`` and ``_low(…)`` of the module; f-strings do not occur."""
    tree = ast.parse((settings.BASE_DIR / "evidence" / "status.py").read_text(encoding="utf-8"))
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="Reason" | "_low"), args=[ast.Constant(value=str() as code), *_]):
                found.add(code)
    return found


def column(title: str) -> set[str]:
    """Names in code type in the first column of the table that begins with this title."""
    table = DOCUMENT.partition(f"| {title} |")[2].partition("\n\n")[0]
    return {
        name
        for row in table.splitlines()
        for name in re.findall(r"`([a-z_]+)`", row.split("|")[1] if "|" in row else "")
    }


def test_every_reason_stands_in_the_table_and_no_other() -> None:
    assert len(codes()) > 15 and column("reason") == codes()


def test_every_kind_and_status_stands_there() -> None:
    assert column("kind") == set(ClaimVersion.KINDS)
    line = next(line for line in DOCUMENT.splitlines() if line.startswith("`withdrawn` <"))
    assert re.findall(r"`([a-z_]+)`", line)[: len(ORDER)] == list(ORDER)
