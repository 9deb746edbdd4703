"""Drafts and freezing: strict text, exact bytes, rows that equal them, and one freeze only."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db.backends.base.base import BaseDatabaseWrapper

from runs.actions.plans import (
    MAX_NODES,
    MAX_TEXT,
    freeze_plan,
    parse_plan_text,
    plan_body,
    save_draft,
    supersede_plan,
)
from runs.errors import AlreadyFrozen, DomainError, StaleTransition
from runs.models import Arm, FailureSchedule, Plan, PlanVersion, Receipt
from tests.runs.scripted import AT, Lab
from tests.runs.scripted_plan import document
from workbench.contracts.canonical import canonical_bytes, parse_canonical, sha256_hex
from workbench.contracts.errors import PlanInvalid
from workbench.contracts.layout import version_uid
from workbench.contracts.spec import freeze_body


@pytest.mark.parametrize(
    ("text", "where", "got"),
    [
        ("a: 1\na: 2", "line 2", "'a' twice"),
        ("x: {b: 1, b: 2}", "line 1", "'b' twice"),
        ("yes: 1", "line 1", "True"),
        ("1: x", "line 1", "1"),
        ("? [a, b]\n: 1", "line 1", "a"),
        ("null: 1", "line 1", "None"),
        ("a: &x [1]\nb: *x", "$", "alias"),
        ('a: !!timestamp "soon"', "$", "tag"),
        ("a: !!bool maybe", "$", "tag"),
        ('a: !!int ""', "$", "tag"),
        ("b: 1\na: 0x" + "f" * 5000, "line 2", "digits"),
        ("a: " + ":".join(["59"] * 3000), "line 1", "digits"),
        ("a: &x {c: 1}\nb: {<<: *x}", "$", "alias"),
        ("a: !!python/object/apply:os.system [ls]", "$", "constructor"),
        ("a: !!timestamp 2001-99-99", "$", "month"),
        ("a: " + "1" * 5000, "$", "digits"),
        ("a: [", "$", "parsing"),
        ("a: \x07", "$", "special characters"),
        ("--- 1\n--- 2", "$", "document"),
        ("[" * 5000, "$", ""),
        ("[1]", "$", "list"),
        ("", "$", "NoneType"),
        ("text", "$", "str"),
        ("a" * (MAX_TEXT + 1), "$", "1000001 characters"),
    ],
)
def test_text_that_is_not_strict_is_refused(text: str, where: str, got: str) -> None:
    with pytest.raises(PlanInvalid) as caught:
        parse_plan_text(text)
    (problem,) = caught.value.problems
    assert problem.field == where and got in problem.got


def test_a_document_of_very_many_values_is_refused_before_it_is_read() -> None:
    """Half a million values would keep the reading process busy for a minute."""
    text = "schema: x\na: [" + "1," * (MAX_NODES + 1) + "1]"
    assert len(parse_plan_text("a: [" + "1," * 1000 + "1]")["a"]) == 1001
    with pytest.raises(PlanInvalid, match="more than 20000 keys and values"):
        parse_plan_text(text)


def test_a_bomb_of_aliases_is_refused_at_once() -> None:
    """Nine levels of nine aliases would unfold to 9^9 values in an error message."""
    lines = ["a0: &a0 [x]"] + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 10)]
    with pytest.raises(PlanInvalid, match="alias"):
        parse_plan_text("\n".join(lines))


def test_a_date_stays_text_and_a_json_number_is_a_number() -> None:
    """JSON writes 0.000001 as 1e-06, which YAML 1.1 would read as text."""
    assert parse_plan_text("a: 2030-01-02") == {"a": "2030-01-02"}
    value = {"a": 1e-06, "b": 1e22, "c": 0.5, "d": 3, "e": "1e-06", "f": -2.5e-07, "g": "7"}
    assert parse_plan_text(json.dumps(value)) == value
    assert parse_plan_text("a: 1e3\nb: .5e1\nc: 1.e2\nd: e5\ne: 1e") == {
        "a": 1000.0, "b": 5.0, "c": 100.0, "d": "e5", "e": "1e"
    }  # fmt: skip


@pytest.mark.django_db
def test_saving_a_draft_again_counts_its_revision_and_a_stale_writer_loses(lab: Lab, monkeypatch: Any) -> None:
    plan = lab.draft()
    assert (plan.state, plan.draft_revision, plan.current_version) == ("draft", 1, None)
    again = lab.draft(seeds=["2"])
    assert again.pk == plan.pk and again.draft_revision == 2

    real = Plan.objects.get_or_create

    def behind(**values: Any) -> Any:
        found, created = real(**values)
        Plan.objects.filter(pk=found.pk).update(draft_revision=found.draft_revision + 1)
        return found, created

    monkeypatch.setattr(Plan.objects, "get_or_create", behind)
    with pytest.raises(StaleTransition, match="revision 3 first"):
        save_draft(plan.study, plan.slug, "x: 1", by=lab.actor, at=AT)


@pytest.mark.django_db
def test_frozen_bytes_are_canonical_and_rows_equal_them(lab: Lab) -> None:
    version = lab.freeze()
    data = bytes(version.bytes)
    body = parse_canonical(data)
    assert sha256_hex(data) == version.sha256 and plan_body(version) == body
    assert canonical_bytes(body) == data and body["bindings"]["runtime"] == "runtime-test"
    assert version.plan.state == "frozen" and version.plan.current_version == version
    assert [parse_canonical(bytes(arm.config_bytes)) for arm in Arm.objects.order_by("position")] == [
        arm["config"] for arm in body["arms"]
    ]
    for arm, item in zip(Arm.objects.order_by("position"), body["arms"], strict=True):
        assert sha256_hex(bytes(arm.config_bytes)) == arm.config_sha256 == item["config_sha256"]
        assert (arm.gate, arm.seeds) == (item["gate"], item["seeds"])
    schedule = FailureSchedule.objects.get(plan_version=version)
    assert parse_canonical(bytes(schedule.bytes)) == body["failure_schedule"]
    assert sha256_hex(bytes(schedule.bytes)) == schedule.sha256
    receipt = Receipt.objects.get(kind="plan.frozen")
    assert parse_canonical(bytes(receipt.bytes))["body"]["plan_sha256"] == version.sha256


@pytest.mark.django_db
def test_a_second_freeze_and_a_later_draft_are_refused(lab: Lab) -> None:
    plan = lab.draft()
    other = Plan.objects.get(pk=plan.pk)  # read as a draft, as another process would
    freeze_plan(plan, lab.bindings(), by=lab.actor, at=AT)
    for stale in (plan, other):
        with pytest.raises(AlreadyFrozen):
            freeze_plan(stale, lab.bindings(), by=lab.actor, at=AT)
    with pytest.raises(AlreadyFrozen, match="Save under another name"):
        lab.draft(seeds=["9"])
    assert PlanVersion.objects.count() == 1 and Receipt.objects.filter(kind="plan.frozen").count() == 1


@pytest.mark.django_db
def test_a_draft_saved_after_it_was_read_is_not_frozen_in_its_old_text(lab: Lab) -> None:
    plan = lab.draft()
    lab.draft(seeds=["2"])
    with pytest.raises(StaleTransition, match="got revision 1, expected 2"):
        freeze_plan(plan, lab.bindings(), by=lab.actor, at=AT)
    assert not PlanVersion.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"seeds": []}, "seeds: got 0 items"),
        ({"strict_pairs": [{"arms": ["V", "K"], "treatment": ["optimizer.epochs"]}]}, "objective.credit"),
        ({"evaluation": {"splits": [{"split": "test", "tasks": 9}], "repeats": 1}}, "at most 2 tasks"),
    ],
)
def test_a_plan_that_cannot_be_frozen_leaves_nothing(lab: Lab, changes: dict[str, Any], match: str) -> None:
    plan = lab.draft(**changes)
    with pytest.raises(PlanInvalid, match=match):
        freeze_plan(plan, lab.bindings(), by=lab.actor, at=AT)
    plan.refresh_from_db()
    assert plan.state == "draft" and not PlanVersion.objects.exists() and not Receipt.objects.exists()


@pytest.mark.django_db
def test_superseding_keeps_the_bytes_and_happens_once(lab: Lab) -> None:
    version = lab.freeze()
    supersede_plan(version.plan, reason="a wrong bound", by=lab.actor, at=AT)
    assert plan_body(PlanVersion.objects.get(pk=version.pk))["plan"]["name"] == "scripted"
    with pytest.raises(StaleTransition):
        supersede_plan(version.plan, reason="again", by=lab.actor, at=AT)
    draft = lab.draft(name="other")
    with pytest.raises(StaleTransition):
        supersede_plan(draft, reason="never frozen", by=lab.actor, at=AT)


@pytest.mark.django_db
def test_bytes_that_do_not_hash_to_their_name_are_not_read(lab: Lab) -> None:
    version = lab.freeze()
    version.bytes = bytes(version.bytes).replace(b"vanilla", b"vanillb")
    with pytest.raises(DomainError, match="its bytes hash to"):
        plan_body(version)


def test_equal_plans_have_equal_bytes_in_two_databases(database: BaseDatabaseWrapper, lab: Lab) -> None:
    """On SQLite and PostgreSQL alike: hash and uid follow from plan and bindings alone."""
    version = lab.freeze()
    expected = canonical_bytes(freeze_body(document(), lab.bindings()))
    stored = PlanVersion.objects.get()
    assert bytes(stored.bytes) == expected and stored.sha256 == sha256_hex(expected)
    assert str(stored.uid) == version_uid(str(version.plan.uid), stored.sha256)
