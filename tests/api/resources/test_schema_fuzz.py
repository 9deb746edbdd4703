"""The whole schema under generated requests: no server error, and no answer that the schema does not name.

Two thirds of the requests carry identifiers of rows that exist, half of these a query that finds something, so that
answers with content are checked too. At length (the slow test, about ten minutes on one core) half of them break the
schema.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
import schemathesis
from django.core.cache import cache
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from runs.actions.tracking import create_logged_run
from runs.api.schema import document
from runs.metrics.store import LoggedPoint, log_points
from runs.models import Receipt, TrackedRun
from tests.api.calls import Api
from tests.evidence_rows import names_of
from tests.pages.state import World
from workbench.wsgi import application as server

pytestmark = pytest.mark.usefixtures("evidence")
NOTHING, IDENTIFIERS, QUERY = range(3)  # what of a request is known here and not drawn; the query with the identifiers
QUERIES: dict[str, dict[str, Any]] = {  # of reads that need one
    "/api/v1/logged-runs/{uid}/chart": {"name": "loss"},
    "/api/v1/logged-runs/{uid}/history": {"name": "loss"},
    "/api/v1/sources/{uid}/difference": {"before": 1, "after": 2},
}
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


def application(environ: Any, start_response: Any) -> Any:
    """The server, which must not close the connection that holds the test's transaction."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    try:
        response = server(environ, start_response)
        data = [b"".join(response)]
        response.close()
        return data
    finally:
        for signal in (request_started, request_finished):
            signal.connect(close_old_connections)


SCHEMA = schemathesis.openapi.from_dict(document())
SCHEMA.app = application
OPERATIONS = [found.ok() for found in SCHEMA.get_all_operations() if isinstance(found, Ok)]
LABELS = [operation.label for operation in OPERATIONS]


def logged(world: World) -> UUID:
    """A run that was logged from elsewhere, with one point; made once."""
    head = TrackedRun.objects.filter(study=world.study).first()
    if head is None:
        actor, at = world.study.created_by, world.study.created_at
        head = create_logged_run(world.study, "elsewhere", by=actor, at=at, key="fuzz")
        log_points(head.run, [LoggedPoint("loss", 0.5, 1, 1)], source="api", actor=actor, at=at)
    return head.run.uid


def known(world: World) -> dict[str, dict[str, Any]]:
    """Path parameters of rows that exist, by the address's first part."""
    run = world.runs["e3-s17"]
    group = run.groups.first()
    trajectory = group.trajectories.first()
    task = group.task
    names = names_of(world.study)
    return {
        "studies": {"slug": world.study.slug, "number": names["notes"]},
        "sources": {"uid": str(names["source"]), "number": 1},
        "excerpts": {"uid": str(names["excerpt"])},
        "figures": {"uid": str(names["figure"])},
        "claims": {"uid": str(names["claim"])},
        "links": {"uid": str(names["link"])},
        "reviews": {"uid": str(names["review"]), "name": names["link_item"]},
        "stale-marks": {"uid": str(names["mark"])},
        "plans": {"uid": str(world.plan.uid)},
        "executions": {"uid": str(world.execution.uid), "verb": "pause"},
        "runs": {"uid": str(run.uid), "key": "reward", "verb": "resume"},
        "logged-runs": {"uid": str(logged(world))},
        "jobs": {"uid": str(world.execution.jobs.first().uid)},
        "groups": {"uid": str(group.uid)},
        "trajectories": {"uid": str(trajectory.uid)},
        "captures": {"sha256": trajectory.turns.first().capture_sha256},
        "checkpoints": {"uid": str(group.checkpoint.uid)},
        "tasks": {"uid": str(task.uid)},
        "task-sets": {"uid": str(task.entries.first().task_set.uid)},
        "receipts": {"sha256": Receipt.objects.filter(stream=f"run:{run.uid}").values_list("sha256", flat=True)[0]},
    }


def depth(operation: Any) -> int:
    """How many requests at length: a body or a query varies in many ways, an identifier alone is known or it is not."""
    return 200 if operation.body else 120 if operation.query else 30


def fuzz(label: str, world: World, api: Api, examples: int | None = None) -> None:
    """Generated requests of one operation; without ``examples`` at length, and then half of them against the schema."""
    operation = OPERATIONS[LABELS.index(label)]
    cases = operation.as_strategy()
    if examples is None:
        examples, varied = depth(operation), bool(operation.body or operation.query)
        cases |= operation.as_strategy(generation_mode=GenerationMode.NEGATIVE) if varied else st.nothing()
    rows = known(world)
    first = operation.path.removeprefix("/api/v1/").split("/")[0]

    @seed(20261130)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases, real=st.sampled_from((NOTHING, IDENTIFIERS, QUERY)))
    def inner(case: Any, real: int) -> None:
        cache.clear()  # a whole rate limit for each request
        known_here = rows.get(first, {}) if real else {}
        if case.path_parameters:
            case.path_parameters.update({k: v for k, v in known_here.items() if k in case.path_parameters})
        for name in ("fields", "cursor") if real and case.query else ():
            case.query.pop(name, None)  # whole answers from their beginning; what is drawn for these is refused
        if real == QUERY and case.path_parameters and operation.method.upper() == "GET":
            case.query = dict(QUERIES.get(operation.path, {}))
        if real and operation.path.endswith("/difference") and first == "plans":
            case.query = {"against": rows["plans"]["uid"]}
        if real and first == "events":
            case.query = {"run": str(world.runs["e3-s17"].uid), **{k: v for k, v in case.query.items() if k == "limit"}}
        if real and first == "dependants":
            case.query = {"kind": "source", "uid": rows["sources"]["uid"]}
        if case.query and "wait" in case.query:
            case.query.pop("wait")  # it would wait
        case.call_and_validate(headers={"Authorization": f"Bearer {api.secret}"}, checks=CHECKS)

    inner()


@pytest.mark.parametrize("label", LABELS)
def test_every_operation_answers_as_its_schema_says(label: str, world: World, mara: Api) -> None:
    """Two requests of each operation, the same ones every time."""
    fuzz(label, world, mara, 2)


@pytest.mark.gate
@pytest.mark.parametrize("label", LABELS)
def test_some_requests_answer_as_the_schema_says(label: str, world: World, mara: Api) -> None:
    """A few more, likewise the same ones."""
    fuzz(label, world, mara, 6)


@pytest.mark.slow
@pytest.mark.parametrize("label", LABELS)
def test_many_requests_answer_as_the_schema_says(label: str, world: World, mara: Api) -> None:
    """The same at length."""
    fuzz(label, world, mara)
