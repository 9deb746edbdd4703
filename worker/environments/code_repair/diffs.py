"""Applies a unified diff to a tree of texts, strictly: every line of context must be there."""

from __future__ import annotations

import re
from collections.abc import Mapping

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
NOWHERE = "/dev/null"
NO_NEWLINE = "\\ No newline at end of file"


class DiffRefused(ValueError):
    """A diff that does not fit the tree, or is none."""


def _path(line: str) -> str:
    """The path of a ``---`` or ``+++`` line, without its prefix and time."""
    name = line[4:].split("\t")[0].strip()
    return name if name == NOWHERE else re.sub(r"^[ab]/", "", name)


def apply_diff(files: Mapping[str, str], diff: str) -> dict[str, str | None]:
    """What the diff changes: {path: new text, or None where the file goes}. Raises ``DiffRefused``."""
    lines = diff.splitlines()
    found: dict[str, str | None] = {}
    at = 0
    while at < len(lines):
        if not lines[at].startswith("--- "):
            at += 1
            continue
        if at + 1 >= len(lines) or not lines[at + 1].startswith("+++ "):
            raise DiffRefused(f"line {at + 1}: got --- without +++, expected a unified diff")
        old, new = _path(lines[at]), _path(lines[at + 1])
        path = old if new == NOWHERE else new
        if old not in (NOWHERE, path) or path in found:
            raise DiffRefused(f"{path}: got a renaming or a second part, expected each file once under its name")
        if (old == NOWHERE) == (path in files):
            raise DiffRefused(f"{path}: got {'a new' if old == NOWHERE else 'a changed'} file, expected the opposite")
        at, text = _hunks(lines, at + 2, "" if old == NOWHERE else files[old], path)
        if new == NOWHERE and text:
            raise DiffRefused(f"{path}: got a removal that leaves text, expected all of it")
        found[path] = None if new == NOWHERE else text
    if not found:
        raise DiffRefused("diff: got no file, expected at least one")
    return found


def _hunks(lines: list[str], at: int, text: str, path: str) -> tuple[int, str]:
    """(line after the hunks, the new text)."""
    source, made, done = text.splitlines(), list[str](), 0
    ends = text.endswith("\n") or not text
    while at < len(lines) and (header := _HUNK.match(lines[at])) is not None:
        start = int(header[1]) - (0 if header[2] == "0" else 1)
        left = [int(header[2] or 1), int(header[4] or 1)]
        if start < done:
            raise DiffRefused(f"{path}: got hunks out of order")
        made += source[done:start]
        done, at, last = start, at + 1, ""
        while at < len(lines) and (any(left) or lines[at] == NO_NEWLINE):
            line = lines[at]
            sign, rest = line[:1] or " ", line[1:]
            if line == NO_NEWLINE:
                ends = ends if last == "-" else False
            elif sign == "+":
                made.append(rest)
                left[1] -= 1
                ends = True
            elif sign in " -":
                if done >= len(source) or source[done] != rest:
                    got = source[done] if done < len(source) else "the end"
                    raise DiffRefused(f"{path} line {done + 1}: got {got!r}, expected {rest!r}")
                done += 1
                left[0] -= 1
                if sign == " ":
                    made.append(rest)
                    left[1] -= 1
            else:
                raise DiffRefused(f"{path}: got {line!r}, expected a line of a hunk")
            last, at = sign, at + 1
        if any(left):
            raise DiffRefused(f"{path}: got a hunk that ends early")
    made += source[done:]
    return at, "\n".join(made) + ("\n" if made and ends else "")
