"""Every plan field, from the schema's own table: missing, unknown, wrong type, out of range."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from typing import Any

import pytest

from tests.runs.scripted_plan import document
from workbench.contracts.errors import PlanInvalid
from workbench.contracts.plan_schema import PLAN, REQUIRED, Field, ListOf, Optional, validate_fields
from workbench.contracts.spec import complete_plan, field_paths

ENDPOINT = {
    "id": "e", "definition": "d", "metric": "reward", "direction": "none", "unit": "u", "split": "test",
    "condition": "stress", "equivalence": [-0.1, 0.1], "compare": {"kind": "pair", "arms": ["V", "F"]},
}  # fmt: skip
Path = tuple[str | int, ...]


def whole() -> dict[str, Any]:
    """A complete document in which every optional part is present."""
    return complete_plan(document(endpoints=[ENDPOINT], probe={"tasks": 1, "every": 1, "repeats": 2}, trials={
        "pilot": True}, arms=[
        {"key": "V", "role": "pair", "title": {"en": "V"}, "seeds": ["1"]},
        {"key": "F", "role": "pair", "title": {"en": "F"}, "overrides": {"objective": {"credit": "fatal_suffix"}},
         "seeds": ["1"]},
        {"key": "K", "role": "gated", "title": {"en": "K"}, "seeds": ["1"],
         "gate": {"rule": "clamp_actionable_cases", "counted_over": "F", "minimum": 3}},
    ]))  # fmt: skip


def _walk(spec: Any, value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    yield path, spec
    if isinstance(spec, Optional):
        spec = spec.item
    if isinstance(spec, dict):
        for name, item in spec.items():
            yield from _walk(item, None if value is None else value[name], (*path, name))
    elif isinstance(spec, ListOf) and value:
        last = len(value) - 1
        yield from _walk(spec.item, value[last], (*path, last))


LEAVES = [(path, spec) for path, spec in _walk(PLAN, whole(), ()) if path]
SCALARS = [(path, spec) for path, spec in LEAVES if isinstance(spec, Field)]


def _name(path: Path) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else (f".{part}" if text else part)
    return text


def _changed(path: Path, value: Any, *, remove: bool = False) -> dict[str, Any]:
    plan = whole()
    target: Any = plan
    for part in path[:-1]:
        target = target[part]
    if remove:
        del target[path[-1]]
    else:
        target[path[-1]] = value
    return plan


def _refused(plan: dict[str, Any], path: Path, value: Any) -> None:
    _, problems = validate_fields(plan)
    assert [problem.field for problem in problems] == [_name(path)], problems
    assert problems[0].got == repr(value)[:80] and problems[0].expected
    with pytest.raises(PlanInvalid) as caught:
        complete_plan(plan)
    assert _name(path) in str(caught.value)


def _wrong(spec: Field) -> list[Any]:
    values = {
        "str": [1, None, ["x"], {}], "bool": [1, "true", None], "dict": [[], "x", 1],
        "int": [1.5, "1", True, [], 10**400], "float": ["1", True, math.nan, math.inf, [], 10**400],
        "seed": [7, "-1", "1.0", "x", "", "007", str(2**64), "9" * 5000, "٣"],
    }[spec.kind]  # fmt: skip
    return values if spec.nullable or spec.kind in ("str", "bool") else [*values, None]


@pytest.mark.parametrize(("path", "spec"), SCALARS, ids=lambda item: _name(item) if isinstance(item, tuple) else "")
def test_a_wrong_type_or_value_is_named_with_value_and_expectation(path: Path, spec: Field) -> None:
    wrong = list(_wrong(spec))
    if spec.choices:
        wrong.append("another")
    if spec.minimum is not None:
        wrong.append(spec.minimum - 1 if spec.kind == "int" else spec.minimum - 0.5)
    if spec.maximum is not None:
        wrong.append(int(spec.maximum) + 1 if spec.kind == "int" else spec.maximum * 2 + 1)
    for value in wrong:
        _refused(_changed(path, value), path, value)
    if spec.nullable:
        assert not validate_fields(_changed(path, None))[1]


BOUNDED = [(p, s) for p, s in SCALARS if s.minimum is not None and s.maximum is not None]


@pytest.mark.parametrize(("path", "spec"), BOUNDED, ids=lambda item: _name(item) if isinstance(item, tuple) else "")
def test_the_ends_of_a_range_belong_to_it(path: Path, spec: Field) -> None:
    for end in (spec.minimum, spec.maximum):
        assert end is not None
        assert not validate_fields(_changed(path, int(end) if spec.kind == "int" else end))[1]


@pytest.mark.parametrize(("path", "spec"), LEAVES, ids=lambda item: _name(item) if isinstance(item, tuple) else "")
def test_a_missing_field_has_its_default_or_is_named(path: Path, spec: Any) -> None:
    if isinstance(path[-1], int):
        return
    plan = _changed(path, None, remove=True)
    complete, problems = validate_fields(plan)
    if isinstance(spec, Field | ListOf) and spec.default is REQUIRED:
        assert [(item.field, item.got) for item in problems] == [(_name(path), "nothing")]
    elif isinstance(spec, dict):
        assert all(item.field.startswith(f"{_name(path)}.") and item.got == "nothing" for item in problems)
    else:
        assert not problems
        target: Any = complete
        for part in path:
            target = target[part]
        assert target == (None if isinstance(spec, Optional) else spec.default)


OBJECTS = [(p, s) for p, s in [((), PLAN), *LEAVES] if isinstance(s, dict | Optional)]


@pytest.mark.parametrize(("path", "spec"), OBJECTS, ids=lambda item: _name(item) if isinstance(item, tuple) else "")
def test_an_unknown_field_is_named_and_another_type_is_no_object(path: Path, spec: Any) -> None:
    plan = _changed((*path, "unknown_field"), 7)
    _refused(plan, (*path, "unknown_field"), 7)
    if path:
        for value in ([], "x", 7):
            _refused(_changed(path, value), path, value)


LISTS = [(path, spec) for path, spec in LEAVES if isinstance(spec, ListOf)]


@pytest.mark.parametrize(("path", "spec"), LISTS, ids=lambda item: _name(item) if isinstance(item, tuple) else "")
def test_a_list_has_its_length(path: Path, spec: ListOf) -> None:
    _refused(_changed(path, {"x": 1}), path, {"x": 1})
    target: Any = whole()
    for part in path:
        target = target[part]
    too_long = (target or ["x"]) * (spec.maximum + 1)
    _, problems = validate_fields(_changed(path, too_long))
    assert problems[0].field == _name(path) and f"{spec.minimum} to {spec.maximum}" in problems[0].expected
    if spec.minimum:
        _, problems = validate_fields(_changed(path, []))
        assert problems[0].field == _name(path) and problems[0].got == "0 items"


@pytest.mark.parametrize("value", [None, [], "plan", 3])
def test_a_plan_is_an_object(value: Any) -> None:
    with pytest.raises(PlanInvalid, match=r"^\$: got .*, expected an object"):
        complete_plan(value)


def test_every_problem_is_listed_not_only_the_first() -> None:
    plan = whole()
    plan["seeds"], plan["budget"]["batches"], plan["more"] = [], 0, 1
    with pytest.raises(PlanInvalid) as caught:
        complete_plan(plan)
    assert {item.field for item in caught.value.problems} == {"seeds", "budget.batches", "more"}


def test_a_complete_document_stays_as_it_is_and_defaults_are_not_shared() -> None:
    plan = whole()
    assert complete_plan(copy.deepcopy(plan)) == plan
    first, second = complete_plan(document()), complete_plan(document())
    first["arms"][0]["overrides"]["objective"] = {}
    first["policy"]["adaptation"]["targets"].append("x")
    assert second == complete_plan(document())


def test_paths_name_every_field_once() -> None:
    paths = field_paths()
    assert len(set(paths)) == len(paths) and "rollout.sampling.temperature" in paths and "preflight" in paths
