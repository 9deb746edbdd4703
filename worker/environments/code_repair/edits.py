"""Edits of a tree of text files: one line, a whole file, or several of both in one call. All or nothing.

A tree is {path: text}. What cannot be done is ``EditRefused``: the policy's mistake, which it reads as an Observation.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from worker.sandbox.workspace import TreeRefused, checked_path

Files = Mapping[str, str]
MOST_EDITS, MOST_CHARACTERS, MOST_FILES, LONGEST_NAME = 16, 100_000, 500, 100


class EditRefused(ValueError):
    """An edit that cannot be done; nothing of its call was."""


def single_edits(arguments: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The edits of a call, in order: the list under ``edits``, or the one that the call itself is."""
    if "edits" in arguments:
        beside = sorted(set(arguments) - {"edits"})
        if beside:
            raise EditRefused(f"edits beside {' '.join(beside)}")
        return list(arguments["edits"])
    missing = [name for name in ("path", "text") if name not in arguments]
    if missing:
        raise EditRefused(f"no {' '.join(missing)}")
    return [arguments]


def edited(files: Files, arguments: Mapping[str, Any]) -> dict[str, str]:
    """The tree after a call of ``edit``, sorted by path; each edit acts on the result of the one before it.

    With ``line`` (a number from 1, or the text of the one line that is equal but for space around it) that line is
    replaced; without, the whole file is written. Raises ``EditRefused``.
    """
    tree = dict(files)
    for item in single_edits(arguments):
        path, text = item["path"], item["text"]
        _check(tree, path, text)
        tree[path] = _replaced(tree, path, item["line"], text) if "line" in item else text
        if len(tree[path]) > MOST_CHARACTERS:
            raise EditRefused(f"{path} would be over {MOST_CHARACTERS} characters")
    return dict(sorted(tree.items()))


def lines_of(text: str) -> list[str]:
    """Lines without their ends. Only a line feed ends one: others would be written back as another character."""
    return text.removesuffix("\n").split("\n") if text else []


def changed_paths(before: Files, after: Files) -> list[str]:
    """Paths whose text differs, sorted."""
    return sorted(path for path in {*before, *after} if before.get(path) != after.get(path))


def _check(tree: Files, path: str, text: str) -> None:
    """What could not be laid down as a file is refused here, so that no tree breaks a trial."""
    try:
        checked_path(path)
        path.encode()
        text.encode()
    except (TreeRefused, UnicodeEncodeError) as error:
        raise EditRefused("no path inside the tree, or text that UTF-8 cannot carry") from error
    parts = PurePosixPath(path).parts
    if any(len(part.encode()) > LONGEST_NAME for part in parts):
        raise EditRefused(f"a name over {LONGEST_NAME} bytes")
    above = {"/".join(parts[:count]) for count in range(1, len(parts))}
    if above & set(tree) or any(other.startswith(f"{path}/") for other in tree):
        raise EditRefused(f"{path}: a file cannot be a folder")
    if path not in tree and len(tree) >= MOST_FILES:
        raise EditRefused(f"over {MOST_FILES} files")


def _replaced(tree: Files, path: str, line: int | str, text: str) -> str:
    if path not in tree:
        raise EditRefused(f"no file {path}")
    lines = lines_of(tree[path])
    at = _place(lines, path, line)
    lines[at : at + 1] = _indented(lines[at], text)
    return "".join(f"{item}\n" for item in lines)


def _place(lines: list[str], path: str, line: int | str) -> int:
    if isinstance(line, int):
        if not 1 <= line <= len(lines):
            raise EditRefused(f"{path} has {len(lines)} lines")
        return line - 1
    found = [number for number, item in enumerate(lines) if item.strip() == line.strip()]
    if len(found) != 1:
        raise EditRefused(f"{path} has {len(found)} such lines")
    return found[0]


def _indented(old: str, text: str) -> list[str]:
    """The lines of ``text``; where it begins without space they take the indentation of the line they replace.

    Empty text removes the line.
    """
    new = lines_of(text)
    if not text or text[0].isspace():
        return new
    space = old[: len(old) - len(old.lstrip())]
    return [f"{space}{item}" if item else item for item in new]
