"""Search of runs: filters, order, pages; and the language by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import DjangoDbBlocker

from runs.mlflow.errors import MlflowError
from runs.mlflow.filters import Comparison, Order, is_like, parse_filter, parse_order
from runs.models import Study
from tests.mlflow.calls import Mlflow, point
from tests.mlflow.conftest import make_study, secret_of

VALUES: dict[str, Any] = {"a": 1.0, "b": 3.0, "c": "NaN", "d": None, "e": "Infinity", "f": 2.0}


@pytest.fixture(scope="module")
def study(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Study]:
    """One study for all tests here; its rows vanish with the outer transaction."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield make_study()
        transaction.set_rollback(True)


@pytest.fixture(scope="module")
def runs(study: Study, django_db_blocker: DjangoDbBlocker) -> dict[str, str]:
    """Runs a to f, begun one after the other; d has no loss, c not a number; f has a second attempt."""
    with django_db_blocker.unblock():
        return begun(Mlflow(secret_of("mara", study, "researcher")), study)


def begun(mara: Mlflow, study: Study) -> dict[str, str]:
    """The runs of the fixture, by name."""
    found = {}
    for number, (name, value) in enumerate(VALUES.items()):
        run = mara.post("runs/create", experiment_id=str(study.pk), run_name=name, start_time=1000 + number)["run"]
        found[name] = run["info"]["run_id"]
        params = [{"key": "lr", "value": f"0.{number}"}, {"key": "odd key", "value": "it's"}]
        mara.post("runs/log-batch", run_id=found[name], params=params, tags=[{"key": "group", "value": "old"}])
        if name in "abc":
            mara.post("runs/set-tag", run_id=found[name], key="group", value="New")
        if value is not None:
            mara.post("runs/log-metric", run_id=found[name], **point("loss", 100.0, 0, 1))
            mara.post("runs/log-metric", run_id=found[name], **point("loss", value, 5, 5))
    mara.post("runs/update", run_id=found["a"], status="FINISHED", end_time=5000)
    mara.post("runs/update", run_id=found["f"], status="FAILED")
    mara.post("runs/update", run_id=found["f"], status="RUNNING")
    mara.post("runs/log-metric", run_id=found["f"], **point("loss", 0.25, 9, 9))
    return found


def names(found: dict[str, Any]) -> str:
    return "".join(run["info"]["run_name"] for run in found["runs"])


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "fedcba"),
        ("metrics.loss < 2", "fa"),
        ("metrics.loss >= 1", "eba"),
        ("metrics.loss = 0.25", "f"),
        ("metrics.loss != 1", "fecb"),
        ("metrics.loss > 3", "e"),
        ("metrics.`loss` <= 1.0 and params.lr = '0.0'", "a"),
        ("metrics.absent > 0", ""),
        ("metrics.loss IS NULL", "d"),
        ("metrics.loss IS NOT NULL", "fecba"),
        ("params.lr != '0.0'", "fedcb"),
        ("params.lr IN ('0.1', '0.2')", "cb"),
        ("params.lr NOT IN ('0.1', '0.2')", "feda"),
        ("params.\"odd key\" = 'it''s'", "fedcba"),
        ("params.lr LIKE '0._'", "fedcba"),
        ("tags.group = 'New'", "cba"),
        ("tags.group = 'old'", "fed"),
        ("tags.group LIKE 'n%'", ""),
        ("tags.group ILIKE 'n%'", "cba"),
        ("tags.mlflow.runName = 'e'", "e"),
        ("tags.`mlflow.runName` = 'e'", "e"),
        ("tags.absent IS NULL and metrics.loss < 2", "fa"),
        ("attributes.status = 'FINISHED'", "a"),
        ("status != 'RUNNING'", "a"),
        ("attributes.run_name = 'b'", "b"),
        ("run_name LIKE '%c%'", "c"),
        ("start_time > 1003", "fe"),
        ("attributes.start_time <= 1000 AND attributes.end_time = 5000", "a"),
    ],
)
def test_filters(mara: Mlflow, study: Study, runs: dict[str, str], text: str, expected: str) -> None:
    assert names(mara.post("runs/search", experiment_ids=[str(study.pk)], filter=text)) == expected


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ([], "fedcba"),
        (["metrics.loss ASC"], "fabecd"),
        (["metrics.loss DESC"], "ebafcd"),
        (["metrics.`loss`"], "fabecd"),
        (["params.lr DESC"], "fedcba"),
        (["tags.group", "params.lr ASC"], "abcdef"),
        (["attributes.start_time ASC"], "abcdef"),
        (["attributes.end_time ASC"], "afedcb"),
        (["run_name DESC"], "fedcba"),
        (["attributes.status ASC", "run_name ASC"], "abcdef"),
    ],
)
def test_order(mara: Mlflow, study: Study, runs: dict[str, str], order: list[str], expected: str) -> None:
    assert names(mara.post("runs/search", experiment_ids=[str(study.pk)], order_by=order)) == expected


@pytest.mark.django_db
@pytest.mark.parametrize("order", [[], ["metrics.loss ASC"]])
def test_pages_hold_each_run_once_while_others_begin(
    mara: Mlflow, study: Study, runs: dict[str, str], order: list[str]
) -> None:
    body: dict[str, Any] = {"experiment_ids": [str(study.pk)], "max_results": 2, "order_by": order}
    seen, token = "", ""
    while True:
        found = mara.post("runs/search", **body, page_token=token)
        seen += names(found)
        token = found.get("next_page_token", "")
        if not token:
            break
        mara.run(study.pk, "late")
    assert seen == ("fabecd" if order else "fedcba")


@pytest.mark.django_db
def test_deleted_runs_are_asked_for_by_name(mara: Mlflow, study: Study, runs: dict[str, str]) -> None:
    mara.post("runs/delete", run_id=runs["c"])
    ask = {"experiment_ids": [str(study.pk)]}
    assert names(mara.post("runs/search", **ask)) == "fedba"
    assert names(mara.post("runs/search", **ask, run_view_type="DELETED_ONLY")) == "c"
    assert names(mara.post("runs/search", **ask, run_view_type="ALL")) == "fedcba"
    mara.post("runs/search", 400, **ask, run_view_type="SOME")


@pytest.mark.django_db
def test_studies_of_others_are_left_out(mara: Mlflow, study: Study, runs: dict[str, str], caller: Any) -> None:
    other = make_study("hidden")
    caller("ada", other).run(other.pk, "secret")
    asked = [str(other.pk), str(study.pk), "999999", "x"]
    assert names(mara.post("runs/search", experiment_ids=asked)) == "fedcba"
    assert names(mara.post("runs/search", experiment_ids=[str(other.pk)])) == ""


@pytest.mark.django_db
@pytest.mark.parametrize("most", [0, -1, 50_001, "ten", True, 1.5])
def test_a_page_of_no_size_is_refused(mara: Mlflow, study: Study, most: Any) -> None:
    assert mara.post("runs/search", 400, experiment_ids=[str(study.pk)], max_results=most)


@pytest.mark.parametrize(
    "text",
    [
        "metrics.loss",
        "metrics.loss <",
        "metrics.loss < 'abc'",
        "metrics.loss LIKE '1%'",
        "params.lr = 1",
        "params.lr > '1'",
        "params.lr = '1' or params.lr = '2'",
        "params.lr = '1' params.lr = '2'",
        "nothing.lr = '1'",
        "attributes.colour = 'red'",
        "params.`lr = '1'",
        "params.lr = 'open",
        "params.lr IN '1'",
        "params.lr IN ('1', 2)",
        "params.lr IN ('1'",
        "params.lr IS EMPTY",
        "params. = '1'",
        "; DROP TABLE runs_run",
        "params.a\x00 = '1'",
        "metrics.loss < 1 and",
        "params.lr = '1' and " * 60 + "params.lr = '1'",
        "x" * 7000,
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(MlflowError, match=r"filter: got .*expected"):
        parse_filter(text)


def test_what_a_filter_means() -> None:
    found = parse_filter("metrics.\"a b\" >= -1.5e-3 AND tag.x = \"y\" and attr.status IN ('A','B')")
    assert found == [
        Comparison("metric", "a b", ">=", -0.0015),
        Comparison("tag", "x", "=", "y"),
        Comparison("attribute", "status", "IN", ("A", "B")),
    ]
    assert parse_filter("metrics.train/loss < 3") == [Comparison("metric", "train/loss", "<", 3)]


def test_what_an_order_means() -> None:
    assert parse_order(["metrics.`a b` DESC", "start_time"]) == [
        Order("metric", "a b", True),
        Order("attribute", "start_time", False),
    ]
    for wrong in (["metrics.loss UP"], "metrics.loss", [1], ["colour"], ["metrics.loss ASC DESC"]):
        with pytest.raises(MlflowError, match="order_by: got"):
            parse_order(wrong)


@given(st.text(max_size=300))
def test_no_filter_breaks_the_reader(text: str) -> None:
    try:
        for clause in parse_filter(text):
            assert clause.entity in ("metric", "param", "tag", "attribute") and clause.key
    except MlflowError as error:
        assert "filter" in error.message


@given(st.text("ab%_", max_size=8), st.text("ab", max_size=8))
def test_like_is_the_pattern_of_sql(pattern: str, text: str) -> None:
    """Against a definition by recursion."""

    def matches(rest: str, left: str) -> bool:
        if not rest:
            return not left
        if rest[0] == "%":
            return any(matches(rest[1:], left[place:]) for place in range(len(left) + 1))
        return bool(left) and rest[0] in ("_", left[0]) and matches(rest[1:], left[1:])

    assert is_like(text, pattern) == matches(pattern, text)


def test_a_hostile_pattern_costs_little() -> None:
    assert not is_like("a" * 20_000, "%a" * 40 + "b")
