"""Results of a plan: counts, pending cells, paired dots, verdicts."""

from __future__ import annotations

from typing import Any

from django.test import Client
from pytest_django import DjangoAssertNumQueries

from runs.actions.closure import item_facts
from runs.actions.documents import store_document
from runs.actions.plans import plan_body
from runs.models import EvaluationItem
from runs.presenters.results import EndpointView, headline
from runs.statistics.aggregate import build_aggregate
from tests.pages.state import World
from tests.pages.world import evaluate
from workbench.contracts.canonical import canonical_bytes

RESULTS = "/studies/fatal-mask-pair/plans/small/results/"


def test_counts_equal_the_rows(client: Client, world: World, db: None) -> None:
    """The parent has 9 tasks x 2 repeats = 18 items a condition; finish is counted over all of them."""
    answer = client.get(RESULTS)
    columns = {column.key: column for column in answer.context["columns"]}
    cell = columns["parent"].cells["stress", "test"]
    items = EvaluationItem.objects.filter(plan_version=world.version, run=None, condition="stress")
    assert cell.stored == cell.planned == items.count() == 18
    assert cell.rates["finish"].n == items.filter(trajectory__finished=True).count()
    exposed = items.filter(trajectory__exposed=True)
    assert cell.rates["recovered_exposed"].of == exposed.count()


def test_an_arm_without_items_is_pending_and_never_zero(client: Client, world: World, db: None) -> None:
    answer = client.get(RESULTS)
    column = next(c for c in answer.context["columns"] if c.key == "e3")
    assert column.cells["standard", "test"].stored == 0
    assert column.cells["standard", "test"].reward is None
    text = answer.content.decode()
    assert "Pending: 2 of 4 arms have evaluation items" in text
    assert "No task has been evaluated for both arms yet." in text


def test_without_exposure_recovery_is_no_rate(client: Client, world: World, db: None) -> None:
    """STANDARD injects nothing, so nobody could recover: not 0 of 18."""
    columns = client.get(RESULTS).context["columns"]
    assert columns[0].cells["standard", "test"].shown("recovered").of == 0
    assert columns[0].cells["stress", "test"].shown("recovered").of == 18


def _close(world: World) -> dict[str, Any]:
    run = world.runs["e3-s17"]
    run.head.refresh_from_db()
    evaluate(world, run, run.head.checkpoint, 0.8)
    body = plan_body(world.version)["plan"]
    aggregate = build_aggregate(
        plan_sha256=world.version.sha256,
        endpoints=body["endpoints"],
        strict_pairs=body["strict_pairs"],
        items=item_facts(world.execution),
        resamples=200,
    )
    store_document("aggregate", world.execution.uid, canonical_bytes(aggregate))
    return aggregate


def test_a_stored_aggregate_gives_verdict_interval_and_dots(client: Client, world: World, db: None) -> None:
    aggregate = _close(world)
    answer = client.get(RESULTS)
    (endpoint,) = answer.context["endpoints"]
    stored = aggregate["endpoints"][0]["results"][0]
    assert endpoint.verdict == stored["verdict"]
    assert endpoint.contrast["low"] == stored["contrast"]["over_seeds"]["interval"]["low"]
    assert len(endpoint.may) == len(stored["may_say"]) and len(endpoint.may_not) == len(stored["may_not_say"])
    ((contract, dots),) = answer.context["pairs"]
    assert contract.arms == ("e2f", "e3")
    for figure in dots:
        assert figure.better + figure.worse + figure.tied == len(figure.rows)
        assert figure.contrast is not None
        mean = sum(row.right - row.left for row in figure.rows) / len(figure.rows)
        assert abs(mean - figure.contrast["difference"]) < 1e-9


def test_unknown_plan(client: Client, world: World, db: None) -> None:
    assert client.get("/studies/fatal-mask-pair/plans/none/results/").status_code == 404


def test_query_count_is_bounded(
    client: Client, world: World, db: None, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_max_num_queries(27):
        client.get(RESULTS)


def _endpoint(name: str, low: float, high: float, *, opposite: bool) -> EndpointView:
    registered = {"id": name, "metric": "reward", "condition": "standard", "direction": "increase",
                  "compare": {"kind": "pair", "arms": ["e2f", "e3"]}}  # fmt: skip
    contrast = {"difference": (low + high) / 2, "low": low, "high": high}
    word = "observed on this frozen sample"
    return EndpointView(
        registered, ["e2f", "e3"], "observed_on_this_frozen_sample", word, None, contrast, opposite=opposite
    )


def test_an_interval_against_the_registered_direction_is_said_in_the_headline() -> None:
    """Registered: increase. [-0.3, -0.1] lies wholly against it; [-0.1, 0.1] does not."""
    said = headline([_endpoint("a", -0.3, -0.1, opposite=True)], [])
    assert "[−0.300, −0.100], the interval lies against the registered direction (increase); observed" in said
    assert "against the registered" not in headline([_endpoint("a", -0.1, 0.1, opposite=False)], [])


def test_an_endpoint_against_its_direction_is_never_left_out_of_the_headline() -> None:
    """Two endpoints open the page; a third one is named where it ran against its direction, and only then."""
    calm = [_endpoint(name, -0.1, 0.1, opposite=False) for name in "abc"]
    assert headline(calm, []).count("[") == 2
    assert headline([*calm, _endpoint("d", -0.3, -0.1, opposite=True)], []).count("[") == 3
