"""A plan with a task whose controls failed is not frozen. Unknown refuses nothing, nor does another instrument."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import transaction

from runs.actions.admission import used_tasks
from runs.actions.inspection import freeze_preview
from runs.actions.plans import ensure_study, freeze_plan
from runs.actions.record_controls import record_controls
from runs.models import ControlSet, PlanVersion, Study, TaskSet
from runs.presenters.catalogue.problems import in_words
from tests.controls.test_contract import slot
from tests.controls.world import GOOD
from tests.runs.scripted import AT, Lab
from workbench.contracts.controls import KINDS, ControlsResult, SlotTiming
from workbench.contracts.errors import PlanInvalid
from workbench.contracts.spec import freeze_body

pytestmark = pytest.mark.django_db
VERIFIER = "scripted/1"


@pytest.fixture(autouse=True)
def store(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(settings, "BLOB_ROOT", tmp_path)
    yield


@pytest.fixture
def lab() -> Lab:
    return Lab()


def bindings(lab: Lab) -> dict[str, Any]:
    found = lab.bindings()
    found["environment"]["verifier"] = VERIFIER
    return found


@transaction.atomic
def record(lab: Lab, split: str = "test", *, study: Study | None = None, **said: str) -> ControlSet:
    """Controls of the first task of a split, good but for ``said``; ``verifier`` and ``code`` as named."""
    bound = bindings(lab)
    verifier, code = said.pop("verifier", VERIFIER), said.pop("code", bound["environment"]["code_sha256"])
    tasks = TaskSet.objects.get(sha256=bound["task_set"]["sha256"])
    task = tasks.all_tasks().get(uid=bound["task_set"]["splits"][split][0]["uid"])
    slots = tuple(
        slot(kind, {**GOOD, **said}[kind], task_key=task.key, split=split, task=str(task.uid)) for kind in KINDS
    )
    timings = tuple(SlotTiming(0.0, 0.1, 0.0, 0.1) for _ in slots)
    result = ControlsResult("evidence_search", "1", code, tasks.sha256, verifier, (), slots, timings)
    return record_controls(result, study=study, by=lab.actor, at=AT + timedelta(seconds=1))


def freeze(lab: Lab) -> PlanVersion:
    return freeze_plan(lab.draft(), bindings(lab), by=lab.actor, at=AT)


def key_of(lab: Lab, split: str = "test") -> str:
    bound = bindings(lab)["task_set"]
    task_set = TaskSet.objects.get(sha256=bound["sha256"])
    return str(task_set.all_tasks().get(uid=bound["splits"][split][0]["uid"]).key)


@pytest.mark.parametrize("split", ["test", "train"])
def test_a_failed_gold_control_refuses_the_freeze_and_names_task_and_control(lab: Lab, split: str) -> None:
    """Evaluation and training alike. The preview says it before the freeze does; nothing is stored."""
    record(lab, split, gold="PF")
    for refuses in (freeze, lambda lab: freeze_preview(lab.draft(), bindings(lab))):
        with pytest.raises(PlanInvalid) as error:
            refuses(lab)
        (problem,) = error.value.problems
        assert problem.field == f"environment: task {key_of(lab, split)}"
        assert (problem.got, problem.expected) == (
            "control gold failed", "control gold passes: record 1 of its task set"
        )  # fmt: skip
    assert not PlanVersion.objects.exists() and lab.draft().state == "draft"


def test_every_control_that_is_not_as_expected_is_named(lab: Lab) -> None:
    """An empty tree that passes, and a repair in another form that does not."""
    record(lab, empty="PP", other_form="PF")
    with pytest.raises(PlanInvalid) as error:
        freeze(lab)
    assert [item.got for item in error.value.problems] == ["control empty passed", "control other_form failed"]


def test_good_controls_and_none_at_all_freeze(lab: Lab) -> None:
    assert freeze(lab).number == 1
    other = Lab()
    record(other)
    assert freeze_preview(lab.draft(name="again"), bindings(lab))["plan"]["name"] == "again"


def test_an_unknown_slot_refuses_nothing(lab: Lab) -> None:
    """A test without an observation is no failure, of a control either."""
    record(lab, gold="P")
    assert freeze(lab).number == 1


def test_the_newest_record_counts(lab: Lab) -> None:
    record(lab, gold="PF")
    record(lab, gold="PP")
    assert freeze(lab).number == 1


def test_a_later_record_of_other_tasks_does_not_clear_one(lab: Lab) -> None:
    """Each task by the newest record that speaks of it."""
    record(lab, "test", gold="PF")
    record(lab, "train", gold="PP")
    with pytest.raises(PlanInvalid, match="control gold failed"):
        freeze(lab)


@pytest.mark.parametrize("other", [{"verifier": "scripted/2"}, {"code": "0" * 64}], ids=str)
def test_another_instruments_record_says_nothing(lab: Lab, other: dict[str, str]) -> None:
    record(lab, gold="PF", **other)
    assert freeze(lab).number == 1


def test_a_record_of_another_study_is_that_studys_own(lab: Lab) -> None:
    """Its own study's and the installation's count."""
    foreign = ensure_study("foreign", title={"en": "F"}, summary={"en": "F"}, by=lab.actor, at=AT)
    record(lab, gold="PF", study=foreign)
    plan = lab.draft()
    assert freeze_preview(plan, bindings(lab))
    record(lab, gold="PF", study=plan.study)
    with pytest.raises(PlanInvalid, match="control gold failed"):
        freeze_preview(plan, bindings(lab))


def test_tasks_that_the_plan_does_not_use_refuse_nothing(lab: Lab) -> None:
    """Of an evaluation split only as many tasks as the plan evaluates."""
    bound = bindings(lab)
    body = freeze_body(_document(lab), bound)
    splits = {item["split"]: item["tasks"] for item in body["plan"]["evaluation"]["splits"]}
    train = {task["uid"] for task in bound["task_set"]["splits"]["train"]}
    found = used_tasks(body)
    assert train <= found
    for split, most in splits.items():
        names = [task["uid"] for task in bound["task_set"]["splits"][split]]
        assert set(names[:most]) <= found and not set(names[most:]) & found


def _document(lab: Lab) -> dict[str, Any]:
    from runs.actions.plans import parse_plan_text

    return parse_plan_text(lab.draft().draft_text)


def test_the_words_of_a_refusal_are_the_readers() -> None:
    assert in_words("control no_op passed") == "control no-op passed"
    assert in_words("control gold passes: record 3 of its task set") == "control gold passes: record 3 of its task set"
