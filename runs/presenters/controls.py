"""Environment controls for pages: overlapping counts with denominators, admission of tasks, slots by task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.utils.translation import gettext_lazy as _

from runs.models import ControlSet, ControlSlot
from workbench.contracts.controls import CATEGORIES, KINDS, REQUIRED

CATEGORY_WORDS = {
    "raw_pass": (_("raw pass"), _("the raw verdict is the expected one; a test that nobody saw counts as failed")),
    "strict_pass": (_("strict pass"), _("every test of the lists was observed, and the verdict is the expected one")),
    "report_binary": (_("report-binary"), _("the report gives a score, expected or not: no count of passed controls")),
    "unresolved": (_("unresolved"), _("no test was observed: nothing is known")),
    "partial_zero": (_("partial zero"), _("the score is a fail, but some tests have no observation")),
    "expectation_mismatch": (_("expectation mismatch"), _("the raw verdict is not the expected one")),
}  # fmt: skip
KIND_WORDS = {
    "gold": (_("gold"), _("the reference repair: must pass")),
    "empty": (_("empty"), _("every file without content: must fail")),
    "no_op": (_("no-op"), _("nothing was done: must fail")),
    "step_removed": (_("step removed"), _("the reference without one of its steps: must fail")),
    "surface_only": (_("surface only"), _("looks repaired, repairs nothing: must fail")),
    "other_form": (_("other form"), _("the reference written another way: must pass")),
}
VERDICT_WORDS = {
    "admitted": _("admitted"),
    "refused": _("refused"),
    "unknown": _("unknown"),
}
FILTERS = ("split", "kind", "category", "admission")


@dataclass(frozen=True)
class Overview:
    """One record in a line. ``counts``: (category, count, of); ``admitted`` + ``refused`` + ``unknown`` = tasks."""

    own: ControlSet
    slots: int
    tasks: int
    counts: list[tuple[str, int, int]]
    admitted: int
    refused: int
    unknown: int
    levels: list[dict[str, Any]]

    @property
    def count_of(self) -> dict[str, int]:
        """Count by category."""
        return {name: count for name, count, _of in self.counts}


def _slots(own: ControlSet) -> list[tuple[int, str, list[str], bool | None]]:
    """What every part of a page counts; read once for a record."""
    if "read_slots" not in own.__dict__:
        rows = own.slots.order_by("position").values_list("task_id", "kind", "categories", "as_expected")
        own.__dict__["read_slots"] = list(rows)
    found: list[tuple[int, str, list[str], bool | None]] = own.__dict__["read_slots"]
    return found


def _admission(found: Mapping[str, bool | None]) -> str:
    """As ``contracts.controls.admission``, from rows."""
    if False in found.values():
        return "refused"
    return "unknown" if None in found.values() or any(kind not in found for kind in REQUIRED) else "admitted"


def admissions(own: ControlSet) -> dict[int, str]:
    """Admission by key of the task."""
    tasks: dict[int, dict[str, bool | None]] = {}
    for task, kind, _categories, as_expected in _slots(own):
        tasks.setdefault(task, {})[kind] = as_expected
    return {task: _admission(found) for task, found in tasks.items()}


def overview(own: ControlSet) -> Overview:
    """Counts of one record, in one query of slots."""
    rows = _slots(own)
    verdicts = list(admissions(own).values())
    levels: list[dict[str, Any]] = []
    for level in own.slots.order_by("level").values_list("level", flat=True).distinct():
        if level and level not in levels:
            levels.append(level)
    return Overview(
        own,
        len(rows),
        len(verdicts),
        [(name, sum(name in item[2] for item in rows), len(rows)) for name in CATEGORIES],
        verdicts.count("admitted"),
        verdicts.count("refused"),
        verdicts.count("unknown"),
        levels,
    )


def present_kinds(own: ControlSet) -> list[str]:
    """Kinds that the record has slots of."""
    found = set(own.slots.values_list("kind", flat=True).order_by().distinct())
    return [kind for kind in KINDS if kind in found]


def counts_table(own: ControlSet) -> list[tuple[str, list[tuple[str, int, int]]]]:
    """Rows of (category, [(kind, count, of)]); the first kind is "", all of them."""
    rows = _slots(own)
    found = []
    for name in CATEGORIES:
        cells = []
        for kind in ["", *present_kinds(own)]:
            of = [item for item in rows if not kind or item[1] == kind]
            cells.append((kind, sum(name in item[2] for item in of), len(of)))
        found.append((name, cells))
    return found


def later_of(own: ControlSet) -> ControlSet | None:
    """The newest record of the same task set, where it is not this one."""
    newest = ControlSet.objects.filter(task_set=own.task_set_id).order_by("-ordinal").first()
    return None if newest is None or newest.pk == own.pk else newest


def chosen_filters(given: Mapping[str, str]) -> dict[str, str]:
    """What the address asks for; an unknown value asks for nothing."""
    known = {"kind": KINDS, "category": CATEGORIES, "admission": VERDICT_WORDS}
    found = {name: given.get(name, "") for name in FILTERS}
    return {name: value if name == "split" or value in known[name] else "" for name, value in found.items()}


def filters(own: ControlSet, chosen: Mapping[str, str]) -> list[tuple[str, Any, list[tuple[str, Any, str, bool]]]]:
    """(name, word, choices of (value, word, address, chosen)) of every filter."""
    splits = sorted(set(own.slots.values_list("split", flat=True).order_by().distinct()))
    choices: list[tuple[str, Any, list[tuple[str, Any]]]] = [
        ("split", _("split:"), [(name, name) for name in splits]),
        ("kind", _("kind:"), [(name, KIND_WORDS[name][0]) for name in present_kinds(own)]),
        ("category", _("category:"), [(name, CATEGORY_WORDS[name][0]) for name in CATEGORIES]),
        ("admission", _("admission:"), list(VERDICT_WORDS.items())),
    ]
    return [
        (
            name,
            word,
            [
                (value, said, "?" + urlencode({**chosen, name: value}), chosen[name] == value)
                for value, said in [("", _("all")), *values]
            ],
        )
        for name, word, values in choices
    ]


@dataclass(frozen=True)
class TaskRow:
    """One task with its slots in the order of the kinds shown; None where it has none of a kind."""

    task: Any
    split: str
    admission: str
    slots: list[ControlSlot | None]


def chosen_tasks(own: ControlSet, chosen: Mapping[str, str]) -> list[int]:
    """Keys of the tasks of which a slot matches the filters, in the record's order."""
    split = set(own.slots.filter(split=chosen["split"]).values_list("task_id", flat=True)) if chosen["split"] else None
    verdicts = admissions(own)
    found = [
        task
        for task, kind, categories, _expected in _slots(own)
        if chosen["kind"] in ("", kind)
        and (not chosen["category"] or chosen["category"] in categories)
        and (split is None or task in split)
        and chosen["admission"] in ("", verdicts[task])
    ]
    return list(dict.fromkeys(found))


def task_rows(own: ControlSet, tasks: Sequence[int]) -> list[TaskRow]:
    """Tasks, those of one page, in their order, each with all of its slots."""
    verdicts, kinds = admissions(own), present_kinds(own)
    found: dict[int, dict[str, ControlSlot]] = {task: {} for task in tasks}
    for slot in own.slots.filter(task__in=tasks).select_related("task"):
        found[slot.task_id][slot.kind] = slot
    return [
        TaskRow(
            next(iter(slots.values())).task,
            next(iter(slots.values())).split,
            verdicts[task],
            [slots.get(kind) for kind in kinds],
        )
        for task, slots in found.items()
    ]
