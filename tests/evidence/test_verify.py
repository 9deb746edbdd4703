"""verify: a clean world has no problem, and each kind of damage is named by its step, table and column.

Damage is done as someone with access to the database file would do it: triggers dropped, raw SQL.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction

from evidence.report import VerifyReport
from evidence.verify import verify
from runs.actions.receipts import append_receipt
from runs.models import Document
from tests.runs.builders import AT, World
from workbench.contracts.canonical import canonical_bytes, parse_json, sha256_hex
from workbench.db import drop_triggers

Damage = Callable[[World], Any]


def sql(statement: str, *values: Any) -> None:
    """Raw SQL with the triggers gone; foreign keys are not looked at."""
    drop_triggers(connection)
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        assert cursor.rowcount >= 1, f"{statement}: no row was changed"


def found(report: VerifyReport) -> set[tuple[int, str, str]]:
    """(step, table, column) of every fault."""
    return {(item.step, item.table, item.column) for item in report.faults}


def test_clean_world_has_no_problem(world: World) -> None:
    """Every step looks at something, and nothing is wrong: unless it reads rows, it cannot find damage."""
    report = verify(store=world.store)
    assert report.problems == []
    assert report.ok
    assert {step for step, count in report.checked.items() if count} == {*range(1, 9), 15}
    assert [item["step"] for item in report.as_json()["steps"]] == [*range(1, 10), *range(11, 18)]


ROW_DAMAGE = [
    ("runs_group", "mean = 0.5", "mean", {4}),
    ("runs_group", "eligible = false", "eligible", {4}),
    ("runs_group", "signal = 'zero_equal'", "signal", {4}),
    ("runs_group", "record_sha256 = '{zero}'", "record_sha256", {4}),
    ("runs_group", "split = 'test2'", "split", {4}),
    ("runs_group", "identities = '{{}}'", "identities", {4}),
    ("runs_trajectory", "reward_total = 0.123", "reward_total", {4}),
    ("runs_trajectory", "advantage = 0", "advantage", {4}),
    ("runs_trajectory", "success = NULL", "success", {4}),
    ("runs_trajectory", "fatal_start = 0", "fatal_start", {4}),
    ("runs_trajectory", "recovered = true", "recovered", {4}),
    ("runs_trajectory", "generated_tokens = 0", "generated_tokens", {4}),
    ("runs_trajectory", "injections = '[]'", "injections", {4}),
    ("runs_trajectory", "seed = '1'", "seed", {4}),
    ("runs_turn", "policy_tokens = 1", "policy_tokens", {4, 6}),
    ("runs_turn", "prompt_tokens = 1", "prompt_tokens", {4, 6}),
    ("runs_turn", "action_text = 'other'", "action_text", {4}),
    ("runs_turn", "capture_sha256 = '{zero}'", "capture_sha256", {4, 6}),
    ("runs_turn", '"offset" = 1', "offset", {6}),
    ("runs_turn", "length = 1", "length", {6}),
    ("runs_toolcall", "arguments = '{{\"query\": \"x\"}}'", "arguments", {4}),
    ("runs_toolcall", "is_productive = NULL", "is_productive", {4}),
    ("runs_observation", "injected = NOT injected", "injected", {4}),
    ("runs_observation", "text = 'other'", "text", {4}),
    ("runs_rewardcomponent", "points = 0", "points", {4}),
    ("runs_rewardcomponent", "value = 0.25", "value", {4}),
    ("runs_checkpoint", "sha256 = '{zero}'", "sha256", {4}),
    ("runs_checkpoint", "blob_bytes = 1", "blob_bytes", {5}),
    ("runs_updatebatch", "skipped = 'other'", "skipped", {4}),
    ("runs_updatebatch", "capture_digest = '{zero}'", "capture_digest", {4}),
    ("runs_updatestep", "loss = 9", "loss", {4}),
    ("runs_updatestep", "nonfinite = '{{}}'", "nonfinite", {4}),
    ("runs_updatestep", "masked_tokens = 9", "masked_tokens", {4}),
    ("runs_trajectorycredit", "trained_tokens = 1", "trained_tokens", {4}),
    ("runs_traceframe", "frame_sha256 = '{zero}'", "frame_sha256", {4}),
    ("runs_evaluationitem", "condition = 'standard'", "condition", {4}),
    ("runs_blobref", "bytes = 1", "bytes", {5}),
    ("runs_metricpoint", "value = 0.5", "value", {8}),
    ("runs_metricpoint", "trajectories = 1", "trajectories", {8}),
    ("runs_metricseries", "definition = 'other'", "definition", {8}),
    ("runs_arm", "title_en = 'other'", "title_en", {2}),
    ("runs_arm", "seeds = '[]'", "seeds", {2}),
    ("runs_arm", "config_bytes = '7b7d'", "config_bytes", {2}),
    ("runs_planversion", "sha256 = '{zero}'", "sha256", {2}),
    ("runs_planversion", "strict_pairs = '[]'", "strict_pairs", {2}),
    ("runs_failureschedule", "bytes = '7b7d'", "bytes", {2}),
    ("runs_task", "prompt = 'other'", "prompt", {2}),
    ("runs_task", "hidden = '{{}}'", "hidden", {2}),
    ("runs_taskset", "count = 1", "count", {2}),
    ("runs_document", "sha256 = '{zero}'", "sha256", {3}),
    ("runs_receipt", "kind = 'other'", "kind", {1}),
    ("runs_receipt", "at = '2031-01-01 00:00:00'", "at", {1}),
    ("runs_receipt", "sha256 = '{zero}'", "sha256", {1}),
    ("runs_receipt", "prev = '{zero}'", "prev", {1}),
    ("runs_receipt", "seq = 7", "seq", {1}),
    ("runs_streamhead", "sha256 = '{zero}'", "sha256", {1}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("table", "change", "column", "steps"), ROW_DAMAGE, ids=[f"{t}-{c}" for t, _, c, _ in ROW_DAMAGE]
)
def test_changed_column_is_named(world: World, table: str, change: str, column: str, steps: set[int]) -> None:
    """One changed value in one row: the report names step, table and column."""
    statement = f"UPDATE {table} SET {change.format(zero='0' * 64)} WHERE id = (SELECT MIN(id) FROM {table})"
    if "'7b7d'" in statement:
        statement = statement.replace("'7b7d'", "x'7b7d'")
    if table == "runs_trajectory" and column in ("fatal_start", "recovered"):
        statement = statement.replace("(SELECT MIN(id)", "(SELECT MIN(id) + 1")
    if table == "runs_checkpoint" and column == "sha256":
        statement = statement.replace("MIN(id)", "MAX(id)")
    sql(statement)
    report = verify(store=world.store, steps=steps)
    assert {(step, table, column) for step in steps} <= found(report)


@pytest.mark.parametrize(
    ("table", "label"),
    [
        ("runs_turn", "runs_turn"), ("runs_toolcall", "runs_toolcall"), ("runs_observation", "runs_observation"),
        ("runs_rewardcomponent", "runs_rewardcomponent"), ("runs_evaluationitem", "runs_evaluationitem"),
        ("runs_updatestep", "runs_updatestep"), ("runs_trajectorycredit", "runs_trajectorycredit"),
        ("runs_traceframe", "runs_traceframe"), ("runs_consumedgroup", "runs_consumedgroup"),
        ("runs_metricpoint", "runs_metricpoint"),
    ],
)  # fmt: skip
def test_missing_row_is_named(world: World, table: str, label: str) -> None:
    """A deleted row is missing, even where nothing refers to it."""
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA defer_foreign_keys = ON")
    sql(f"DELETE FROM {table} WHERE id = (SELECT MAX(id) FROM {table})")
    report = verify(store=world.store)
    assert any(item.table == label and item.column == "id" and item.got == "None" for item in report.faults)


def test_row_without_document_is_extra(world: World) -> None:
    """A document that is gone leaves its group as an extra row."""
    sql("DELETE FROM runs_document WHERE kind = 'group' AND subject_uid = %s", world.group.uid.hex)
    assert (4, "runs_group", "uid") in found(verify(store=world.store))


def test_extra_row_is_named(world: World) -> None:
    """A step that no document tells of."""
    sql(
        "INSERT INTO runs_updatestep"
        " (step, epoch, minibatch, trained_tokens, masked_tokens, trajectories, nonfinite, update_id)"
        " SELECT 99, 0, 0, 1, 0, 1, '{}', MIN(id) FROM runs_updatebatch"
    )
    assert (4, "runs_updatestep", "id") in found(verify(store=world.store))


def rewrite(world: World, change: Callable[[dict[str, Any]], None], kind: str = "group") -> None:
    """Change a document and its hash together, as a careful forger would; rows stay as they are."""
    document = Document.objects.filter(kind=kind).order_by("id").first()
    assert document is not None
    value = parse_json(bytes(document.bytes))
    change(value)
    data = canonical_bytes(value)
    sql("UPDATE runs_document SET bytes = %s, sha256 = %s WHERE id = %s", data, sha256_hex(data), document.pk)


def total(value: dict[str, Any]) -> None:
    value["trajectories"][0]["reward"]["total"] = 0.95


def mean(value: dict[str, Any]) -> None:
    value["mean"] = 0.5


def advantage(value: dict[str, Any]) -> None:
    value["advantages_G"][0] = 2


def sigma(value: dict[str, Any]) -> None:
    value["sigma"] = 1


def kind_of_signal(value: dict[str, Any]) -> None:
    value["signal"] = "zero_all_right"


def eligible(value: dict[str, Any]) -> None:
    value["eligible"], value["ineligible_reason"] = False, "no reason"


def points(value: dict[str, Any]) -> None:
    value["trajectories"][0]["reward"]["components"][0]["points"] = 0.4


def fatal_start(value: dict[str, Any]) -> None:
    value["trajectories"][1]["facts"]["fatal_start"] = 2


@pytest.mark.parametrize(
    ("change", "table", "column"),
    [
        (total, "runs_trajectory", "reward_total"), (mean, "runs_group", "mean"), (sigma, "runs_group", "sigma"),
        (advantage, "runs_trajectory", "advantage"), (kind_of_signal, "runs_group", "signal"),
        (eligible, "runs_group", "eligible"), (points, "runs_rewardcomponent", "points"),
        (fatal_start, "runs_trajectory", "fatal_start"),
    ],
)  # fmt: skip
def test_forged_number_is_recomputed(
    world: World, change: Callable[[dict[str, Any]], None], table: str, column: str
) -> None:
    """Step 7 finds a number that does not follow from what lies below it, whatever the hashes say."""
    rewrite(world, change)
    assert (7, table, column) in found(verify(store=world.store))


def test_forged_credit_is_recomputed(world: World) -> None:
    """Trained and masked tokens of a credit add up to its policy tokens, which the trajectory has."""

    def change(value: dict[str, Any]) -> None:
        value["credits"][0]["trained_tokens"] -= 1
        value["credits"][1]["advantage"] = 7

    rewrite(world, change, "update")
    report = found(verify(store=world.store))
    assert {(7, "runs_trajectorycredit", "trained_tokens"), (7, "runs_trajectorycredit", "advantage")} <= report


@pytest.mark.parametrize("offset", [0, 40, -1])
def test_changed_document_byte_is_found(world: World, offset: int) -> None:
    """Any byte of a document: the hash disagrees."""
    document = Document.objects.order_by("id").first()
    assert document is not None
    data = bytearray(document.bytes)
    data[offset] ^= 1
    sql("UPDATE runs_document SET bytes = %s WHERE id = %s", bytes(data), document.pk)
    assert (3, "runs_document", "sha256") in found(verify(store=world.store))


def test_receipt_names_document(world: World) -> None:
    """A document, its hash and its rows rewritten together disagree with the receipt that recorded them."""
    group = world.group
    with transaction.atomic():
        body = {"groups": [[str(group.uid), group.record_sha256, group.capture_blob_sha256]]}
        append_receipt("run:x", "shard.collected", None, body, actor=world.actor, at=AT)
    assert verify(store=world.store).ok
    rewrite(world, mean)
    assert (3, "runs_document", "sha256") in found(verify(store=world.store))
