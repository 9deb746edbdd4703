"""Figures of a closed execution: endpoints, cells, and the pending figures that only it may fill."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from pytest_django import DjangoDbBlocker

from evidence.actions.figures import bind_figure, fill_pending
from evidence.binding.figures import recompute
from evidence.binding.values import read_exact
from evidence.models import Figure
from evidence.presenters.chips import RELATED, chips_of
from evidence.presenters.review_item import _where
from runs.actions.actors import service_actor
from runs.actions.closure import item_facts
from runs.actions.documents import store_document
from runs.actions.plans import plan_body
from runs.errors import DomainError
from runs.models import Document, EvaluationItem, Execution, Plan, PlanVersion
from runs.presenters.results import arm_columns
from runs.statistics.aggregate import build_aggregate
from tests.pages.state import World
from tests.pages.world import build, evaluate
from workbench.contracts.canonical import canonical_bytes

from .desk import AT


@pytest.fixture(scope="module")
def built(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    """Both arms of the pair evaluated; not closed yet."""
    with django_db_blocker.unblock(), transaction.atomic():
        world = build(batches=1)
        run = world.runs["e3-s17"]
        run.head.refresh_from_db()
        evaluate(world, run, run.head.checkpoint, 0.8)
        yield world
        transaction.set_rollback(True)


def close(world: World) -> dict[str, Any]:
    """Store the aggregate and the closure that names it, as closing does."""
    body = plan_body(world.version)["plan"]
    aggregate = build_aggregate(
        plan_sha256=world.version.sha256, endpoints=body["endpoints"], strict_pairs=body["strict_pairs"],
        items=item_facts(world.execution), resamples=50,
    )  # fmt: skip
    document = store_document("aggregate", world.execution.uid, canonical_bytes(aggregate))
    closure = {"plan_sha256": world.version.sha256, "aggregate_sha256": document.sha256}
    store_document("closure", world.execution.uid, canonical_bytes(closure))
    Execution.objects.filter(pk=world.execution.pk).update(state="closed")
    return aggregate


@pytest.fixture
def open_world(built: World, db: None) -> World:
    """Not closed."""
    return built


def bind(world: World, key: str, binding: dict[str, Any], **given: Any) -> Any:
    """A native effect figure of the world's plan."""
    columns = {"kind": "effect", "digits": 3, "plan_version": world.version, "title_en": key, **given}
    return bind_figure(world.study, key, binding, by=service_actor("test"), at=AT, **columns)


ENDPOINT = {"type": "endpoint", "endpoint": "recovery", "quantity": "difference"}
CELL = {
    "type": "cell_rate", "checkpoint": "e3", "condition": "stress", "split": "test", "outcome": "recovered",
}  # fmt: skip
PENDING = {"type": "pending", "fills": {"plan": "small", "endpoint": "recovery"}}


def test_nothing_is_read_before_the_execution_is_closed(open_world: World) -> None:
    """Neither an endpoint nor a cell, however many items there are."""
    for binding in (ENDPOINT, CELL):
        with pytest.raises(DomainError, match="expected the closed execution"):
            bind(open_world, "early", binding)
    bind(open_world, "effect", PENDING)
    with pytest.raises(DomainError, match="not closed"):
        fill_pending(open_world.version, by=service_actor("test"), at=AT)
    assert Figure.objects.get(key="effect").state == "pending"


def test_an_endpoint_is_what_the_aggregate_says(open_world: World) -> None:
    """To the last digit, and bound to the documents by hash."""
    aggregate = close(open_world)
    over = aggregate["endpoints"][0]["results"][0]["contrast"]["over_seeds"]
    version = bind(open_world, "effect.difference", ENDPOINT)
    assert float(read_exact(version.value)) == over["task_difference"]["value"]
    document = Document.objects.get(kind="aggregate", subject_uid=open_world.execution.uid)
    assert version.binding["aggregate_sha256"] == document.sha256 and version.endpoint == "recovery"
    for quantity, value in (("low", over["interval"]["low"]), ("tasks", over["interval"]["tasks"])):
        found = bind(open_world, f"effect.{quantity}", {**ENDPOINT, "quantity": quantity}).value
        assert float(read_exact(found)) == value
    assert recompute(version.figure).state == "bound"
    with pytest.raises(DomainError, match="seed_sd: got no number"):
        bind(open_world, "effect.sd", {**ENDPOINT, "quantity": "seed_sd"})  # one seed has no spread
    with pytest.raises(DomainError, match="expected one of recovery"):
        bind(open_world, "effect.other", {**ENDPOINT, "endpoint": "other"})
    with pytest.raises(DomainError, match="arms: got"):
        bind(open_world, "effect.other", {**ENDPOINT, "arms": ["e2f", "e4"]})


def test_a_cell_is_what_the_results_page_counts(open_world: World) -> None:
    """n of N of an arm and of the parent, and the mean reward over the same items."""
    close(open_world)
    (column,) = [column for column in arm_columns(open_world.version) if column.key == "e3"]
    rate = column.cells["stress", "test"].rates["recovered"]
    version = bind(open_world, "cell", CELL, style="ratio")
    assert (version.numerator, version.denominator) == (str(rate.n), str(rate.of)) == (str(rate.n), "18")
    assert bind(open_world, "cell.of", {**CELL, "part": "of"}, digits=0).value == "18"
    items = EvaluationItem.objects.filter(run__arm__key="e3", condition="stress", split="test")
    assert rate.n == items.filter(trajectory__recovered=True).count()
    mean = bind(open_world, "cell.reward", {**CELL, "outcome": "mean.reward"})
    rewards = [value for value in items.values_list("trajectory__reward_total", flat=True) if value is not None]
    assert float(read_exact(mean.value)) == pytest.approx(sum(rewards) / len(rewards))
    uid = str(items.first().checkpoint.uid)  # type: ignore[union-attr]
    assert bind(open_world, "cell.uid", {**CELL, "checkpoint": uid}).value == version.value
    parent = {**CELL, "checkpoint": "parent", "condition": "standard"}
    with pytest.raises(DomainError, match="a rate without exposure is no 0"):
        bind(open_world, "cell.parent", {**parent, "outcome": "recovered_exposed"})
    with pytest.raises(DomainError, match="got no item"):
        bind(open_world, "cell.e4", {**CELL, "checkpoint": "e4"})


def test_only_the_closed_execution_of_that_version_fills(open_world: World) -> None:
    """An effect figure is filled; mechanism, imported and in-words ones, and other versions', stay pending."""
    bind(open_world, "effect", PENDING, title_zh="效应")
    bind(open_world, "mechanism", PENDING, kind="mechanism")
    bind(open_world, "imported", PENDING, origin="imported")
    bind(open_world, "words", {"type": "pending", "fills": {"words_en": "a run of our own"}})
    bind(open_world, "absent", {"type": "pending", "fills": {"plan": "small", "endpoint": "absent"}})
    close(open_world)
    first = open_world.version
    other = PlanVersion.objects.create(
        uid="00000000-0000-4000-8000-000000000001", plan=first.plan, number=first.number + 1,
        sha256="0" * 64, bytes=b"{}", created_at=AT, created_by=service_actor("test"),
    )  # fmt: skip
    with pytest.raises(DomainError, match="not closed"):
        fill_pending(other, by=service_actor("test"), at=AT)
    assert fill_pending(first, by=service_actor("test"), at=AT) == 1
    states = dict(Figure.objects.filter(study=open_world.study).values_list("key", "state"))
    assert {key for key, state in states.items() if state == "bound"} == {"effect"}
    filled = Figure.objects.get(key="effect").current
    assert filled is not None and filled.number == 2 and filled.title_zh == "效应" and filled.value is not None
    assert filled.binding["type"] == "endpoint" and "filled by the closed execution" in filled.reason
    assert fill_pending(first, by=service_actor("test"), at=AT) == 0


def test_neither_another_plan_nor_another_version_fills(open_world: World) -> None:
    """Version 1 is closed: it fills its own figure, and neither the one that waits for version 2 of the same plan nor
    the one that waits for another plan with the same endpoint. Those two are not closed, so nothing fills them.
    """
    by = service_actor("test")
    close(open_world)
    first = open_world.version
    draft = Plan.objects.create(
        uid="00000000-0000-4000-8000-000000000003", study=open_world.study, slug="twin",
    )  # fmt: skip
    same = {"sha256": "1" * 64, "bytes": bytes(first.bytes), "created_at": AT, "created_by": by}
    second = PlanVersion.objects.create(
        uid="00000000-0000-4000-8000-000000000004", plan=first.plan, number=first.number + 1, **same
    )
    twin = PlanVersion.objects.create(
        uid="00000000-0000-4000-8000-000000000005", plan=draft, number=1, **{**same, "sha256": "2" * 64}
    )
    bind(open_world, "of.first", PENDING, plan_version=first)
    bind(open_world, "of.second", PENDING, plan_version=second)
    bind(open_world, "of.twin", {**PENDING, "fills": {"plan": "twin", "endpoint": "recovery"}}, plan_version=twin)
    for version in (second, twin):
        with pytest.raises(DomainError, match="not closed"):
            fill_pending(version, by=by, at=AT)
        with pytest.raises(DomainError, match="expected the closed execution of"):
            bind(open_world, "stolen", ENDPOINT, plan_version=version)
    assert fill_pending(first, by=by, at=AT) == 1
    states = dict(Figure.objects.filter(study=open_world.study).values_list("key", "state"))
    assert (states["of.first"], states["of.second"], states["of.twin"]) == ("bound", "pending", "pending")
    with pytest.raises(DomainError, match="plan_version: got one of small, expected one of twin"):
        bind(
            open_world, "of.twin", {**PENDING, "fills": {"plan": "twin", "endpoint": "recovery"}}, plan_version=first,
            reason="taken from another plan",
        )  # fmt: skip


def test_changed_documents_are_drift(open_world: World) -> None:
    """An aggregate or closure of another hash: the figure is drifted, and says which hash."""
    close(open_world)
    version = bind(open_world, "effect", ENDPOINT)
    pinned = {**version.binding, "closure_sha256": "0" * 64}
    version.figure.current.binding = pinned
    assert recompute(version.figure).state == "drifted"
    assert "closure_sha256" in recompute(version.figure).trouble


@pytest.mark.parametrize(
    ("binding", "given", "message"),
    [
        ({"type": "pending", "fills": {"plan": "small", "endpoint": "recovery"}}, {"kind": "typed"}, "kind: got"),
        (ENDPOINT, {"kind": "mechanism"}, "expected effect"),
        (ENDPOINT, {"origin": "imported"}, "expected native"),
        (ENDPOINT, {"plan_version": None}, "plan_version: got none"),
        (CELL, {"origin": "imported"}, "expected native"),
    ],
)
def test_kinds_of_closed_figures(open_world: World, binding: Any, given: Any, message: str) -> None:
    """An endpoint is an effect and ours."""
    close(open_world)
    with pytest.raises(DomainError, match=message):
        bind(open_world, "wrong", binding, **given)


def test_an_effect_rests_on_effects_only(open_world: World) -> None:
    """A difference of two closed cells is an effect; with a mechanism figure among them it is refused."""
    close(open_world)
    bind(open_world, "e3.rate", CELL)
    bind(open_world, "e2f.rate", {**CELL, "checkpoint": "e2f"})
    bind(open_world, "e3.mechanism", CELL, kind="mechanism")
    gap = {"type": "derivation", "expression": "a - b", "figures": {"a": "e3.rate", "b": "e2f.rate"}}
    assert bind(open_world, "gap", gap).figure.state == "bound"
    mixed = {**gap, "figures": {"a": "e3.mechanism", "b": "e2f.rate"}}
    with pytest.raises(DomainError, match="never fills an effect cell"):
        bind(open_world, "mixed", mixed)


def test_the_page_of_an_effect_names_its_documents(open_world: World, client: Client) -> None:
    """Plan, endpoint and both hashes."""
    close(open_world)
    version = bind(open_world, "effect", ENDPOINT)
    open_world.study.visibility = "public"
    open_world.study.save()
    page = client.get(f"/figures/{version.figure.uid}/").content.decode()
    assert version.binding["closure_sha256"] in page and "a registered endpoint of a closed execution" in page


def test_what_a_figure_is_bound_to_ends_in_no_comma(open_world: World) -> None:
    """A rate of a cell has no part; its cell is named. A count names the part, an endpoint its quantity."""
    close(open_world)
    for key, binding, said in (
        ("rate", CELL, "e3, stress, test, recovered"),
        ("count", {**CELL, "part": "n"}, "e3, stress, test, recovered, n"),
        ("effect", ENDPOINT, "difference"),
    ):  # fmt: skip
        bind(open_world, key, binding)
        (found,) = chips_of(Figure.objects.filter(key=key).select_related("study", *RELATED)).values()
        assert _where(found) == f"{found.source_name}, {said}" and found.source_name
