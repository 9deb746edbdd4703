"""The plan form, made from the plan's schema: what a document shows in it, and what was typed into it.

Fields carry no checks of their own: whatever is typed goes into the document, and the document is
judged by the one validator. A field left as it was shown changes nothing.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml
from django.utils.translation import gettext as _

from runs.actions.plans import parse_plan_text
from runs.presenters.catalogue.words import FIELDS, ITEMS, SECTIONS
from runs.presenters.catalogue.yamltext import MISSING, inline
from workbench.contracts.errors import PlanInvalid
from workbench.contracts.plan_schema import PLAN, REQUIRED, Field, ListOf, Optional

MAX_ITEMS = 24  # list items that the form shows; a longer list is changed in the text
LONG = ("question.", "claims.")
_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")
_WHOLE = re.compile(r"[-+]?\d{1,18}")


@dataclass
class FormField:
    """One input. ``value``: as it is shown; ``default``: shown where nothing is set; ``kind``: which input."""

    path: str
    kind: str
    label: Any
    help: Any
    unit: Any
    value: str
    default: str
    required: bool
    choices: tuple[str, ...] = ()
    expects: str = ""
    suggestions: tuple[str, ...] = ()
    problems: list[Any] = field(default_factory=list)

    @property
    def anchor(self) -> str:
        """Id of the input in the page."""
        return anchor(self.path)


@dataclass
class FormItem:
    """One item of a list of objects, or an optional object: its fields and its switches."""

    path: str
    title: str
    parts: list[Any] = field(default_factory=list)
    kind: str = "item"


@dataclass
class FormList:
    """A list of objects. ``long``: too many for the form; ``broken``: the document has no list here."""

    path: str
    noun: Any
    items: list[FormItem]
    count: int
    long: bool = False
    problems: list[Any] = field(default_factory=list)
    is_list: bool = True
    kind: str = "list"

    @property
    def anchor(self) -> str:
        """Id of the list in the page."""
        return anchor(self.path)


@dataclass
class FormSection:
    """One section of the plan; ``parts`` are fields and lists in the schema's order."""

    key: str
    title: Any
    note: Any
    parts: list[Any]
    problems: list[Any] = field(default_factory=list)

    @property
    def anchor(self) -> str:
        """Id of the section in the page."""
        return "section-" + (self.key or "plan")

    @property
    def wrong(self) -> int:
        """Problems in it, those of its fields included."""
        return sum(len(part.problems) for part in walk([self])) + len(self.problems)


def anchor(path: str) -> str:
    """A path as an id: ``arms[0].key`` as ``field-arms-0-key``."""
    return "field-" + re.sub(r"[^A-Za-z0-9_]+", "-", path).strip("-")


def _key(path: str) -> str:
    return re.sub(r"\[\d+\]", "[]", path)


def shown(spec: Any, value: Any) -> str:
    """A value as its input shows it; nothing for a value that is absent or null."""
    if value is MISSING or value is None:
        return ""
    if isinstance(spec, ListOf) and isinstance(value, list) and value:
        texts = [item if isinstance(item, str) else inline(item) for item in value]
        seeds = isinstance(spec.item, Field) and spec.item.kind in ("str", "seed")
        simple = all(isinstance(item, str) == seeds and not isinstance(item, dict | list) for item in value)
        if simple and not any(set(text) & set(",[]\n") or text != text.strip() or not text for text in texts):
            return ", ".join(texts)
    if isinstance(value, str) and not (isinstance(spec, Field) and spec.kind == "dict"):
        return value
    if isinstance(value, dict) and value and isinstance(spec, Field) and spec.kind == "dict":
        return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=72, default_flow_style=None).rstrip()
    return inline(value)


def typed(spec: Any, raw: str) -> Any:
    """What a text in an input means. A text that does not fit stays text, and the validator says so."""
    if isinstance(spec, ListOf):
        return _typed_list(spec, raw)
    if spec.kind in ("int", "float"):
        text = raw.strip()
        if _WHOLE.fullmatch(text):
            return int(text)
        return float(text) if _NUMBER.fullmatch(text) and len(text) < 40 else raw
    if spec.kind == "bool":
        return {"true": True, "false": False}.get(raw.strip().lower(), raw)
    if spec.kind == "dict":
        try:
            return parse_plan_text(raw)
        except PlanInvalid:
            return raw
    return raw.strip() if spec.kind == "seed" or spec.choices else raw


def _typed_list(spec: ListOf, raw: str) -> Any:
    text = raw.strip()
    if text.startswith("["):
        try:
            return parse_plan_text("v: " + text)["v"]
        except PlanInvalid:
            return raw
    parts = [part.strip() for part in re.split(r"[,\n]", text)]
    return [typed(spec.item, part) for part in parts if part]


def _expects(spec: Any) -> str:
    if isinstance(spec, ListOf):
        inner = _expects(spec.item) if isinstance(spec.item, Field) else ""
        return _("a list, separated by commas") + (f": {inner}" if inner else "")
    if spec.choices:
        return _("one of %(choices)s") % {"choices": ", ".join(spec.choices)}
    if spec.kind in ("int", "float"):
        kind = _("a whole number") if spec.kind == "int" else _("a number")
        if spec.minimum is None or spec.maximum is None:
            return (
                kind
                if spec.minimum is None
                else _("%(kind)s from %(low)s") % {"kind": kind, "low": f"{spec.minimum:g}"}
            )
        if spec.minimum == spec.maximum:
            return f"{spec.minimum:g}"
        return _("%(kind)s, %(low)s to %(high)s") % {
            "kind": kind, "low": f"{spec.minimum:.12g}", "high": f"{spec.maximum:.12g}"
        }  # fmt: skip
    return {"bool": _("true or false"), "seed": _("a decimal number"), "dict": "YAML"}.get(spec.kind, "")


def _one_field(path: str, spec: Any, value: Any) -> FormField:
    label, help_text, unit = FIELDS.get(_key(path), (path.rsplit(".", 1)[-1], "", ""))
    is_list = isinstance(spec, ListOf)
    default = "" if spec.default is REQUIRED else shown(spec, spec.default) or (_("none"))
    choices: tuple[str, ...] = () if is_list else tuple(spec.choices or ())
    suggestions = tuple(spec.item.choices or ()) if is_list and isinstance(spec.item, Field) else ()
    kind = "text"
    if not is_list and spec.kind == "bool":
        kind, choices = "select", ("true", "false")
    elif choices:
        kind = "select"
    elif not is_list and spec.kind == "dict":
        kind = "yaml"
    elif not is_list and path.startswith(LONG):
        kind = "long"
    text = shown(spec, value)
    if kind == "select" and text and text not in choices:
        choices = (*choices, text)  # what was typed stays, wrong or not
    return FormField(
        path,
        kind,
        label,
        help_text,
        unit,
        text,
        default,
        spec.default is REQUIRED,
        choices,
        _expects(spec),
        suggestions,
    )


def _parts(spec: Mapping[str, Any], value: Any, prefix: str) -> Iterator[Any]:
    members = value if isinstance(value, dict) else {}
    for name, item in spec.items():
        path = f"{prefix}.{name}" if prefix else name
        inner = members.get(name, MISSING)
        if isinstance(item, Optional):
            yield _optional(path, item, inner)
        elif isinstance(item, dict):
            yield from _parts(item, inner, path)
        elif isinstance(item, ListOf) and isinstance(item.item, dict):
            yield _list(path, item, inner)
        else:
            yield _one_field(path, item, inner)


def _optional(path: str, spec: Optional, value: Any) -> FormItem:
    label, help_text, _unit = FIELDS.get(_key(path), (path, "", ""))
    present = value is not MISSING and value is not None
    switch = FormField(
        path,
        "switch",
        label,
        help_text,
        "",
        "yes" if present else "no",
        "no",
        False,
        ("no", "yes"),
        _("an object or null"),
    )
    return FormItem(path, "", [switch, *(_parts(spec.item, value, path) if present else [])])


def _list(path: str, spec: ListOf, value: Any) -> FormList:
    noun = ITEMS.get(path, path)
    rows = value if isinstance(value, list) else []
    if len(rows) > MAX_ITEMS:
        return FormList(path, noun, [], len(rows), long=True)
    items = []
    for i, row in enumerate(rows):
        where = f"{path}[{i}]"
        name = str((row.get("key") or row.get("id") or "") if isinstance(row, dict) else "")[:60]
        items.append(FormItem(where, f"{i + 1}. {name}" if name else f"{i + 1}.", list(_parts(spec.item, row, where))))
    return FormList(path, noun, items, len(rows), is_list=value is MISSING or value is None or isinstance(value, list))


def build_form(document: dict[str, Any]) -> list[FormSection]:
    """The form of a document as it is written, defaults beside what is not set."""
    top = {name: spec for name, spec in PLAN.items() if isinstance(spec, Field) and spec.kind == "str"}
    top |= {name: PLAN[name] for name in ("title", "question")}
    sections = [FormSection("", *SECTIONS[""], list(_parts(top, document, "")))]
    for name, spec in PLAN.items():
        if name not in top:
            title, note = SECTIONS.get(name, (name, ""))
            sections.append(FormSection(name, title, note, list(_parts({name: spec}, document, ""))))
    return sections


def walk(parts: list[Any]) -> Iterator[Any]:
    """Every field and list below, at any depth."""
    for part in parts:
        if isinstance(part, FormField):
            yield part
        elif isinstance(part, FormList):
            yield part
            yield from walk(list(part.items))
        else:
            yield from walk(part.parts)


def read_form(posted: Mapping[str, str], base: dict[str, Any]) -> dict[str, Any]:
    """The document that the form says, where ``base`` is what the form was made from.

    An input that still shows what ``base`` gives it keeps that value; one emptied drops its field.
    """
    found = _read(PLAN, posted, base, "")
    return found if isinstance(found, dict) else {}


def _read(spec: Mapping[str, Any], posted: Mapping[str, str], base: Any, prefix: str) -> Any:
    before = base if isinstance(base, dict) else {}
    result = copy.deepcopy(before)
    for name, item in spec.items():
        path = f"{prefix}.{name}" if prefix else name
        value = _read_one(item, posted, before.get(name, MISSING), path)
        if value is MISSING:
            result.pop(name, None)
        else:
            result[name] = value
    return base if not result and not isinstance(base, dict) else result


def _read_one(item: Any, posted: Mapping[str, str], base: Any, path: str) -> Any:
    if isinstance(item, Optional):
        choice = posted.get(f"f:{path}")
        present = base is not MISSING and base is not None
        if choice is None or (choice == "yes") == present:
            return _read(item.item, posted, base, path) if present else base
        return _read(item.item, posted, {}, path) if choice == "yes" else MISSING
    if isinstance(item, dict):
        return _read(item, posted, base, path)
    if isinstance(item, ListOf) and isinstance(item.item, dict):
        return _read_list(item, posted, base, path)
    raw = posted.get(f"f:{path}")
    if raw is None:
        return base
    raw = raw.replace("\r\n", "\n")
    if raw == shown(item, base).replace("\r\n", "\n"):
        return base
    return MISSING if not raw.strip() else typed(item, raw)


def _read_list(item: ListOf, posted: Mapping[str, str], base: Any, path: str) -> Any:
    counted = posted.get(f"n:{path}", "")
    if not re.fullmatch(r"\d{1,3}", counted) or int(counted) > MAX_ITEMS:
        return base
    rows = base if isinstance(base, list) else []
    if not rows and not int(counted):
        return base
    found = []
    for i in range(int(counted)):
        row = _read(item.item, posted, rows[i] if i < len(rows) else {}, f"{path}[{i}]")
        found.append({} if row is MISSING else row)
    return found


def merge(text: dict[str, Any], base: dict[str, Any], form: dict[str, Any]) -> dict[str, Any]:
    """``text`` with what ``form`` changed of ``base``: both sides may have been edited since they were equal."""
    return _merged(text, base, form)


def _merged(text: Any, base: Any, form: Any) -> Any:
    if form == base and type(form) is type(base):
        return text
    if isinstance(form, dict) and isinstance(text, dict):
        before = base if isinstance(base, dict) else {}
        result = {}
        for key in [*text, *(key for key in form if key not in text)]:
            value = _merged(text.get(key, MISSING), before.get(key, MISSING), form.get(key, MISSING))
            if value is not MISSING:
                result[key] = value
        return result
    if _rows(form) and _rows(text) and _rows(base) and len(form) == len(base) == len(text):
        return [_merged(*three) for three in zip(text, base, form, strict=True)]
    return form


def _rows(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)
