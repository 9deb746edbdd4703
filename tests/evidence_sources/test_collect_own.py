"""Our own closed executions become sources."""

from __future__ import annotations

from typing import Any

import pytest

from evidence.actions.sources import add_source, collect_own, read_version
from evidence.ingest.own import endpoint_table
from evidence.models import Source, SourceVersion
from runs.actions.closure import closure_of
from runs.errors import DomainError
from runs.models import Receipt, Study
from tests.evidence_sources.conftest import newest
from tests.runs.scripted import AT, Lab
from tests.runs.scripted import lab as lab
from tests.runs.test_advance import ALONE
from workbench.contracts.canonical import sha256_hex
from worker.closing import await_written, collect_missing


@pytest.fixture
def closed(lab: Lab) -> Any:
    """An execution that workers have closed."""
    execution = lab.start(**ALONE)
    lab.drive(execution)
    return execution


@pytest.mark.django_db
def test_closing_an_execution_collects_its_records(closed: Any) -> None:
    """Plan, closure, one run manifest, two evaluations, summary, endpoints and receipts, without anybody asking."""
    version = closed.plan_version
    base = f"receipts/{version.plan.slug}/{version.number}/"
    found = {source.path.removeprefix(base): source for source in Source.objects.select_related("current")}
    assert len(found) == 8 and all(source.state == "verified" for source in found.values())
    assert {"plan.json", "closure.json", "summary.json", "endpoints.csv", "receipts.jsonl"} <= set(found)
    assert [name.split("/")[0] for name in sorted(found) if "/" in name] == ["evaluations", "evaluations", "runs"]
    closure = closure_of(closed)
    assert closure is not None and newest(found["closure.json"]).sha256 == closure.sha256
    assert newest(found["plan.json"]).sha256 == version.sha256
    assert (found["closure.json"].origin, found["endpoints.csv"].origin, found["summary.json"].origin) == (
        "closure", "export", "receipt",
    )  # fmt: skip


@pytest.mark.django_db
def test_collecting_again_adds_nothing(closed: Any, lab: Lab) -> None:
    """Not even after the execution's stream has grown."""
    study = closed.plan_version.plan.study
    before = SourceVersion.objects.count(), Receipt.objects.count()
    assert collect_own(study, by=lab.actor, at=AT) == 0
    assert (SourceVersion.objects.count(), Receipt.objects.count()) == before


@pytest.mark.django_db
def test_the_receipts_are_the_chain_as_it_was_hashed(closed: Any) -> None:
    """Each line is what one receipt's hash covers, up to the closing."""
    source = Source.objects.get(path__endswith="receipts.jsonl")
    lines = read_version(newest(source)).splitlines()
    chain = Receipt.objects.filter(stream=f"execution:{closed.uid}").order_by("seq")
    known = list(chain.values_list("sha256", "kind"))
    assert [sha256_hex(line) for line in lines] == [sha256 for sha256, _ in known[: len(lines)]]
    assert known[len(lines) - 1][1] == "execution.closed"


def test_the_table_of_endpoints_has_a_row_a_comparison() -> None:
    """Numbers as the canonical form writes them; nothing where nothing was measured, never 0."""
    endpoint = {"id": "e1", "metric": "recovery", "condition": "stress", "split": "test", "compare": {"kind": "pair"}}
    over = {"task_difference": {"value": 0.125}, "interval": {"low": -0.5, "high": 1e-7, "level": 0.95, "tasks": 9}}
    results = [
        {"arms": ["a", "b"], "state": "measured", "contrast": {"over_seeds": over}},
        {"arms": ["a"], "state": "pending", "contrast": None},
    ]
    table = endpoint_table({"endpoints": [{"endpoint": endpoint, "results": results}]}).decode().splitlines()
    assert table[0].startswith("id,metric,condition,split,compare,first,second,state,difference,low,high,level,tasks")
    assert table[1] == "e1,recovery,stress,test,pair,a,b,measured,0.125,-0.5,1e-7,0.95,9,,,,"
    assert table[2] == "e1,recovery,stress,test,pair,a,,pending,,,,,,,,,"


@pytest.mark.django_db
def test_a_worker_that_ended_too_early_is_made_good(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The closing stands where collecting fails; the reaper collects later, and then has nothing left to do."""
    with monkeypatch.context() as patch:
        patch.setattr("worker.closing.collect_own", lambda *args, **named: 1 / 0)
        execution = lab.start(**ALONE)
        lab.drive(execution)
    execution.refresh_from_db()
    assert execution.state == "closed" and not Source.objects.exists() and "were not collected" in caplog.text
    assert not await_written(0)
    assert collect_missing() == 8 and collect_missing() == 0
    assert await_written(0)


@pytest.mark.django_db
def test_a_worker_that_ended_halfway_is_made_good(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The closure is taken in last: while it is absent, the reaper goes on."""
    with monkeypatch.context() as patch:
        patch.setattr("evidence.ingest.own._receipts", lambda execution: 1 / 0)
        lab.drive(lab.start(**ALONE))
    assert Source.objects.count() == 6 and not Source.objects.filter(origin="closure").exists()
    assert collect_missing() == 2 and collect_missing() == 0


@pytest.mark.parametrize("origin", ["upload", "watched", "git"])
def test_nobody_else_writes_among_our_records(study: Study, acting: dict[str, Any], origin: str) -> None:
    """A path below receipts/ cannot be taken by an upload."""
    with pytest.raises(DomainError, match=r"^path: got 'receipts/x.json'"):
        add_source(study, "receipts/x.json", b"{}", origin=origin, **acting)
