"""A plan's text: where a field stands in it, and changing one field without touching the rest.

Comments, order and style that a person typed stay. A path is a tuple of keys and list positions.
"""

from __future__ import annotations

import io
import json
import re
import textwrap
from typing import Any

import yaml

from runs.actions.plans import parse_plan_text
from workbench.contracts.errors import PlanInvalid

Path = tuple[str | int, ...]
MISSING: Any = object()
_WIDTH = 110
_LIKE_A_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)[eE][-+]?[0-9]+")
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def path_of(dotted: str) -> Path:
    """``arms[0].gate.rule`` as ("arms", 0, "gate", "rule")."""
    return tuple(int(index) if index else name for name, index in _STEP.findall(dotted))


def dotted_of(path: Path) -> str:
    """The inverse of ``path_of``."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


class _Dumper(yaml.SafeDumper):
    """Block style; lists of scalars and small objects of scalars on one line."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _plain(value: Any) -> bool:
    return not isinstance(value, dict | list)


def _sequence(dumper: _Dumper, value: list[Any]) -> yaml.Node:
    return dumper.represent_sequence(
        "tag:yaml.org,2002:seq", value, flow_style=all(map(_plain, value)) and len(str(value)) < _WIDTH
    )


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    style = ">" if len(value) > _WIDTH and not isinstance(dumper, _Flow) else None
    if _LIKE_A_NUMBER.fullmatch(value):  # 1e-06 is a number to the plan's reader and text to the library's writer
        style = "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


class _Flow(yaml.SafeDumper):
    """Everything on one line."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(list, _sequence)
_Dumper.add_representer(str, _text)
_Flow.add_representer(str, _text)


def _dump(value: Any, *, flow: bool | None = False) -> str:
    out = io.StringIO()
    options: dict[str, Any] = {"sort_keys": False, "allow_unicode": True}
    if flow:
        yaml.dump(value, out, _Flow, default_flow_style=True, width=10**9, **options)
    else:
        yaml.dump(value, out, _Dumper, default_flow_style=False, width=_WIDTH, **options)
    text = out.getvalue()
    return text.removesuffix("...\n").rstrip("\n")


def dump_plan(document: dict[str, Any]) -> str:
    """A document as readable YAML, in its own order."""
    return _dump(document) + "\n"


def inline(value: Any, *, as_json: bool = False) -> str:
    """A value on one line, as it may stand after ``key: ``. JSON is YAML, and quotes what needs quoting."""
    if as_json:
        return json.dumps(value, ensure_ascii=False)
    text = _dump(value, flow=True)
    return json.dumps(value, ensure_ascii=False) if "\n" in text else text


def tree(text: str) -> yaml.Node | None:
    """The composed text with the place of every node; None where it cannot be read."""
    try:
        parse_plan_text(text)
        return yaml.compose(text, yaml.SafeLoader)
    except (PlanInvalid, yaml.YAMLError, RecursionError, ValueError):
        return None


def _pair(node: yaml.Node, step: str | int) -> tuple[yaml.Node | None, yaml.Node] | None:
    """(key node, value node) of a member; the key node of a list item is None."""
    if isinstance(node, yaml.MappingNode) and isinstance(step, str):
        return next((pair for pair in node.value if pair[0].value == step), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return None, node.value[step]
    return None


def lines_of(root: yaml.Node | None, path: Path) -> int:
    """Line (from 1) of the deepest part of ``path`` that stands in the text; 1 where nothing of it does."""
    line, node = 1, root
    for step in path:
        found = _pair(node, step) if node is not None else None
        if found is None:
            break
        key, node = found
        line = (key or node).start_mark.line + 1
    return line


def _end(node: yaml.Node, text: str) -> int:
    """Offset behind the last character that belongs to a node: a block's mark lies on the next token."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last, text)
    start, end = node.start_mark.index, node.end_mark.index
    return start + len(text[start:end].rstrip())


def _line_end(text: str, offset: int) -> int:
    found = text.find("\n", offset)
    return len(text) if found < 0 else found


def _nested(steps: Path, value: Any) -> Any:
    for step in reversed(steps):
        value = {step: value}
    return value


class Unchangeable(ValueError):
    """The text is written in a way that one field alone cannot be changed in."""


def _put(text: str, path: Path, value: Any) -> str:
    """The text with ``value`` under ``path``; missing parents are made."""
    node = tree(text)
    if node is None:
        raise Unchangeable("the text cannot be read")
    as_json = text.lstrip().startswith("{")
    for depth, step in enumerate(path):
        found = _pair(node, step)
        if found is None:
            return _add(text, node, step, _nested(path[depth + 1 :], value), as_json)
        key, node = found
        empty = isinstance(node, yaml.ScalarNode) and depth + 1 < len(path)
        if empty or depth + 1 == len(path):
            new = _nested(path[depth + 1 :], value)
            start = node.start_mark.index
            if key is not None and (isinstance(node, yaml.CollectionNode) or start == node.end_mark.index):
                start = text.index(":", key.end_mark.index) + 1
                return f"{text[:start]} {inline(new, as_json=as_json)}{text[max(start, _end(node, text)) :]}"
            return text[:start] + inline(new, as_json=as_json) + text[_end(node, text) :]
    raise Unchangeable("an empty path")


def _add(text: str, parent: yaml.Node, step: str | int, value: Any, as_json: bool) -> str:
    if not isinstance(parent, yaml.CollectionNode) or isinstance(step, str) != isinstance(parent, yaml.MappingNode):
        raise Unchangeable("a member of something that has none")
    if parent.flow_style or not parent.value:
        close = _end(parent, text) - 1
        name = f"{inline(step, as_json=as_json)}: " if isinstance(step, str) else ""
        head = text[:close].rstrip()
        comma = ", " if parent.value and not head.endswith(",") else ""
        return head + comma + name + inline(value, as_json=as_json) + text[close:]
    indent = " " * parent.start_mark.column
    body = textwrap.dedent(_dump({step: value} if isinstance(step, str) else [value]))
    at = _line_end(text, _end(parent, text))
    block = "\n".join(indent + line if line else line for line in body.split("\n"))
    return f"{text[:at]}\n{block}{text[at:]}"


def _drop(text: str, path: Path) -> str:
    """The text without the member at ``path``."""
    node, parents = tree(text), []
    for step in path:
        found = _pair(node, step) if node is not None else None
        if found is None:
            raise Unchangeable("no such member")
        parents.append(node)
        node = found[1]
    parent, step = parents[-1], path[-1]
    assert isinstance(parent, yaml.CollectionNode) and node is not None
    key = _pair(parent, step)[0]  # type: ignore[index]
    members = [pair[0] if isinstance(pair, tuple) else pair for pair in parent.value]
    position = next(i for i, member in enumerate(members) if member is (key or node))
    start, end = members[position].start_mark.index, _end(node, text)
    if parent.flow_style:
        if position + 1 < len(members):
            return text[:start] + text[members[position + 1].start_mark.index :]
        previous = text[:start].rstrip()
        return previous.removesuffix(",") + text[end:]
    if len(members) == 1:
        raise Unchangeable("the last member of a block")
    if key is None:
        start = text.rindex("-", 0, start)
    begin = text.rfind("\n", 0, start) + 1
    if text[begin:start].strip():  # a mapping that begins behind the dash of its list item
        following = members[position + 1].start_mark.index
        return text[:start] + text[following:]
    return text[:begin] + text[_line_end(text, end) + 1 :]


def changes(before: Any, after: Any, path: Path = ()) -> list[tuple[Path, Any]]:
    """What turns ``before`` into ``after``: (path, value), ``MISSING`` to drop a member; list items from the end."""
    if isinstance(before, dict) and isinstance(after, dict):
        found: list[tuple[Path, Any]] = []
        for key in [*before, *(key for key in after if key not in before)]:
            if key not in after:
                found.append(((*path, key), MISSING))
            elif key not in before:
                found.append(((*path, key), after[key]))
            else:
                found += changes(before[key], after[key], (*path, key))
        return found
    if _objects(before) and _objects(after) and before and after:
        both = min(len(before), len(after))
        found = [change for i in range(both) for change in changes(before[i], after[i], (*path, i))]
        found += [((*path, i), after[i]) for i in range(both, len(after))]
        return found + [((*path, i), MISSING) for i in reversed(range(both, len(before)))]
    return [] if _same(before, after) else [(path, after)]


def _objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and json.dumps(a, sort_keys=True, default=str) == json.dumps(
        b, sort_keys=True, default=str
    )


def remove_item(text: str, path: Path) -> str:
    """The text without one list item, everything else as it was; written anew where that cannot be done."""
    document = parse_plan_text(text)
    parent: Any = document
    for step in path[:-1]:
        parent = parent[step]
    del parent[path[-1]]
    try:
        candidate = _drop(text, path)
        if _same(parse_plan_text(candidate), document):
            return candidate
    except (Unchangeable, PlanInvalid, ValueError):
        pass
    return rewrite(text, document)[0]


def rewrite(text: str, document: dict[str, Any]) -> tuple[str, bool]:
    """(text that says ``document``, whether everything else in it stayed as it was).

    Each changed field is changed in its place. Where the text is written so that this cannot be
    done, the document is written anew, and comments are gone: the flag says so.
    """
    current = parse_plan_text(text) if text.strip() else {}
    new = text
    try:
        for path, value in changes(current, document):
            new = _drop(new, path) if value is MISSING else _put(new, path, value)
        if new.strip() and _same(parse_plan_text(new), document):
            return new, True
    except (Unchangeable, PlanInvalid, ValueError):
        pass
    return dump_plan(document), not text.strip()
