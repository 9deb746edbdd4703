"""verify: names, makers, states and texts of plans and actors against receipts and frozen bytes; removed anchors."""

from __future__ import annotations

import pytest
from django.db import transaction

from evidence.verify import verify
from runs.actions.plans import supersede_plan
from runs.actions.receipts import anchor_heads, append_receipt
from runs.models import Plan
from tests.evidence.test_verify import found, sql
from tests.runs.builders import AT, World

FORGED = "SELECT plan_id, 'frozen', 'superseded', 'r', actor_id, at FROM runs_plantransition"
DAMAGE = [
    ("UPDATE runs_plan SET slug = 'other'", (2, "runs_plan", "slug")),
    ("UPDATE runs_plan SET slug = 'other'", (2, "runs_plan", "uid")),
    ("UPDATE runs_plan SET draft_text = 'x: 1'", (2, "runs_plan", "draft_text")),
    (
        "UPDATE runs_plan SET draft_text = replace(draft_text, 'workbench.plan/1', 'w')",
        (2, "runs_plan", "draft_text"),
    ),
    ("UPDATE runs_plan SET current_version_id = NULL", (2, "runs_plan", "current_version_id")),
    ("UPDATE runs_plan SET state = 'superseded'", (2, "runs_plan", "state")),
    (
        f"INSERT INTO runs_plantransition (plan_id, from_state, to_state, reason, actor_id, at) {FORGED}",
        (2, "runs_plantransition", "to_state"),
    ),
    ("UPDATE runs_plantransition SET reason = 'other'", (2, "runs_plantransition", "reason")),
    ("UPDATE runs_plantransition SET at = '2020-01-01 00:00:00'", (2, "runs_plantransition", "at")),
    ("UPDATE runs_plantransition SET version_id = NULL", (2, "runs_plantransition", "version_id")),
    ("DELETE FROM runs_plantransition", (2, "runs_plantransition", "to_state")),
    ("UPDATE runs_planversion SET created_at = '2020-01-01 00:00:00'", (2, "runs_planversion", "created_at")),
    ("UPDATE runs_study SET slug = 'other'", (2, "runs_study", "uid")),
    ("UPDATE runs_study SET slug = 'other'", (2, "runs_plan", "study")),
    ("UPDATE runs_actor SET name = 'other'", (1, "runs_actor", "uid")),
    ("UPDATE runs_actor SET family = 'other'", (1, "runs_actor", "family")),
    ("DELETE FROM runs_anchor", (1, "runs_anchor", "heads")),
]


def close(world: World) -> None:
    """The closing receipt and its anchor, as closing an execution writes them."""
    with transaction.atomic():
        append_receipt("execution:x", "execution.closed", None, {"manifest_sha256": ""}, actor=world.actor, at=AT)
        anchor_heads()


@pytest.mark.parametrize(("statement", "named"), DAMAGE, ids=[f"{s[:44]}-{n[2]}" for s, n in DAMAGE])
def test_damage_is_named(world: World, statement: str, named: tuple[int, str, str]) -> None:
    close(world)
    steps = {named[0]}
    assert verify(store=world.store, steps=steps).problems == []
    sql(statement)
    assert named in found(verify(store=world.store, steps=steps))


def test_a_superseded_plan_needs_its_receipt(world: World) -> None:
    """Right with its receipt; a fault without it, and a fault of the reason where the two differ."""
    plan = Plan.objects.get()
    supersede_plan(plan, reason="a better one", by=world.actor, at=AT)
    assert verify(store=world.store, steps={2}).problems == []
    sql("UPDATE runs_plantransition SET reason = 'another' WHERE to_state = 'superseded'")
    assert found(verify(store=world.store, steps={2})) == {(2, "runs_plantransition", "reason")}
    sql("DELETE FROM runs_receipt WHERE kind = 'plan.superseded'")
    assert {(2, "runs_plan", "state"), (2, "runs_plantransition", "to_state")} <= found(
        verify(store=world.store, steps={2})
    )
