"""Hostile input to every change of evidence is answered with a named field, and changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from runs.access import EVIDENCE_WRITE, READ, REVIEW_WRITE
from runs.api.docs import resolved
from runs.api.schema import document
from runs.models import Membership, Receipt
from tests.api.calls import Api, fields
from tests.api.conftest import make_caller
from tests.api.resources.test_hostile import BODIES
from tests.api.resources.test_schema_fuzz import known
from tests.pages.state import World

pytestmark = pytest.mark.usefixtures("evidence")
TAGS = ("evidence", "stale", "reviews", "notes", "journal")
CHANGES = sorted(
    (method.upper(), path.removeprefix("/api/v1/"))
    for path, item in document()["paths"].items()
    for method in ("post", "put")
    if method in item and item[method]["tags"][0] in TAGS
)
IDS = [f"{method} {path}" for method, path in CHANGES]


def _members(method: str, path: str) -> dict[str, Any]:
    """Schemas of the body's members, by name."""
    operation = document()["paths"][f"/api/v1/{path}"][method.lower()]
    content = operation.get("requestBody", {}).get("content", {})
    return dict(resolved(content["application/json"]["schema"]).get("properties", {})) if content else {}


def _address(world: World, path: str) -> str:
    return path.format(**known(world)[path.split("/")[0]])


def _caller(world: World) -> Api:
    """Someone who may do all of it: a researcher who is a reviewer as well."""
    make_caller("olga", world.study, Membership.RESEARCHER)
    return make_caller("olga", world.study, Membership.REVIEWER)


def _receipts() -> int:
    return Receipt.objects.count()


def test_every_change_is_looked_at() -> None:
    """The table below covers what the product serves, and each has a capability of evidence."""
    assert len(CHANGES) == 26
    for method, path in CHANGES:
        needs = document()["paths"][f"/api/v1/{path}"][method.lower()]["x-capability"]
        assert needs in (EVIDENCE_WRITE, REVIEW_WRITE, READ, f"{EVIDENCE_WRITE} or {REVIEW_WRITE}"), path


@pytest.mark.parametrize("bodies", [BODIES[:1], pytest.param(BODIES, marks=pytest.mark.gate)], ids=["first", "all"])
@pytest.mark.parametrize(("method", "path"), CHANGES, ids=IDS)
def test_a_malformed_body_is_refused_with_a_field(
    world: World, db: None, method: str, path: str, bodies: list[tuple[str, bytes, int]]
) -> None:
    caller, address = _caller(world), _address(world, path)
    before = _receipts()
    for name, raw, status in bodies:
        response = caller.call(method, address, raw=raw)
        assert response.status_code == status and fields(response), (name, response.content[:300])
    assert _receipts() == before


@pytest.mark.parametrize(("method", "path"), CHANGES, ids=IDS)
def test_an_unknown_member_is_named(world: World, db: None, method: str, path: str) -> None:
    caller, address = _caller(world), _address(world, path)
    before = _receipts()
    for name in ("__class__", "actor", "study__slug"):
        response = caller.call(method, address, {name: "x"})
        assert response.status_code == 422 and fields(response) == [name], response.content[:300]
    assert _receipts() == before


@pytest.mark.parametrize(("method", "path"), CHANGES, ids=IDS)
def test_a_member_of_a_wrong_type_is_named(world: World, db: None, method: str, path: str) -> None:
    """A list that holds an object is right for no member of any body."""
    caller, address = _caller(world), _address(world, path)
    before = _receipts()
    for name in _members(method, path):
        response = caller.call(method, address, {name: [{}]})
        assert response.status_code == 422, response.content[:300]
        assert any(field.split(".")[0].split("[")[0] == name for field in fields(response)), response.content[:300]
    assert _receipts() == before
