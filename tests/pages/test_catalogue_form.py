"""The form is the schema; what it shows changes nothing, and what is typed becomes the document."""

from __future__ import annotations

from typing import Any

import pytest

from runs.actions.plans import parse_plan_text
from runs.presenters.catalogue.planform import FormField, FormList, build_form, merge, read_form, shown, typed, walk
from runs.presenters.catalogue.starts import bundled
from runs.presenters.catalogue.words import FIELDS, SECTIONS
from tests.pages.catalogue_people import minimal, posted
from workbench.contracts.plan_schema import PLAN, Field, ListOf
from workbench.contracts.spec import complete_plan


def _schema_paths(spec: Any, prefix: str = "") -> set[str]:
    """Every input that the schema asks for, list items written ``[]``."""
    found: set[str] = set()
    for name, item in spec.items():
        path = f"{prefix}.{name}" if prefix else name
        inner = getattr(item, "item", item)
        if isinstance(item, ListOf) and isinstance(inner, dict):
            found |= _schema_paths(inner, f"{path}[]")
        elif isinstance(item, Field | ListOf):
            found.add(path)
        else:
            found |= _schema_paths(inner, path) | ({path} if item is not inner else set())
    return found


def test_every_field_of_the_schema_has_a_label_and_every_label_a_field() -> None:
    assert set(FIELDS) == _schema_paths(PLAN)
    assert set(PLAN) - {"schema", "study", "name", "scale", "title", "question"} <= set(SECTIONS)


@pytest.mark.parametrize("document", [parse_plan_text(minimal()), *bundled().values()])
def test_what_the_form_shows_changes_nothing(document: dict[str, Any]) -> None:
    """Also a completed document, in which every default is written."""
    for base in (document, complete_plan(document)):
        assert read_form(posted("", base), base) == base


def test_typed_values_by_kind() -> None:
    whole, share, seeds = Field("int"), Field("float"), ListOf(Field("seed"))
    assert [typed(whole, "7"), typed(whole, " 7 "), typed(whole, "x"), typed(whole, "7.5")] == [7, 7, "x", 7.5]
    assert [typed(share, "1e-3"), typed(share, ".5"), typed(share, "nan")] == [0.001, 0.5, "nan"]
    assert typed(seeds, "7, 17,\n42") == ["7", "17", "42"]
    assert typed(seeds, '["1", 2]') == ["1", 2]
    assert typed(Field("bool"), "true") is True and typed(Field("bool"), "maybe") == "maybe"
    assert typed(Field("dict"), "a: 1") == {"a": 1} and typed(Field("dict"), "a: [") == "a: ["
    assert typed(Field("str"), "2.1") == "2.1"


def test_lists_that_commas_cannot_carry_are_shown_in_brackets() -> None:
    spec = ListOf(Field("str"))
    assert shown(spec, ["a", "b"]) == "a, b"
    for value in (["a,b", "c"], [""], [" a"], [1, 2]):
        text = shown(spec, value)
        assert text.startswith("[") and typed(spec, text) == value


def test_a_changed_input_an_emptied_one_and_switches() -> None:
    base = parse_plan_text(minimal())
    found = read_form(
        posted("", base, rollout__max_decisions="", seeds="1, 2", preflight="yes", optimizer__beta1="0.8"), base
    )
    assert found["rollout"] == {} and found["seeds"] == ["1", "2"]
    assert found["preflight"] == {} and found["optimizer"] == {"learning_rate": 0.001, "beta1": 0.8}
    off = read_form({**posted("", found), "f:preflight": "no"}, found)
    assert "preflight" not in off


def test_wrong_shapes_and_unknown_fields_stay_as_they_are() -> None:
    base = {**parse_plan_text(minimal()), "rollout": 3, "arms": "none", "mystery": {"x": 1}}
    assert read_form(posted("", base), base) == base


def test_a_list_longer_than_the_form_is_left_to_the_text() -> None:
    base = parse_plan_text(minimal())
    base["arms"] = base["arms"] * 25
    lists = [part for part in walk(build_form(base)) if isinstance(part, FormList) and part.path == "arms"]
    assert lists[0].long and lists[0].items == []
    assert read_form({**posted("", base), "n:arms": "99999"}, base) == base


def test_both_sides_edited_come_together() -> None:
    """Text changed budget and form changed seeds since they were equal; then both the same field: the form wins."""
    base = parse_plan_text(minimal())
    text = {**base, "budget": {"batches": 9, "max_steps": 18}}
    form = {**base, "seeds": ["5"]}
    assert merge(text, base, form) == {**text, "seeds": ["5"]}
    assert merge({**base, "seeds": ["6"]}, base, form)["seeds"] == ["5"]
    without = {key: value for key, value in base.items() if key != "rollout"}
    assert merge(text, base, without) == {key: value for key, value in text.items() if key != "rollout"}


def test_a_value_that_no_choice_has_stays_selectable() -> None:
    document = {**parse_plan_text(minimal()), "objective": {"credit": "magic"}}
    field = next(p for p in walk(build_form(document)) if isinstance(p, FormField) and p.path == "objective.credit")
    assert field.value == "magic" and "magic" in field.choices
